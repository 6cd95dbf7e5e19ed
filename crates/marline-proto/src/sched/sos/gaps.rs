//! When the next object is to be expected.

use marline_base::{Duration, Instant};
use smallvec::SmallVec;

/// Gaps that are remembered,
const MOST: usize = 16;
/// and those that must be, before they say anything.
const FEW: usize = 4;
/// Objects that follow each other sooner came together.
const TOGETHER: Duration = Duration::from_millis(1);
/// Of the gaps that are still possible one in this number is shorter than what is expected.
const SHORTER: usize = 4;

/// The time between objects of late.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    newest: Option<(u64, Instant)>,
    gaps: [Duration; MOST],
    count: usize,
}

impl Gaps {
    /// The object of this number begins to be sent, if it has not before.
    pub(super) fn begins(&mut self, now: Instant, id: u64) {
        match self.newest {
            Some((newest, _)) if id <= newest => return,
            Some((_, at)) if now.since(at) >= TOGETHER => {
                self.gaps[self.count % MOST] = now.since(at);
                self.count += 1;
            }
            Some(_) | None => {}
        }
        self.newest = Some((id, now));
    }

    /// Until when probably none begins; `None` if nothing can be said: of the first ones, and in a
    /// pause of twice the longest that there was of late.
    pub(super) fn quiet_until(&self, now: Instant) -> Option<Instant> {
        let (_, at) = self.newest?;
        let known = &self.gaps[..self.count.min(MOST)];
        if known.len() < FEW {
            return None;
        }
        let passed = now.since(at);
        let possible = known.iter().copied().filter(|gap| *gap > passed);
        let mut possible: SmallVec<[Duration; MOST]> = possible.collect();
        possible.sort_unstable();
        match possible.get(possible.len() / SHORTER) {
            Some(gap) => Some(at + *gap),
            // It is overdue: at any moment.
            None => known.iter().any(|gap| *gap * 2 > passed).then_some(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn the_next_is_expected_after_a_short_one_of_the_gaps_that_are_possible() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.quiet_until(MS(0)), None);
        let mut at = 0;
        for (id, gap) in [40, 10, 30, 20].into_iter().enumerate() {
            gaps.begins(MS(at), id as u64);
            assert_eq!(gaps.quiet_until(MS(at)), None);
            at += gap;
        }
        gaps.begins(MS(at), 4);
        // 10, 20, 30, 40: one of four is shorter than 20.
        assert_eq!(gaps.quiet_until(MS(at)), Some(MS(at + 20)));
        assert_eq!(gaps.quiet_until(MS(at + 19)), Some(MS(at + 20)));
        assert_eq!(gaps.quiet_until(MS(at + 20)), Some(MS(at + 30)));
        assert_eq!(gaps.quiet_until(MS(at + 40)), Some(MS(at + 40)));
        assert_eq!(gaps.quiet_until(MS(at + 79)), Some(MS(at + 79)));
        assert_eq!(gaps.quiet_until(MS(at + 80)), None);
    }

    #[test]
    fn objects_count_once_and_bursts_as_one() {
        let mut gaps = Gaps::default();
        for burst in 0..6 {
            for id in 0..5 {
                gaps.begins(MS(25 * burst), 5 * burst + id);
                gaps.begins(MS(25 * burst + 7), 5 * burst + id);
            }
        }
        assert_eq!(gaps.quiet_until(MS(126)), Some(MS(150)));
    }

    #[test]
    fn old_gaps_are_forgotten() {
        let mut gaps = Gaps::default();
        let mut at = 0;
        for id in 0..40 {
            gaps.begins(MS(at), id);
            at += if id < 20 { 5 } else { 50 };
        }
        assert_eq!(gaps.quiet_until(MS(at - 50)), Some(MS(at)));
    }
}
