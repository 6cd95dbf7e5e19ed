//! The outcome of an experiment with pages as the results of a scenario's run.

use std::collections::BTreeMap;

use marline_link::ConfigError;

use super::super::report::percentile;
use super::{Experiment, Loaded, Variant};
use crate::results::{Distribution, Run};

/// Quantiles that are kept of both times.
const POINTS: usize = 99;

/// One of both times.
type Time = fn(&Loaded) -> f64;

/// Both by their names.
const TIMES: [(&str, Time); 2] = [
    ("dom", |loaded| loaded.dom),
    ("whole", |loaded| loaded.whole),
];

/// The names of all values that runs yield, sorted.
pub(crate) fn value_names() -> Vec<String> {
    let names = TIMES.iter().flat_map(|(time, _)| {
        ["mean", "p50", "p95"].map(|value| format!("page.{time}.{value}_ms"))
    });
    names.collect()
}

impl Experiment {
    /// A run with a variant, as results.
    ///
    /// # Errors
    /// As [`Experiment::run`].
    pub fn results(&self, variant: Variant, seed: u64) -> Result<Run, ConfigError> {
        let loaded = self.run(variant, seed)?;
        let mut run = Run {
            cell: BTreeMap::new(),
            scheduler: variant.to_string(),
            seed,
            values: BTreeMap::new(),
            fractions: BTreeMap::new(),
            distributions: BTreeMap::new(),
            series: BTreeMap::new(),
        };
        for (name, time) in TIMES {
            let mut times: Vec<f64> = loaded.iter().map(time).collect();
            let count = times.len();
            let mean = times.iter().sum::<f64>() / count.max(1) as f64;
            let mut put = |value: &str, ms| {
                run.values.insert(format!("page.{name}.{value}_ms"), ms);
            };
            put("mean", mean);
            put("p50", percentile(&mut times, 0.5));
            put("p95", percentile(&mut times, 0.95));
            let at = |i: usize| {
                let p = i as f64 / (POINTS + 1) as f64;
                (p, percentile(&mut times, p))
            };
            let distribution = Distribution {
                unit: "ms".into(),
                count: count as u64,
                quantiles: (1..=POINTS).map(at).collect(),
            };
            run.distributions
                .insert(format!("page.{name}"), distribution);
        }
        Ok(run)
    }
}
