//! Runs an experiment and judges it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{ScenarioReport, judge};
use crate::experiments::{self, Experiment};
use crate::results::{FORMAT, Results};
use crate::run::{self, Job, RunError};
use crate::scenario::{Document, Mistakes, Scenario};

/// How an experiment is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seeds 1 to this instead of the scenario's.
    pub seeds: Option<u64>,
    /// At most so many of the scenario's seeds.
    pub most_seeds: Option<usize>,
    /// Runs at once; at least one.
    pub threads: usize,
}

/// An experiment cannot be run.
#[derive(Debug)]
pub enum MeasureError {
    /// Its scenario is wrong.
    Scenario(Mistakes),
    /// A scheduler of it cannot run.
    Run(RunError),
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(mistakes) => mistakes.fmt(f),
            Self::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MeasureError {}

/// What the figures of an experiment are called in its expectations, each once.
///
/// # Errors
/// If its scenario is wrong.
pub fn figures(experiment: &Experiment) -> Result<Vec<String>, Mistakes> {
    let mut figures: Vec<String> = Vec::new();
    for (_, scenario) in cells(experiment)?.iter().take(1) {
        for expectation in &scenario.expectations {
            if !figures.contains(&expectation.figure) {
                figures.push(expectation.figure.clone());
            }
        }
    }
    Ok(figures)
}

/// The title of an experiment.
///
/// # Errors
/// If its scenario is wrong.
pub fn title(experiment: &Experiment) -> Result<String, Mistakes> {
    let cells = cells(experiment)?;
    Ok(cells
        .into_iter()
        .next()
        .map_or_else(String::new, |(_, scenario)| scenario.title))
}

type Cells = Vec<(Vec<(String, String)>, Scenario)>;

fn cells(experiment: &Experiment) -> Result<Cells, Mistakes> {
    let name = format!("experiments/{}", experiment.path);
    let files = |file: &str| {
        let path = format!("{}/{file}", experiment.folder);
        let bytes = experiments::file(&path).ok_or_else(|| format!("no experiments/{path}"))?;
        String::from_utf8(bytes.to_vec()).map_err(|_| format!("experiments/{path} is not text"))
    };
    Document::parse(&name, experiment.text)?.scenarios(&files)
}

/// Runs every cell, scheduler and seed, and judges the bounds. `progress` hears how many of how
/// many runs are over.
///
/// # Errors
/// If the scenario is wrong, or one of its schedulers cannot run.
pub fn measure(
    experiment: &Experiment,
    options: Options,
    progress: impl Fn(usize, usize) + Sync,
) -> Result<(ScenarioReport, Results), MeasureError> {
    let cells = cells(experiment).map_err(MeasureError::Scenario)?;
    let mut jobs = Vec::new();
    for (cell, scenario) in &cells {
        for scheduler in &scenario.schedulers {
            run::check(scenario, scheduler).map_err(MeasureError::Run)?;
            for seed in seeds(scenario, options) {
                let cell = cell.iter().cloned().collect();
                jobs.push(Job {
                    scenario,
                    cell,
                    scheduler,
                    seed,
                });
            }
        }
    }
    let over = AtomicUsize::new(0);
    let runs = run::run_all(&jobs, options.threads, |_, _| {
        progress(over.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
    });
    // A checked scenario has at least one cell.
    let first = cells.first().map(|(_, scenario)| scenario);
    let (title, about) = first.map_or(("", ""), |first| (&*first.title, &*first.about));
    let results = Results {
        format: FORMAT,
        title: title.to_owned(),
        file: format!("experiments/{}", experiment.path),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        runs,
    };
    let mut report = ScenarioReport::new(experiment, title, about);
    if let Some(first) = first {
        report.seeds = seeds(first, options).len();
        report.seeds_in_file = first.seeds.len();
        report.verdicts = judge(&results, &first.expectations);
    }
    Ok((report, results))
}

fn seeds(scenario: &Scenario, options: Options) -> Vec<u64> {
    let mut seeds = match options.seeds {
        Some(last) => (1..=last).collect(),
        None => scenario.seeds.clone(),
    };
    seeds.truncate(options.most_seeds.unwrap_or(usize::MAX));
    seeds
}
