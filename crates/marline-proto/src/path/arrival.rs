//! When would a packet that leaves now arrive, on the peer's clock?
//!
//! The model has three parts. The *wait* is what the packet spends behind our own packets at the
//! bottleneck, by Lindley's recursion with the path's measured rate. The *offset* is everything
//! else (propagation, the queues of others, the difference of the clocks) and is learnt from the
//! residuals arrival − sent − wait. The *spread* says how wrong that was lately.
//!
//! Delay that is drawn anew for each packet calls for a long memory, delay that steps and stays for
//! a short one. So several forecasters of the offset with different memories run side by side;
//! each is judged by how wrong it was about packets at the moment when they *left*, and the best
//! one answers. That is the horizon at which a scheduler uses it: a forecaster that follows every
//! step looks splendid one packet ahead and is late by a round trip where it matters.
//!
//! The peer has one clock, so forecasts of different paths can be compared with each other although
//! the clocks' difference is unknown.

use marline_base::{Duration, Instant, Rate};

/// Gains of the forecasters: how much of a residual each believes.
const GAINS: [f64; 3] = [1.0 / 64.0, 1.0 / 8.0, 1.0 / 2.0];
/// Weight of a new error in a forecaster's mean absolute error.
const SCORE_GAIN: f64 = 1.0 / 32.0;
/// Another forecaster answers only if its error is smaller by this factor.
const BETTER: f64 = 0.9;
/// Probability of the upper end.
const UPPER: f64 = 0.95;
/// Step of the quantile's stochastic approximation, in mean absolute errors.
const UPPER_STEP: f64 = 0.5;

/// No wait is modelled longer than this, however wrong the rate was.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// What every forecaster believed when a packet left (µs), to judge it when the packet arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beliefs {
    wait: f32,
    /// Offsets relative to the first one ever seen, so that they fit.
    offsets: [f32; GAINS.len()],
}

/// When a packet would arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrivalForecast {
    /// Expected arrival of a packet that meets no queue of ours: peer's clock minus ours (µs).
    /// Only differences between paths of one session mean anything.
    pub offset_us: f64,
    /// 95th percentile of how much later than expected packets arrived lately (µs).
    pub late_us: f64,
    /// When the bottleneck will have served all that was sent, on our clock; the past if it is
    /// idle.
    pub free: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Forecaster {
    /// Relative to the first residual (µs).
    offset: f64,
    /// Mean absolute error (µs).
    error: f64,
    /// 95th percentile of the error (µs).
    upper: f64,
}

/// The model of one path.
#[derive(Debug, Default)]
pub(crate) struct ArrivalModel {
    /// The first residual ever (µs); the others are relative to it.
    origin: Option<i64>,
    forecasters: [Forecaster; GAINS.len()],
    /// The one that answers.
    best: usize,
    /// When the bottleneck will have served all that was sent, on our clock.
    free: Instant,
}

impl ArrivalModel {
    /// A packet of `size` bytes leaves on a path of this rate; what is kept of the moment until
    /// the packet is acknowledged.
    pub(crate) fn on_sent(&mut self, now: Instant, size: u32, rate: Rate) -> Beliefs {
        let wait = micros(self.free.since(now));
        let busy = rate.time_for(u64::from(size)).min(LONGEST_WAIT);
        self.free = (self.free.max(now) + busy).min(now + LONGEST_WAIT);
        Beliefs {
            wait: wait as f32,
            offsets: self.forecasters.map(|f| f.offset as f32),
        }
    }

    /// A packet that left at `sent` arrived at `at_us` on the peer's clock. Calls in ascending
    /// order of numbers within one acknowledgement.
    pub(crate) fn on_arrival(&mut self, sent: Instant, at_us: u64, beliefs: Beliefs) {
        let residual = at_us as i64 - sent.as_micros() as i64;
        let origin = *self.origin.get_or_insert(residual);
        let residual = (residual - origin) as f64 - f64::from(beliefs.wait);
        for ((forecaster, gain), believed) in
            self.forecasters.iter_mut().zip(GAINS).zip(beliefs.offsets)
        {
            let error = residual - f64::from(believed);
            forecaster.error += SCORE_GAIN * (error.abs() - forecaster.error);
            let step = UPPER_STEP * forecaster.error;
            forecaster.upper += if error > forecaster.upper {
                step * UPPER
            } else {
                -step * (1.0 - UPPER)
            };
            forecaster.upper = forecaster.upper.max(0.0);
            forecaster.offset += gain * (residual - forecaster.offset);
        }
        for (i, forecaster) in self.forecasters.iter().enumerate() {
            if forecaster.error < BETTER * self.forecasters[self.best].error {
                self.best = i;
            }
        }
    }

    /// What a packet that leaves now has to expect; `None` before the first arrival.
    pub(crate) fn forecast(&self) -> Option<ArrivalForecast> {
        let origin = self.origin?;
        let best = &self.forecasters[self.best];
        Some(ArrivalForecast {
            offset_us: origin as f64 + best.offset,
            late_us: best.upper,
            free: self.free,
        })
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests;
