use super::{Outage, Outages};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use marline_base::{Instant, Rng};

/// Walks forward through the outages in constant memory.
///
/// A link keeps two of them with the same draws: one at the present, one where the queue's last
/// packet leaves.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    source: Source,
    /// The earliest outage that had not ended at the last question.
    start: Instant,
    end: Instant,
    /// How many outages had ended at the last question.
    passed: u64,
}

#[derive(Clone, Debug)]
enum Source {
    Never,
    Scheduled {
        list: Arc<[Outage]>,
        next: usize,
    },
    Periodic {
        first: Outage,
        every: Duration,
    },
    Random {
        mean_lit: Duration,
        mean_dark: Duration,
        rng: Rng,
    },
}

impl Cursor {
    pub(crate) fn never() -> Self {
        Self {
            source: Source::Never,
            start: Instant::FAR_FUTURE,
            end: Instant::FAR_FUTURE,
            passed: 0,
        }
    }

    pub(crate) fn new(outages: &Outages, rng: Rng) -> Self {
        let source = match outages {
            Outages::Never => Source::Never,
            Outages::Scheduled(list) => Source::Scheduled {
                list: merged(list.clone()).into(),
                next: 0,
            },
            &Outages::Periodic { first, every } => Source::Periodic { first, every },
            &Outages::Random {
                mean_lit,
                mean_dark,
            } => Source::Random {
                mean_lit,
                mean_dark,
                rng,
            },
        };
        let mut cursor = Self {
            source,
            start: Instant::ZERO,
            end: Instant::ZERO,
            passed: 0,
        };
        cursor.step(Instant::ZERO);
        cursor.passed = 0;
        cursor
    }

    /// How many outages had ended at the last question.
    pub(crate) const fn passed(&self) -> u64 {
        self.passed
    }

    /// Start and end of the outage at `time`, or else of the next one; [`Instant::FAR_FUTURE`]
    /// twice when none is left. `time` must not decrease.
    pub(crate) fn at_or_after(&mut self, time: Instant) -> (Instant, Instant) {
        while self.end <= time && self.start != Instant::FAR_FUTURE {
            self.step(time);
        }
        (self.start, self.end)
    }

    /// `time`, or the end of the outage that it falls into.
    pub(crate) fn lit_from(&mut self, time: Instant) -> Instant {
        let mut time = time;
        loop {
            let (start, end) = self.at_or_after(time);
            if time < start || start == Instant::FAR_FUTURE {
                return time;
            }
            time = end;
        }
    }

    /// When `work` is done that begins at `time` and rests during outages.
    pub(crate) fn after(&mut self, time: Instant, work: Duration) -> Instant {
        let (mut time, mut left) = (time, work);
        loop {
            time = self.lit_from(time);
            let (start, end) = self.at_or_after(time);
            let lit = start.since(time);
            if left <= lit || start == Instant::FAR_FUTURE {
                return time + left;
            }
            left -= lit;
            time = end;
        }
    }

    fn step(&mut self, time: Instant) {
        self.passed += 1;
        let never = (Instant::FAR_FUTURE, Instant::FAR_FUTURE);
        (self.start, self.end) = match &mut self.source {
            Source::Never => never,
            Source::Scheduled { list, next } => match list.get(*next) {
                Some(outage) => {
                    *next += 1;
                    (outage.start, outage.start + outage.length)
                }
                None => never,
            },
            Source::Periodic { first, every } => {
                let periods = match time.since(first.start + first.length).as_nanos() {
                    0 if time < first.start + first.length => 0,
                    over => over / every.as_nanos() + 1,
                };
                self.passed = u64::try_from(periods).unwrap_or(u64::MAX);
                let shift = periods.saturating_mul(every.as_nanos());
                let shift = Duration::from_nanos(u64::try_from(shift).unwrap_or(u64::MAX));
                let start = first.start + shift;
                (start, start + first.length)
            }
            Source::Random {
                mean_lit,
                mean_dark,
                rng,
            } => {
                let start = self.end + mean_lit.mul_f64(rng.exponential());
                // One nanosecond at least, so that every step goes forward.
                let dark = mean_dark.mul_f64(rng.exponential());
                (start, start + dark.max(Duration::from_nanos(1)))
            }
        };
    }
}

fn merged(mut list: Vec<Outage>) -> Vec<Outage> {
    list.sort_by_key(|outage| outage.start);
    let mut merged: Vec<Outage> = Vec::with_capacity(list.len());
    for outage in list {
        match merged.last_mut() {
            Some(last) if outage.start <= last.start + last.length => {
                let end = (last.start + last.length).max(outage.start + outage.length);
                last.length = end.since(last.start);
            }
            _ => merged.push(outage),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    const fn at(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    fn outage(start: u64, length: u64) -> Outage {
        Outage {
            start: at(start),
            length: ms(length),
        }
    }

    fn cursor(outages: &Outages) -> Cursor {
        Cursor::new(outages, Rng::new(3).stream("outage"))
    }

    #[test]
    fn schedules_are_sorted_and_merged() {
        let list = vec![outage(50, 10), outage(10, 5), outage(12, 8), outage(20, 1)];
        let mut cursor = cursor(&Outages::Scheduled(list));
        assert_eq!(cursor.at_or_after(at(0)), (at(10), at(21)));
        assert_eq!(cursor.lit_from(at(9)), at(9));
        assert_eq!(cursor.lit_from(at(10)), at(21));
        assert_eq!(cursor.at_or_after(at(21)), (at(50), at(60)));
        assert_eq!(cursor.lit_from(at(60)), at(60));
        assert_eq!(cursor.at_or_after(at(60)).0, Instant::FAR_FUTURE);
    }

    #[test]
    fn work_rests_in_the_dark() {
        let outages = Outages::Periodic {
            first: outage(10, 5),
            every: ms(20),
        };
        let mut ahead = cursor(&outages);
        // Dark in 10..15, 30..35, 50..55.
        assert_eq!(ahead.clone().after(at(0), ms(10)), at(10));
        assert_eq!(ahead.clone().after(at(0), ms(11)), at(16));
        assert_eq!(ahead.clone().after(at(12), ms(1)), at(16));
        assert_eq!(ahead.after(at(5), ms(36)), at(56));
    }

    #[test]
    fn periods_are_reached_by_division() {
        let mut cursor = cursor(&Outages::Periodic {
            first: outage(10, 5),
            every: ms(20),
        });
        let day = 24 * 3_600_000;
        assert_eq!(
            cursor.at_or_after(at(day + 15)),
            (at(day + 30), at(day + 35))
        );
    }

    #[test]
    fn random_outages_have_their_means() {
        let mut cursor = cursor(&Outages::Random {
            mean_lit: ms(300),
            mean_dark: ms(100),
        });
        let (mut now, mut dark, mut count) = (at(0), Duration::ZERO, 0_u32);
        while count < 40_000 {
            let (start, end) = cursor.at_or_after(now);
            dark += end.since(start);
            now = end;
            count += 1;
        }
        // The standard error of an exponential mean over 40 000 draws is 0.5 %.
        let mean_dark = dark.as_secs_f64() / 40_000.0;
        let mean_lit = (now.as_secs_f64() - dark.as_secs_f64()) / 40_000.0;
        assert!(libm::fabs(mean_dark - 0.1) < 0.003, "{mean_dark}");
        assert!(libm::fabs(mean_lit - 0.3) < 0.009, "{mean_lit}");
    }

    #[test]
    fn two_cursors_see_the_same_outages() {
        let outages = Outages::Random {
            mean_lit: ms(30),
            mean_dark: ms(10),
        };
        let mut behind = cursor(&outages);
        let mut ahead = behind.clone();
        let far = ahead.at_or_after(at(10_000));
        for t in 0..10_000 {
            behind.at_or_after(at(t));
        }
        assert_eq!(behind.at_or_after(at(10_000)), far);
    }
}
