//! Publications held against measurements.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use marline_sim::experiments;
use marline_sim::repro::{Options, Outcome, Verdict, figures, find, prepare};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::ScenarioError;
use crate::results::Results;
use crate::running::{self, Callbacks};
use crate::table::{Columns, Table};

/// Runs experiments of papers, and holds what they measure against what was published: a table of
/// verdicts, and the results of each experiment by its name.
///
/// `paper` and `figure` are named as for `marline repro`; without them all experiments are run,
/// which takes long (docs/SCALE.md). With fewer seeds than an experiment has, an outcome is no
/// verdict: look at the columns `seeds` and `seeds_in_file`.
///
/// >>> import marline
/// >>> verdicts, results = marline.repro("hop", "stability", seeds=1)  # doctest: +SKIP
#[pyfunction]
#[pyo3(signature = (paper = None, figure = None, *, seeds = None, traces = None, threads = None,
    progress = None))]
pub fn repro(
    py: Python<'_>,
    paper: Option<&str>,
    figure: Option<&str>,
    seeds: Option<u64>,
    traces: Option<PathBuf>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Table, std::collections::BTreeMap<String, Results>)> {
    let all = experiments::all();
    let known = |one: &experiments::Experiment| figures(one, traces.as_deref()).unwrap_or_default();
    let found = find(&all, paper, figure, known).map_err(PyValueError::new_err)?;
    let stop = AtomicBool::new(false);
    let options = Options {
        seeds,
        most_seeds: None,
        threads: 1,
        stop: &stop,
        store: None,
        traces: traces.as_deref(),
        only: &[],
    };
    let mut prepared = Vec::new();
    for experiment in &found {
        let has_bounds = !known(experiment).is_empty();
        let has_traces = !experiment.needs_traces() || traces.is_some();
        if has_bounds && has_traces {
            let name = format!("{}/{}", experiment.folder, experiment.name);
            prepared.push((
                name,
                prepare(experiment, options).map_err(ScenarioError::of)?,
            ));
        }
    }
    let jobs: Vec<_> = prepared
        .iter()
        .flat_map(|(_, one)| one.batch.jobs())
        .collect();
    let made = running::watched(py, jobs.len(), Callbacks::progress(progress), |control| {
        running::all(&jobs, running::threads_of(threads), control)
    })?;
    let mut made = made.into_iter().flatten();
    let (mut reports, mut results) = (Vec::new(), std::collections::BTreeMap::new());
    for (name, one) in &prepared {
        let runs = made.by_ref().take(one.batch.jobs().len()).collect();
        let of = one.batch.results(runs);
        reports.push(one.judge(&of));
        results.insert(name.clone(), Results(Arc::new(of)));
    }
    let verdicts = reports.iter().flat_map(|report| {
        let all = report.verdicts.iter();
        all.map(|verdict| (&*report.paper, report.name(), verdict))
    });
    let seeds = reports.iter().flat_map(|report| {
        let of = (report.seeds as u64, report.seeds_in_file as u64);
        std::iter::repeat_n(of, report.verdicts.len())
    });
    let seeds: Vec<(u64, u64)> = seeds.collect();
    let mut columns = columns(verdicts);
    columns.counts("seeds", seeds.iter().map(|seeds| seeds.0));
    columns.counts("seeds_in_file", seeds.iter().map(|seeds| seeds.1));
    Ok((columns.table()?, results))
}

/// Verdicts as a table.
pub fn table<'a>(
    verdicts: impl Iterator<Item = (&'a str, &'a str, &'a Verdict)>,
) -> PyResult<Table> {
    columns(verdicts).table()
}

fn columns<'a>(verdicts: impl Iterator<Item = (&'a str, &'a str, &'a Verdict)>) -> Columns {
    let all: Vec<_> = verdicts.collect();
    let each = || all.iter().map(|(.., verdict)| verdict);
    let mut columns = Columns::default();
    columns.text("paper", all.iter().map(|(paper, ..)| Some(paper)));
    columns.text("experiment", all.iter().map(|(_, name, _)| Some(name)));
    columns.text("figure", each().map(|one| Some(&one.figure)));
    let cell = |one: &Verdict| {
        let pairs = one
            .cell
            .iter()
            .map(|(axis, value)| format!("{axis}={value}"));
        pairs.collect::<Vec<_>>().join("; ")
    };
    columns.text("cell", each().map(|one| Some(cell(one))));
    columns.text("scheduler", each().map(|one| Some(&one.scheduler)));
    columns.text("relative_to", each().map(|one| one.relative_to.as_ref()));
    columns.text("measure", each().map(|one| Some(&one.measure)));
    columns.text("unit", each().map(|one| Some(one.unit)));
    columns.numbers("published", each().map(|one| one.published));
    columns.numbers("measured", each().map(|one| one.measured));
    columns.numbers("low", each().map(|one| one.interval.map(|(low, _)| low)));
    columns.numbers("high", each().map(|one| one.interval.map(|(_, high)| high)));
    columns.counts("n", each().map(|one| one.n as u64));
    columns.numbers("least", each().map(|one| one.least));
    columns.numbers("most", each().map(|one| one.most));
    let word = |outcome: Outcome| match outcome {
        Outcome::Holds => "holds",
        Outcome::Missed => "missed",
        Outcome::Unbounded => "unbounded",
    };
    columns.text("outcome", each().map(|one| Some(word(one.outcome))));
    columns.flags("close", each().map(|one| one.close));
    columns.text("reason", each().map(|one| one.reason.as_ref()));
    columns
}
