//! Recorded capacity in the format of Mahimahi's `mm-link`: one whole number a line, the
//! millisecond at which the link can deliver 1500 bytes; the file repeats after its last time.

mod replay;

use super::trace_error::{TraceError, excerpt};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use marline_base::{Instant, Rate};

pub(super) use replay::Replay;

/// Delivery opportunities in a loop. Cloning shares the data (4 bytes an opportunity).
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    name: Arc<str>,
    millis: Arc<[u32]>,
}

impl Trace {
    /// Bytes that one opportunity can carry.
    pub const OPPORTUNITY: u32 = 1_500;
    /// Most opportunities that a trace may hold (64 MiB of memory).
    pub const MAX_OPPORTUNITIES: usize = 16 << 20;

    /// Reads a trace from the text of a file; `name` is used in messages and in a
    /// configuration's text form, where it is the file's path.
    ///
    /// Line ends may be those of DOS, and blank lines at the end do not count.
    ///
    /// # Errors
    ///
    /// When the text is not what `mm-link` takes; the error has the line's number.
    pub fn parse(name: &str, text: &str) -> Result<Self, TraceError> {
        let fail = |line, problem: String| TraceError::new(name, line, problem);
        let mut millis: Vec<u32> = Vec::new();
        for (i, line) in text.trim_end().lines().enumerate() {
            let line = line.trim();
            let problem = match line.parse::<u32>() {
                Ok(ms) => match millis.last() {
                    Some(&previous) if ms < previous => format!(
                        "time {ms} comes after {previous}; times must not decrease, sort the file"
                    ),
                    _ if millis.len() == Self::MAX_OPPORTUNITIES => format!(
                        "more than {} delivery times; shorten the file",
                        Self::MAX_OPPORTUNITIES
                    ),
                    _ => {
                        millis.push(ms);
                        continue;
                    }
                },
                Err(_) if line.is_empty() => "blank line; remove it".into(),
                Err(_) if line.starts_with(['#', '/', ';']) => {
                    "comments are not part of the Mahimahi format; remove the line".into()
                }
                Err(_) => format!(
                    "\"{}\" is not a whole number of milliseconds from 0 to {}",
                    excerpt(line),
                    u32::MAX
                ),
            };
            return Err(fail(i + 1, problem));
        }
        match millis.last() {
            None => Err(fail(
                1,
                "the file holds no delivery times; give one whole number of milliseconds a line"
                    .into(),
            )),
            Some(0) => Err(fail(
                millis.len(),
                "the last time is 0, so the trace would repeat without end in no time; \
                 end it with a time above 0"
                    .into(),
            )),
            Some(_) => Ok(Self {
                name: name.into(),
                millis: millis.into(),
            }),
        }
    }

    /// The name given to [`Trace::parse`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opportunities in one loop.
    pub fn opportunities(&self) -> usize {
        self.millis.len()
    }

    /// Length of one loop.
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms())
    }

    /// Mean rate over one loop.
    pub fn mean_rate(&self) -> Rate {
        Rate::from_bytes_over(
            self.opportunities() as u64 * u64::from(Self::OPPORTUNITY),
            self.period(),
        )
    }

    fn period_ms(&self) -> u64 {
        self.millis.last().copied().unwrap_or(1).into()
    }

    /// Time of the opportunity with this number, counted from 0 through all loops.
    pub fn time(&self, number: u64) -> Instant {
        let len = self.millis.len() as u64;
        let ms = u64::from(self.millis[(number % len) as usize]);
        Instant::from_millis(
            (number / len)
                .saturating_mul(self.period_ms())
                .saturating_add(ms),
        )
    }

    /// Number of the first opportunity after `time`.
    fn first_after(&self, time: Instant) -> u64 {
        let ms = time.as_nanos() / 1_000_000;
        let (loops, within) = (ms / self.period_ms(), ms % self.period_ms());
        let passed = self.millis.partition_point(|&t| u64::from(t) <= within);
        loops * self.millis.len() as u64 + passed as u64
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("name", &self.name)
            .field("opportunities", &self.opportunities())
            .field("period", &self.period())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn error(text: &str) -> String {
        Trace::parse("t.down", text).unwrap_err().to_string()
    }

    #[test]
    fn good_files_are_read() {
        let trace = Trace::parse("t.down", "0\n5\r\n5\n10\n\n").unwrap();
        assert_eq!(trace.opportunities(), 4);
        assert_eq!(trace.period(), Duration::from_millis(10));
        assert_eq!(trace.mean_rate(), Rate::from_kbps(4_800));
    }

    #[test]
    fn bad_files_are_refused_with_the_line() {
        assert!(error("").starts_with("trace t.down, line 1: the file holds no delivery times"));
        assert!(error("\n \n").contains("line 1: the file holds no"));
        assert!(error("1\n\n2").contains("line 2: blank line"));
        assert!(error("1\n2\n# a note\n3").contains("line 3: comments are not"));
        assert!(error("1\nnine").contains("line 2: \"nine\" is not a whole number"));
        assert!(error("-1").contains("line 1: \"-1\""));
        assert!(error("1.5").contains("line 1: \"1.5\""));
        assert!(error("4294967296").contains("line 1"));
        assert!(error("7\n6").contains("line 2: time 6 comes after 7"));
        assert!(error("0\n0").contains("line 2: the last time is 0"));
        assert_eq!(Trace::parse("t", "1\n0").unwrap_err().line(), 2);
    }

    #[test]
    fn opportunities_are_numbered_through_all_loops() {
        let trace = Trace::parse("t", "0\n5\n5\n10").unwrap();
        let ms = Instant::from_millis;
        let times = [0, 5, 5, 10, 10, 15, 15, 20, 20];
        for (number, &time) in times.iter().enumerate() {
            assert_eq!(trace.time(number as u64), ms(time), "number {number}");
        }
        for t in 0..200 {
            let time = Instant::from_micros(t * 250);
            let slow = (0..).find(|&n| trace.time(n) > time).unwrap();
            assert_eq!(trace.first_after(time), slow, "after {time:?}");
        }
    }
}
