//! Publications held against measurements: bounds are judged, and the outcome is shown beside what
//! was published.
//!
//! Everything that is shown is computed from [`results`](crate::results), plain data with one entry
//! for each cell, scheduler and seed: summaries over seeds (never without their interval), tables,
//! CSV, pages of plots ([`report`](crate::report)), and the verdicts here.

mod list;
mod measure;
mod natural;
mod pages;
mod picture;
mod record;
mod rows;
mod verdict;

pub use list::{find, rows, text};
pub use measure::{MeasureError, Options, Prepared, figures, measure, prepare, title};
pub use record::{Record, RecordError};
pub use verdict::{Outcome, Verdict, judge};

use serde::Serialize;

use crate::experiments::Experiment;

/// Version of the JSON form; grows when a field changes its meaning or goes.
pub const VERSION: u32 = 1;

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// Version of the program.
    pub program: String,
    /// Every scenario ran with all of its seeds, so that its bounds apply.
    pub full: bool,
    /// One a scenario file.
    pub scenarios: Vec<ScenarioReport>,
}

/// What one scenario file led to.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioReport {
    /// Folder under `experiments/`.
    pub paper: String,
    /// The file in it.
    pub file: String,
    /// Its title.
    pub title: String,
    /// What it shows; not part of the JSON.
    #[serde(skip)]
    pub about: String,
    /// Number of seeds that were run.
    pub seeds: usize,
    /// Number of seeds that the bounds are meant for.
    pub seeds_in_file: usize,
    /// One a bound and cell.
    pub verdicts: Vec<Verdict>,
}

impl Report {
    /// A report on these scenarios, by this version of the crate.
    pub fn new(scenarios: Vec<ScenarioReport>) -> Self {
        Self {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            full: scenarios.iter().all(ScenarioReport::is_full),
            scenarios,
        }
    }

    /// The bounds that were missed.
    pub fn missed(&self) -> impl Iterator<Item = (&ScenarioReport, &Verdict)> {
        let all = self.scenarios.iter();
        all.flat_map(|scenario| {
            scenario
                .verdicts
                .iter()
                .map(move |verdict| (scenario, verdict))
        })
        .filter(|(_, verdict)| verdict.outcome == Outcome::Missed)
    }

    /// How many bounds held, and how many there are.
    pub fn score(&self) -> (usize, usize) {
        let all = self
            .scenarios
            .iter()
            .flat_map(|scenario| &scenario.verdicts);
        let bounds = all.filter(|verdict| verdict.outcome != Outcome::Unbounded);
        let held = bounds
            .clone()
            .filter(|verdict| verdict.outcome == Outcome::Holds);
        (held.count(), bounds.count())
    }
}

impl ScenarioReport {
    /// Its file without `.toml`: what `marline repro PAPER` calls it.
    pub fn name(&self) -> &str {
        self.file.strip_suffix(".toml").unwrap_or(&self.file)
    }

    /// Ran with all the seeds that its bounds are meant for.
    pub fn is_full(&self) -> bool {
        self.seeds >= self.seeds_in_file
    }

    /// A report without verdicts yet; `title` and `about` are the scenario's.
    pub fn new(experiment: &Experiment, title: &str, about: &str) -> Self {
        Self {
            paper: experiment.folder.to_owned(),
            file: format!("{}.toml", experiment.name),
            title: title.to_owned(),
            about: about.to_owned(),
            seeds: 0,
            seeds_in_file: 0,
            verdicts: Vec::new(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
