//! The objects of a sender whose fates are not known.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use marline_base::Instant;

use super::Fate;

#[derive(Debug)]
pub(super) struct Object {
    pub(super) urgency: u8,
    pub(super) incremental: bool,
    pub(super) opened: Instant,
    pub(super) size: Option<u64>,
    /// Bytes written.
    pub(super) bytes: u64,
    /// Nothing more is written.
    pub(super) ended: bool,
    /// Objects that must be settled first.
    pub(super) blockers: BTreeSet<u64>,
    /// Units that are not offered yet, in order.
    pub(super) queue: VecDeque<u64>,
    /// The unit that is.
    pub(super) offered: Option<u64>,
    /// Units whose fates are not known.
    pub(super) open: BTreeSet<u64>,
    pub(super) whole_us: Option<u64>,
    /// Some unit of it was not delivered.
    pub(super) torn: bool,
    /// It was given up so.
    pub(super) end: Option<Fate>,
}

#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) table: BTreeMap<u64, Object>,
    /// Objects ever opened.
    pub(super) count: u64,
    /// Objects that wait for an object.
    pub(super) waiting: BTreeMap<u64, Vec<u64>>,
}

impl Objects {
    pub(super) fn is_incremental(&self, object: u64) -> bool {
        self.table.get(&object).is_some_and(|o| o.incremental)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Objects whose fate is not known.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Of these, objects that were given up here.
    pub(super) fn ended(&self) -> usize {
        self.table.values().filter(|o| o.end.is_some()).count()
    }
}
