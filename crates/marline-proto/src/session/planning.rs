//! Schedulers plan, flow by flow and a part of the flows at a time.
//!
//! When something has changed, the scheduler of every flow with a backlog may decide differently.
//! With a thousand flows such a pass takes milliseconds, and a driver may have other sessions to
//! serve. So one call of [`poll_transmit`](super::Session::poll_transmit) plans a part of them, the
//! most urgent first, and the next call goes on behind it.

use alloc::collections::VecDeque;

use marline_base::Instant;

use super::Session;
use super::share::class_of;
use super::spill::Costs;
use super::timers::rewish;
use crate::wire::FlowId;

/// Flows that one call plans at most: under 0.4 ms of work with the default scheduler of streams. A
/// pass over a thousand flows took up to 12 ms in a server under `lab/siege.sh` (time of its
/// `poll_transmit`), so that 12 µs are the most that one takes. A choice, not tuned.
const PART: usize = 32;

/// What is left of a pass over all flows that have something to send.
#[derive(Debug, Default)]
pub(super) struct Pass {
    flows: VecDeque<FlowId>,
    /// Bytes that all of its flows could send now; counted only if a scheduler minds others.
    unsent: u64,
}

impl Session {
    /// Are there flows whose schedulers must plan before it is known what may leave now?
    pub(super) fn has_to_plan(&self) -> bool {
        self.replan || !self.pass.flows.is_empty()
    }

    /// Lets the schedulers of the next flows that have a backlog plan. A pass that is under way is
    /// finished before what has changed meanwhile begins another.
    pub(super) fn plan(&mut self, now: Instant) {
        if self.pass.flows.is_empty() {
            self.replan = false;
            self.pass.flows.extend(self.share.iter());
            self.pass.unsent = self.unsent();
        }
        let mut views = self.take_views();
        let costs = Costs::of(&views, &self.paths);
        let mut chosen = core::mem::take(&mut self.chosen);
        let symbol = views.iter().map(|v| v.symbol).min().unwrap_or(0);
        let mut planned = 0;
        while planned < PART
            && let Some(id) = self.pass.flows.pop_front()
        {
            // Its turn is over if it was reset since the pass began.
            let Some(flow) = self.flows.get_mut(&id).filter(|f| f.turn.is_some()) else {
                continue;
            };
            let credit = self.send_credit - self.data_sent;
            let woken = flow.scheduler.wake_at().is_some_and(|at| at <= now);
            if flow.reset.is_none() && (woken || flow.has_work(symbol.max(1), credit)) {
                planned += 1;
                for view in &mut views {
                    view.queued_own = flow.queues.bytes(view.id);
                    view.queued = self.waiting.ahead(view.id, class_of(flow), view.queued_own);
                }
                if self.minds_others {
                    self.pass.unsent = self.pass.unsent.saturating_sub(flow.unsent(credit));
                    self.common.set_others(self.pass.unsent);
                }
                if let Some(coder) = &mut flow.coder {
                    coder.borrow(&mut self.advance);
                }
                let views = match &costs {
                    Some(costs) => {
                        costs.choose(now, flow, &views, credit, &mut chosen);
                        &mut chosen
                    }
                    None => {
                        flow.costs_alike();
                        &mut views
                    }
                };
                let used = flow.plan(now, views, credit, &mut self.common);
                self.data_sent += used;
                if let Some(coder) = &mut flow.coder {
                    coder.repay(&mut self.advance);
                }
                if self.minds_others {
                    self.pass.unsent += flow.unsent(credit - used);
                }
                self.waiting.account(flow);
                rewish(&mut self.wishes, flow);
            } else if flow.queues.is_all_empty() {
                if flow.has_backlog(symbol.max(1), u64::MAX) {
                    self.starved.insert(id);
                }
                flow.turn = None;
                flow.costs_alike();
                rewish(&mut self.wishes, flow);
                self.share.remove(id, class_of(flow));
                self.ageing.on_idle(flow);
            }
        }
        self.views = views;
        self.chosen = chosen;
    }

    /// Bytes that the flows of the pass could send now, were there room.
    fn unsent(&self) -> u64 {
        if !self.minds_others {
            return 0;
        }
        let credit = self.send_credit - self.data_sent;
        let flows = self.pass.flows.iter().filter_map(|id| self.flows.get(id));
        flows.map(|flow| flow.unsent(credit)).sum()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use bytes::Bytes;
    use marline_base::{Duration, Instant};

    use super::*;
    use crate::config::Config;
    use crate::flow::Chunk;
    use crate::path::PathParams;
    use crate::session::{FlowOptions, Side, WakeReason};
    use crate::wire::{FlowKind, PathId};

    /// A session with an active path, as after a round trip of no time.
    fn session() -> Session {
        let (now, config) = (Instant::ZERO, Config::default());
        let mut ends = [Side::Client, Side::Server]
            .map(|side| Session::new(now, side, config.clone(), config.params(), 7).unwrap());
        for end in &mut ends {
            end.add_path(now, PathId(0), &PathParams::default())
                .unwrap();
        }
        let mut datagram = Vec::new();
        for from in [0, 1, 0, 1] {
            while let Some(sent) = ends[from].poll_transmit(now, &mut datagram) {
                ends[1 - from].handle_datagram(now, sent.path, &Bytes::copy_from_slice(&datagram));
            }
        }
        let [client, _] = ends;
        client
    }

    #[test]
    fn one_call_plans_a_part_of_many_flows_and_the_next_ones_go_on() {
        let (now, mut session) = (Instant::ZERO, session());
        let data = Bytes::from_static(&[7; 3_000]);
        let flows: Vec<FlowId> = (0..100)
            .map(|_| {
                session
                    .open_flow(&FlowOptions::new(FlowKind::Stream))
                    .unwrap()
            })
            .collect();
        for flow in &flows {
            session.write(now, *flow, &data).unwrap();
        }
        let calls = flows.len().div_ceil(PART);
        for call in 1..calls {
            session.plan(now);
            assert_eq!(session.pass.flows.len(), flows.len() - call * PART);
            let due = session.poll_timeout(now);
            assert_eq!(
                due,
                Some((now, WakeReason::Planning)),
                "the rest is due at once"
            );
        }
        // What changes meanwhile is planned for after all others had their turn.
        session.write(now, flows[0], &data).unwrap();
        session.plan(now);
        assert!(session.pass.flows.is_empty() && session.has_to_plan());
        for _ in 0..calls {
            session.plan(now);
        }
        assert!(!session.has_to_plan());
    }

    #[test]
    fn symbols_are_cut_to_their_path_and_go_again_over_a_narrower_one_in_pieces() {
        const NARROW: usize = 1_162;
        const WIDE: usize = 1_434;
        let (now, config) = (Instant::ZERO, Config::default());
        let mut ends = [Side::Client, Side::Server]
            .map(|side| Session::new(now, side, config.clone(), config.params(), 7).unwrap());
        for end in &mut ends {
            for id in [PathId(0), PathId(1)] {
                let params = PathParams {
                    max_datagram: NARROW,
                    rtt: Some(Duration::from_millis(1)),
                    ..PathParams::default()
                };
                end.add_path(now, id, &params).unwrap();
            }
            end.path_max_datagram(now, PathId(1), WIDE).unwrap();
        }
        let [client, server] = &mut ends;
        let flow = client
            .open_flow(&FlowOptions {
                scheduler: Some("round-robin".parse().unwrap()),
                ..FlowOptions::new(FlowKind::Stream)
            })
            .unwrap();
        let data: Vec<u8> = (0..12_000_u32).map(|n| (n * 7) as u8).collect();
        client.write(now, flow, &Bytes::from(data.clone())).unwrap();
        client.finish(flow);
        let mut datagram = Vec::new();
        let mut longest = [0; 2];
        while let Some(sent) = client.poll_transmit(now, &mut datagram) {
            let most = &mut longest[sent.path.0 as usize];
            *most = sent.size.max(*most);
            // All that goes by the wide path is lost.
            if sent.path == PathId(0) {
                server.handle_datagram(now, sent.path, &Bytes::copy_from_slice(&datagram));
            }
        }
        assert!((NARROW - 60..=NARROW).contains(&longest[0]), "{longest:?}");
        assert!((WIDE - 60..=WIDE).contains(&longest[1]), "{longest:?}");
        client.remove_path(now, PathId(1)).unwrap();
        let mut time = now;
        let mut got = Vec::new();
        while got.len() < data.len() && time < Instant::from_millis(10_000) {
            time += Duration::from_millis(1);
            client.handle_timeout(time);
            server.handle_timeout(time);
            while let Some(sent) = client.poll_transmit(time, &mut datagram) {
                assert!(sent.size <= NARROW && sent.path == PathId(0));
                server.handle_datagram(time, sent.path, &Bytes::copy_from_slice(&datagram));
            }
            while let Some(sent) = server.poll_transmit(time, &mut datagram) {
                client.handle_datagram(time, sent.path, &Bytes::copy_from_slice(&datagram));
            }
            while let Chunk::Data(bytes) = server.read(time, flow, usize::MAX) {
                got.extend_from_slice(&bytes);
            }
        }
        assert_eq!(got, data);
    }
}
