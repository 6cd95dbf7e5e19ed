//! What waits on each path at the sender: how much, whose, and whose turn it is.
//!
//! Kept up to date as queues change, because asking all flows for every datagram would cost time
//! in proportion to their number.
//!
//! What waits before a symbol is not all that waits: for each flow a path's queue counts only what
//! leaves before that flow's symbol, by priorities and turns. So a bulk flow that queues half a
//! second ahead does not make a path look far away to other flows.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::flow::{Awaits, Flow};
use super::share::{CLASSES, Place, QUANTUM, class_of};
use crate::flow::Stake;
use crate::wire::{FlowId, PathId};

/// Waiting bytes of one class on one path, and flows that wait with at least one byte.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    bytes: u64,
    flows: u64,
}

/// A flow that would queue more on a path: class and bytes that it has waiting there, and its turn.
/// Of one class, the smaller, the less it sees waiting before another symbol of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wanting(u64, u64);

impl Wanting {
    /// In one number with the class; no flow has more waiting.
    const OWN_BITS: u32 = 56;

    const fn new(class: usize, own: u64, turn: u64) -> Self {
        Self((class as u64) << Self::OWN_BITS | own, turn)
    }

    pub(super) const fn class(self) -> usize {
        (self.0 >> Self::OWN_BITS) as usize
    }

    const fn own(self) -> u64 {
        self.0 & ((1 << Self::OWN_BITS) - 1)
    }
}

#[derive(Debug, Default)]
struct Lane {
    classes: [Class; CLASSES],
    bytes: u64,
    /// Flows with something in their queue for the path, in the order of their turns.
    ready: BTreeMap<Place, FlowId>,
    /// Flows that would queue more if the path had room.
    wanting: BTreeMap<Wanting, FlowId>,
    /// The flow that moved last among them: where it stands, and where it should. It moves with
    /// each symbol, and their order is asked for once an acknowledgement.
    moved: Option<(FlowId, Wanting, Wanting)>,
}

impl Lane {
    /// A flow has another place among those that want room, or none now, or had none.
    fn move_wanting(&mut self, id: FlowId, from: Option<Wanting>, to: Option<Wanting>) {
        if let (Some((moved, _, place)), Some(to)) = (&mut self.moved, to)
            && *moved == id
        {
            debug_assert_eq!(from, Some(*place), "it was put there");
            *place = to;
            return;
        }
        self.settle_wanting();
        if let (Some(from), Some(to)) = (from, to) {
            self.moved = Some((id, from, to));
            return;
        }
        if let Some(from) = from {
            self.wanting.remove(&from);
        }
        if let Some(to) = to {
            self.wanting.insert(to, id);
        }
    }

    fn settle_wanting(&mut self) {
        if let Some((id, from, to)) = self.moved.take() {
            self.wanting.remove(&from);
            self.wanting.insert(to, id);
        }
    }
}

/// What waits on each path.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    lanes: Vec<(PathId, Lane)>,
    /// Grows whenever more or less waits.
    revision: u64,
}

impl Waiting {
    // Sessions have few paths: looking at one after the other is quicker than a clever search.

    #[inline]
    fn lane(&self, path: PathId) -> Option<&Lane> {
        let lane = self.lanes.iter().find(|(id, _)| *id == path);
        lane.map(|(_, lane)| lane)
    }

    #[inline]
    fn lane_mut(&mut self, path: PathId) -> &mut Lane {
        let known = self.lanes.iter().position(|(id, _)| *id == path);
        let index = known.unwrap_or_else(|| {
            self.lanes.push((path, Lane::default()));
            self.lanes.len() - 1
        });
        &mut self.lanes[index].1
    }

    /// Takes note of what changed in the flow's queues since the last call. A flow that has
    /// anything in a queue has a turn.
    pub(super) fn account(&mut self, flow: &mut Flow) {
        let who = (class_of(flow), flow.turn, flow.id);
        let wants = flow.awaits == Awaits::Room;
        flow.queues.account(wants, |path, before, after| {
            self.note(who, path, before, after)
        });
    }

    /// Forgets the flow's queues until they are accounted again, because its class changes.
    pub(super) fn withdraw(&mut self, flow: &mut Flow) {
        let who = (class_of(flow), flow.turn, flow.id);
        flow.queues
            .withdraw(|path, before| self.note(who, path, before, Stake::default()));
    }

    fn note(
        &mut self,
        (class, turn, id): (usize, Option<u64>, FlowId),
        path: PathId,
        before: Stake,
        after: Stake,
    ) {
        self.revision += 1;
        let lane = self.lane_mut(path);
        lane.bytes = lane.bytes + after.bytes - before.bytes;
        let counts = &mut lane.classes[class];
        counts.bytes = counts.bytes + after.bytes - before.bytes;
        counts.flows = counts.flows + u64::from(after.bytes > 0) - u64::from(before.bytes > 0);
        debug_assert!(
            turn.is_some() || !after.waits,
            "a flow that waits has a turn"
        );
        let Some(turn) = turn else {
            return;
        };
        match (before.waits, after.waits) {
            (false, true) => {
                lane.ready.insert(Place::new(class, turn), id);
            }
            (true, false) => {
                lane.ready.remove(&Place::new(class, turn));
            }
            _ => {}
        }
        if (before.wants, before.bytes) != (after.wants, after.bytes) {
            let place = |stake: Stake| stake.wants.then(|| Wanting::new(class, stake.bytes, turn));
            lane.move_wanting(id, place(before), place(after));
        }
    }

    /// The first flow in turn that has something for the path, most urgent class first.
    pub(super) fn next(&self, path: PathId) -> Option<(FlowId, usize)> {
        let (place, flow) = self.lane(path)?.ready.first_key_value()?;
        Some((*flow, place.class()))
    }

    /// Class and turn of that flow.
    #[inline]
    pub(super) fn turn(&self, path: PathId) -> Option<Place> {
        let (place, _) = self.lane(path)?.ready.first_key_value()?;
        Some(*place)
    }

    /// Does nothing wait for the path?
    #[inline]
    pub(super) fn is_empty(&self, path: PathId) -> bool {
        self.lane(path).is_none_or(|lane| lane.ready.is_empty())
    }

    /// Nothing more waits, and nothing less, while this stays the same.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Bytes that wait for the path.
    pub(super) fn bytes(&self, path: PathId) -> u64 {
        self.lane(path).map_or(0, |lane| lane.bytes)
    }

    /// Bytes that leave the path before a symbol that a flow of this class and with `own` bytes
    /// waiting would queue now.
    ///
    /// With flows served by strict priority and in turn among equals, that is not all that waits:
    /// what is less urgent waits longer, and of an equal only as much leaves first as the flow
    /// itself has waiting, and one turn. A bulk flow that queues half a second ahead must not make
    /// a path look half a second away to a flow that has nothing waiting there.
    pub(super) fn ahead(&self, path: PathId, class: usize, own: u64) -> u64 {
        let Some(lane) = self.lane(path) else {
            return own;
        };
        let urgent: u64 = lane.classes[..class].iter().map(|c| c.bytes).sum();
        let equals = lane.classes[class].flows - u64::from(own > 0);
        let turns = equals.saturating_mul(own + QUANTUM);
        own + urgent + turns.min(lane.classes[class].bytes - own)
    }

    /// Puts all flows in their places for [`wanting`](Self::wanting).
    pub(super) fn settle_wanting(&mut self) {
        for (_, lane) in &mut self.lanes {
            lane.settle_wanting();
        }
    }

    /// The flows that would queue more on the path, each with what it sees waiting before that: the
    /// most urgent class first, and of one class those that see least.
    pub(super) fn wanting(
        &self,
        path: PathId,
    ) -> Option<impl Iterator<Item = (Wanting, FlowId, u64)> + '_> {
        let lane = self.lane(path)?;
        debug_assert!(lane.moved.is_none(), "all are in their places");
        Some(lane.wanting.iter().map(move |(wanting, id)| {
            let ahead = self.ahead(path, wanting.class(), wanting.own());
            (*wanting, *id, ahead)
        }))
    }

    /// The path is gone, and nothing waits for it any more.
    pub(super) fn forget(&mut self, path: PathId) {
        self.revision += 1;
        self.lanes.retain(|(id, _)| *id != path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(waiting: &mut Waiting, class: usize, bytes: u64) {
        let class = &mut waiting.lane_mut(PathId(1)).classes[class];
        class.bytes += bytes;
        class.flows += 1;
    }

    #[test]
    fn a_flow_waits_for_the_urgent_and_for_its_turn_among_equals() {
        let mut waiting = Waiting::default();
        add(&mut waiting, 3, 1_000_000);
        add(&mut waiting, 3, 500);
        add(&mut waiting, 1, 700);
        add(&mut waiting, 5, 900_000);
        let ahead = |class, own| waiting.ahead(PathId(1), class, own);
        assert_eq!(waiting.ahead(PathId(0), 3, 0), 0, "another path");
        // Nothing of its own: one turn of each equal, and all that is urgent.
        assert_eq!(ahead(3, 0), 700 + 2 * QUANTUM);
        // The bulk flow itself waits for its own bytes and the little of its equal.
        assert_eq!(ahead(3, 1_000_000), 1_000_000 + 700 + 500);
        assert_eq!(ahead(0, 0), 0);
    }

    #[test]
    fn who_has_least_waiting_on_a_path_gets_its_room_first() {
        let (path, mut waiting) = (PathId(1), Waiting::default());
        let stake = |bytes| Stake {
            bytes,
            waits: bytes > 0,
            wants: true,
        };
        let note = |waiting: &mut Waiting, (class, turn), before, after| {
            waiting.note((class, Some(turn), FlowId(4 * turn)), path, before, after);
        };
        let nothing = Stake::default();
        for (class, turn, bytes) in [(3, 1, 2_000), (3, 2, 0), (2, 3, 500), (3, 4, 0)] {
            note(&mut waiting, (class, turn), nothing, stake(bytes));
        }
        let order = |waiting: &mut Waiting| {
            waiting.settle_wanting();
            let flows = waiting.wanting(path).unwrap();
            flows
                .map(|(_, id, ahead)| (id.0 / 4, ahead))
                .collect::<Vec<_>>()
        };
        // The urgent one sees its own; those without anything what is urgent and one turn of the
        // other, which sees all.
        let all = [(3, 500), (2, 2_500), (4, 2_500), (1, 2_500)];
        assert_eq!(order(&mut waiting), all);
        note(&mut waiting, (3, 2), stake(0), stake(4_000));
        note(&mut waiting, (2, 3), stake(500), nothing);
        let all = [(4, 6_000), (1, 6_000), (2, 6_000)];
        assert_eq!(order(&mut waiting), all);
        assert!(waiting.wanting(PathId(0)).is_none(), "another path");
    }
}
