//! Runs an experiment and judges it.

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::{ScenarioReport, judge};
use crate::batch::{Batch, Store, StoreError};
use crate::experiments::Experiment;
use crate::results::Results;
use crate::run::RunError;
use crate::scenario::{Cell, Document, Mistakes, Scenario};

/// How an experiment is run.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Seeds 1 to this instead of the scenario's.
    pub seeds: Option<u64>,
    /// At most so many of the scenario's seeds.
    pub most_seeds: Option<usize>,
    /// Runs at once; at least one.
    pub threads: usize,
    /// When it is set, the runs under way are finished and no more begun.
    pub stop: &'a AtomicBool,
    /// Keeps the runs that are over, and has those that need not be made again.
    pub store: Option<&'a Store>,
    /// The folder of measured traces, if there is one.
    pub traces: Option<&'a Path>,
}

/// An experiment cannot be run.
#[derive(Debug)]
pub enum MeasureError {
    /// Its scenario is wrong.
    Scenario(Mistakes),
    /// A scheduler of it cannot run.
    Run(RunError),
    /// Runs cannot be kept.
    Store(StoreError),
    /// It was stopped.
    Stopped {
        /// Runs that are over.
        made: usize,
        /// Runs that there should be.
        wanted: usize,
    },
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(mistakes) => mistakes.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::Stopped { made, wanted } => write!(f, "stopped after {made} of {wanted} runs"),
        }
    }
}

impl std::error::Error for MeasureError {}

/// What the figures of an experiment are called in its expectations, each once.
///
/// # Errors
/// If its scenario is wrong.
pub fn figures(experiment: &Experiment, traces: Option<&Path>) -> Result<Vec<String>, Mistakes> {
    let mut figures: Vec<String> = Vec::new();
    for (_, scenario) in cells(experiment, traces)?.iter().take(1) {
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
    let name = format!("experiments/{}", experiment.path);
    let document = Document::parse(&name, experiment.text)?;
    Ok(document.title().unwrap_or_default())
}

fn cells(
    experiment: &Experiment,
    traces: Option<&Path>,
) -> Result<Vec<(Cell, Scenario)>, Mistakes> {
    let name = format!("experiments/{}", experiment.path);
    let files = |file: &str| experiment.read(file, traces);
    Document::parse(&name, experiment.text)?.scenarios(&files)
}

/// Runs every cell, scheduler and seed, and judges the bounds. `progress` hears how many of how
/// many runs are over.
///
/// # Errors
/// If the scenario is wrong, one of its schedulers cannot run, runs cannot be kept, or it was
/// stopped.
pub fn measure(
    experiment: &Experiment,
    options: Options<'_>,
    progress: impl Fn(usize, usize) + Sync,
) -> Result<(ScenarioReport, Results), MeasureError> {
    let mut cells = cells(experiment, options.traces).map_err(MeasureError::Scenario)?;
    // A checked scenario has at least one cell.
    let seeds_in_file = cells.first().map_or(0, |(_, first)| first.seeds.len());
    for (_, scenario) in &mut cells {
        scenario.seeds = seeds(scenario, options);
    }
    let batch = Batch {
        file: format!("experiments/{}", experiment.path),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cells,
    };
    batch.check().map_err(MeasureError::Run)?;
    let wanted = batch.jobs().len();
    let outcome = batch
        .run(options.threads, options.stop, options.store, |over| {
            progress(over, wanted);
        })
        .map_err(MeasureError::Store)?;
    let results = outcome.results;
    let made = results.runs.len();
    if made < wanted {
        return Err(MeasureError::Stopped { made, wanted });
    }
    let first = batch.cells.first().map(|(_, scenario)| scenario);
    let about = first.map_or("", |first| &*first.about);
    let mut report = ScenarioReport::new(experiment, &results.title, about);
    if let Some(first) = first {
        report.seeds = first.seeds.len();
        report.seeds_in_file = seeds_in_file;
        report.verdicts = judge(&results, &first.expectations);
    }
    Ok((report, results))
}

fn seeds(scenario: &Scenario, options: Options<'_>) -> Vec<u64> {
    let mut seeds = match options.seeds {
        Some(last) => (1..=last).collect(),
        None => scenario.seeds.clone(),
    };
    seeds.truncate(options.most_seeds.unwrap_or(usize::MAX));
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    const SMALL: Experiment = Experiment {
        folder: "test",
        name: "small",
        path: "test/small.toml",
        text: r#"
            title = "Small"
            duration = "300ms"
            seeds = 3
            schedulers = ["min-rtt"]
            links.a = { rate = "6mbit", delay = "10ms" }
            workloads = [{ name = "video", kind = "constant", rate = "4mbit" }]
            [[expect]]
            figure = "Figure 1"
            scheduler = "min-rtt"
            measure = "video.goodput_mbps"
            least = 0.1
        "#,
    };

    #[test]
    fn a_stopped_experiment_goes_on_where_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("runs.jsonl");
        let stop = AtomicBool::new(false);
        let go = |store: Option<&Store>, stop_after: usize| {
            let options = Options {
                seeds: None,
                most_seeds: None,
                threads: 1,
                stop: &stop,
                store,
                traces: None,
            };
            stop.store(false, Ordering::Relaxed);
            let mut heard = Vec::new();
            let heard_by = std::sync::Mutex::new(&mut heard);
            let outcome = measure(&SMALL, options, |over, of| {
                heard_by.lock().expect("no panic").push((over, of));
                stop.store(over >= stop_after, Ordering::Relaxed);
            });
            (outcome, heard)
        };
        let (whole, heard) = go(None, 9);
        let (report, whole) = whole.expect("all runs");
        assert_eq!(heard, [(0, 3), (1, 3), (2, 3), (3, 3)]);
        assert_eq!((report.seeds, report.seeds_in_file), (3, 3));
        assert_eq!(report.verdicts.len(), 1);

        let store = Store::open(&file, "program").expect("a store");
        let (stopped, _) = go(Some(&store), 2);
        let error = stopped.expect_err("stopped");
        assert_eq!(error.to_string(), "stopped after 2 of 3 runs");
        drop(store);
        let store = Store::open(&file, "program").expect("a store");
        let (again, heard) = go(Some(&store), 9);
        assert_eq!(heard, [(2, 3), (3, 3)], "two were kept");
        assert_eq!(again.expect("all runs").1, whole);
    }
}
