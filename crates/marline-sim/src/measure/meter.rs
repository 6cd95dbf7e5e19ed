//! What one workload, path, link or cross source measures during a run.

use std::collections::BTreeMap;

use marline_base::{Duration, Instant, Rate};

use super::catalogue::{Form, Measure};
use super::histogram::Histogram;
use crate::results::{Fraction, Run};

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
}

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
        }
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
        let time = end.since(self.from);
        if let Some(rate) = rate
            && time > Duration::ZERO
        {
            let mbps = Rate::from_bytes_over(self.bytes, time).as_mbps_f64();
            run.values.insert(full(rate), mbps);
        }
    }
}
