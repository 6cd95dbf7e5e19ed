//! How flows share the memory of a session: a reserve each, and a window for all that need more.
//!
//! A flow holds what has arrived and is not read, and what was written and is not acknowledged.
//! Its reserve is its own, whatever others hold. What it holds beyond that comes out of the
//! session's window, and of what is free there it takes at most half (a dynamic threshold:
//! Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
//! IEEE/ACM Transactions on Networking 6(2), 1998). So there is always room for one more, and a
//! flow that nobody reads stops no other one.
//!
//! A flow that is not read can't be asked to give back what it holds. If one that is read needs
//! the room, the flow that has not been read for longest yields: it is given up.

use marline_base::{Duration, Instant};

use super::Session;
use super::control::Control;
use crate::config::Config;
use crate::event::Event;
use crate::flow::{Flow, RecvHalf, SendHalf};
use crate::wire::{FlowId, close_code};

/// A flow yields no sooner than this after it was last read (10 × the longest round trip that
/// is usual on the Internet, 0.5 s): a program that is only slow is not stalled.
const STALLED: Duration = Duration::from_secs(5);

/// One direction's memory beyond the flows' reserves (bytes).
#[derive(Debug)]
pub(super) struct Pool {
    size: u64,
    reserve: u64,
    taken: u64,
}

impl Pool {
    pub(super) fn new(size: u64, reserve: u64) -> Self {
        Self {
            size,
            reserve,
            taken: 0,
        }
    }

    /// A flow holds `now` bytes, and held `before` when this was called last.
    fn update(&mut self, before: u64, now: u64) {
        self.taken += now.saturating_sub(self.reserve);
        self.taken -= before.saturating_sub(self.reserve);
    }

    /// Most bytes that a flow which holds `held` may hold: its reserve, and half of what is free.
    pub(super) fn most(&self, held: u64) -> u64 {
        let own = held.saturating_sub(self.reserve);
        let others = self.taken.saturating_sub(own);
        self.reserve + self.size.saturating_sub(others) / 2
    }

    pub(super) fn is_overdrawn(&self) -> bool {
        self.taken > self.size
    }
}

/// What flows of a session hold in each direction.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) received: Pool,
    pub(super) sent: Pool,
    /// All that is held, reserves included.
    held: u64,
}

impl Memory {
    pub(super) fn new(config: &Config) -> Self {
        let reserve = config.reserve();
        Self {
            received: Pool::new(config.session_window, reserve),
            sent: Pool::new(config.session_window, reserve),
            held: 0,
        }
    }

    /// Takes note of what the flow holds since the last call.
    pub(super) fn account(&mut self, flow: &mut Flow) {
        self.note(flow, flow.received(), flow.send.held());
    }

    /// The flow is gone.
    pub(super) fn release(&mut self, flow: &mut Flow) {
        self.note(flow, 0, 0);
    }

    fn note(&mut self, flow: &mut Flow, received: u64, sent: u64) {
        let before = flow.accounted;
        self.received.update(before.0, received);
        self.sent.update(before.1, sent);
        self.held = self.held + received + sent - before.0 - before.1;
        flow.accounted = (received, sent);
    }
}

impl Session {
    /// Bytes that flows hold: what has arrived and is not read, decoders included, and what was
    /// written and is not acknowledged.
    pub fn held(&self) -> u64 {
        self.memory.held
    }

    /// Lets the flows hold at most so many bytes in each direction beyond their reserves, at most
    /// [`Config::session_window`]. What they hold already they keep until it is read.
    pub fn limit_memory(&mut self, bytes: u64) {
        let size = bytes.min(self.config.session_window);
        self.memory.received.size = size;
        self.memory.sent.size = size;
    }

    /// Since when the flow that has not been read for longest holds more than its reserve;
    /// `None` if no flow does.
    pub fn stalled_since(&self) -> Option<Instant> {
        self.stalled().map(|(since, _)| since)
    }

    /// Gives up the flow that has not been read for longest of those that hold more than their
    /// reserve, if that is longer than 5 s. Returns whether one was given up.
    pub fn yield_stalled(&mut self, now: Instant) -> bool {
        let found = self.stalled();
        let stalled = found.filter(|(since, _)| now.since(*since) >= STALLED);
        stalled.inspect(|(_, id)| self.give_up(*id)).is_some()
    }

    fn stalled(&self) -> Option<(Instant, FlowId)> {
        let flows = self.flows.values();
        let large = flows.filter(|f| f.accounted.0 > self.memory.received.reserve);
        large.filter_map(|f| Some((f.unread_since?, f.id))).min()
    }

    pub(super) fn account(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.get_mut(&id) {
            self.memory.account(flow);
        }
    }

    /// Gives a flow up, of which nothing is read: its application and the peer learn of it.
    pub(super) fn give_up(&mut self, id: FlowId) {
        let code = close_code::YIELDED;
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        flow.unread_since = None;
        match &mut flow.recv {
            RecvHalf::Stream(recv) => recv.fail(code),
            RecvHalf::Units(recv) => recv.fail(code),
            RecvHalf::Packets(_) => {}
        }
        if flow.stopped.is_none() && !flow.recv.is_complete() {
            flow.stopped = Some(code);
            self.control.insert(Control::StopSending(id));
        }
        flow.readable_told = true;
        self.rest = None;
        self.events.push_back(Event::FlowReadable(id));
        self.events.push_back(Event::FlowStopped(id, code));
        self.discard(id);
        self.reset_send(id, code);
    }
}

impl Flow {
    /// Bytes that arrived and are not read.
    fn received(&self) -> u64 {
        match &self.recv {
            RecvHalf::Stream(recv) => recv.unread(),
            RecvHalf::Packets(recv) => recv.held(),
            RecvHalf::Units(recv) => recv.held(),
        }
    }
}

impl SendHalf {
    /// Bytes that were written and are not acknowledged.
    pub(super) fn held(&self) -> u64 {
        match self {
            Self::Stream(stream) => stream.unacked(),
            Self::Packets(packets) => packets.held(),
            Self::Units(units) => units.held(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_always_room_for_one_more() {
        let mut pool = Pool::new(1 << 20, 1 << 10);
        let mut before = u64::MAX;
        for _ in 0..64 {
            let most = pool.most(0);
            assert!(most >= 1 << 10, "the reserve is its own");
            assert!(most <= before, "who comes later gets no more");
            pool.update(0, most);
            before = most;
        }
        assert!(pool.taken <= pool.size);
    }

    #[test]
    fn what_one_holds_itself_counts_as_free_to_it() {
        let mut pool = Pool::new(1_000, 100);
        pool.update(0, 600);
        assert_eq!(pool.most(600), 100 + 500);
        assert_eq!(pool.most(0), 100 + 250);
        pool.update(600, 50);
        assert_eq!((pool.taken, pool.most(0)), (0, 600));
    }
}
