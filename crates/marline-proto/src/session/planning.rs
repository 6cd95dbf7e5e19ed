//! Schedulers plan: those of flows that changed, and of those that what happened can concern.
//!
//! What a scheduler decides can change when its flow changes (something was written, lost, or given
//! credit), at a time that it [named](crate::sched::Scheduler::wake_at), or when a path changes. Of
//! the last, most schedulers need only one thing: they place symbols where a path [has
//! room](crate::sched::PathView::has_room), and do nothing where none has. So an acknowledgement,
//! which makes room for a packet or two, concerns the flows that are next in turn, until the room
//! is taken, and no other, however many wait. Schedulers that decide by more are asked each time
//! ([`Awaits::Event`]).
//!
//! Flows are planned for in the order in which they send (`share`), and a part of them at a time:
//! with a thousand flows that have changed, a pass takes milliseconds, and a driver may have other
//! sessions to serve. So one call of [`poll_transmit`](super::Session::poll_transmit) plans a part
//! of them, the most urgent first, and the next call goes on behind it.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use marline_base::Instant;

use super::Session;
use super::flow::{Awaits, Flow};
use super::share::{CLASSES, Place, Scope, class_of};
use super::spill::Costs;
use super::waiting::Waiting;
use crate::sched::{PathView, Scheduler};
use crate::wire::FlowId;

/// Flows that one call plans at most: under 0.4 ms of work with the default scheduler of streams. A
/// pass over a thousand flows took up to 12 ms in a server under `lab/siege.sh` (time of its
/// `poll_transmit`), so that 12 µs are the most that one takes. A choice, not tuned.
const PART: usize = 32;

/// Whose schedulers have to plan, and when.
#[derive(Debug, Default)]
pub(super) struct Planning {
    /// Whose schedulers may decide otherwise since the last pass began.
    next: Scope,
    pass: Pass,
    /// Schedulers look at what waits in other flows, or did.
    minds_others: bool,
    /// When schedulers of flows in `share` want to plan although nothing happened.
    wishes: BTreeSet<(Instant, FlowId)>,
    /// Flows that wait for the session's credit alone.
    starved: BTreeSet<FlowId>,
}

impl Planning {
    /// Something happened that concerns the flows of this scope.
    pub(super) fn widen(&mut self, scope: Scope) {
        self.next = scope.max(self.next);
    }

    /// A flow has this scheduler from now on.
    pub(super) fn on_scheduler(&mut self, scheduler: &dyn Scheduler) {
        self.minds_others |= scheduler.minds_others();
    }

    /// The flow's scheduler may want to plan at another time than before.
    pub(super) fn wish(&mut self, flow: &mut Flow) {
        let plans = flow.turn.is_some() && flow.reset.is_none();
        let wish = flow.scheduler.wake_at().filter(|_| plans);
        if wish != flow.wish {
            if let Some(old) = flow.wish {
                self.wishes.remove(&(old, flow.id));
            }
            if let Some(new) = wish {
                self.wishes.insert((new, flow.id));
            }
            flow.wish = wish;
        }
    }

    /// When the first scheduler wants to plan.
    pub(super) fn first_wish(&self) -> Option<Instant> {
        self.wishes.first().map(|(at, _)| *at)
    }

    /// The flows that have waited for the session's credit alone, because there is some.
    pub(super) fn take_starved(&mut self) -> BTreeSet<FlowId> {
        core::mem::take(&mut self.starved)
    }

    /// The flow is over.
    pub(super) fn forget(&mut self, id: FlowId) {
        self.starved.remove(&id);
    }
}

/// A pass over flows that have something to send.
#[derive(Debug, Default)]
struct Pass {
    scope: Scope,
    /// How many there were before.
    number: u64,
    /// Where it is: the flow that it came to last, but for those that await room.
    at: Option<Place>,
    /// Flows with later turns took them since it began, and have to wait for the next pass.
    until: u64,
    /// Bytes that all flows could send now; counted only if a scheduler minds others.
    unsent: u64,
}

impl Session {
    /// Are there flows whose schedulers must plan before it is known what may leave now?
    #[inline]
    pub(super) fn has_to_plan(&self) -> bool {
        self.planning.next > Scope::Nobody || self.planning.pass.scope > Scope::Nobody
    }

    /// Lets the schedulers of the next flows plan. A pass that is under way is finished before what
    /// has changed meanwhile begins another.
    pub(super) fn plan(&mut self, now: Instant) {
        if self.planning.pass.scope == Scope::Nobody {
            self.wake_schedulers(now);
            self.planning.pass = Pass {
                scope: core::mem::take(&mut self.planning.next),
                number: self.planning.pass.number + 1,
                at: None,
                until: self.share.turns(),
                unsent: self.unsent(),
            };
        }
        let mut views = self.views.take(&self.paths, &self.waiting);
        let costs = Costs::of(&views, &self.paths);
        if costs.is_some() && self.planning.pass.scope == Scope::Concerned {
            // What a flow sees of paths that cost differently depends on how long it waits.
            self.planning.pass.scope = Scope::All;
        }
        let mut chosen = core::mem::take(&mut self.views.chosen);
        let mut planned = 0;
        while planned < PART {
            let Some(id) = self.next_to_plan(&views) else {
                self.planning.pass.scope = Scope::Nobody;
                break;
            };
            planned +=
                usize::from(self.plan_flow(now, id, &mut views, costs.as_ref(), &mut chosen));
        }
        self.views.put_back(views);
        self.views.chosen = chosen;
    }

    /// Lets the scheduler of a flow plan, if it has something to do and perhaps the room for it.
    /// Returns whether it had something to do.
    fn plan_flow(
        &mut self,
        now: Instant,
        id: FlowId,
        views: &mut Vec<PathView>,
        costs: Option<&Costs>,
        chosen: &mut Vec<PathView>,
    ) -> bool {
        let Some(flow) = self.flows.get_mut(&id) else {
            return false;
        };
        flow.planned_in = self.planning.pass.number;
        let symbol = views.iter().map(|v| v.symbol).min().unwrap_or(0).max(1);
        let credit = self.credit.left();
        let woken = flow.scheduler.wake_at().is_some_and(|at| at <= now);
        if flow.reset.is_some() || !woken && !flow.has_work(symbol, credit) {
            self.rest_flow(id, symbol, credit);
            return false;
        }
        view_as(flow, views, &self.waiting);
        let in_vain = !woken
            && costs.is_none()
            && self.planning.pass.scope < Scope::All
            && !views.iter().any(PathView::has_room)
            && flow.awaits(symbol, credit) == Awaits::Room;
        let mut left = credit;
        if !in_vain {
            if self.planning.minds_others {
                self.planning.pass.unsent = self
                    .planning
                    .pass
                    .unsent
                    .saturating_sub(flow.unsent(credit));
                self.common.set_others(self.planning.pass.unsent);
            }
            if let Some(coder) = &mut flow.coder {
                coder.borrow(&mut self.advance);
            }
            let views = match costs {
                Some(costs) => {
                    costs.choose(now, flow, views, credit, chosen);
                    chosen
                }
                None => {
                    flow.costs_alike();
                    &mut *views
                }
            };
            let used = flow.plan(now, views, credit, &mut self.common);
            self.credit.on_sent(used);
            left -= used;
            if let Some(coder) = &mut flow.coder {
                coder.repay(&mut self.advance);
            }
            if self.planning.minds_others {
                self.planning.pass.unsent += flow.unsent(left);
            }
            self.planning.wish(flow);
        }
        let awaits = flow.awaits(symbol, left);
        self.share.settle(flow, awaits);
        flow.queues.extend_to(views.iter().map(|view| view.id));
        self.waiting.account(flow);
        if awaits == Awaits::Nothing && flow.has_backlog(symbol, u64::MAX) {
            self.planning.starved.insert(id);
        }
        true
    }

    /// The scheduler of a flow has nothing to do.
    fn rest_flow(&mut self, id: FlowId, symbol: u32, credit: u64) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        if flow.has_backlog(symbol, u64::MAX) {
            self.planning.starved.insert(id);
        }
        let awaits = flow.awaits(symbol, credit);
        self.share.settle(flow, awaits);
        self.waiting.account(flow);
        if flow.queues.is_all_empty() {
            flow.costs_alike();
            self.share.remove(flow);
            self.planning.wish(flow);
            self.ageing.on_idle(flow);
        }
    }

    /// The next flow of the pass.
    fn next_to_plan(&mut self, views: &[PathView]) -> Option<FlowId> {
        let share = &self.share;
        let scope = self.planning.pass.scope;
        let next = |after| match scope {
            Scope::Nobody => None,
            Scope::Changed => share.next_changed(after),
            Scope::Concerned => {
                let nexts = [share.next_changed(after), share.next_for_event(after)];
                nexts.into_iter().flatten().min()
            }
            Scope::All => share.next(after),
        };
        let mut found = next(self.planning.pass.at);
        while let Some((place, _)) = found
            && place.turn() > self.planning.pass.until
        {
            // All behind it in its class came later, too.
            found = next(Some(place.last_of_class()));
        }
        let least = found.map_or(CLASSES, |(place, _)| place.class());
        if scope == Scope::Concerned
            && let Some(id) = self.next_for_room(views, least)
        {
            return Some(id);
        }
        let (place, id) = found?;
        self.planning.pass.at = Some(place);
        Some(id)
    }

    /// The flow that has least waiting of those that are more urgent than the class `least`, await
    /// room, and see some.
    fn next_for_room(&mut self, views: &[PathView], least: usize) -> Option<FlowId> {
        self.waiting.settle_wanting();
        let has_planned = |id: &FlowId| {
            let flow = self.flows.get(id);
            flow.is_none_or(|flow| flow.planned_in == self.planning.pass.number)
        };
        let found = views.iter().filter_map(|view| {
            for (wanting, id, queued) in self.waiting.wanting(view.id)? {
                // Who comes after one that sees no room sees none either.
                if wanting.class() >= least || !(PathView { queued, ..*view }).has_room() {
                    return None;
                }
                if !has_planned(&id) {
                    return Some((wanting, id));
                }
            }
            None
        });
        found.min().map(|(_, id)| id)
    }

    /// Bytes that all flows could send now, were there room.
    fn unsent(&self) -> u64 {
        if !self.planning.minds_others {
            return 0;
        }
        let credit = self.credit.left();
        let flows = self.share.iter().filter_map(|id| self.flows.get(&id));
        flows.map(|flow| flow.unsent(credit)).sum()
    }

    /// The scheduler of a flow may have something to do, because that changed.
    pub(super) fn plan_for(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.get_mut(&id) {
            self.share.note_change(flow);
            // What waits in one flow concerns the schedulers of others, if they look at it.
            self.planning.widen(match self.planning.minds_others {
                true => Scope::Concerned,
                false => Scope::Changed,
            });
        }
    }

    /// Notes the flows whose schedulers wanted to plan by now.
    pub(super) fn wake_schedulers(&mut self, now: Instant) {
        for (_, id) in self.planning.wishes.iter().take_while(|(at, _)| *at <= now) {
            if let Some(flow) = self.flows.get_mut(id) {
                self.share.note_change(flow);
            }
        }
    }
}

/// Fills in what waits on each path, as a flow sees it.
fn view_as(flow: &Flow, views: &mut [PathView], waiting: &Waiting) {
    let class = class_of(flow);
    for view in views {
        view.queued_own = flow.queues.bytes(view.id);
        view.queued = waiting.ahead(view.id, class, view.queued_own);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use marline_base::{Duration, Instant};

    use super::*;
    use crate::config::Config;
    use crate::flow::Chunk;
    use crate::path::PathParams;
    use crate::session::{FlowOptions, Side, WakeReason};
    use crate::wire::{FlowKind, PathId};

    /// The client of a session with an active path, as after a round trip of no time.
    fn session() -> Session {
        let [client, _] = ends();
        client
    }

    fn ends() -> [Session; 2] {
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
        ends
    }

    #[test]
    fn an_acknowledgement_concerns_the_flows_that_its_room_is_for() {
        let (now, [mut client, mut server]) = (Instant::ZERO, ends());
        let options = FlowOptions {
            scheduler: Some("edpf".parse().unwrap()),
            ..FlowOptions::new(FlowKind::Stream)
        };
        let flows: Vec<FlowId> = (0..100)
            .map(|_| client.open_flow(&options).unwrap())
            .collect();
        let data = Bytes::from_static(&[7; 30_000]);
        for flow in &flows {
            client.write(now, *flow, &data).unwrap();
        }
        let later = now + Duration::from_millis(10);
        let mut datagram = Vec::new();
        let mut asked = Vec::new();
        for _ in 0..100 {
            while let Some(sent) = client.poll_transmit(now, &mut datagram) {
                server.handle_datagram(later, sent.path, &Bytes::copy_from_slice(&datagram));
            }
        }
        assert!(!client.has_to_plan());
        while let Some(sent) = server.poll_transmit(later, &mut datagram) {
            client.handle_datagram(later, sent.path, &Bytes::copy_from_slice(&datagram));
            let before = client.planning.pass.number;
            while client.has_to_plan() {
                client.plan(later);
            }
            let number = client.planning.pass.number;
            assert_eq!(number, before + 1);
            let planned = |id: &&FlowId| client.flows.get(id).unwrap().planned_in == number;
            asked.push(flows.iter().filter(planned).count());
        }
        assert!(
            asked.iter().all(|asked| (1..20).contains(asked)),
            "{asked:?}"
        );
        let placed = |id: &&FlowId| !client.flows.get(id).unwrap().queues.is_all_empty();
        assert!(
            flows.iter().filter(placed).count() > 1,
            "who has nothing waiting goes first"
        );
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
            let left = flows
                .iter()
                .filter(|id| session.flows.get(id).unwrap().changed)
                .count();
            assert_eq!(left, flows.len() - call * PART);
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
        assert_eq!(session.planning.pass.scope, Scope::Nobody);
        assert!(session.has_to_plan());
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
