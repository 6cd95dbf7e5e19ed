//! Recorded rates: a table of times and rates, such as a phone's throughput every 100 ms.

mod play;
mod read;

use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use marline_base::{Instant, Rate};

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
