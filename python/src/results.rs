//! What runs yield, as tables.

use std::collections::BTreeSet;
use std::sync::Arc;

use marline_sim::report;
use marline_sim::repro::judge;
use marline_sim::results::{self, Run, unit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::running;
use crate::scenario::Scenario;
use crate::table::{Columns, Table};
use crate::toml_of;

/// The results of runs: one run for each cell of the scenario's axes, scheduler and seed.
///
/// Every table has a column for each axis, then `scheduler` and `seed`. Names of measures are those
/// of `marline sim list`; a unit ends the name.
#[pyclass(module = "marline", frozen)]
#[derive(Clone, Debug)]
pub struct Results(pub Arc<results::Results>);

/// Runs a scenario: every cell of its axes, by every scheduler, with every seed.
///
/// The interpreter is free meanwhile; Ctrl-C ends it. `progress` is called with how many runs are
/// over, and how many there are. `workloads` puts applications written in Python in the place of
/// the scenario's workloads of these names (see :class:`Workload`). The results are the same with
/// any number of threads.
///
/// >>> import marline
/// >>> scenario = marline.Scenario({
/// ...     "duration": "2s",
/// ...     "links": {"a": {"rate": "6mbit", "delay": "10ms"}, "b": {"rate": "6mbit"}},
/// ...     "workloads": [{"kind": "constant", "name": "live", "rate": "8mbit"}],
/// ... })
/// >>> results = marline.run(scenario, schedulers=["min-rtt", "edpf"], seeds=2)
/// >>> results
/// <marline.Results of 4 runs: dict>
/// >>> table = results.values(["live.goodput_mbps"])
/// >>> table.columns
/// ['scheduler', 'seed', 'measure', 'value', 'unit']
/// >>> [round(value) for value in table.column("value")]
/// [8, 8, 8, 8]
#[pyfunction]
#[pyo3(signature = (scenario, *, schedulers = None, seeds = None, duration = None, threads = None,
    workloads = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "they are Python's, by name")]
pub fn run(
    py: Python<'_>,
    scenario: &Bound<'_, PyAny>,
    schedulers: Option<&Bound<'_, PyAny>>,
    seeds: Option<&Bound<'_, PyAny>>,
    duration: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
    workloads: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Results> {
    let scenario = Scenario::altered(scenario, schedulers, seeds, duration)?;
    let mut batch = scenario.batch()?;
    if let Some(workloads) = workloads {
        crate::workload::replace(&mut batch, workloads)?;
    }
    batch.check().map_err(crate::errors::ScenarioError::of)?;
    let runs = running::batch(py, &batch, threads, progress)?;
    Ok(Results(Arc::new(batch.results(runs))))
}

/// A row of a table, before its own columns.
struct Head<'a> {
    results: &'a results::Results,
    axes: Vec<&'a str>,
}

impl<'a> Head<'a> {
    fn of(results: &'a results::Results) -> Self {
        let axes: BTreeSet<&str> = results.axes();
        Self {
            results,
            axes: axes.into_iter().collect(),
        }
    }

    /// The columns that say which run a row is of; `rows` is how many each run has.
    fn columns(&self, rows: impl Fn(&Run) -> usize) -> Columns {
        let runs = &self.results.runs;
        let each = || {
            runs.iter()
                .flat_map(|run| std::iter::repeat_n(run, rows(run)))
        };
        let mut columns = Columns::default();
        for axis in &self.axes {
            columns.text(axis, each().map(|run| run.cell.get(*axis)));
        }
        columns.text("scheduler", each().map(|run| Some(&run.scheduler)));
        columns.counts("seed", each().map(|run| run.seed));
        columns
    }
}

impl Results {
    fn chosen(&self, measures: Option<Vec<String>>) -> PyResult<Option<BTreeSet<String>>> {
        let Some(words) = measures else {
            return Ok(None);
        };
        let chosen = report::choose(&self.0, &words).map_err(PyValueError::new_err)?;
        Ok(Some(chosen.into_iter().collect()))
    }
}

#[pymethods]
impl Results {
    /// One row a run and measure: `measure`, `value`, `unit`; or, with `wide`, one row a run and a
    /// column a measure. `measures` selects names, or what contains a word.
    #[pyo3(signature = (measures = None, *, wide = false))]
    fn values(&self, measures: Option<Vec<String>>, wide: bool) -> PyResult<Table> {
        let chosen = self.chosen(measures)?;
        let is_chosen = |name: &str| chosen.as_ref().is_none_or(|names| names.contains(name));
        let runs = &self.0.runs;
        let head = Head::of(&self.0);
        if wide {
            let mut columns = head.columns(|_| 1);
            let names: BTreeSet<&str> = runs
                .iter()
                .flat_map(|run| run.values.keys().map(String::as_str))
                .filter(|name| is_chosen(name))
                .collect();
            for name in names {
                columns.numbers(name, runs.iter().map(|run| run.values.get(name).copied()));
            }
            return columns.table();
        }
        let of = |run: &Run| run.values.keys().filter(|name| is_chosen(name)).count();
        let mut columns = head.columns(of);
        let each = || {
            let all = runs.iter().flat_map(|run| &run.values);
            all.filter(|(name, _)| is_chosen(name))
        };
        columns.text("measure", each().map(|(name, _)| Some(name)));
        columns.numbers("value", each().map(|(_, value)| Some(*value)));
        columns.text("unit", each().map(|(name, _)| Some(unit(name))));
        columns.table()
    }

    /// One row a run and fraction: `measure`, `hits`, `trials`.
    fn fractions(&self) -> PyResult<Table> {
        let mut columns = Head::of(&self.0).columns(|run| run.fractions.len());
        let each = || self.0.runs.iter().flat_map(|run| &run.fractions);
        columns.text("measure", each().map(|(name, _)| Some(name)));
        columns.counts("hits", each().map(|(_, fraction)| fraction.hits));
        columns.counts("trials", each().map(|(_, fraction)| fraction.trials));
        columns.table()
    }

    /// One row a run, distribution and quantile: `measure`, `unit`, `count`, `probability`,
    /// `value`.
    fn distributions(&self) -> PyResult<Table> {
        let rows = |run: &Run| {
            run.distributions
                .values()
                .map(|one| one.quantiles.len())
                .sum()
        };
        let mut columns = Head::of(&self.0).columns(rows);
        let each = || {
            let all = self.0.runs.iter().flat_map(|run| &run.distributions);
            all.flat_map(|(name, one)| one.quantiles.iter().map(move |point| (name, one, point)))
        };
        columns.text("measure", each().map(|(name, ..)| Some(name)));
        columns.text("unit", each().map(|(_, one, _)| Some(&one.unit)));
        columns.counts("count", each().map(|(_, one, _)| one.count));
        columns.numbers("probability", each().map(|(.., point)| Some(point.0)));
        columns.numbers("value", each().map(|(.., point)| Some(point.1)));
        columns.table()
    }

    /// One row a run, quantity and time: `measure`, `unit`, `time_s`, `value`.
    fn series(&self) -> PyResult<Table> {
        let rows = |run: &Run| run.series.values().map(|one| one.values.len()).sum();
        let mut columns = Head::of(&self.0).columns(rows);
        let each = || {
            let all = self.0.runs.iter().flat_map(|run| &run.series);
            all.flat_map(|(name, one)| (0..one.values.len()).map(move |at| (name, one, at)))
        };
        columns.text("measure", each().map(|(name, ..)| Some(name)));
        columns.text("unit", each().map(|(_, one, _)| Some(&one.unit)));
        let time = |(_, one, at): (_, &results::Series, usize)| Some(at as f64 * one.step_s);
        columns.numbers("time_s", each().map(time));
        columns.numbers(
            "value",
            each().map(|(_, one, at)| one.values.get(at).copied()),
        );
        columns.table()
    }

    /// Over the seeds, one row a cell, scheduler and measure: `measure`, `mean`, `low`, `high` (the
    /// 95 % confidence interval; null where there is none), `n`.
    #[pyo3(signature = (measures = None))]
    fn summary(&self, measures: Option<Vec<String>>) -> PyResult<Table> {
        let chosen = self.chosen(measures)?;
        let is_chosen = |name: &str| chosen.as_ref().is_none_or(|names| names.contains(name));
        let names: Vec<&str> = self
            .0
            .measures()
            .into_iter()
            .filter(|name| is_chosen(name))
            .collect();
        let groups = self.0.groups();
        let rows = groups.iter().flat_map(|group| {
            let known = names
                .iter()
                .filter_map(|name| Some((*name, group.estimate(name)?)));
            known
                .map(move |(name, estimate)| (group, name, estimate))
                .collect::<Vec<_>>()
        });
        let rows: Vec<_> = rows.collect();
        let mut columns = Columns::default();
        for axis in self.0.axes() {
            columns.text(axis, rows.iter().map(|(group, ..)| group.cell.get(axis)));
        }
        columns.text(
            "scheduler",
            rows.iter().map(|(group, ..)| Some(group.scheduler)),
        );
        columns.text("measure", rows.iter().map(|(_, name, _)| Some(*name)));
        let interval = |index: usize| {
            rows.iter().map(move |(.., estimate)| {
                let interval = estimate.interval();
                interval.map(|(low, high)| [low, high][index])
            })
        };
        columns.numbers(
            "mean",
            rows.iter().map(|(.., estimate)| Some(estimate.value())),
        );
        columns.numbers("low", interval(0));
        columns.numbers("high", interval(1));
        columns.counts("n", rows.iter().map(|(.., estimate)| estimate.n() as u64));
        columns.table()
    }

    /// A measure of one scheduler divided by that of another, paired by seed, geometric mean over
    /// cells: (ratio, (low, high) or None), or None if there is nothing to compare.
    fn ratio(&self, scheduler: &str, to: &str, measure: &str) -> Option<(f64, Option<(f64, f64)>)> {
        let across = self.0.comparison().across(scheduler, to, measure)?;
        Some((across.value, across.interval))
    }

    /// The bounds of a scenario held against these results: what `repro` prints of an experiment.
    fn verdicts(&self, scenario: &Bound<'_, PyAny>) -> PyResult<Table> {
        let scenario = Scenario::of(scenario)?.first()?;
        crate::repro::table(
            judge(&self.0, &scenario.expectations)
                .iter()
                .map(|one| ("", "", one)),
        )
    }

    /// The schedulers, in the order of the runs.
    #[getter]
    fn schedulers(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for run in &self.0.runs {
            if !names.contains(&run.scheduler) {
                names.push(run.scheduler.clone());
            }
        }
        names
    }

    /// Names of all measures with one value a run.
    #[getter]
    fn measures(&self) -> Vec<String> {
        self.0.measures().into_iter().map(str::to_owned).collect()
    }

    /// The scenario's title.
    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }

    /// The scenario file, as given.
    #[getter]
    fn file(&self) -> &str {
        &self.0.file
    }

    /// The runs as dicts, as `marline sim run --json` has them.
    fn runs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for run in &self.0.runs {
            let json = serde_json::to_value(run).map_err(crate::errors::ScenarioError::of)?;
            list.append(toml_of::from_json(py, &json)?)?;
        }
        Ok(list)
    }

    /// What `marline sim run --json` would print.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&*self.0).map_err(crate::errors::ScenarioError::of)
    }

    /// Reads what `marline sim run --json` printed or `sweep` left in results.json.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let results = serde_json::from_str(text).map_err(crate::errors::ScenarioError::of)?;
        Ok(Self(Arc::new(results)))
    }

    fn __len__(&self) -> usize {
        self.0.runs.len()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __repr__(&self) -> String {
        format!(
            "<marline.Results of {} runs: {}>",
            self.0.runs.len(),
            self.0.file
        )
    }
}
