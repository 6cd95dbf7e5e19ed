//! Deadlines of flows: messages that expire, streams that linger, symbols that wait for their code.
//!
//! Each flow keeps its own timer. What it had before stays in the heap until it would be the first,
//! or until there is more of that than of flows: a live flow sets another timer with each message
//! and each acknowledgement, and to search for the old one costs more than to push a new one.

use alloc::collections::BinaryHeap;
use alloc::collections::binary_heap::PeekMut;
use core::cmp::Reverse;

use marline_base::Instant;

use super::Session;
use super::table::Flows;
use crate::flow::{RecvHalf, SendHalf};
use crate::wire::FlowId;

/// Old timers that stay however few flows there are. A choice, not tuned.
const SPARE: usize = 64;

/// Timers of flows. The first one is always a flow's present timer.
#[derive(Debug, Default)]
pub(super) struct FlowTimers {
    heap: BinaryHeap<Reverse<(Instant, FlowId)>>,
}

impl FlowTimers {
    pub(super) fn first(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// A flow's timer has changed to `new`, or it has none any more, or the flow is gone.
    pub(super) fn change(&mut self, new: Option<(Instant, FlowId)>, flows: &Flows) {
        self.heap.extend(new.map(Reverse));
        if self.heap.len() > 2 * flows.len() + SPARE {
            let timers = flows
                .values()
                .filter_map(|flow| Some((flow.timer?, flow.id)));
            self.heap = timers.map(Reverse).collect();
        }
        let holds = |(at, id): (Instant, FlowId)| {
            let flow = flows.get(&id);
            flow.is_some_and(|flow| flow.timer == Some(at))
        };
        while let Some(first) = self.heap.peek_mut()
            && !holds(first.0)
        {
            PeekMut::pop(first);
        }
    }

    /// A flow whose timer has run out by `now`; it is cleared.
    pub(super) fn take_due(&mut self, now: Instant, flows: &mut Flows) -> Option<FlowId> {
        let Reverse((_, id)) = *self.heap.peek().filter(|first| first.0.0 <= now)?;
        flows.get_mut(&id)?.timer = None;
        self.change(None, flows);
        Some(id)
    }

    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }
}

impl Session {
    /// Sets the flow's timer to the next of its deadlines.
    pub(super) fn retime(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let send = match &flow.send {
            SendHalf::Packets(packets) => packets.next_expiry(),
            SendHalf::Units(units) => units.next_expiry(),
            SendHalf::Stream(_) => None,
        };
        let recv = match &flow.recv {
            RecvHalf::Packets(packets) => packets.deadline(),
            RecvHalf::Stream(_) => flow.lingers_until(self.config.linger),
            RecvHalf::Units(_) => None,
        };
        let code = flow.coder.as_ref().and_then(|c| c.deadline());
        let next = [send, recv, code].into_iter().flatten().min();
        if flow.timer != next {
            flow.timer = next;
            let new = next.map(|at| (at, id));
            self.flow_timers.change(new, &self.flows);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::config::Config;
    use crate::session::{FlowOptions, Side};
    use crate::wire::FlowKind;

    #[test]
    fn only_the_last_timer_of_a_flow_holds_and_old_ones_do_not_pile_up() {
        let config = Config::default();
        let peer = config.params();
        let mut session = Session::new(Instant::ZERO, Side::Client, config, peer, 7).unwrap();
        let open = |_| {
            let options = FlowOptions::new(FlowKind::Stream);
            session.open_flow(&options).unwrap()
        };
        let ids: Vec<FlowId> = (0..3).map(open).collect();
        let (mut timers, flows) = (FlowTimers::default(), &mut session.flows);
        let set = |timers: &mut FlowTimers, flows: &mut Flows, id: FlowId, ms: Option<u64>| {
            let at = ms.map(Instant::from_millis);
            flows.get_mut(&id).unwrap().timer = at;
            timers.change(at.map(|at| (at, id)), flows);
        };
        // Back and forth, so that old timers of the flow hold again.
        for n in 0..10_000 {
            set(&mut timers, flows, ids[0], Some(10 + n % 2));
        }
        assert!(timers.heap.len() <= 2 * ids.len() + SPARE + 1);
        set(&mut timers, flows, ids[1], Some(5));
        set(&mut timers, flows, ids[2], Some(11));
        assert_eq!(timers.first(), Some(Instant::from_millis(5)));
        set(&mut timers, flows, ids[1], None);
        assert_eq!(timers.first(), Some(Instant::from_millis(11)));
        let mut due = |ms| timers.take_due(Instant::from_millis(ms), flows);
        assert_eq!(due(10), None);
        assert_eq!(
            [due(11), due(11), due(11)],
            [Some(ids[0]), Some(ids[2]), None]
        );
        assert_eq!(timers.first(), None);
    }
}
