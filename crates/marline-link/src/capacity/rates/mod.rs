//! Recorded rates: a table of times and rates, such as a phone's throughput every 100 ms.

mod play;
mod read;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use marline_base::{Instant, Rate};

use super::TraceError;

pub(super) use play::Player;

/// A rate that changes at recorded times, in a loop. Cloning shares the data (16 bytes a row).
///
/// The link is fluid: while a rate holds, packets leave one after the other at that rate, bit by
/// bit, and what a change of rate finds half sent goes on at the new one. So every stretch carries
/// its rate times its length, except for a packet's departure being rounded up to a whole
/// nanosecond.
#[derive(Clone, PartialEq)]
pub struct RateTrace {
    name: Arc<str>,
    column: Arc<str>,
    scale: f64,
    steps: Arc<[Step]>,
    /// Length of one loop in ms.
    period_ms: u64,
}

/// The rate from `ms` until the next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    ms: u64,
    rate: Rate,
}

impl RateTrace {
    /// Most rows that a trace may hold (16 MiB of memory).
    pub const MAX_ROWS: usize = 1 << 20;

    /// Rates that hold one after the other, each for a whole number of milliseconds above zero, in
    /// a loop. `name` is as in [`RateTrace::parse`]; in a configuration's text form nothing can be
    /// read from it.
    ///
    /// # Errors
    ///
    /// When there are none or more than [`RateTrace::MAX_ROWS`], when one holds for no such time,
    /// or when the mean rate is below 1 kbit/s.
    pub fn of(
        name: &str,
        rates: impl IntoIterator<Item = (Duration, Rate)>,
    ) -> Result<Self, TraceError> {
        let fail = |problem: &str| TraceError::new(name, 1, problem);
        let (mut steps, mut ms) = (Vec::new(), 0);
        for (length, rate) in rates {
            if length.is_zero() || !length.subsec_nanos().is_multiple_of(1_000_000) {
                return Err(fail("a rate must hold for whole milliseconds"));
            }
            steps.push(Step { ms, rate });
            ms += length.as_millis() as u64;
        }
        if steps.is_empty() || steps.len() > Self::MAX_ROWS {
            return Err(fail("it must have at least one rate, and 2^20 at most"));
        }
        let trace = Self {
            name: name.into(),
            column: "".into(),
            scale: 1.0,
            steps: steps.into(),
            period_ms: ms,
        };
        match trace.mean_rate() < Rate::from_kbps(1) {
            true => Err(fail("the mean rate must be at least 1 kb/s")),
            false => Ok(trace),
        }
    }

    /// The name given to [`RateTrace::parse`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The column whose rates these are, as the table's header names it.
    pub fn column(&self) -> &str {
        &self.column
    }

    /// What the table's rates were multiplied by.
    pub const fn scale(&self) -> f64 {
        self.scale
    }

    /// Length of one loop.
    pub const fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms)
    }

    /// Mean rate over one loop.
    pub fn mean_rate(&self) -> Rate {
        let ends = self.steps.iter().skip(1).map(|step| step.ms);
        let bit_ms: u128 = (self.steps.iter().zip(ends.chain([self.period_ms])))
            .map(|(step, end)| u128::from(step.rate.as_bps()) * u128::from(end - step.ms))
            .sum();
        let mean = bit_ms / u128::from(self.period_ms);
        Rate::from_bps(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Place of the step that holds at this time within a loop.
    fn step_at(&self, within: Duration) -> usize {
        let after = |step: &Step| Duration::from_millis(step.ms) <= within;
        self.steps.partition_point(after) - 1
    }

    /// When the step at `place` ends in the loop that began at `origin`.
    fn end(&self, place: usize, origin: Instant) -> Instant {
        let ms = self.steps.get(place + 1).map_or(self.period_ms, |s| s.ms);
        origin + Duration::from_millis(ms)
    }
}

impl fmt::Debug for RateTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateTrace")
            .field("name", &self.name)
            .field("column", &self.column)
            .field("scale", &self.scale)
            .field("rows", &self.steps.len())
            .field("period", &self.period())
            .finish_non_exhaustive()
    }
}
