//! Runs an experiment and judges it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::{ScenarioReport, judge};
use crate::batch::{Batch, Job, Store, StoreError};
use crate::experiments::Experiment;
use crate::results::Results;
use crate::run::RunError;
use crate::scenario::{Cell, Document, Expectation, Mistakes, Scenario};

/// How an experiment is run.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Seeds 1 to this instead of the scenario's.
    pub seeds: Option<u64>,
    /// At most this number of the scenario's seeds.
    pub most_seeds: Option<usize>,
    /// Runs at once; at least one.
    pub threads: usize,
    /// When it is set, the runs under way are finished and no more begun.
    pub stop: &'a AtomicBool,
    /// Keeps the runs that are over, and has those that need not be made again.
    pub store: Option<&'a Store>,
    /// The folder of measured traces, if there is one.
    pub traces: Option<&'a Path>,
    /// Axes and values: only cells that have one of its values on every axis that is named here.
    pub only: &'a [(String, String)],
}

/// An experiment cannot be run.
#[derive(Debug)]
pub enum MeasureError {
    /// Its scenario is wrong.
    Scenario(Mistakes),
    /// It has not an axis that is asked for; what there is instead.
    Axis(String),
    /// It has no cell of those that are asked for; what there is instead.
    Cell(String),
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
            Self::Axis(why) | Self::Cell(why) => f.write_str(why),
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
    for expectation in expectations(experiment, traces)? {
        if !figures.contains(&expectation.figure) {
            figures.push(expectation.figure);
        }
    }
    Ok(figures)
}

/// The expectations of an experiment.
///
/// # Errors
/// If its scenario is wrong.
pub(super) fn expectations(
    experiment: &Experiment,
    traces: Option<&Path>,
) -> Result<Vec<Expectation>, Mistakes> {
    let mut cells = cells(experiment, traces)?.into_iter();
    let first = cells.next().map(|(_, scenario)| scenario.expectations);
    Ok(first.unwrap_or_default())
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

/// An experiment that can be run, one way or another.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Its cells.
    pub batch: Batch,
    experiment: Experiment,
    seeds_in_file: usize,
    /// Cells of it that were not asked for.
    left_out: Vec<Cell>,
}

/// Reads an experiment and picks its cells and seeds.
///
/// # Errors
/// If the scenario is wrong, it has none of the cells that are asked for, or one of its schedulers
/// cannot run.
pub fn prepare(experiment: &Experiment, options: Options<'_>) -> Result<Prepared, MeasureError> {
    let mut cells = cells(experiment, options.traces).map_err(MeasureError::Scenario)?;
    let left_out = only(&mut cells, options.only)?;
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
    Ok(Prepared {
        batch,
        experiment: *experiment,
        seeds_in_file,
        left_out,
    })
}

/// Keeps the cells that are asked for; answers with the others.
fn only(
    cells: &mut Vec<(Cell, Scenario)>,
    wanted: &[(String, String)],
) -> Result<Vec<Cell>, MeasureError> {
    let entries = || cells.iter().flat_map(|(cell, _)| cell);
    let axes: BTreeSet<&str> = entries().map(|(axis, _)| &**axis).collect();
    // Who lacks an axis may be left out, whatever the values on the others.
    if let Some((axis, _)) = wanted.iter().find(|(axis, _)| !axes.contains(&**axis)) {
        return Err(MeasureError::Axis(no(&format!("axis `{axis}`"), axes)));
    }
    for (axis, value) in wanted {
        let on_axis = entries().filter(|(key, _)| key == axis);
        let known: BTreeSet<&str> = on_axis.map(|(_, value)| &**value).collect();
        if !known.contains(&**value) {
            return Err(MeasureError::Cell(no(&format!("`{axis}={value}`"), known)));
        }
    }
    let is_asked_for = |cell: &Cell| {
        cell.iter().all(|(key, value)| {
            let mut same_axis = wanted.iter().filter(|(axis, _)| axis == key).peekable();
            same_axis.peek().is_none() || same_axis.any(|(_, wanted)| wanted == value)
        })
    };
    let left_out = cells.extract_if(.., |(cell, _)| !is_asked_for(cell));
    Ok(left_out.map(|(cell, _)| cell).collect())
}

fn no(what: &str, known: BTreeSet<&str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    format!("it has no {what}; there are: {}", known.join(", "))
}

impl Prepared {
    /// Its bounds, as far as they speak of cells that are kept; of means, all of whose cells are.
    fn expectations(&self) -> Vec<Expectation> {
        let cells = &self.batch.cells;
        let first = cells.first().map(|(_, scenario)| &scenario.expectations);
        let mut expectations = first.cloned().unwrap_or_default();
        expectations.retain(|expectation| {
            let speaks_of = |cell: &Cell| expectation.cell.iter().all(|pair| cell.contains(pair));
            let kept = cells.iter().any(|(cell, _)| speaks_of(cell));
            kept && !(expectation.mean && self.left_out.iter().any(speaks_of))
        });
        expectations
    }

    /// The runs that its bounds need: where runs take their time for real, others are not worth it.
    pub fn needed(&self) -> Vec<Job<'_>> {
        let expectations = self.expectations();
        let mut jobs = self.batch.jobs();
        jobs.retain(|job| expectations.iter().any(|one| needs(one, job)));
        jobs
    }

    /// Judges its bounds.
    pub fn judge(&self, results: &Results) -> ScenarioReport {
        let first = self.batch.cells.first().map(|(_, scenario)| scenario);
        let about = first.map_or("", |first| &*first.about);
        let mut report = ScenarioReport::new(&self.experiment, &results.title, about);
        report.seeds = first.map_or(0, |first| first.seeds.len());
        report.seeds_in_file = self.seeds_in_file;
        report.verdicts = judge(results, &self.expectations());
        report
    }
}

/// Is the run's value part of what the expectation speaks of?
fn needs(expectation: &Expectation, job: &Job<'_>) -> bool {
    let Expectation {
        scheduler,
        cell: wanted,
        relative_to,
        best_of,
        ..
    } = expectation;
    let apart_from = |axis: Option<&str>| {
        let mut wanted = wanted.iter().filter(|(key, _)| Some(&**key) != axis);
        wanted.all(|pair| job.cell.contains(pair))
    };
    let other = relative_to.as_ref().unwrap_or(scheduler);
    let is_other = job.scheduler == other
        && match best_of {
            None => relative_to.is_some() && apart_from(None),
            Some((axis, values)) => {
                let mut cell = job.cell.iter();
                let is_best = cell.any(|(key, value)| key == axis && values.contains(value));
                is_best && apart_from(Some(axis))
            }
        };
    is_other || job.scheduler == scheduler && apart_from(None)
}

/// Runs every cell, scheduler and seed, and judges the bounds. `progress` is called with how many
/// of how many runs are over.
///
/// # Errors
/// As [`prepare`]; if runs cannot be kept, or it was stopped.
pub fn measure(
    experiment: &Experiment,
    options: Options<'_>,
    progress: impl Fn(usize, usize) + Sync,
) -> Result<(ScenarioReport, Results), MeasureError> {
    let prepared = prepare(experiment, options)?;
    let batch = &prepared.batch;
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
    Ok((prepared.judge(&results), results))
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

    /// One thread, all seeds and cells, nothing kept.
    fn plain(stop: &AtomicBool) -> Options<'_> {
        Options {
            seeds: None,
            most_seeds: None,
            threads: 1,
            stop,
            store: None,
            traces: None,
            only: &[],
        }
    }

    #[test]
    fn a_stopped_experiment_goes_on_where_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("runs.jsonl");
        let stop = AtomicBool::new(false);
        let go = |store: Option<&Store>, stop_after: usize| {
            let options = Options {
                store,
                ..plain(&stop)
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

    const PAIRS: Experiment = Experiment {
        folder: "test",
        name: "pairs",
        path: "test/pairs.toml",
        text: r#"
            title = "Pairs"
            duration = "300ms"
            seeds = 2
            schedulers = ["min-rtt", "edpf"]
            links.a = { rate = "6mbit", delay = "10ms" }
            links.b = { rate = "6mbit", delay = "10ms" }
            workloads = [{ name = "video", kind = "constant", rate = "4mbit" }]
            [vary]
            "links.a.delay" = ["10ms", "20ms"]
            use = [
                { name = "both", set = { paths = [{ link = "a" }, { link = "b" }] } },
                { name = "a", set = { paths = [{ link = "a" }] } },
            ]
            [[expect]]
            figure = "Figure 1"
            scheduler = "edpf"
            cell = { use = "both", "links.a.delay" = "20ms" }
            measure = "video.goodput_mbps"
            relative-to = "min-rtt"
            best-of = { use = ["a"] }
            least = 0.1
            [[expect]]
            figure = "Figure 2"
            scheduler = "edpf"
            cell = { use = "both" }
            cells = "mean"
            measure = "video.goodput_mbps"
            least = 0.1
        "#,
    };

    fn prepared(only: &[(&str, &str)]) -> Result<Prepared, MeasureError> {
        let only = only
            .iter()
            .map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned()));
        let stop = AtomicBool::new(false);
        let options = Options {
            seeds: Some(1),
            only: &only.collect::<Vec<_>>(),
            ..plain(&stop)
        };
        prepare(&PAIRS, options)
    }

    #[test]
    fn cells_that_are_not_asked_for_are_left_out_with_their_bounds() {
        assert_eq!(prepared(&[]).expect("prepared").batch.cells.len(), 4);
        let kept = prepared(&[("links.a.delay", "10ms")]).expect("prepared");
        assert_eq!(kept.batch.cells.len(), 2);
        assert!(kept.expectations().is_empty() && kept.needed().is_empty());
        let both = [("links.a.delay", "20ms"), ("use", "both"), ("use", "a")];
        let figures = |only: &[(&str, &str)]| -> Vec<String> {
            let kept = prepared(only).expect("prepared").expectations();
            kept.into_iter().map(|one| one.figure).collect()
        };
        assert_eq!(figures(&both), ["Figure 1"], "the mean lacks a cell");
        assert_eq!(figures(&[("use", "both")]), ["Figure 1", "Figure 2"]);
        for (wrong, reason) in [
            (
                ("pair", "x"),
                "no axis `pair`; there are: links.a.delay, use",
            ),
            (("use", "b"), "no `use=b`; there are: a, both"),
        ] {
            let error = prepared(&[wrong]).expect_err("wrong");
            assert!(error.to_string().contains(reason), "{error}");
        }
        let lacking = prepared(&[("use", "b"), ("pair", "x")]).expect_err("wrong");
        assert!(matches!(lacking, MeasureError::Axis(_)), "{lacking}");
    }

    #[test]
    fn only_runs_that_a_bound_speaks_of_are_needed() {
        let prepared = prepared(&[]).expect("prepared");
        let needed = prepared.needed().into_iter().map(|job| {
            let values: Vec<&str> = job.cell.iter().map(|(_, value)| &**value).collect();
            format!("{} {}", job.scheduler, values.join(" "))
        });
        let needed: Vec<String> = needed.collect();
        assert_eq!(
            needed,
            ["edpf 10ms both", "edpf 20ms both", "min-rtt 20ms a"]
        );
    }
}
