//! Sweeps as files: the runs of a plan, one by one, wherever they are made.

use std::collections::BTreeMap;
use std::sync::Arc;

use marline_sim::batch::{self, Job};
use marline_sim::results::{FORMAT, Results as Plain, Run};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::{Deserialize, Serialize};

use crate::errors::ScenarioError;
use crate::results::Results;
use crate::running::{self, Callbacks};
use crate::scenario::Scenario;

/// A sweep as a file: the scenario with all that it names, and the runs, each by the digest of all
/// that it depends on (scenario, scheduler, seed, version).
#[pyclass(module = "marline", frozen)]
#[derive(Debug)]
pub struct Plan(batch::Plan);

/// A line of the store of `marline sim sweep`.
#[derive(Serialize, Deserialize)]
struct Line<K, R> {
    key: K,
    run: R,
}

fn line(text: &mut Vec<u8>, key: &str, run: &Run) -> PyResult<()> {
    serde_json::to_writer(&mut *text, &Line { key, run }).map_err(ScenarioError::of)?;
    text.push(b'\n');
    Ok(())
}

#[pymethods]
impl Plan {
    /// The plan of a scenario's runs.
    #[new]
    #[pyo3(signature = (scenario, *, schedulers = None, seeds = None, duration = None))]
    fn new(
        scenario: &Bound<'_, PyAny>,
        schedulers: Option<&Bound<'_, PyAny>>,
        seeds: Option<&Bound<'_, PyAny>>,
        duration: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let scenario = Scenario::altered(scenario, schedulers, seeds, duration)?;
        scenario.planned().map(Self)
    }

    /// Reads the text of a plan.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        batch::Plan::parse(text)
            .map(Self)
            .map_err(ScenarioError::of)
    }

    /// Its text: what `marline sim sweep --plan` writes.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(ScenarioError::of)
    }

    /// The keys of its runs, in order.
    fn keys(&self) -> Vec<String> {
        self.0.runs.iter().map(|run| run.key.clone()).collect()
    }

    /// The run of this number: its key, cell, scheduler and seed.
    fn run<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyDict>> {
        let run = self.0.runs.get(number);
        let run = run.ok_or_else(|| PyIndexError::new_err(format!("no run {number}")))?;
        let (dict, cell) = (PyDict::new(py), PyDict::new(py));
        for (key, value) in &run.cell {
            cell.set_item(key, value)?;
        }
        dict.set_item("key", &run.key)?;
        dict.set_item("cell", cell)?;
        dict.set_item("scheduler", &run.scheduler)?;
        dict.set_item("seed", run.seed)?;
        Ok(dict)
    }

    /// Makes the runs of these numbers: a line of JSON each, the key and the run, in the order of
    /// the numbers. `progress(over, total)` is called when more is over, `check()` some twenty
    /// times a second; what either raises ends it.
    #[pyo3(signature = (numbers, *, threads = 1, progress = None, check = None))]
    fn make<'py>(
        &self,
        py: Python<'py>,
        numbers: Vec<usize>,
        threads: usize,
        progress: Option<&Bound<'py, PyAny>>,
        check: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let opened = self.0.open().map_err(ScenarioError::of)?;
        let callbacks = Callbacks { progress, check };
        let made = running::watched(py, numbers.len(), callbacks, |control| {
            let mut planned = Vec::new();
            for number in &numbers {
                match opened.scenario(*number) {
                    Ok(run) => planned.push(run),
                    Err(error) => {
                        control.fail(ScenarioError::of(error));
                        return Vec::new();
                    }
                }
            }
            let jobs: Vec<Job<'_>> = planned
                .iter()
                .map(|(run, scenario)| Job {
                    cell: &run.cell,
                    scenario,
                    scheduler: &run.scheduler,
                    seed: run.seed,
                })
                .collect();
            running::all(&jobs, threads, control)
        })?;
        let mut text = Vec::new();
        for (number, run) in numbers.iter().zip(made) {
            let Some(run) = run else { continue };
            line(&mut text, &self.0.runs[*number].key, &run)?;
        }
        Ok(PyBytes::new(py, &text))
    }

    /// Results from lines that `make` answered, in any order and number: each run counts once, and
    /// all stand in the order of the plan. Also the numbers of the runs that are missing. Lines of
    /// other plans, and lines that were cut, are left out.
    fn gather(&self, py: Python<'_>, lines: &Bound<'_, PyAny>) -> PyResult<(Results, Vec<usize>)> {
        let wanted: BTreeMap<&str, usize> = (self.0.runs.iter().enumerate())
            .map(|(number, run)| (run.key.as_str(), number))
            .collect();
        let mut found: Vec<Option<Run>> = self.0.runs.iter().map(|_| None).collect();
        for text in lines.try_iter()? {
            let text: Vec<u8> = text?.extract()?;
            py.detach(|| {
                for line in text.split(|byte| *byte == b'\n') {
                    if let Ok(Line { key, run }) = serde_json::from_slice::<Line<String, Run>>(line)
                        && let Some(&number) = wanted.get(key.as_str())
                    {
                        found[number].get_or_insert(run);
                    }
                }
            });
        }
        let missing = found.iter().enumerate();
        let missing = missing
            .filter(|(_, run)| run.is_none())
            .map(|(number, _)| number);
        let missing = missing.collect();
        let runs = found.into_iter().flatten().collect();
        let results = Plain {
            format: FORMAT,
            title: self.0.title.clone(),
            file: self.0.file.clone(),
            version: self.0.version.clone(),
            runs,
        };
        Ok((Results(Arc::new(results)), missing))
    }

    /// The lines of results of all of its runs, as `make` writes them, in the order of the plan.
    fn lines<'py>(&self, py: Python<'py>, results: &Results) -> PyResult<Bound<'py, PyBytes>> {
        let mut text = Vec::new();
        for (planned, run) in self.0.runs.iter().zip(&results.0.runs) {
            line(&mut text, &planned.key, run)?;
        }
        Ok(PyBytes::new(py, &text))
    }

    /// The version of its runs.
    #[getter]
    fn version(&self) -> &str {
        &self.0.version
    }

    /// The scenario's title.
    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }

    fn __len__(&self) -> usize {
        self.0.runs.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "<marline.Plan of {} runs: {}>",
            self.0.runs.len(),
            self.0.file
        )
    }
}
