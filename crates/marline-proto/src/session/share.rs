//! Which flow sends next on a path: strict priority but for one turn now and then (`ageing`), then
//! deficit round robin (Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit Round Robin",
//! SIGCOMM 1995).
//!
//! Emissions of schedulers wait in a queue per flow and path (`flow/queues.rs`) until the path's
//! window and pacer let them go, and can be taken back until then. This is the order in which flows
//! get what window and pacer allow, and in which their schedulers plan (`planning`). For that it
//! keeps, in the same order, which flows have changed, and what the others wait for.

use alloc::collections::BTreeMap;
use core::ops::Bound;

use super::flow::{Awaits, Flow};
use crate::wire::{FlowId, LEAST_PRIORITY};

/// Bytes that a flow may send in its turn: two datagrams, so that no packet is left over in
/// each turn (deficit round robin, Shreedhar and Varghese 1995, §3.3: at least one).
pub(super) const QUANTUM: u64 = 3_000;
/// Classes in which flows are served: the one whose turn has come because it has waited for long,
/// and one for each priority.
pub(super) const CLASSES: usize = 2 + LEAST_PRIORITY as usize;

/// The class of a flow.
pub(super) fn class_of(flow: &Flow) -> usize {
    match flow.promoted {
        true => 0,
        false => 1 + usize::from(flow.priority.min(LEAST_PRIORITY)),
    }
}

/// Class and turn of a flow: the smaller, the earlier it sends. No two flows have the same turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(u64);

impl Place {
    /// In one number, which tables are quicker to search for. A turn is 3 kB, so that there are
    /// fewer than this in all that a session can send.
    const TURN_BITS: u32 = 56;

    pub(super) const fn new(class: usize, turn: u64) -> Self {
        Self((class as u64) << Self::TURN_BITS | turn)
    }

    /// Behind all flows of its class.
    pub(super) const fn last_of_class(self) -> Self {
        Self(self.0 | ((1 << Self::TURN_BITS) - 1))
    }

    pub(super) const fn class(self) -> usize {
        (self.0 >> Self::TURN_BITS) as usize
    }

    pub(super) const fn turn(self) -> u64 {
        self.0 & ((1 << Self::TURN_BITS) - 1)
    }

    pub(super) fn of(flow: &Flow) -> Option<Self> {
        Some(Self::new(class_of(flow), flow.turn?))
    }
}

/// Whose schedulers must plan because of what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    #[default]
    Nobody,
    /// Flows that changed.
    Changed,
    /// Those, and what awaits room or any event: paths have other windows, rates or delays, and
    /// less in flight.
    Concerned,
    /// All: there are other paths, or they cost something else.
    All,
}

/// Flows that have, or may have, something to send: by class, in turn.
#[derive(Debug, Default)]
pub(super) struct Share {
    all: BTreeMap<Place, FlowId>,
    /// Those whose schedulers await any event.
    event: BTreeMap<Place, FlowId>,
    /// Those that changed since their schedulers planned last.
    changed: BTreeMap<Place, FlowId>,
    turns: u64,
    /// The last turn of each class.
    latest: [u64; CLASSES],
}

impl Share {
    /// Adds a flow behind all others of its class.
    pub(super) fn add(&mut self, flow: &mut Flow) {
        self.turns += 1;
        let place = Place::new(class_of(flow), self.turns);
        flow.turn = Some(self.turns);
        self.latest[class_of(flow)] = self.turns;
        self.all.insert(place, flow.id);
        if flow.changed {
            self.changed.insert(place, flow.id);
        }
        if flow.awaits == Awaits::Event {
            self.event.insert(place, flow.id);
        }
    }

    /// Removes a flow, whose class must be what it was.
    pub(super) fn remove(&mut self, flow: &mut Flow) {
        self.withdraw(flow);
        (flow.turn, flow.changed, flow.awaits) = (None, false, Awaits::Nothing);
    }

    /// Moves a flow behind all others of its class, which `change` may change.
    pub(super) fn move_back(&mut self, flow: &mut Flow, change: impl FnOnce(&mut Flow)) {
        self.withdraw(flow);
        change(flow);
        if flow.turn.is_some() {
            self.add(flow);
        }
    }

    fn withdraw(&mut self, flow: &Flow) {
        let Some(place) = Place::of(flow) else {
            return;
        };
        self.all.remove(&place);
        if flow.changed {
            self.changed.remove(&place);
        }
        if flow.awaits == Awaits::Event {
            self.event.remove(&place);
        }
    }

    /// Is the flow known to be behind all others of its class?
    pub(super) fn is_last(&self, flow: &Flow) -> bool {
        flow.turn == Some(self.latest[class_of(flow)])
    }

    /// The flow changed, so that its scheduler may have something to do.
    pub(super) fn note_change(&mut self, flow: &mut Flow) {
        if !flow.changed
            && let Some(place) = Place::of(flow)
        {
            flow.changed = true;
            self.changed.insert(place, flow.id);
        }
    }

    /// The flow's scheduler has planned all that it could.
    pub(super) fn settle(&mut self, flow: &mut Flow, awaits: Awaits) {
        let Some(place) = Place::of(flow) else {
            return;
        };
        if core::mem::take(&mut flow.changed) {
            self.changed.remove(&place);
        }
        let before = core::mem::replace(&mut flow.awaits, awaits);
        match (before == Awaits::Event, awaits == Awaits::Event) {
            (false, true) => {
                self.event.insert(place, flow.id);
            }
            (true, false) => {
                self.event.remove(&place);
            }
            _ => {}
        }
    }

    /// The turn that was given last.
    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    /// All flows, most urgent class first.
    pub(super) fn iter(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.all.values().copied()
    }

    /// All flows that are less urgent than a class.
    pub(super) fn below(&self, class: usize) -> impl Iterator<Item = FlowId> + '_ {
        let below = self.all.range(Place::new(class + 1, 0)..);
        below.map(|(_, id)| *id)
    }

    /// The flow that comes next after a place.
    pub(super) fn next(&self, after: Option<Place>) -> Option<(Place, FlowId)> {
        next(&self.all, after)
    }

    /// The same of those that changed.
    pub(super) fn next_changed(&self, after: Option<Place>) -> Option<(Place, FlowId)> {
        next(&self.changed, after)
    }

    /// The same of those that await any event.
    pub(super) fn next_for_event(&self, after: Option<Place>) -> Option<(Place, FlowId)> {
        next(&self.event, after)
    }
}

fn next(flows: &BTreeMap<Place, FlowId>, after: Option<Place>) -> Option<(Place, FlowId)> {
    let next = match after {
        None => flows.first_key_value(),
        Some(place) => {
            let behind = (Bound::Excluded(place), Bound::Unbounded);
            flows.range(behind).next()
        }
    };
    next.map(|(place, id)| (*place, *id))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::config::Config;
    use crate::session::{FlowOptions, Session, Side};
    use crate::wire::FlowKind;
    use marline_base::Instant;

    /// Flows of these priorities, of a session that does not know that they share.
    fn flows(priorities: &[u8]) -> (Session, Vec<FlowId>) {
        let config = Config::default();
        let peer = config.params();
        let mut session = Session::new(Instant::ZERO, Side::Client, config, peer, 7).unwrap();
        let open = |priority: &u8| {
            let options = FlowOptions {
                priority: *priority,
                ..FlowOptions::new(FlowKind::Stream)
            };
            session.open_flow(&options).unwrap()
        };
        let ids = priorities.iter().map(open).collect();
        (session, ids)
    }

    fn flow<'a>(session: &'a mut Session, id: &FlowId) -> &'a mut Flow {
        session.flows.get_mut(id).unwrap()
    }

    #[test]
    fn urgent_flows_first_and_equals_in_turn() {
        let (mut session, ids) = flows(&[3, 3, 1]);
        let mut share = Share::default();
        for id in &ids {
            share.add(flow(&mut session, id));
        }
        let order = |share: &Share| share.iter().collect::<Vec<_>>();
        assert_eq!(order(&share), [ids[2], ids[0], ids[1]]);
        assert_eq!(share.below(2).collect::<Vec<_>>(), [ids[0], ids[1]]);
        assert!(!share.is_last(flow(&mut session, &ids[0])));
        share.move_back(flow(&mut session, &ids[0]), |_| {});
        assert_eq!(order(&share), [ids[2], ids[1], ids[0]]);
        assert!(share.is_last(flow(&mut session, &ids[0])));
        assert!(share.is_last(flow(&mut session, &ids[2])), "of its class");
        share.move_back(flow(&mut session, &ids[2]), |flow| flow.priority = 5);
        assert_eq!(order(&share), [ids[1], ids[0], ids[2]]);
        share.remove(flow(&mut session, &ids[1]));
        assert_eq!(order(&share), [ids[0], ids[2]]);
        assert_eq!(flow(&mut session, &ids[1]).turn, None);
    }

    #[test]
    fn what_changed_and_what_awaits_an_event_keeps_its_place_until_it_has_planned() {
        let (mut session, ids) = flows(&[3, 3, 1]);
        let mut share = Share::default();
        for id in &ids {
            share.add(flow(&mut session, id));
        }
        let changed = |share: &Share| share.changed.values().copied().collect::<Vec<_>>();
        for id in [&ids[0], &ids[2], &ids[0]] {
            share.note_change(flow(&mut session, id));
        }
        assert_eq!(changed(&share), [ids[2], ids[0]]);
        share.move_back(flow(&mut session, &ids[2]), |flow| flow.priority = 7);
        assert_eq!(changed(&share), [ids[0], ids[2]]);
        let first = share.next_changed(None).unwrap();
        assert_eq!(first.1, ids[0]);
        assert_eq!(share.next_changed(Some(first.0)).unwrap().1, ids[2]);
        share.settle(flow(&mut session, &ids[0]), Awaits::Event);
        share.settle(flow(&mut session, &ids[2]), Awaits::Room);
        assert!(changed(&share).is_empty());
        assert_eq!(share.next_for_event(None), Some(first));
        share.move_back(flow(&mut session, &ids[0]), |_| {});
        let (place, id) = share.next_for_event(None).unwrap();
        assert!(place > first.0 && id == ids[0]);
        share.remove(flow(&mut session, &ids[0]));
        assert_eq!(share.next_for_event(None), None);
    }
}
