//! Which flows there were: numbers that were given, limits of both sides, and what those carried
//! that are closed.

use crate::ranges::RangeSet;
use crate::stats::{Carried, FlowCounters};

/// Indices of flows, each side's its own, and how many there may be.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Of the next flow that this side opens.
    next: u64,
    /// How many this side may ever open.
    may_open: u64,
    /// Of flows that the peer ever opened, and how many of these are closed.
    by_peer: RangeSet,
    by_peer_closed: u64,
    /// How many the peer may ever open, as it knows.
    peer_may_open: u64,
    /// Flows of the peer that may be open at once.
    at_once: u64,
    closed: u64,
    carried: Carried,
}

impl Numbers {
    /// `at_once` flows of the peer may be open at a time, and `may_open` of this side at first.
    pub(super) fn new(at_once: u64, may_open: u64) -> Self {
        Self {
            next: 0,
            may_open,
            by_peer: RangeSet::default(),
            by_peer_closed: 0,
            peer_may_open: at_once,
            at_once,
            closed: 0,
            carried: Carried::default(),
        }
    }

    /// Does the peer allow one more flow of this side?
    pub(super) fn may_open(&self) -> bool {
        self.next < self.may_open
    }

    /// The index of a flow that this side opens now.
    pub(super) fn open(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// The index from which on this side has opened none.
    pub(super) fn unopened(&self) -> u64 {
        self.next
    }

    /// The peer allows this many, ever.
    pub(super) fn on_limit(&mut self, most: u64) {
        self.may_open = self.may_open.max(most);
    }

    /// How many the peer may ever open.
    pub(super) fn peer_may_open(&self) -> u64 {
        self.peer_may_open
    }

    /// Did the peer ever open the one with this index?
    pub(super) fn was_opened_by_peer(&self, index: u64) -> bool {
        self.by_peer.contains(index)
    }

    /// The peer opens the one with this index.
    pub(super) fn on_opened_by_peer(&mut self, index: u64) {
        self.by_peer.insert(index..index + 1);
    }

    /// A flow is closed. Whether the peer has to hear that it may open more.
    pub(super) fn on_closed(&mut self, is_ours: bool, counters: &FlowCounters) -> bool {
        self.closed += 1;
        self.carried.add(counters);
        if is_ours {
            return false;
        }
        self.by_peer_closed += 1;
        let limit = self.by_peer_closed + self.at_once;
        // In steps, so that short flows do not cost a frame each.
        let is_raised = limit >= self.peer_may_open + self.at_once.div_ceil(4);
        if is_raised {
            self.peer_may_open = limit;
        }
        is_raised
    }

    /// How many are closed.
    pub(super) fn closed(&self) -> u64 {
        self.closed
    }

    /// What those carried that are closed.
    pub(super) fn carried(&self) -> Carried {
        self.carried
    }
}
