//! What is to happen, in the order in which it happens.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use marline_base::Instant;

/// Something that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The datagram in this slot of the engine's [`Slots`](super::slots::Slots) arrives.
    Arrival(u32),
    /// Whoever drives the engine asked to be called.
    Alarm(Alarm),
}

/// A number that the engine's driver gave to a moment of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Alarm(pub(crate) u32);

/// A heap by time, then by the order of insertion: 24 bytes an entry, payloads live elsewhere.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<(Instant, u64, Due)>>,
    inserted: u64,
}

impl Queue {
    pub(super) fn push(&mut self, at: Instant, due: Due) {
        self.inserted += 1;
        self.heap.push(Reverse((at, self.inserted, due)));
    }

    /// Time of what is due first.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// What is due first, if that is not after `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Due> {
        let at = self.next_at()?;
        if at > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, due))| due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_come_in_the_order_of_insertion() {
        let mut queue = Queue::default();
        let at = Instant::from_millis;
        let alarm = |n| Due::Alarm(Alarm(n));
        queue.push(at(2), alarm(0));
        queue.push(at(1), alarm(9));
        queue.push(at(2), Due::Arrival(7));
        queue.push(at(1), alarm(3));
        assert_eq!(queue.pop(at(0)), None);
        let order: Vec<Due> = std::iter::from_fn(|| queue.pop(at(2))).collect();
        assert_eq!(order, [alarm(9), alarm(3), alarm(0), Due::Arrival(7)]);
    }
}
