//! What streams begin with: the credit that a stream has before any of it was read.
//!
//! A stream's reserve lets a first window of a path through (RFC 6928), which is as much as a path
//! that nobody knows takes. On a session whose paths carry more than that in a round trip, each
//! new stream would wait for credit instead: one of 100 kB takes a round trip or two longer than
//! the paths do. So a receiver lets streams begin with what has arrived in two round trips, of
//! whichever flows, within bounds, and says so before they are opened: MAX_FLOW_DATA for the next
//! streams of a peer that has opened one, and beside OPEN_FLOW for its own.
//!
//! What is granted counts against the session's memory until some of it was read: together with
//! what flows hold no more than half of its window, and of that no more than a quarter for streams
//! that are not open. So the reserves of all other flows are free, whatever streams do with what
//! they were granted.

use alloc::collections::BTreeMap;

use marline_base::Instant;

use super::Session;
use crate::path::Control;
use crate::wire::FlowId;

/// Least credit beyond the reserve that is worth a frame (bytes); what streams begin with is this,
/// or two or four times as much. A choice, not tuned.
const LEAST: u64 = 64 << 10;
/// Most bytes that a stream begins with: a round trip of 40 ms at 50 Mb/s, in which its window has
/// doubled if it is too small. A choice, not tuned.
const MOST: u64 = 256 << 10;
/// Streams that may be granted more than their reserve before they are opened: the connections
/// that a browser opens for a page at once. A choice, not tuned.
const AHEAD: u64 = 16;
/// Such grants of the peer that are remembered, so that it may grant more than we do.
const REMEMBERED: u64 = 64;
/// The part of the session's window that is granted to streams before they are opened.
const PART: u64 = 8;

/// Credit of streams that are not open yet.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// What streams begin with, as far as the paths have carried that much (bytes).
    window: u64,
    /// Bytes that have arrived in this round trip, and when it ends.
    arrived: u64,
    until: Instant,
    /// What streams of the peer begin with, by index, which was or will be said to it.
    granted: BTreeMap<u64, u64>,
    /// Bytes beyond their reserves of open streams from which little was read.
    begun: BTreeMap<FlowId, u64>,
    /// The peer has opened no flow from this index on.
    unopened: u64,
    /// It has opened a stream: one that opens none needs no credit for them.
    has_streams: bool,
    /// What the peer said for streams of ours, by index.
    given: BTreeMap<u64, u64>,
}

impl Starts {
    /// What a stream of the peer with this index was granted, if it is not open.
    pub(super) fn granted(&self, index: u64) -> Option<u64> {
        self.granted.get(&index).copied()
    }

    /// A stream begins with these bytes beyond its reserve.
    pub(super) fn on_begun(&mut self, id: FlowId, beyond: u64) {
        if beyond > 0 {
            self.begun.insert(id, beyond);
        }
    }

    /// The peer opens a stream.
    pub(super) fn on_stream(&mut self) {
        self.has_streams = true;
    }

    /// A stream was read, and has a window of its own from now on; or it is over.
    pub(super) fn on_read(&mut self, id: FlowId) {
        self.begun.remove(&id);
    }

    /// The peer opens a flow, which takes its grant.
    pub(super) fn on_opened(&mut self, index: u64) -> Option<u64> {
        self.unopened = self.unopened.max(index + 1);
        self.granted.remove(&index)
    }

    /// The peer grants this to a stream that we may open, while `next` is the next one.
    pub(super) fn on_given(&mut self, index: u64, bytes: u64, next: u64) {
        if (next..next.saturating_add(REMEMBERED)).contains(&index) {
            let given = self.given.entry(index).or_default();
            *given = bytes.max(*given);
        }
    }

    /// We open a flow, which takes what the peer granted it.
    pub(super) fn take_given(&mut self, index: u64) -> u64 {
        let given = self.given.remove(&index);
        self.given = self.given.split_off(&index);
        given.unwrap_or(0)
    }

    /// Bytes beyond their `reserve` of all that were granted and are not open.
    fn promised(&self, reserve: u64) -> u64 {
        let beyond = self.granted.values().map(|b| b.saturating_sub(reserve));
        beyond.sum()
    }
}

impl Session {
    /// A datagram of this length (bytes) has arrived.
    pub(super) fn learn_start(&mut self, now: Instant, bytes: usize) {
        if self.config.begin_blind || self.starts.window >= MOST {
            return;
        }
        if now >= self.starts.until {
            let trip = self.longest_trip();
            (self.starts.arrived, self.starts.until) = (0, now + trip);
        }
        self.starts.arrived += bytes as u64;
        let mut enough = LEAST.max(2 * self.starts.window);
        while 2 * self.starts.arrived >= enough && self.starts.window < MOST {
            self.starts.window = enough;
            enough *= 2;
            self.grant_starts();
        }
    }

    /// What a stream begins with that is opened now: its reserve, or what the paths have carried.
    pub(super) fn start(&self) -> u64 {
        let reserve = self.config.reserve();
        match self.starts_left() >= self.starts.window {
            true => reserve.max(self.starts.window.min(self.config.flow_window)),
            false => reserve,
        }
    }

    /// Grants the peer's next streams what they begin with.
    pub(super) fn grant_starts(&mut self) {
        if !self.starts.has_streams {
            return;
        }
        let (reserve, start) = (self.config.reserve(), self.start());
        let Some(each) = start.checked_sub(reserve).filter(|each| *each > 0) else {
            return;
        };
        let most = (self.config.session_window / PART / each).min(AHEAD);
        let first = self.starts.unopened;
        let granted = |index| self.starts.granted(index).is_some_and(|b| b >= start);
        let all = (first..first + most).filter(|index| *index < self.numbers.peer_may_open());
        let missing = all.filter(|index| !granted(*index)).count() as u64;
        // In steps, so that a stream does not cost a frame each.
        if missing == 0 || missing < most.div_ceil(2) {
            return;
        }
        for index in first..(first + most).min(self.numbers.peer_may_open()) {
            let known = self.starts.granted(index);
            let more = start - known.unwrap_or(reserve).min(start);
            let is_full = known.is_none() && self.starts.granted.len() as u64 >= AHEAD;
            if more == 0 || is_full || self.starts_left() < more {
                continue;
            }
            self.starts.granted.insert(index, start);
            let id = FlowId::new(!self.is_client(), index);
            self.egress.control.insert(Control::MaxFlowData(id));
            self.timers.wake();
        }
    }

    /// Bytes that may be granted in advance now: half of the session's memory less what flows hold
    /// of it and what was granted.
    fn starts_left(&self) -> u64 {
        let promised = self.starts.promised(self.config.reserve());
        let begun = self.starts.begun.values().sum::<u64>();
        let free = self.memory.received.spare();
        let free = free.saturating_sub(promised + begun);
        let part = (self.config.session_window / PART).saturating_sub(promised);
        free.min(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_peer_grants_is_remembered_for_the_next_streams_alone() {
        let mut starts = Starts::default();
        for (index, bytes) in [
            (4, 100),
            (5, 50),
            (5, 80),
            (5, 60),
            (3, 7),
            (4 + REMEMBERED, 9),
        ] {
            starts.on_given(index, bytes, 4);
        }
        assert_eq!(starts.given.len(), 2);
        assert_eq!((starts.take_given(4), starts.take_given(4)), (100, 0));
        assert_eq!(starts.take_given(6), 0);
        assert!(starts.given.is_empty(), "5 is past");
    }
}
