//! When does a packet that is sent now on a path arrive, and if not?
//!
//! One model a path answers that for everybody, [`PathLaw`], as a [`Law`]: a probability for every
//! moment, and one for never. It is made of parts that are learnt apart, because they change for
//! different reasons and at different speeds:
//!
//! | file | what | learns from |
//! | --- | --- | --- |
//! | `service.rs` | how long bytes of ours wait for each other | gaps between arrivals |
//! | `wander.rs` | delay that is not ours, changing slowly | delays, as acknowledged |
//! | `scatter.rs` | how packets lie about that: the law's shape | errors of what was expected |
//! | `overtaking.rs` | whether each packet is late by itself | the order of arrivals |
//! | `ceiling.rs` | how late packets are at the latest, whatever is expected | delays |
//! | `loss.rs` | how many are lost, and how losses gather | what became of packets |
//! | `hazard.rs` | whether a silence is an outage | the silence, and outages before |
//! | `report.rs` | how long an acknowledgement takes back | when acknowledgements came |
//! | `shape.rs` | the law itself, and laws together | |
//! | `forecast.rs` | [`ArrivalForecast`]: the law in short | |
//! | `calibration.rs` | how often the law came true | |
//! | `weights.rs` | how models side by side count | |
//!
//! ```text
//! arrives = left + wait(service) + level(wander) + width(service, wander) · error(scatter)
//! never   = lost(loss) or dark(hazard) and not only held
//! ```
//!
//! It is refreshed by acknowledgements; a packet that leaves costs the recursion of its wait. Each
//! packet takes along what was believed when it left, by which the model is judged when it arrives:
//! that is the horizon at which a scheduler uses it. Memory is bounded, arithmetic is the same
//! everywhere (`libm`). The mathematics, and how the law stands beside older estimators, are in
//! docs/LAW.md.

mod calibration;
mod ceiling;
mod forecast;
mod hazard;
mod loss;
mod overtaking;
mod report;
mod scatter;
mod service;
mod shape;
mod wander;
mod weights;

use libm::sqrt;
use marline_base::{Duration, Instant, Rate, nanos_f64};

pub use calibration::Calibration;
pub use forecast::ArrivalForecast;
pub use hazard::Silence;
pub use shape::Law;

use calibration::Judge;
use ceiling::Ceiling;
use hazard::Hazard;
pub(crate) use hazard::Verdict;
pub(crate) use loss::{Loss, ReversePath};
use overtaking::Overtaking;
use report::Report;
use scatter::Scatter;
use service::{Service, Wait};
use wander::{Batch, Levels, Wander};

/// Doubt below this moves no quantile that anybody asks for: the shape is left as it is.
const DOUBT: f64 = 0.002;
/// No delay or difference of clocks beyond this counts (µs): eleven days.
const FARTHEST: i64 = 1_000_000_000_000;
/// No acknowledgement is late before this time (µs) has passed beyond when it was due: hosts have
/// other things to do, as the margin of suspicion says (`path/timers.rs`).
const GRACE: f64 = 10e3;
/// Packets without feedback that are looked at: more would make an outage no more certain.
pub(crate) const OVERDUE: usize = 8;

/// What a path carries, as its controller knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carries {
    /// The most that it was seen to carry, or the controller's model.
    pub(crate) rate: Rate,
    /// It was ever filled; if not, the rate is a lower bound.
    pub(crate) filled: bool,
}

/// What was believed when a packet left, to judge it by when the packet arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left {
    /// What it was to wait behind others of ours (µs).
    wait: f32,
    /// Square of how wide its law was (µs²).
    variance: f32,
    /// What of that is the wait's (µs²).
    unsure: f32,
    levels: Levels,
    /// What of the waits had been corrected (µs).
    corrected: f64,
    /// The bottleneck was busy with its predecessor.
    queued: bool,
    /// Which beginning of the model they are of.
    beginning: u8,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Its number.
    pub(crate) number: u64,
    /// When it left.
    pub(crate) sent: Instant,
    /// Bytes.
    pub(crate) size: u32,
    /// When it arrived, on the peer's clock.
    pub(crate) at_us: u64,
    /// How much longer it took than the quickest packet lately (µs).
    pub(crate) beyond: f64,
    /// What was believed when it left.
    pub(crate) left: Left,
    /// It was acknowledged by the path's own way back.
    pub(crate) own_way: bool,
}

/// The law of one path. See the [module](self).
#[derive(Debug, Default)]
pub struct PathLaw {
    /// Counts its beginnings.
    beginning: u8,
    /// The first delay ever, peer's clock minus ours (µs): the others are relative to it, so that
    /// clocks may be years apart.
    origin: Option<i64>,
    /// When the newest packet left that is known to have arrived.
    newest: Instant,
    service: Service,
    wander: Wander,
    scatter: Scatter,
    overtaking: Overtaking,
    ceiling: Ceiling,
    loss: Loss,
    /// The same before the path fell into doubt.
    before: Option<Loss>,
    hazard: Hazard,
    report: Report,
    /// Arrivals of this acknowledgement.
    batch: Batch,
    arrived: Option<Instant>,
    judge: Judge,
}

impl PathLaw {
    /// A packet of `size` bytes leaves; what is kept until its fate is known.
    pub(crate) fn on_sent(&mut self, now: Instant, size: u32, carries: Carries) -> Left {
        let (wait, queued) = self
            .service
            .on_sent(now, size, carries.rate, carries.filled);
        let horizon = self.horizon(now);
        Left {
            wait: wait.mean as f32,
            variance: (wait.variance + self.wander.variance(horizon)) as f32,
            unsure: wait.variance as f32,
            levels: self.wander.levels(horizon),
            corrected: self.service.corrected(),
            queued,
            beginning: self.beginning,
        }
    }

    /// Is the law of what leaves now to be kept, to see how often laws come true?
    pub(crate) fn is_judged(&self, now: Instant) -> bool {
        self.origin.is_some() && self.judge.wants(now)
    }

    /// Keeps the law of packet `number`, which leaves now.
    pub(crate) fn judge(&mut self, now: Instant, number: u64, law: Law) {
        self.judge.keep(now, number, law);
    }

    /// A packet leaves whose arrival will not be reported: behind others it takes its time at the
    /// bottleneck, too.
    pub(crate) fn on_sent_beside(&mut self, now: Instant, size: u32, carries: Carries) {
        if self.service.is_busy(now) {
            self.service
                .on_sent(now, size, carries.rate, carries.filled);
        }
    }

    /// A packet that arrived is acknowledged `now`. Calls in ascending order of numbers within one
    /// acknowledgement, then [`PathLaw::refresh`].
    pub(crate) fn on_arrival(&mut self, now: Instant, arrival: &Arrival) {
        let Arrival { number, left, .. } = *arrival;
        if left.beginning != self.beginning {
            return;
        }
        // The peer names any times.
        let at = i64::try_from(arrival.at_us).unwrap_or(i64::MAX);
        let sent = arrival.sent.as_micros() as i64;
        let taken = at.saturating_sub(sent);
        let origin = *self.origin.get_or_insert(taken);
        let residual = taken.saturating_sub(origin).clamp(-FARTHEST, FARTHEST) as f64;
        self.service
            .on_arrival(number, arrival.size, at, &left, arrival.beyond);
        self.overtaking.on_arrival(number, sent, at);
        let wait = f64::from(left.wait);
        if left.variance > 0.0 && self.wander.is_known() {
            let error = residual - wait - left.levels.level();
            let variance = f64::from(left.variance);
            self.scatter.on_error(error / sqrt(variance));
            let usual = variance - f64::from(left.unsure);
            self.service.on_error(wait, error, usual);
        }
        // A wait that it did not have would be taken for delay of the path.
        let residual = residual - wait.min(arrival.beyond);
        self.ceiling.sample(residual);
        self.batch.add(residual, &left.levels);
        self.arrived = self.arrived.max(Some(arrival.sent));
        if arrival.own_way {
            let lag = now.as_micros() as i64 - at;
            let lag = lag.saturating_add(origin).clamp(-FARTHEST, FARTHEST);
            self.report.on_report(lag as f64);
        }
        self.judge.on_arrival(number, arrival.at_us as f64);
    }

    /// Packets arrived whether or not it was said when, the newest of them of that number.
    pub(crate) fn on_acked(&mut self, now: Instant, packets: u32, newest: u64) {
        self.loss.on_arrived(packets, newest);
        self.hazard.on_heard(now);
    }

    /// A packet was lost. Calls in ascending order of numbers.
    pub(crate) fn on_lost(&mut self, number: u64, sent: Instant) {
        self.loss.on_lost(number, sent);
        self.judge.on_lost(number);
    }

    /// A packet that was counted as lost arrived.
    pub(crate) fn on_spurious(&mut self) {
        self.loss.revoke();
    }

    /// An acknowledgement was taken in.
    pub(crate) fn refresh(&mut self, now: Instant) {
        self.loss.refresh(now);
        let Some(newest) = self.arrived.take() else {
            return;
        };
        let elapsed = seconds(newest.since(self.newest));
        self.newest = self.newest.max(newest);
        let batch = core::mem::take(&mut self.batch);
        self.wander.on_batch(&batch, elapsed);
        self.report.refresh();
        self.scatter.refresh();
    }

    /// The path is in doubt: what is lost from now on may be an outage's.
    pub(crate) fn on_doubt(&mut self) {
        self.before.get_or_insert(self.loss);
    }

    /// The doubt is over. An outage's losses say nothing of what is lost while the path carries.
    pub(crate) fn on_certain(&mut self, verdict: Verdict) {
        let before = self.before.take();
        self.hazard.on_certain(verdict);
        if verdict.is_outage() {
            self.loss = before.unwrap_or(self.loss);
        }
    }

    /// Does the path lose what is in flight again and again?
    pub(crate) fn flaps(&self) -> bool {
        self.hazard.flaps()
    }

    /// The path is not as late any more as it was while it was in doubt: nothing of that counts.
    pub(crate) fn on_recovery(&mut self) {
        self.wander = Wander::default();
        self.ceiling = Ceiling::default();
        self.batch = Batch::default();
    }

    /// The clocks do not differ by what they did: what is known of arrivals is wrong by as much.
    pub(crate) fn restart(&mut self) {
        self.beginning = self.beginning.wrapping_add(1);
        self.origin = None;
        self.newest = Instant::ZERO;
        self.service.restart();
        self.wander = Wander::default();
        self.overtaking = Overtaking::default();
        self.ceiling = Ceiling::default();
        self.report = Report::default();
        self.batch = Batch::default();
        self.arrived = None;
        self.judge.forget();
    }

    /// How likely the path is dark, where these packets, oldest first, left after the newest that
    /// is known to have arrived, and acknowledgements come by this `reverse` path.
    pub(crate) fn silence<'a>(
        &self,
        now: Instant,
        open: impl Iterator<Item = (Instant, &'a Left)>,
        reverse: &ReversePath<'_>,
    ) -> Silence {
        let mut open = open.filter(|(_, left)| left.beginning == self.beginning);
        let (Some((sent, left)), Some(_)) = (open.next(), self.origin) else {
            return Silence::default();
        };
        let taken = |sent: Instant| nanos_f64(now.since(sent)) / 1e3;
        let due = |left: &Left| {
            let level = left.levels.level().max(self.wander.level());
            f64::from(left.wait) + level + self.report.longest() + GRACE
        };
        let deviation = sqrt(f64::from(left.variance) + self.report.variance());
        let law = self.shaped(due(left), deviation, 0.0);
        let late = 1.0 - law.share(taken(sent));
        let more = open
            .take(OVERDUE)
            .take_while(|(sent, left)| taken(*sent) > due(left) + deviation);
        let overdue = 1 + more.count() as u32;
        let lost = self.loss.unheard(overdue, reverse.loss);
        let alive = reverse.silent(late + (1.0 - late) * lost);
        self.hazard.silence(now.since(sent), alive)
    }

    /// The same where these packets, oldest first, are known not to be late.
    pub(crate) fn silence_if_not_late(
        &self,
        now: Instant,
        mut open: impl Iterator<Item = Instant>,
        reverse: &ReversePath<'_>,
    ) -> Silence {
        let Some(sent) = open.next() else {
            return Silence::default();
        };
        let lost = self
            .loss
            .unheard(1 + open.take(OVERDUE).count() as u32, reverse.loss);
        self.hazard.silence(now.since(sent), reverse.silent(lost))
    }

    /// When a packet arrives that is sent `now`, behind `bytes` more of ours, and how likely it
    /// never does; `None` before the first arrival.
    pub(crate) fn after(
        &self,
        now: Instant,
        bytes: u64,
        carries: Carries,
        silence: Silence,
    ) -> Option<Law> {
        let origin = self.origin?;
        let wait = self
            .service
            .wait(now, bytes as f64, carries.rate, carries.filled);
        let Wait { mean, variance, .. } = wait;
        let variance = variance + self.wander.variance(self.horizon(now));
        let left = origin.saturating_add(now.as_micros() as i64) as f64;
        let at = left + mean + self.wander.level();
        let law = self.shaped(at, sqrt(variance), self.loss.now(now));
        // It may go dark while the packet is on its way.
        let trip = ((mean + self.wander.level() + self.report.lag()) / 2e6).max(0.0);
        let dark = silence.dark + (1.0 - silence.dark) * (self.hazard.rate() * trip).min(1.0);
        let holds = self.hazard.holds();
        if silence.dark < DOUBT {
            let never = dark * (1.0 - holds);
            return Some(law.with_loss(law.loss() + (1.0 - law.loss()) * never));
        }
        let held = shape::knots(|p| 1e6 * silence.remains(p));
        let held = Law::new(at, held, 1.0 - holds);
        Some(law.or(&held, dark))
    }

    /// As [`PathLaw::after`], for a packet and all that left before it.
    pub(crate) fn in_order(&self, law: &Law) -> Law {
        match self.overtaking.before() {
            Some((spacing, most)) => law.and_those_before(spacing, most),
            None => *law,
        }
    }

    /// How often laws came true.
    pub fn calibration(&self) -> Calibration {
        self.judge.calibration()
    }

    fn shaped(&self, at: f64, deviation: f64, loss: f64) -> Law {
        Law::new(at, self.scatter.knots().map(|z| z * deviation), loss)
    }

    /// Since the newest packet left that is known to have arrived (s).
    fn horizon(&self, now: Instant) -> f64 {
        seconds(now.since(self.newest))
    }
}

fn seconds(duration: Duration) -> f64 {
    nanos_f64(duration) / 1e9
}

#[cfg(test)]
mod tests;
