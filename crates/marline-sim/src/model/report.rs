//! The outcome of a model run as the results of a scenario's run.

use std::collections::BTreeMap;

use super::{Model, ModelError, Outcome};
use crate::measure::{Histogram, endings};
use crate::results::Run;

/// What is measured in units of time.
const DELAYS: [&str; 3] = ["in_order_delay", "buffering", "unit_delay"];
/// Numbers.
const NUMBERS: [&str; 6] = [
    "goodput_mbps",
    "redundancy",
    "coded",
    "retransmissions",
    "periods.mean",
    "periods.second_moment",
];

/// The names of all values that runs of the model can yield, sorted.
pub(crate) fn value_names(model: &Model) -> Vec<String> {
    let delays = DELAYS
        .iter()
        .flat_map(|name| endings("ms").map(move |ending| format!("stream.{name}{ending}")));
    let numbers = NUMBERS.iter().map(|name| format!("stream.{name}"));
    let paths = model.paths.iter().map(|p| format!("path.{}.share", p.name));
    let mut names: Vec<String> = delays.chain(numbers).chain(paths).collect();
    if model.exhaustive {
        names.push("stream.best_in_order_delay_ms".into());
        names.push("stream.penalty".into());
    }
    names.sort();
    names
}

impl Model {
    /// A run with a scheduler, as results.
    ///
    /// # Errors
    /// As [`Model::check`].
    pub fn results(
        &self,
        scheduler: &marline_proto::sched::Choice,
        seed: u64,
    ) -> Result<Run, ModelError> {
        let outcome = self.run(scheduler, seed)?;
        let mut run = Run {
            cell: BTreeMap::new(),
            scheduler: scheduler.to_string(),
            seed,
            values: self.numbers(&outcome),
            fractions: BTreeMap::new(),
            distributions: BTreeMap::new(),
            series: BTreeMap::new(),
        };
        let Outcome {
            in_order,
            buffering,
            unit,
            ..
        } = &outcome;
        let histograms: [&Histogram; 3] = [in_order, buffering, unit];
        for (name, histogram) in DELAYS.iter().zip(histograms) {
            let name = format!("stream.{name}");
            histogram.report(&name, "ms", 1e3, &mut run.values);
            run.distributions
                .insert(name, histogram.distribution("ms", 1e3));
        }
        if self.exhaustive
            && let Some(best) = self.best_assignment(seed)?
        {
            let mean = in_order.mean() / 1e3;
            run.values
                .insert("stream.best_in_order_delay_ms".into(), best);
            run.values
                .insert("stream.penalty".into(), mean / best - 1.0);
        }
        Ok(run)
    }

    fn numbers(&self, outcome: &Outcome) -> BTreeMap<String, f64> {
        let mut values = BTreeMap::new();
        let mut put = |name: &str, value: f64| {
            values.insert(format!("stream.{name}"), value);
        };
        let end = self
            .until()
            .map_or(outcome.end, |until| until.min(outcome.end));
        let time = end.since(marline_base::Instant::ZERO + self.warmup);
        let bits = outcome.delivered as f64 * f64::from(self.packet) * 8.0;
        if !time.is_zero() {
            put("goodput_mbps", bits / time.as_secs_f64() / 1e6);
        }
        let sent: u64 = outcome.sent.iter().sum();
        let source = outcome.source.max(1) as f64;
        put("redundancy", (sent as f64 - outcome.source as f64) / source);
        put("coded", outcome.coded as f64 / source);
        put("retransmissions", outcome.again as f64 / source);
        if let Some(mean) = outcome.periods.mean() {
            put("periods.mean", mean);
        }
        if let Some(second) = outcome.periods.second_moment() {
            put("periods.second_moment", second);
        }
        for (path, count) in self.paths.iter().zip(&outcome.sent) {
            let share = *count as f64 / sent.max(1) as f64;
            values.insert(format!("path.{}.share", path.name), share);
        }
        values
    }
}
