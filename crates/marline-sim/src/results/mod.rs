//! What runs yield: plain data that is written as JSON and CSV, summarised and plotted.

mod across;
#[cfg(test)]
pub(crate) mod document;
mod group;
mod proportion;
mod ratio;
#[cfg(test)]
pub(crate) mod sample;
mod summary;
mod unit;

pub use across::{Across, Comparison};
pub use group::{Estimate, Group};
pub use proportion::Proportion;
pub use ratio::Ratio;
pub use summary::Summary;
pub(crate) use summary::student_t_at;
pub use unit::unit;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version of the JSON form; grows when a field changes its meaning or goes.
pub const FORMAT: u32 = 1;

/// Table of a scenario, and key of the axis whose cells were drawn: its values number the draws.
pub const DRAW: &str = "draw";

/// One run: one cell of the scenario's axes, one scheduler, one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The axes' values, as written, by key; empty if the scenario has none.
    pub cell: BTreeMap<String, String>,
    /// The scheduler, as written.
    pub scheduler: String,
    /// The seed.
    pub seed: u64,
    /// Scalars by name: `WORKLOAD.in_order_delay.p99_ms`, `path.a.throughput_mbps`, …
    pub values: BTreeMap<String, f64>,
    /// Fractions by name, with what they are fractions of, so that intervals can be computed.
    pub fractions: BTreeMap<String, Fraction>,
    /// Distributions by name: quantiles for plots.
    pub distributions: BTreeMap<String, Distribution>,
    /// Time series by name.
    pub series: BTreeMap<String, Series>,
}

/// Hits out of trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fraction {
    /// How often it happened.
    pub hits: u64,
    /// How often it could have.
    pub trials: u64,
}

/// A distribution by its quantiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Unit of the values, such as `ms`.
    pub unit: String,
    /// Number of observations.
    pub count: u64,
    /// Probability and value, ascending.
    pub quantiles: Vec<(f64, f64)>,
}

/// A quantity over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Unit of the values, such as `Mb/s` or `kB`.
    pub unit: String,
    /// Time between samples (seconds).
    pub step_s: f64,
    /// One value a step from the start of the run.
    pub values: Vec<f64>,
}

/// All runs of a scenario, and what they were made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`FORMAT`].
    pub format: u32,
    /// The scenario's title.
    pub title: String,
    /// The scenario file, as given.
    pub file: String,
    /// Version of the program.
    pub version: String,
    /// The runs, ordered by cell, scheduler and seed.
    pub runs: Vec<Run>,
}
