//! Which blocks were written when, and when they came.

use super::Ended;
use super::report::{Delays, Figures, Lateness};
use marline_sim::results::{Fraction, Proportion};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
struct Block {
    written: Instant,
    came: Option<Instant>,
    taken: bool,
}

/// The blocks of a run, by their numbers, on one clock.
#[derive(Debug)]
pub(super) struct Tally {
    deadline: Duration,
    begun: Option<Instant>,
    blocks: Vec<Block>,
    /// Blocks that came and were not what was sent, or came twice.
    damaged: u64,
}

impl Tally {
    pub(super) const fn new(deadline: Duration) -> Self {
        Tally {
            deadline,
            begun: None,
            blocks: Vec::new(),
            damaged: 0,
        }
    }

    /// The next block was written at this time.
    pub(super) fn wrote(&mut self, written: Instant) {
        self.begun.get_or_insert(written);
        self.blocks.push(Block {
            written,
            came: None,
            taken: true,
        });
    }

    /// The session did not take the newest block.
    pub(super) fn refused(&mut self) {
        if let Some(block) = self.blocks.last_mut() {
            block.taken = false;
        }
    }

    /// A block is there whole; `None` if it is none that was sent.
    pub(super) fn came(&mut self, number: Option<u64>, at: Instant) {
        let index = number.and_then(|number| usize::try_from(number).ok());
        let block = index.and_then(|index| self.blocks.get_mut(index));
        match block {
            Some(block) if block.came.is_none() && block.taken => block.came = Some(at),
            _ => self.damaged += 1,
        }
    }

    /// Blocks that were written.
    pub(super) fn written(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// All blocks have come that were taken.
    pub(super) fn is_complete(&self) -> bool {
        self.blocks
            .iter()
            .all(|block| block.came.is_some() || !block.taken)
    }

    fn is_late(&self, block: &Block) -> bool {
        block
            .came
            .is_none_or(|at| at.saturating_duration_since(block.written) > self.deadline)
    }

    /// Blocks that count: those written after the warm-up.
    fn counted(&self, warmup: Duration) -> impl Iterator<Item = &Block> {
        let from = self.begun.map(|begun| begun + warmup);
        let counts = move |block: &&Block| from.is_some_and(|from| block.written >= from);
        self.blocks.iter().filter(counts)
    }

    /// Time since the first block, how many of those that count are late, and of how many that is
    /// known.
    pub(super) fn so_far(&self, warmup: Duration) -> (Duration, u64, u64) {
        let now = Instant::now();
        let (mut late, mut known) = (0, 0);
        for block in self.counted(warmup) {
            let over = now.saturating_duration_since(block.written) > self.deadline;
            if block.came.is_some() || over || !block.taken {
                known += 1;
                late += u64::from(self.is_late(block));
            }
        }
        let elapsed = self.begun.map(|begun| now.saturating_duration_since(begun));
        (elapsed.unwrap_or_default(), late, known)
    }

    /// The run's figures; `None` if no block counts.
    pub(super) fn figures(&self, warmup: Duration, ended: &Ended) -> Option<Figures> {
        let blocks: Vec<&Block> = self.counted(warmup).collect();
        let count =
            |of: &dyn Fn(&Block) -> bool| blocks.iter().filter(|block| of(block)).count() as u64;
        let delay = |block: &&Block| {
            let delay = block.came?.saturating_duration_since(block.written);
            Some(delay.as_secs_f64() * 1e3)
        };
        Some(Figures {
            lateness: lateness(&[Fraction {
                hits: count(&|block| self.is_late(block)),
                trials: blocks.len() as u64,
            }])?,
            refused: count(&|block| !block.taken),
            missing: count(&|block| block.taken && block.came.is_none()),
            damaged: self.damaged,
            delay_ms: Delays::of(blocks.iter().filter_map(delay).collect()),
            redundancy: ended.redundancy,
            relays_late_ms: ended.relays_late.as_secs_f64() * 1e3,
        })
    }
}

/// Late blocks out of all, with Wilson's interval; `None` without any.
pub(super) fn lateness(fractions: &[Fraction]) -> Option<Lateness> {
    let pooled = Proportion::pooled(fractions)?;
    Some(Lateness {
        late: pooled.hits,
        blocks: pooled.trials,
        fraction: pooled.value,
        interval: [pooled.interval.0, pooled.interval.1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_refused_missing_and_damaged_blocks_are_told_apart() {
        let ms = Duration::from_millis;
        let mut tally = Tally::new(ms(35));
        let begin = Instant::now();
        // The first is before the end of the warm-up; of the others one is on time, one late, one
        // missing, one refused.
        for number in 0..5 {
            tally.wrote(begin + ms(25) * number);
        }
        tally.refused();
        assert!(!tally.is_complete());
        tally.came(Some(0), begin + ms(90));
        tally.came(Some(1), begin + ms(25 + 35));
        tally.came(Some(2), begin + ms(50 + 36));
        let damaged = [Some(2), Some(4), Some(9), None];
        for number in damaged {
            tally.came(number, begin + ms(87));
        }
        let figures = tally.figures(ms(25), &Ended::default()).unwrap();
        assert_eq!((figures.lateness.late, figures.lateness.blocks), (3, 4));
        assert_eq!((figures.refused, figures.missing), (1, 1));
        assert_eq!(figures.damaged, damaged.len() as u64);
        let delays = figures.delay_ms.unwrap();
        assert_eq!((delays.p50, delays.p99), (35.0, 36.0));
        let [low, high] = figures.lateness.interval;
        assert!(low < 0.75 && 0.75 < high && high < 1.0);
        assert!(tally.figures(ms(1_000), &Ended::default()).is_none());
    }

    #[test]
    fn what_is_known_so_far_leaves_out_what_may_still_come() {
        let hour = Duration::from_secs(3_600);
        let mut tally = Tally::new(hour);
        assert_eq!(tally.so_far(Duration::ZERO).2, 0);
        tally.wrote(Instant::now());
        tally.wrote(Instant::now());
        tally.came(Some(0), Instant::now());
        let (_, late, known) = tally.so_far(Duration::ZERO);
        assert_eq!((late, known), (0, 1));
        tally.refused();
        let (_, late, known) = tally.so_far(Duration::ZERO);
        assert_eq!((late, known), (1, 2));
        assert!(tally.is_complete());
    }
}
