//! What one workload, path, link or cross source measures during a run.

use std::collections::BTreeMap;

use marline_base::{Duration, Instant, Rate};

use super::catalogue::{Form, Measure};
use super::histogram::Histogram;
use super::sampler::MOST_SAMPLES;
use crate::results::{Fraction, Run, Series};

/// Collects measures of one thing; what happened before the end of the warm-up is left out.
#[derive(Debug)]
pub struct Meter {
    /// Full name of what is measured.
    name: String,
    /// End of the warm-up.
    from: Instant,
    histograms: [Option<Box<Histogram>>; Measure::COUNT],
    fractions: BTreeMap<Measure, Fraction>,
    numbers: BTreeMap<Measure, f64>,
    /// Bytes delivered since the end of the warm-up.
    bytes: u64,
    /// Bytes delivered at any time.
    all_bytes: u64,
    over_time: Option<OverTime>,
}

/// The longest delay of what was written in each step of a run (ms).
#[derive(Debug)]
struct OverTime {
    step: Duration,
    /// That of the workload's units, once one has come.
    measure: Option<Measure>,
    longest: Vec<f64>,
}

/// How long a workload's units took.
const OF_UNITS: [Measure; 6] = [
    Measure::InOrderDelay,
    Measure::PacketDelay,
    Measure::BlockDelay,
    Measure::ObjectDelay,
    Measure::ReplyDelay,
    Measure::FrameDelay,
];

impl Meter {
    pub(crate) fn new(name: String, from: Instant) -> Self {
        Self {
            name,
            from,
            histograms: [const { None }; Measure::COUNT],
            fractions: BTreeMap::new(),
            numbers: BTreeMap::new(),
            bytes: 0,
            all_bytes: 0,
            over_time: None,
        }
    }

    /// Keeps delays over the time at which they began, too, for a run of `duration` with samples
    /// every `step`.
    pub(crate) fn over_time(mut self, duration: Duration, step: Duration) -> Self {
        let steps = duration.as_nanos().div_ceil(step.as_nanos().max(1));
        self.over_time = Some(OverTime {
            step,
            measure: None,
            longest: vec![0.0; steps.min(u128::from(MOST_SAMPLES) + 1) as usize],
        });
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Bytes that the application was handed, the warm-up included.
    pub(crate) fn all_bytes(&self) -> u64 {
        self.all_bytes
    }

    fn record(&mut self, measure: Measure, value: u64) {
        self.histograms[measure as usize]
            .get_or_insert_default()
            .record(value);
    }

    /// A delay that began at `begun` and ends `now`; it counts if it began after the warm-up.
    pub fn delay(&mut self, measure: Measure, begun: Instant, now: Instant) {
        if let Some(over_time) = &mut self.over_time {
            over_time.add(measure, begun, now);
        }
        if begun >= self.from {
            self.record(measure, now.since(begun).as_nanos().div_ceil(1_000) as u64);
        }
    }

    /// An amount of bytes that was seen at `now`.
    pub fn amount(&mut self, measure: Measure, now: Instant, bytes: u64) {
        if now >= self.from {
            self.record(measure, bytes);
        }
    }

    /// Something that was begun at `begun` did (`hit`) or did not happen.
    pub fn trial(&mut self, measure: Measure, begun: Instant, hit: bool) {
        if begun >= self.from {
            let fraction = self.fractions.entry(measure).or_default();
            fraction.trials += 1;
            fraction.hits += u64::from(hit);
        }
    }

    /// Hits of trials that were counted elsewhere.
    pub(crate) fn fraction(&mut self, measure: Measure, hits: u64, trials: u64) {
        self.fractions.insert(measure, Fraction { hits, trials });
    }

    /// A number that is known at the end.
    pub(crate) fn number(&mut self, measure: Measure, value: f64) {
        self.numbers.insert(measure, value);
    }

    /// Nothing came from `since` to `now`; the longest such time after the warm-up is kept, in ms.
    pub fn silence(&mut self, measure: Measure, since: Instant, now: Instant) {
        let ms = now.since(since.max(self.from)).as_secs_f64() * 1e3;
        let longest = self.numbers.entry(measure).or_default();
        *longest = longest.max(ms);
    }

    /// The application was handed this number of bytes.
    pub fn delivered(&mut self, now: Instant, bytes: u64) {
        self.all_bytes += bytes;
        if now >= self.from {
            self.bytes += bytes;
        }
    }

    /// Writes everything into the run that ended at `end`; `rate` names what the delivered bytes
    /// over time are.
    pub(crate) fn report(self, end: Instant, rate: Option<Measure>, run: &mut Run) {
        let full = |measure: Measure| format!("{}.{}", self.name, measure.entry().name);
        for (entry, histogram) in super::CATALOGUE.iter().zip(&self.histograms) {
            let Some(histogram) = histogram else { continue };
            let (name, suffix) = (full(entry.measure), entry.form.suffix());
            histogram.report(&name, suffix, 1e3, &mut run.values);
            let distribution = histogram.distribution(entry.unit, 1e3);
            run.distributions.insert(name, distribution);
        }
        for (&measure, &fraction) in &self.fractions {
            debug_assert_eq!(measure.entry().form, Form::Fraction);
            if fraction.trials > 0 {
                let value = fraction.hits as f64 / fraction.trials as f64;
                run.values.insert(full(measure), value);
            }
            run.fractions.insert(full(measure), fraction);
        }
        for (&measure, &value) in &self.numbers {
            run.values.insert(full(measure), value);
        }
        if let Some(over_time) = self.over_time
            && let Some(measure) = over_time.measure
        {
            let series = Series {
                unit: measure.entry().unit.to_owned(),
                step_s: over_time.step.as_secs_f64(),
                values: over_time.longest,
            };
            let name = format!("{}.{}", self.name, measure.entry().name);
            run.series.insert(name, series);
        }
        let time = end.since(self.from);
        if let Some(rate) = rate
            && time > Duration::ZERO
        {
            let mbps = Rate::from_bytes_over(self.bytes, time).as_mbps_f64();
            run.values.insert(full(rate), mbps);
        }
    }
}

impl OverTime {
    fn add(&mut self, measure: Measure, begun: Instant, now: Instant) {
        if !OF_UNITS.contains(&measure) || self.measure.is_some_and(|known| known != measure) {
            return;
        }
        self.measure = Some(measure);
        let step = begun.since(Instant::ZERO).as_nanos() / self.step.as_nanos().max(1);
        if let Some(longest) = usize::try_from(step)
            .ok()
            .and_then(|at| self.longest.get_mut(at))
        {
            *longest = longest.max(now.since(begun).as_secs_f64() * 1e3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_stand_at_the_time_at_which_they_began() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let step = Duration::from_millis(100);
        let meter = Meter::new("live".to_owned(), at(0));
        let mut meter = meter.over_time(Duration::from_millis(450), step);
        for (begun, ended) in [(10, 40), (20, 30), (250, 1250), (9000, 9001)] {
            meter.delay(Measure::InOrderDelay, at(begun), at(ended));
        }
        meter.delay(Measure::OutOfOrderWait, at(110), at(120));
        let mut run = crate::results::sample::results().runs.remove(0);
        meter.report(at(500), None, &mut run);
        let series = &run.series["live.in_order_delay"];
        assert_eq!(series.values, [30.0, 0.0, 1000.0, 0.0, 0.0]);
        assert_eq!((series.step_s, series.unit.as_str()), (0.1, "ms"));
        assert!(!run.series.contains_key("live.out_of_order_wait"));
    }
}
