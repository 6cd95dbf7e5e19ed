//! When would a packet that leaves now arrive, on the peer's clock?
//!
//! The model has three parts. The *wait* is what the packet spends behind our own packets at the
//! bottleneck, by Lindley's recursion with the service time that the arrivals themselves show: a
//! path's rate is a maximum, and a tenth too much hides a tenth of all that is in flight. The
//! *offset* is everything else (propagation, the queues of others, the difference of the clocks)
//! and is learnt from the residuals arrival − sent − wait. The *spread* says how wrong that was
//! lately.
//!
//! Delay that is drawn again for each packet calls for a long memory, delay that steps and stays
//! for a short one. So several forecasters of the offset with different memories run side by side;
//! each is judged by how wrong it was about packets at the moment when they *left*, and the best
//! one answers. That is the horizon at which a scheduler uses it: a forecaster that follows every
//! step looks splendid one packet ahead and is late by a round trip where it matters.
//!
//! A step upwards shows itself before the first late packet arrives: no acknowledgement comes when
//! one should ([`ArrivalForecast::due`]).
//!
//! The peer has one clock, so forecasts of different paths can be compared with each other although
//! the clocks' difference is unknown.
//!
//! Service times come from the gaps between packets that queued, because a path's rate is a
//! maximum; a wait that a packet cannot have had is subtracted again. Where packets overtake each
//! other, a packet counts as arrived when those before it on its path have arrived too.

use marline_base::{Duration, Instant, Rate};

use crate::law::Arrival;

mod ceiling;
mod succession;

use ceiling::Ceiling;
use succession::{Arrived, Succession};

/// Gains of the forecasters: how much of a residual each believes.
const GAINS: [f64; 3] = [1.0 / 64.0, 1.0 / 8.0, 1.0 / 2.0];
/// Packets in a forecaster's mean absolute error.
const SCORED: f64 = 32.0;
/// Another forecaster answers only if its error is smaller by this factor.
const BETTER: f64 = 0.9;
/// Probability of the upper end.
const UPPER: f64 = 0.95;
/// Steps of a forecaster's quantile in a mean absolute error.
const STEPS: f64 = 2.0;
/// A quantile above this number of mean absolute errors is of a time that is over: where nothing is
/// wrong any more, steps of the errors' size would leave it there for ever.
const STALE: f64 = 16.0;

/// No wait is modelled longer than this, however wrong the rate was.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// What was believed when a packet left (µs), to judge it when the packet arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beliefs {
    wait: f32,
    /// The bottleneck was busy with its predecessor even at the path's highest rate.
    queued: bool,
    /// [`ArrivalModel::corrected`] then.
    corrected: f64,
    /// Offsets relative to the first one ever seen, so that they fit.
    offsets: [f32; GAINS.len()],
    /// Which beginning of the model they are of.
    beginning: u8,
}

/// When a packet would arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrivalForecast {
    /// Expected arrival of a packet that meets no queue of ours: peer's clock minus ours (µs).
    /// Only differences between paths of one session mean anything.
    pub offset_us: f64,
    /// How much later a packet is of use, on average: when those sent before it on the path are
    /// there as well (µs). Zero where packets keep their order.
    pub behind_us: f64,
    /// 95th percentile of how much later than expected packets arrived lately (µs).
    pub late_us: f64,
    /// 95th percentile of when packets arrived over the last thousand or so, if they met no queue
    /// of ours, whatever was expected: peer's clock minus ours (µs).
    pub ceiling_us: f64,
    /// How far that is beyond their mean (µs).
    pub swing_us: f64,
    /// When feedback of the first packet after the newest acknowledged one is due, on our clock:
    /// if there is still none, packets arrive later than expected by at least the time since.
    pub due: Option<Instant>,
    /// When the bottleneck will have served all that was sent, on our clock; the past if it is
    /// idle.
    pub free: Instant,
    /// How long the bottleneck serves a byte (µs).
    pub service_us: f64,
}

/// 95th percentile of errors, by stochastic approximation in steps of their mean size.
#[derive(Clone, Copy, Debug, Default)]
struct Upper {
    /// Mean absolute error (µs).
    error: f64,
    /// 95th percentile, at least zero (µs).
    upper: f64,
}

impl Upper {
    fn sample(&mut self, error: f64) {
        let stale = self.upper / STALE;
        self.learn(error, SCORED, STEPS, (stale, f64::INFINITY));
    }

    /// The mean is that of `packets` packets, and the percentile moves by steps of which `steps`
    /// are the mean, or the nearest that is within `bounds` (µs).
    fn learn(&mut self, error: f64, packets: f64, steps: f64, bounds: (f64, f64)) {
        self.error += (error.abs() - self.error) / packets;
        let step = self.error.clamp(bounds.0, bounds.1) / steps;
        self.upper += if error > self.upper {
            step * UPPER
        } else {
            -step * (1.0 - UPPER)
        };
        self.upper = self.upper.max(0.0);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Forecaster {
    /// Relative to the first residual (µs).
    offset: f64,
    errors: Upper,
}

/// The first packet after the newest acknowledged one: when it left and what was believed then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unheard {
    pub(crate) sent: Instant,
    pub(crate) beliefs: Beliefs,
}

/// From arrival to its acknowledgement here, plus the first residual so that clocks cancel (µs).
#[derive(Clone, Copy, Debug, Default)]
struct Report {
    lag: f64,
    errors: Upper,
}

/// The model of one path.
#[derive(Debug, Default)]
pub(crate) struct ArrivalModel {
    /// Counts its beginnings.
    beginning: u8,
    /// The first residual ever (µs); the others are relative to it.
    origin: Option<i64>,
    forecasters: [Forecaster; GAINS.len()],
    /// The one that answers.
    best: usize,
    /// When the bottleneck will have served all that was sent, on our clock.
    free: Instant,
    /// The same at the path's rate, which is a maximum: until then it is busy for certain.
    free_at_best: Instant,
    /// Time by which `free` was corrected, all in all (µs).
    corrected: f64,
    succession: Succession,
    ceiling: Ceiling,
    report: Report,
}

impl Beliefs {
    /// What the packet was to wait behind others of ours.
    pub(super) fn waits(&self) -> Duration {
        Duration::from_nanos((1e3 * self.wait) as u64)
    }
}

impl ArrivalModel {
    /// A packet of `size` bytes leaves on a path of this rate; what is kept of the moment until
    /// the packet is acknowledged.
    pub(crate) fn on_sent(&mut self, now: Instant, size: u32, rate: Rate) -> Beliefs {
        let wait = micros(self.free.since(now));
        let queued = self.free_at_best > now;
        let best = rate.time_for(u64::from(size)).min(LONGEST_WAIT);
        self.free_at_best = (self.free_at_best.max(now) + best).min(now + LONGEST_WAIT);
        let given = micros_a_byte(rate);
        self.succession.rely_on(given);
        let service = self.succession.service_of(given, size);
        let busy = Duration::from_nanos((1e3 * service) as u64).min(LONGEST_WAIT);
        self.free = (self.free.max(now) + busy).min(now + LONGEST_WAIT);
        Beliefs {
            wait: wait as f32,
            queued,
            corrected: self.corrected,
            offsets: self.forecasters.map(|f| f.offset as f32),
            beginning: self.beginning,
        }
    }

    /// The clocks do not differ by what they did, or an outage is over: all that is known of
    /// arrivals is wrong by as much, and of errors of that size the model would be deaf for
    /// thousands of packets.
    pub(crate) fn restart(&mut self) {
        *self = Self {
            beginning: self.beginning.wrapping_add(1),
            free: self.free,
            free_at_best: self.free_at_best,
            ..Self::default()
        };
    }

    /// A packet leaves whose arrival will not be reported. Behind others it takes its time at the
    /// bottleneck, too; by itself it keeps none busy, and where nothing else is sent the rate is a
    /// guess.
    pub(crate) fn on_sent_beside(&mut self, now: Instant, size: u32, rate: Rate) {
        if self.free > now {
            self.on_sent(now, size, rate);
        }
    }

    /// A packet that arrived is acknowledged `now`. Calls in ascending order of numbers within one
    /// acknowledgement.
    pub(crate) fn on_arrival(&mut self, now: Instant, arrival: &Arrival, beliefs: Beliefs) {
        let Arrival {
            number,
            sent,
            size,
            at_us,
            beyond,
            own_way,
            left: _,
        } = *arrival;
        if beliefs.beginning != self.beginning {
            return;
        }
        self.correct(f64::from(beliefs.wait) - beyond, beliefs.corrected);
        let residual = at_us as i64 - sent.as_micros() as i64;
        let lag = now.as_micros() as i64 - at_us as i64;
        let origin = *self.origin.get_or_insert_with(|| {
            self.report.lag = (lag + residual) as f64;
            residual
        });
        let lag = (lag + origin) as f64;
        if own_way {
            self.report.errors.sample(lag - self.report.lag);
            self.report.lag += GAINS[1] * (lag - self.report.lag);
        }
        self.succession.on_arrival(
            number,
            Arrived {
                at_us: at_us as i64,
                size,
                queued: beliefs.queued,
            },
        );
        // A wait that it did not have would be taken for jitter of the path.
        let wait = f64::from(beliefs.wait).min(beyond);
        let residual = (residual - origin) as f64 - wait;
        for ((forecaster, gain), believed) in
            self.forecasters.iter_mut().zip(GAINS).zip(beliefs.offsets)
        {
            forecaster.errors.sample(residual - f64::from(believed));
            forecaster.offset += gain * (residual - forecaster.offset);
        }
        self.ceiling.sample(residual);
        for (i, forecaster) in self.forecasters.iter().enumerate() {
            if forecaster.errors.error < BETTER * self.forecasters[self.best].errors.error {
                self.best = i;
            }
        }
    }

    /// A packet cannot have waited longer than it took beyond the quickest: by this much (µs) the
    /// bottleneck was free earlier than thought, less what was corrected since the packet left.
    /// Without this, service times that are a little too long add up to a queue that is not there.
    fn correct(&mut self, phantom: f64, corrected_before: f64) {
        let phantom = phantom - (self.corrected - corrected_before);
        if phantom > 0.0 {
            self.corrected += phantom;
            let free = self.free.as_nanos().saturating_sub((phantom * 1e3) as u64);
            self.free = Instant::from_nanos(free);
            // Nor for certain: the rate may have been too low when they left.
            self.free_at_best = self.free_at_best.min(self.free);
        }
    }

    /// When a packet that left at `sent` has arrived, on the peer's clock (µs), if nothing happened
    /// to it: twice as late as 95 % of packets come lately. `None` before the first arrival.
    pub(crate) fn arrives_by(&self, sent: Instant, beliefs: &Beliefs) -> Option<i64> {
        if beliefs.beginning != self.beginning {
            return None;
        }
        let best = &self.forecasters[self.best];
        let trip = best.offset + f64::from(beliefs.wait) + 2.0 * best.errors.upper;
        // The peer names any times.
        let left = self.origin?.saturating_add(sent.as_micros() as i64);
        Some(left.saturating_add(trip as i64))
    }

    /// What a packet that leaves now on a path of this rate has to expect; `None` before the first
    /// arrival. `unheard` is the packet that should be acknowledged next.
    pub(crate) fn forecast(&self, rate: Rate, unheard: Option<Unheard>) -> Option<ArrivalForecast> {
        let origin = self.origin?;
        let best = &self.forecasters[self.best];
        // Where delay is drawn again for each packet, a late one says nothing about the next.
        let natural = if self.best == 0 {
            best.errors.upper
        } else {
            0.0
        };
        let report = self.report.lag + self.report.errors.upper;
        Some(ArrivalForecast {
            offset_us: origin as f64 + best.offset,
            behind_us: self.succession.wait(),
            late_us: best.errors.upper,
            ceiling_us: origin as f64 + self.ceiling.percentile(),
            swing_us: self.ceiling.swing(),
            due: unheard.map(|packet| {
                let wait = f64::from(packet.beliefs.wait);
                let after = (best.offset + wait + natural + report).max(0.0);
                packet.sent + Duration::from_nanos((1e3 * after) as u64)
            }),
            free: self.free,
            service_us: self.succession.service(micros_a_byte(rate)),
        })
    }
}

fn micros_a_byte(rate: Rate) -> f64 {
    8e6 / rate.as_bps().max(1) as f64
}

fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests;
