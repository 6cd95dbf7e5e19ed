//! Credit for the peer: what it may send before more is read.
//!
//! A stream begins with its reserve, or with what the paths are known to carry (`starts`). Its
//! window doubles while it is read as quickly as it comes (dynamic right-sizing: Fisk and Feng,
//! LANL 2001; the QUIC of Chromium does it by the same test), within what the session's memory has
//! free.
//!
//! Credit for streams is per flow and session, as is that of blocks and objects, where each unit
//! costs 256 bytes more. Packets flows have no credit: they drop the oldest unread message instead,
//! as UDP would.

use marline_base::{Duration, Instant};

use super::Session;
use super::flow::Flow;
use crate::flow::RecvHalf;
use crate::flow::grant::Grant;
use crate::path::Control;
use crate::stats;
use crate::wire::FlowId;

/// Bytes of all streams and units together: what this side may send, and what the peer may.
#[derive(Debug)]
pub(super) struct Credit {
    /// That this side may send in all, and has sent.
    may_send: u64,
    sent: u64,
    /// That the peer may send in all, has sent, and that was read.
    grant: Grant,
}

impl Credit {
    pub(super) fn new(may_send: u64, granted: u64) -> Self {
        Self {
            may_send,
            sent: 0,
            grant: Grant::new(granted),
        }
    }

    /// Bytes that this side may still send.
    pub(super) fn left(&self) -> u64 {
        self.may_send - self.sent
    }

    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// The peer allows this side that many bytes in all. Whether that is more than before.
    pub(super) fn on_granted(&mut self, max: u64) -> bool {
        let more = max > self.may_send;
        self.may_send = self.may_send.max(max);
        more
    }

    /// Bytes that the peer may send in all.
    pub(super) fn granted(&self) -> u64 {
        self.grant.granted()
    }

    /// Bytes have arrived that had not. Whether the peer was allowed to send them.
    pub(super) fn on_received(&mut self, bytes: u64) -> bool {
        self.grant.take(bytes)
    }

    pub(super) fn on_read(&mut self, bytes: u64) {
        self.grant.give_back(bytes);
    }

    /// Grants `window` bytes beyond what was read, if that is enough for a frame: `reserve` is what
    /// a flow must be able to send without it.
    fn renew(&mut self, window: u64, reserve: u64) -> bool {
        // The less is left, the sooner: reserves must never wait for it.
        let soon = (self.grant.left() / 2).max(reserve);
        self.grant.renew(window, (window / 4).min(soon))
    }

    pub(super) fn stats(&self) -> stats::Credit {
        stats::Credit {
            send: (self.may_send, self.sent),
            receive: (
                self.grant.granted(),
                self.grant.taken(),
                self.grant.returned(),
            ),
        }
    }
}

impl Session {
    /// Reading freed credit: the peer gets it when enough has come together.
    pub(super) fn renew_credit(&mut self, id: FlowId) {
        let units = self.units_recv(id);
        if units.is_some_and(|units| units.renew()) {
            self.egress.control.insert(Control::MaxFlowData(id));
            self.timers.wake();
        }
        let reserve = self.config.reserve();
        let flows = self.config.max_flows.max(self.flows.len() as u64);
        let window = self.config.session_window + flows * reserve;
        if self.credit.renew(window, reserve) {
            self.egress.control.insert(Control::MaxData);
            self.timers.wake();
        }
    }

    /// The same for a stream that was read, with a larger window if it is too small.
    pub(super) fn renew_stream(&mut self, now: Instant, id: FlowId) {
        let trip = || self.longest_trip();
        let due = match self.flows.get(&id).map(|flow| (flow, &flow.recv)) {
            Some((flow, RecvHalf::Stream(recv))) => {
                let window = recv.due(now, trip).map(|w| w.min(self.config.flow_window));
                window.map(|window| (window, self.memory.received.most(flow.accounted.0)))
            }
            _ => None,
        };
        let Some((wanted, most)) = due else {
            return;
        };
        if wanted > most {
            self.yield_stalled(now);
        }
        if let Some(RecvHalf::Stream(recv)) = self.flows.get_mut(&id).map(|f| &mut f.recv) {
            recv.renew(now, wanted.min(most));
            self.starts.on_read(id);
            self.egress.control.insert(Control::MaxFlowData(id));
            self.timers.wake();
        }
    }

    /// The round trip of the longest usable path: bytes of a stream may take any of them.
    pub(super) fn longest_trip(&self) -> Duration {
        let trips = self
            .paths
            .usable()
            .map(|index| self.paths[index].rtt.smoothed());
        trips.max().unwrap_or_default()
    }

    /// The application read something of a flow.
    pub(super) fn on_read(&mut self, now: Instant, id: FlowId) {
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.unread_since = None;
            self.memory.account(flow);
            flow.wait_for_reader(now);
            self.relieve(now);
        }
    }

    /// Gives up a stream that its peer has finished and nobody has read for long.
    pub(super) fn end_lingering(&mut self, now: Instant, id: FlowId) {
        let lingers = |flow: &Flow| flow.lingers_until(self.config.linger);
        if self
            .flows
            .get(&id)
            .and_then(lingers)
            .is_some_and(|at| at <= now)
        {
            self.give_up(id);
        }
    }
}

impl Flow {
    /// Takes note of when something began to wait for its reader.
    pub(super) fn wait_for_reader(&mut self, now: Instant) {
        if self.unread_since.is_none() && self.accounted.0 > 0 {
            self.unread_since = Some(now);
        }
    }

    /// When a stream that its peer has finished is given up if nobody reads it.
    pub(super) fn lingers_until(&self, linger: Option<Duration>) -> Option<Instant> {
        match &self.recv {
            RecvHalf::Stream(recv) if recv.is_ended() => Some(self.unread_since? + linger?),
            _ => None,
        }
    }
}
