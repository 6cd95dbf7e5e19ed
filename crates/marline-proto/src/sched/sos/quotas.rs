//! How the symbols of the units under way are divided among the paths.

use alloc::collections::BTreeMap;

use smallvec::SmallVec;

use super::lanes::Way;
use super::{Lane, split};

/// The quotas of one plan: the split of each unit, in which those before it count as under way (7).
#[derive(Debug)]
pub(super) struct Quotas<'a> {
    ways: &'a [Way],
    units: BTreeMap<u64, SmallVec<[u32; 4]>>,
    /// Symbols that units got so far on each path, and how many of these were emitted.
    granted: SmallVec<[u32; 4]>,
    emitted: SmallVec<[u32; 4]>,
}

impl<'a> Quotas<'a> {
    pub(super) fn new(ways: &'a [Way]) -> Self {
        Self {
            ways,
            units: BTreeMap::new(),
            granted: SmallVec::from_elem(0, ways.len()),
            emitted: SmallVec::from_elem(0, ways.len()),
        }
    }

    /// The paths as a unit that comes now meets them.
    pub(super) fn lanes(&self) -> SmallVec<[Lane; 4]> {
        let ways = self.ways.iter().zip(&self.granted);
        ways.map(|(way, granted)| way.lane(f64::from(*granted)))
            .collect()
    }

    pub(super) fn knows(&self, unit: u64) -> bool {
        self.units.contains_key(&unit)
    }

    /// Splits a unit of which `symbols` are left.
    pub(super) fn divide(&mut self, unit: u64, symbols: u32) {
        let packets = split(&self.lanes(), symbols).packets;
        for (granted, packets) in self.granted.iter_mut().zip(&packets) {
            *granted = granted.saturating_add(*packets);
        }
        self.units.insert(unit, packets);
    }

    /// The path for the unit's next symbol: of those that it has a quota on the one that brings it
    /// first.
    pub(super) fn path(&self, unit: u64) -> Option<usize> {
        let left = self.units.get(&unit)?;
        let open = left.iter().enumerate().filter(|(_, left)| **left > 0);
        let at = |i: usize| self.ways[i].lane(f64::from(self.emitted[i])).expected(1);
        let arrivals = open.map(|(i, _)| (i, at(i)));
        let first = arrivals.min_by(|a, b| a.1.total_cmp(&b.1));
        first.map(|(i, _)| i)
    }

    /// A symbol of the unit is emitted on the path.
    pub(super) fn take(&mut self, unit: u64, index: usize) {
        self.emitted[index] += 1;
        if let Some(left) = self.units.get_mut(&unit).and_then(|u| u.get_mut(index)) {
            *left = left.saturating_sub(1);
        }
    }
}
