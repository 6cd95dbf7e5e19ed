//! Events to come, in the order in which they happen.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use marline_base::Instant;

/// Something that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The datagram in this slot of the engine's [`Slots`](super::slots::Slots) arrives.
    Arrival(u32),
    /// The engine's caller asked to be called.
    Alarm(Alarm),
}

/// A number that the engine's driver gave to a moment of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Alarm(pub(crate) u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    Due(Due),
    /// The first arrival that waits in this link's queue.
    Lane(u32),
}

/// Everything by time, then by the order of insertion.
///
/// A link delivers in the order of sending, so its arrivals wait in a queue of their own (a lane),
/// and only the first of each lane is in the heap: the heap has one entry a link, however long the
/// links are. Packets that overtake are in the heap themselves.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<(Instant, u64, Entry)>>,
    /// Time, order of insertion and slot of each arrival.
    lanes: Vec<VecDeque<(Instant, u64, u32)>>,
    inserted: u64,
}

impl Queue {
    /// The driver wants to be called at a time.
    pub(super) fn push_alarm(&mut self, at: Instant, alarm: Alarm) {
        self.inserted += 1;
        let entry = Entry::Due(Due::Alarm(alarm));
        self.heap.push(Reverse((at, self.inserted, entry)));
    }

    /// The datagram in the slot arrives over a lane. There are as many lanes as the largest number
    /// says.
    pub(super) fn push_arrival(&mut self, at: Instant, lane: usize, slot: u32) {
        self.inserted += 1;
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, VecDeque::new);
        }
        let waiting = &mut self.lanes[lane];
        let entry = match waiting.back() {
            Some(&(last, ..)) if at < last => Some(Entry::Due(Due::Arrival(slot))),
            Some(_) => None,
            None => Some(Entry::Lane(lane as u32)),
        };
        if !matches!(entry, Some(Entry::Due(_))) {
            waiting.push_back((at, self.inserted, slot));
        }
        if let Some(entry) = entry {
            self.heap.push(Reverse((at, self.inserted, entry)));
        }
    }

    /// Time of what is due first.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// What is due first, if that is not after `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Due> {
        let mut first = self.heap.peek_mut()?;
        let Reverse((at, _, entry)) = *first;
        if at > now {
            return None;
        }
        let lane = match entry {
            Entry::Due(due) => {
                PeekMut::pop(first);
                return Some(due);
            }
            Entry::Lane(lane) => lane,
        };
        let waiting = &mut self.lanes[lane as usize];
        let arrived = waiting.pop_front();
        match waiting.front() {
            Some(&(at, inserted, _)) => *first = Reverse((at, inserted, entry)),
            None => {
                PeekMut::pop(first);
            }
        }
        arrived.map(|(.., slot)| Due::Arrival(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_come_in_the_order_of_insertion() {
        let mut queue = Queue::default();
        let at = Instant::from_millis;
        queue.push_alarm(at(2), Alarm(0));
        queue.push_alarm(at(1), Alarm(9));
        queue.push_arrival(at(2), 3, 7);
        queue.push_alarm(at(1), Alarm(3));
        assert_eq!(queue.pop(at(0)), None);
        let order: Vec<Due> = std::iter::from_fn(|| queue.pop(at(2))).collect();
        let alarm = |n| Due::Alarm(Alarm(n));
        assert_eq!(order, [alarm(9), alarm(3), alarm(0), Due::Arrival(7)]);
    }

    proptest! {
        #[test]
        fn lanes_change_nothing_about_the_order(
            pushes in prop::collection::vec((0u64..20, 0usize..4, 0u64..20), 1..60),
        ) {
            let mut queue = Queue::default();
            let mut plain: Vec<(u64, u32)> = Vec::new();
            for (number, (at, lane, until)) in (0_u32..).zip(pushes) {
                let time = Instant::from_millis(at);
                // The last lane stands for alarms.
                if lane == 3 {
                    queue.push_alarm(time, Alarm(number));
                } else {
                    queue.push_arrival(time, lane, number);
                }
                plain.push((at, number));
                plain.sort_unstable();
                prop_assert_eq!(queue.next_at(), Some(Instant::from_millis(plain[0].0)));
                if let Some(due) = queue.pop(Instant::from_millis(until)) {
                    let (at, first) = plain.remove(0);
                    prop_assert!(at <= until);
                    prop_assert!(due == Due::Arrival(first) || due == Due::Alarm(Alarm(first)));
                } else {
                    prop_assert!(plain[0].0 > until);
                }
            }
        }
    }
}
