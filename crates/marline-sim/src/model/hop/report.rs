//! The outcome of an experiment with blocks as the results of a scenario's run.

use std::collections::BTreeMap;

use marline_link::ConfigError;
use marline_proto::sched::normal::quantile;

use super::{Experiment, Outcome, Variant};
use crate::results::{Distribution, Run};

/// What a run yields beside calibration.
const VALUES: [&str; 9] = [
    "block_lateness",
    "stable",
    "redundancy",
    "size.mean_kb",
    "size.p10_kb",
    "size.p90_kb",
    "forecast.mean_mbps",
    "forecast.sd_mbps",
    "forecast_error.sd",
];
/// At these probabilities errors of forecasts are held against the normal distribution.
const PROBABILITIES: [(f64, &str); 5] = [
    (0.02, "p02"),
    (0.1, "p10"),
    (0.5, "p50"),
    (0.9, "p90"),
    (0.98, "p98"),
];
/// Quantiles that are kept of a distribution.
const POINTS: usize = 99;

/// The names of all values that runs yield, sorted.
pub(crate) fn value_names() -> Vec<String> {
    let mut names: Vec<String> = VALUES.map(|name| format!("blocks.{name}")).to_vec();
    names.extend(PROBABILITIES.map(|(_, name)| format!("blocks.forecast_error.{name}")));
    for decile in 0..10 {
        names.push(format!("blocks.promised.d{decile}"));
        names.push(format!("blocks.kept.d{decile}"));
        names.push(format!("blocks.calibration.d{decile}"));
    }
    names.sort();
    names
}

impl Experiment {
    /// A run with a variant, as results.
    ///
    /// # Errors
    /// As [`Experiment::run`].
    pub fn results(&self, variant: &Variant, seed: u64) -> Result<Run, ConfigError> {
        let mut run = Run {
            cell: BTreeMap::new(),
            scheduler: variant.to_string(),
            seed,
            values: BTreeMap::new(),
            fractions: BTreeMap::new(),
            distributions: BTreeMap::new(),
            series: BTreeMap::new(),
        };
        if let Some(queue) = self.queue {
            let stable = self.stability(variant, queue, seed);
            let share = stable.hits as f64 / stable.trials.max(1) as f64;
            run.values.insert("blocks.stable".into(), share);
            run.fractions.insert("blocks.stable".into(), stable);
            return Ok(run);
        }
        let outcome = self.run(variant, seed)?;
        run.fractions
            .insert("blocks.block_lateness".into(), outcome.late);
        if outcome.late.trials > 0 {
            let lateness = outcome.late.hits as f64 / outcome.late.trials as f64;
            run.values.insert("blocks.block_lateness".into(), lateness);
        }
        // The bound sends every packet on every path, so that its redundancy means nothing.
        if outcome.needed > 0 && outcome.sent > 0 {
            let redundancy = outcome.sent as f64 / outcome.needed as f64 - 1.0;
            run.values.insert("blocks.redundancy".into(), redundancy);
        }
        self.sizes(&outcome, &mut run);
        forecasts(&outcome, &mut run);
        for (i, decile) in outcome.calibration.deciles().iter().enumerate() {
            if let Some((promised, kept)) = decile.rates() {
                run.values.insert(format!("blocks.promised.d{i}"), promised);
                run.values.insert(format!("blocks.kept.d{i}"), kept);
                let share = crate::results::Fraction {
                    hits: decile.kept,
                    trials: decile.promises,
                };
                run.fractions.insert(format!("blocks.kept.d{i}"), share);
                let name = format!("blocks.calibration.d{i}");
                run.values.insert(name, kept - promised);
            }
        }
        Ok(run)
    }

    fn sizes(&self, outcome: &Outcome, run: &mut Run) {
        let kb = |packets: &u32| f64::from(*packets) * f64::from(self.packet) / 1e3;
        let sizes: Vec<f64> = outcome.sizes.iter().map(kb).collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len().max(1) as f64;
        let Some(distribution) = distribution(sizes, "kB") else {
            return;
        };
        let mut put =
            |name: &str, value| run.values.insert(format!("blocks.size.{name}_kb"), value);
        put("mean", mean);
        put("p10", at(&distribution, 0.1));
        put("p90", at(&distribution, 0.9));
        run.distributions.insert("blocks.size".into(), distribution);
    }
}

/// Errors in deviations against the normal distribution: 0 at each quantile if forecasts are right.
fn forecasts(outcome: &Outcome, run: &mut Run) {
    let (mean, sd, n) = outcome.forecasts;
    let errors = &outcome.errors;
    let count = n as f64;
    let Some(distribution) = distribution(errors.clone(), "deviations") else {
        return;
    };
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    let mut put = |name: &str, value: f64| run.values.insert(format!("blocks.{name}"), value);
    put("forecast.mean_mbps", mean / count / 1e6);
    put("forecast.sd_mbps", sd / count / 1e6);
    put("forecast_error.sd", (squares / errors.len() as f64).sqrt());
    for (p, name) in PROBABILITIES {
        let difference = at(&distribution, p) - quantile(p);
        put(&format!("forecast_error.{name}"), difference);
    }
    run.distributions
        .insert("blocks.forecast_error".into(), distribution);
}

fn distribution(mut values: Vec<f64>, unit: &str) -> Option<Distribution> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let quantile = |i: usize| {
        let p = i as f64 / (POINTS + 1) as f64;
        (p, values[(p * last as f64).round() as usize])
    };
    Some(Distribution {
        unit: unit.to_owned(),
        count: values.len() as u64,
        quantiles: (1..=POINTS).map(quantile).collect(),
    })
}

/// The quantile at `p`, which is one of the percents that are kept.
fn at(distribution: &Distribution, p: f64) -> f64 {
    let index = (p * (POINTS + 1) as f64).round() as usize;
    let quantile = distribution.quantiles.get(index.saturating_sub(1));
    quantile.map_or(f64::NAN, |(_, value)| *value)
}
