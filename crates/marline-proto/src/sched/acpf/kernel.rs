//! The fractions as the kernel moves them (§4.1): whenever a packet is scheduled onto any path,
//! those of all paths, each by a step that is the smaller the larger its window (eq. 2).

use alloc::vec::Vec;

use super::{Bounds, MOST, RAW_STEP};
use crate::congestion::Phase;
use crate::sched::PathView;
use crate::wire::PathId;

#[derive(Clone, Debug)]
pub(super) struct Kernel {
    bounds: Bounds,
    /// In order of path id.
    pub(super) fractions: Vec<(PathId, f64)>,
}

impl Kernel {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            fractions: Vec::new(),
        }
    }

    fn find(&self, id: PathId) -> Result<usize, usize> {
        self.fractions.binary_search_by_key(&id, |(id, _)| *id)
    }

    pub(super) fn on_scheduled(&mut self, paths: &[PathView], queue: f64) {
        // A path that is gone begins again.
        self.fractions
            .retain(|(id, _)| paths.iter().any(|p| p.id == *id));
        for path in paths {
            let index = self.find(path.id).unwrap_or_else(|index| {
                self.fractions.insert(index, (path.id, MOST));
                index
            });
            // §4.1: what waits while BBR measures the round trip says nothing of the load.
            if path.congestion.phase == Phase::ProbeRtt {
                continue;
            }
            // eq. 2, with the window in packets.
            let window = (path.window / u64::from(path.symbol.max(1))).max(1);
            let step = RAW_STEP / window as f64;
            let fraction = &mut self.fractions[index].1;
            *fraction = match self.bounds.is_long(queue) {
                true => self.bounds.grown(*fraction, step),
                false => self.bounds.shrunk(*fraction, step),
            };
        }
    }

    pub(super) fn of(&self, path: &PathView) -> f64 {
        self.find(path.id)
            .map_or(MOST, |index| self.fractions[index].1)
    }
}
