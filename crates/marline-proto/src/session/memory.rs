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
//!
//! A flow's reserve is 32 KiB in each direction. So flows that stall hold little, and where the
//! memory is needed by a flow that is read, the longest-stalled flow is the one that is given up. A
//! server bounds its clients together in the same way (`marline::endpoint`, `server/memory.rs`).

use marline_base::{Duration, Instant};

use super::Session;
use super::flow::Flow;
use crate::config::Config;
use crate::event::Event;
use crate::flow::{CodeRecv, RecvHalf, SendHalf};
use crate::path::Control;
use crate::wire::{FlowId, close_code};

/// A flow yields no sooner than this after it was last read: ten round trips over a geostationary
/// satellite (some 0.5 s each), so that a program which is only slow is not stalled. A choice, not
/// tuned.
const STALLED: Duration = Duration::from_secs(5);

/// What a flow costs besides what it holds (bytes): itself, its application's task, and a socket's
/// share of the runtime. By this much a server's resident memory (`VmRSS`) grew for each of 1000
/// connections opened by `marline-hostile idle --count 1000`, and for each of three clients' 2100.
const FLOW_COST: u64 = 12 << 10;

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

    /// Bytes that are free of half of it.
    pub(super) fn spare(&self) -> u64 {
        (self.size / 2).saturating_sub(self.taken)
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
    /// Bytes that flows hold: what has arrived and is not read, what was written and is not
    /// acknowledged, what decoders keep, and 12 KiB for a flow itself.
    pub fn held(&self) -> u64 {
        let decoders = self.flows.values().filter_map(|f| f.decoder.as_deref());
        let flows = self.flows.len() as u64 * FLOW_COST;
        self.memory.held + flows + decoders.map(CodeRecv::held).sum::<u64>()
    }

    /// Sets by how much what the flows hold beyond their reserves may grow (bytes), in both
    /// directions together, and to [`Config::session_window`] in each at most. What they hold
    /// already they keep until it is read.
    pub fn limit_growth(&mut self, bytes: u64) {
        for pool in [&mut self.memory.received, &mut self.memory.sent] {
            pool.size = (pool.taken + bytes / 2).min(self.config.session_window);
        }
    }

    /// The application has read the flow and keeps `bytes` of it for somebody who does not take
    /// them yet: they count as unread until it says less. Returns false if the flow is over.
    pub fn retain(&mut self, now: Instant, id: FlowId, bytes: u64) -> bool {
        let Some(flow) = self.flows.get_mut(&id) else {
            return false;
        };
        if flow.retained != bytes {
            flow.retained = bytes;
            self.on_read(now, id);
            self.reap(id);
        }
        true
    }

    /// Flows that may be decoded at once: fewer where memory is short.
    pub(super) fn most_decoders(&self) -> u64 {
        let (size, all) = (self.memory.received.size, self.config.session_window);
        let most = u128::from(self.config.code_flows) * u128::from(size);
        most.div_ceil(u128::from(all)) as u64
    }

    /// Is nothing more to be read of a flow because it was given up, at either end?
    pub fn is_given_up(&self, id: FlowId) -> bool {
        match self.flows.get(&id).map(|flow| &flow.recv) {
            Some(RecvHalf::Stream(recv)) => recv.is_given_up(),
            Some(RecvHalf::Packets(recv)) => recv.reset_code().is_some(),
            Some(RecvHalf::Units(recv)) => recv.is_given_up(),
            None => true,
        }
    }

    /// The flows that hold something, each with the time since when nothing of that was read, or
    /// acknowledged, and the bytes that it holds.
    pub fn stalled_flows(&self) -> impl Iterator<Item = (Instant, FlowId, u64)> + '_ {
        let flows = self.flows.values();
        flows.filter_map(|flow| {
            let held = flow.accounted.0 + flow.accounted.1;
            Some((flow.stalled_since(0)?, flow.id, held))
        })
    }

    /// Gives up the longest-stalled flow, whatever it holds, because this host needs the memory.
    /// Returns whether there was one.
    pub fn give_up_stalled(&mut self) -> bool {
        let found = self.stalled(0);
        found.inspect(|(_, id)| self.give_up(*id)).is_some()
    }

    /// Gives up the longest-stalled flow of those that hold more than their reserve unread, if it
    /// is stalled for long.
    pub(super) fn yield_stalled(&mut self, now: Instant) {
        let found = self.stalled(self.memory.received.reserve);
        if let Some((since, id)) = found
            && now.since(since) >= STALLED
        {
            self.give_up(id);
        }
    }

    /// Where flows hold more than there is, the longest-stalled yields. A flow of blocks or objects
    /// begins with a whole window, so that a peer could claim them all at once: of those the one
    /// that holds most is given up, however short it has waited.
    pub(super) fn relieve(&mut self, now: Instant) {
        if self.memory.received.is_overdrawn() {
            self.yield_stalled(now);
        }
        while self.memory.received.is_overdrawn() {
            let units = self.flows.values().filter(|flow| flow.kind.has_units());
            let large = units.filter(|flow| flow.accounted.0 > self.memory.received.reserve);
            match large
                .max_by_key(|flow| flow.accounted.0)
                .map(|flow| flow.id)
            {
                Some(id) => self.give_up(id),
                None => break,
            }
        }
    }

    /// The longest-stalled flow that holds more than `least` bytes unread, or that has something
    /// to send if `least` is 0.
    fn stalled(&self, least: u64) -> Option<(Instant, FlowId)> {
        let flows = self.flows.values();
        let stalled = flows.filter_map(|flow| Some((flow.stalled_since(least)?, flow.id)));
        stalled.min()
    }

    pub(super) fn account(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.get_mut(&id) {
            self.memory.account(flow);
        }
    }

    /// Gives a flow up because this host needs its memory: its application and the peer see a
    /// reset.
    pub fn give_up(&mut self, id: FlowId) {
        let code = close_code::YIELDED;
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        (flow.unread_since, flow.unacked_since) = (None, None);
        match &mut flow.recv {
            RecvHalf::Stream(recv) => recv.fail(code),
            RecvHalf::Units(recv) => recv.fail(code),
            RecvHalf::Packets(_) => {}
        }
        if flow.stopped.is_none() && !flow.recv.is_complete() {
            flow.stopped = Some(code);
            self.egress.control.insert(Control::StopSending(id));
        }
        flow.readable_announced = true;
        self.timers.wake();
        self.events.push_back(Event::FlowReadable(id));
        self.events.push_back(Event::FlowStopped(id, code));
        self.discard(id);
        self.reset_send(id, code);
    }
}

impl Flow {
    /// Since when nothing was read of more than `least` bytes, or acknowledged if `least` is 0.
    fn stalled_since(&self, least: u64) -> Option<Instant> {
        let unread = self.unread_since.filter(|_| self.accounted.0 > least);
        let sends = least == 0 && self.accounted.1 > 0;
        let unacked = self.unacked_since.filter(|_| sends);
        unread.into_iter().chain(unacked).min()
    }

    /// Bytes that arrived and are not read, or retained by who read them.
    pub(super) fn received(&self) -> u64 {
        let unread = match &self.recv {
            RecvHalf::Stream(recv) => recv.unread(),
            RecvHalf::Packets(recv) => recv.held(),
            RecvHalf::Units(recv) => recv.held(),
        };
        unread + self.retained
    }
}

impl SendHalf {
    /// Bytes that were written and are not acknowledged.
    pub(crate) fn held(&self) -> u64 {
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
