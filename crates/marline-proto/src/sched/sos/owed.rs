//! Repair symbols that units are to get: δ of SOS-FEC.

use alloc::collections::BTreeMap;

use smallvec::SmallVec;

use super::{Lane, redundant};
use crate::sched::{PathView, Plan};
use crate::wire::PathId;

/// What each unit is to get on each path besides its source symbols.
#[derive(Debug)]
pub(super) struct Owed {
    gamma: f64,
    units: BTreeMap<u64, SmallVec<[(PathId, u32); 4]>>,
}

impl Owed {
    pub(super) fn new(gamma: f64) -> Self {
        Self {
            gamma,
            units: BTreeMap::new(),
        }
    }

    /// A unit of `symbols` symbols begins; it is asked about once, however often it is split.
    pub(super) fn begin(&mut self, unit: u64, lanes: &[Lane], paths: &[PathView], symbols: u32) {
        let gamma = self.gamma;
        self.units.entry(unit).or_insert_with(|| {
            let plain = redundant(lanes, symbols, 1.0).packets;
            let more = redundant(lanes, symbols, gamma).packets;
            let extra = more.iter().zip(&plain).map(|(more, plain)| more - plain);
            paths.iter().map(|path| path.id).zip(extra).collect()
        });
    }

    /// Emits what is owed to units that were emitted whole, as paths have room.
    pub(super) fn pay(&mut self, plan: &mut Plan<'_>) {
        for unit in plan.units().iter().filter(|unit| unit.len == 0) {
            let Some(owed) = self.units.get_mut(&unit.id) else {
                continue;
            };
            for (id, left) in owed {
                let Some(index) = plan.paths().iter().position(|path| path.id == *id) else {
                    continue;
                };
                while *left > 0 && plan.paths()[index].has_room() {
                    if plan.repair_of(unit.id, index).is_none() {
                        *left = 0;
                        break;
                    }
                    *left -= 1;
                }
            }
        }
    }

    pub(super) fn forget(&mut self, unit: u64) {
        self.units.remove(&unit);
    }
}
