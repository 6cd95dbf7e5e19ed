use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use marline_base::{Instant, Rng};

/// How a link delayed and lost packets at the times of a recording, which repeats at its end.
/// Cloning shares the data (16 bytes a delay, 4 a loss).
///
/// A packet that leaves the queue between two recorded times takes a delay between theirs, on a
/// straight line: where recorded packets kept their order, these do, too.
#[derive(Clone, PartialEq)]
pub struct Replay {
    delays: Arc<[(Duration, Duration)]>,
    losses: Arc<[f32]>,
    step: Duration,
}

impl Replay {
    /// Most delays, and most losses, that a recording may hold (16 MiB and 4 MiB of memory).
    pub const MAX: usize = 1 << 20;

    /// `delays` are of packets sent at these times, ascending; `losses` the probabilities that a
    /// packet is lost, each for a `step`; together they are as long as the
    /// recording.
    ///
    /// `None` unless there is one of each and no more than [`Replay::MAX`], the times ascend, the
    /// step is more than zero, and probabilities are from 0 to 1.
    pub fn new(
        delays: impl IntoIterator<Item = (Duration, Duration)>,
        losses: impl IntoIterator<Item = f32>,
        step: Duration,
    ) -> Option<Self> {
        let delays: Vec<_> = delays.into_iter().collect();
        let losses: Vec<_> = losses.into_iter().collect();
        let fits = |len: usize| (1..=Self::MAX).contains(&len);
        let ascending = delays.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        let probable = losses.iter().all(|p| (0.0..=1.0).contains(p));
        let right = fits(delays.len()) && fits(losses.len()) && !step.is_zero();
        (right && ascending && probable).then(|| Self {
            delays: delays.into(),
            losses: losses.into(),
            step,
        })
    }

    /// Length of the recording.
    pub fn period(&self) -> Duration {
        // No more than `MAX` steps.
        self.step * self.losses.len() as u32
    }

    fn within(&self, at: Instant) -> Duration {
        let period = self.period().as_nanos();
        Duration::from_nanos((u128::from(at.as_nanos()) % period) as u64)
    }

    /// The delay of a packet that leaves the queue at this time.
    pub(crate) fn delay(&self, departs: Instant) -> Duration {
        let at = self.within(departs);
        let next = self.delays.partition_point(|(time, _)| *time <= at);
        let (before, after) = (next.checked_sub(1), self.delays.get(next));
        match (before.map(|index| self.delays[index]), after) {
            (Some((from, first)), Some(&(until, last))) => {
                let (part, whole) = ((at - from).as_nanos(), (until - from).as_nanos());
                let (first, last) = (first.as_nanos(), last.as_nanos());
                let delay = match last >= first {
                    true => first + (last - first) * part / whole,
                    false => first - (first - last) * part / whole,
                };
                Duration::from_nanos(u64::try_from(delay).unwrap_or(u64::MAX))
            }
            (Some((_, delay)), None) | (None, Some(&(_, delay))) => delay,
            (None, None) => Duration::ZERO,
        }
    }

    /// The probability that a packet that leaves the queue at this time is lost.
    pub(crate) fn loss(&self, departs: Instant) -> f64 {
        let slot = (self.within(departs).as_nanos() / self.step.as_nanos()) as usize;
        f64::from(self.losses.get(slot).copied().unwrap_or(0.0))
    }
}

/// Loses as many packets as a recording did: whenever the probabilities of those that were sent add
/// up to one more. Which ones is drawn by where the sum begins.
#[derive(Clone, Debug)]
pub(crate) struct Losses(f64);

impl Losses {
    pub(crate) fn new(mut rng: Rng) -> Self {
        Self(rng.uniform())
    }

    /// Is a packet of this probability lost?
    pub(crate) fn add(&mut self, probability: f64) -> bool {
        self.0 += probability;
        let lost = self.0 >= 1.0;
        self.0 -= f64::from(u8::from(lost));
        lost
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("delays", &self.delays.len())
            .field("losses", &self.losses.len())
            .field("step", &self.step)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn delays_lie_between_the_recorded_ones_and_repeat() {
        let delays = [(ms(10), ms(20)), (ms(20), ms(40)), (ms(30), ms(30))];
        let replay = Replay::new(delays, [0.0; 4], ms(10)).unwrap();
        let delay = |at| replay.delay(Instant::from_millis(at));
        assert_eq!([delay(0), delay(10), delay(15)], [ms(20), ms(20), ms(30)]);
        assert_eq!([delay(20), delay(25), delay(39)], [ms(40), ms(35), ms(30)]);
        assert_eq!([delay(40), delay(55)], [ms(20), ms(30)]);
    }

    #[test]
    fn losses_hold_for_their_step_and_are_as_many() {
        let replay = Replay::new([(ms(0), ms(1))], [0.0, 1.0, 0.5], ms(10)).unwrap();
        let mut losses = Losses::new(Rng::new(3));
        let mut lost = |at| {
            let loss = replay.loss(Instant::from_millis(at));
            (0..1_000).filter(|_| losses.add(loss)).count()
        };
        assert_eq!(lost(9), 0);
        assert_eq!(lost(10), 1_000);
        assert_eq!(lost(59), 500);
    }

    #[test]
    fn which_packets_are_lost_is_drawn() {
        let first = |seed| {
            let mut losses = Losses::new(Rng::new(seed));
            (0..10).position(|_| losses.add(0.1)).unwrap()
        };
        let mut seen: Vec<usize> = (0..200).map(first).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_be_replayed_is_refused() {
        assert_eq!(Replay::new([], [0.0], ms(10)), None);
        assert_eq!(Replay::new([(ms(0), ms(1))], [], ms(10)), None);
        assert_eq!(Replay::new([(ms(0), ms(1))], [1.1], ms(10)), None);
        assert_eq!(Replay::new([(ms(0), ms(1))], [0.0], ms(0)), None);
        let back = [(ms(2), ms(1)), (ms(1), ms(1))];
        assert_eq!(Replay::new(back, [0.0], ms(10)), None);
    }
}
