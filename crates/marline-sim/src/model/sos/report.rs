//! The outcome of an experiment with objects as the results of a scenario's run.

use std::collections::BTreeMap;

use marline_link::ConfigError;

use super::{Experiment, Variant};
use crate::results::{Distribution, Fraction, Run};

/// Percentiles that are reported of the delay.
const PERCENTILES: [(f64, &str); 3] = [(0.5, "p50"), (0.95, "p95"), (0.99, "p99")];
/// Quantiles that are kept of it.
const POINTS: usize = 99;

/// The names of all values that runs yield, sorted.
pub(crate) fn value_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "delay.mean_ms",
        "promised_ms",
        "later_than_promised",
        "redundancy",
    ]
    .map(|name| format!("objects.{name}"))
    .to_vec();
    names.extend(PERCENTILES.map(|(_, name)| format!("objects.delay.{name}_ms")));
    names.sort();
    names
}

/// The value that a share of `p` does not exceed.
pub(super) fn percentile(values: &mut [f64], p: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else {
        return f64::NAN;
    };
    let rank = ((p * values.len() as f64) as usize).min(last);
    *values.select_nth_unstable_by(rank, f64::total_cmp).1
}

impl Experiment {
    /// A run with a variant, as results.
    ///
    /// # Errors
    /// As [`Experiment::run`].
    pub fn results(&self, variant: Variant, seed: u64) -> Result<Run, ConfigError> {
        let mut outcome = self.run(variant, seed)?;
        let mut run = Run {
            cell: BTreeMap::new(),
            scheduler: variant.to_string(),
            seed,
            values: BTreeMap::new(),
            fractions: BTreeMap::new(),
            distributions: BTreeMap::new(),
            series: BTreeMap::new(),
        };
        let count = outcome.delays.len();
        let mut put = |name: &str, value: f64| run.values.insert(format!("objects.{name}"), value);
        let mean = outcome.delays.iter().sum::<f64>() / count.max(1) as f64;
        put("delay.mean_ms", mean);
        for (p, name) in PERCENTILES {
            put(
                &format!("delay.{name}_ms"),
                percentile(&mut outcome.delays, p),
            );
        }
        // The bound sends every packet on every path, so that its redundancy means nothing.
        if variant != Variant::Bound {
            put(
                "redundancy",
                outcome.sent as f64 / outcome.needed.max(1) as f64 - 1.0,
            );
        }
        if let Some(bound) = outcome.bound {
            let late = outcome.delays.iter().filter(|delay| **delay > bound);
            let late = Fraction {
                hits: late.count() as u64,
                trials: count as u64,
            };
            put("promised_ms", bound);
            put(
                "later_than_promised",
                late.hits as f64 / late.trials.max(1) as f64,
            );
            run.fractions
                .insert("objects.later_than_promised".into(), late);
        }
        let at = |i: usize| {
            let p = i as f64 / (POINTS + 1) as f64;
            (p, percentile(&mut outcome.delays, p))
        };
        let delay = Distribution {
            unit: "ms".into(),
            count: count as u64,
            quantiles: (1..=POINTS).map(at).collect(),
        };
        run.distributions.insert("objects.delay".into(), delay);
        Ok(run)
    }
}
