//! Acknowledgements of a path, sent by its own way back or by a quicker one, that the quicker one
//! repeats.

use alloc::collections::VecDeque;

use marline_base::{Duration, Instant};

use crate::wire::Ack;

/// Of acknowledgements within this time one waits to be repeated: repeats then cost the other
/// path some 200 packets a second at most. A choice, not tuned.
const SPACING: Duration = Duration::from_millis(5);
/// Most acknowledgements that wait: a third of a second, which is how much longer the way back of a
/// geostationary satellite takes than others.
const MOST: usize = 64;

/// Acknowledgements of a path that went one way, with their times. A later one reports nearly all
/// that an earlier one does, so of those that are due the newest is enough.
#[derive(Debug, Default)]
pub(crate) struct Repeats(VecDeque<(Instant, Ack)>);

impl Repeats {
    /// This acknowledgement goes now. The arrival time of each packet is reported once.
    pub(crate) fn push(&mut self, now: Instant, mut ack: Ack) {
        ack.arrivals.truncate(1);
        let before_last = self.0.iter().rev().nth(1);
        if before_last.is_some_and(|(at, _)| now.since(*at) < SPACING) || self.0.len() >= MOST {
            self.0.pop_back();
        }
        self.0.push_back((now, ack));
    }

    /// The newest of those that went this long before `now` or longer, unchanged; they are
    /// forgotten.
    pub(crate) fn take(&mut self, now: Instant, age: Duration) -> Option<Ack> {
        let due = self.0.iter().take_while(|(at, _)| now.since(*at) >= age);
        let newest = self.0.drain(..due.count()).next_back();
        newest.map(|(_, ack)| ack)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::wire::{Arrival, PathId};

    fn ack(largest: u64) -> Ack {
        let arrival = |packet| Arrival {
            packet,
            at_us: 100 * packet,
        };
        Ack {
            path: PathId(1),
            delay_us: 300,
            ranges: vec![0..=largest],
            arrivals: vec![arrival(largest), arrival(largest - 1)],
        }
    }

    #[test]
    fn what_is_old_enough_is_repeated_once_by_its_newest() {
        let mut repeats = Repeats::default();
        let (at, age) = (Instant::from_millis, Duration::from_millis(50));
        for n in 1..=4 {
            repeats.push(at(10 * n), ack(n));
        }
        assert_eq!(repeats.take(at(59), age), None);
        let repeated = repeats.take(at(85), age).unwrap();
        assert_eq!(repeated.largest(), Some(3));
        assert_eq!(repeated.delay_us, 300, "it says what was then");
        assert_eq!(repeated.arrivals.len(), 1);
        assert_eq!(repeats.take(at(85), age), None);
        assert_eq!(repeats.take(at(90), age).unwrap().largest(), Some(4));
    }

    #[test]
    fn few_wait_and_the_last_is_among_them() {
        let mut repeats = Repeats::default();
        let at = Instant::from_millis;
        for n in 1..=100 {
            repeats.push(at(n), ack(n));
        }
        assert!(repeats.0.len() <= 26, "{}", repeats.0.len());
        for n in 101..=10_000 {
            repeats.push(at(n), ack(n));
        }
        assert_eq!(repeats.0.len(), MOST);
        let last = repeats.take(at(20_000), Duration::ZERO).unwrap();
        assert_eq!(last.largest(), Some(10_000));
    }
}
