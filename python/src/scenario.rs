//! Scenarios: by file, by the name of one that comes with the program, or as a dict.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use marline_sim::batch::{Alteration, Batch, Plan};
use marline_sim::experiments::{self, Experiment};
use marline_sim::scenario::{Document, Scenario as Checked, explain};
use marline_sim::{run, traces};
use pyo3::exceptions::{PyFileNotFoundError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PySequence, PyString};

use crate::errors::ScenarioError;
use crate::toml_of;

/// Where the files are that a scenario names.
#[derive(Clone, Debug)]
enum Folder {
    OnDisk(PathBuf),
    Shipped(&'static str),
}

/// An experiment: links, sessions, workloads, and what changes on the way.
///
/// `source` is a scenario file, the name of an experiment that comes with the program
/// (:func:`experiments` lists them), or a dict with the keys of a scenario file, whose scheduler is
/// `auto` if it names none. Files that a dict names are looked up in `folder`.
///
/// A scenario does not change: `set`, `vary`, `compare` and `repeat` answer with another one.
///
/// >>> import marline
/// >>> scenario = marline.Scenario({
/// ...     "duration": "2s",
/// ...     "schedulers": ["min-rtt", "edpf"],
/// ...     "links": {"a": {"rate": "6mbit", "delay": "10ms"}, "b": {"rate": "6mbit"}},
/// ...     "workloads": [{"kind": "constant", "rate": "8mbit"}],
/// ... })
/// >>> scenario.vary("links.b.delay", ["10ms", "40ms"]).cells()
/// [{'links.b.delay': '10ms'}, {'links.b.delay': '40ms'}]
/// >>> scenario.set("links.a.rate", "fast")
/// Traceback (most recent call last):
/// ...
/// marline.ScenarioError: ...
#[pyclass(module = "marline", frozen, from_py_object)]
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    text: Arc<str>,
    folder: Folder,
    alterations: Vec<Alteration>,
}

impl Scenario {
    fn document(&self) -> PyResult<Document> {
        let mut document = Document::parse(&self.name, &self.text).map_err(ScenarioError::of)?;
        for alteration in &self.alterations {
            match alteration {
                Alteration::Set(set) => document.set(set).map_err(ScenarioError::of)?,
                Alteration::Vary(axis) => document.vary(axis).map_err(ScenarioError::of)?,
                Alteration::Compare(names) => document.compare(names),
            }
        }
        Ok(document)
    }

    fn read(&self, file: &str) -> Result<String, String> {
        match &self.folder {
            Folder::OnDisk(folder) => {
                traces::read(&folder.join(file)).map_err(|error| error.to_string())
            }
            Folder::Shipped(folder) => {
                let bytes = experiments::file(&format!("{folder}/{file}"));
                let bytes = bytes.ok_or("no such file comes with the program")?;
                String::from_utf8(bytes.to_vec()).map_err(|_| "not UTF-8".to_owned())
            }
        }
    }

    /// All of its runs, before it is known that they can be made.
    pub fn batch(&self) -> PyResult<Batch> {
        let read = |file: &str| self.read(file);
        let cells = self
            .document()?
            .scenarios(&read)
            .map_err(ScenarioError::of)?;
        Ok(Batch {
            file: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cells,
        })
    }

    /// The scenario of its first cell.
    pub fn first(&self) -> PyResult<Checked> {
        let document = self.document()?;
        let cell = document.cells().into_iter().next().unwrap_or_default();
        let read = |file: &str| self.read(file);
        document.scenario(&cell, &read).map_err(ScenarioError::of)
    }

    /// All of its runs as a plan.
    pub fn planned(&self) -> PyResult<Plan> {
        let read = |file: &str| self.read(file);
        let plan = Plan::new(&self.name, &self.text, self.alterations.clone(), &read);
        plan.map_err(ScenarioError::of)
    }

    fn with(&self, alteration: Alteration) -> PyResult<Self> {
        let mut other = self.clone();
        other.alterations.push(alteration);
        // What is wrong is said where it was written; of the other cells when they are run, since
        // there may be thousands.
        other.first()?;
        Ok(other)
    }

    /// The file, as given.
    pub fn file(&self) -> &str {
        &self.name
    }

    /// What `source` stands for, in every form that functions take.
    pub fn of(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        match source.extract::<Self>() {
            Ok(scenario) => Ok(scenario),
            Err(_) => Self::new(source, None),
        }
    }

    /// The same, with what a call asks for besides.
    pub fn altered(
        source: &Bound<'_, PyAny>,
        schedulers: Option<&Bound<'_, PyAny>>,
        seeds: Option<&Bound<'_, PyAny>>,
        duration: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut scenario = Self::of(source)?;
        if let Some(seeds) = seeds {
            scenario = scenario.repeat(seeds)?;
        }
        if let Some(duration) = duration {
            scenario = scenario.set("duration", duration)?;
        }
        if let Some(schedulers) = schedulers {
            scenario = scenario.compare(schedulers)?;
        }
        Ok(scenario)
    }

    fn find(name: &str) -> PyResult<Self> {
        let path = Path::new(name);
        if path.exists() && !path.is_dir() {
            let text = traces::read(path).map_err(ScenarioError::of)?;
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            return Ok(Self::from(name, &text, Folder::OnDisk(folder)));
        }
        let all = experiments::all();
        let called = |one: &&Experiment| {
            one.path == name || one.path.strip_suffix(".toml") == Some(name) || one.name == name
        };
        match all.iter().filter(called).collect::<Vec<_>>()[..] {
            [one] => Ok(Self::from(name, one.text, Folder::Shipped(one.folder))),
            [] => Err(PyFileNotFoundError::new_err(format!(
                "{name}: no such file, and no experiment of that name; marline.experiments() lists \
                 those that come with the program"
            ))),
            [first, ..] => Err(PyValueError::new_err(format!(
                "{name}: several experiments are called so; write it as {}",
                first.path
            ))),
        }
    }

    fn from(name: &str, text: &str, folder: Folder) -> Self {
        Self {
            name: name.to_owned(),
            text: text.into(),
            folder,
            alterations: Vec::new(),
        }
    }
}

#[pymethods]
impl Scenario {
    #[new]
    #[pyo3(signature = (source, *, folder = None))]
    fn new(source: &Bound<'_, PyAny>, folder: Option<PathBuf>) -> PyResult<Self> {
        if let Ok(mapping) = source.cast::<PyMapping>() {
            let mut table = toml_of::table(mapping, "")?;
            let default = || toml::Value::String("auto".to_owned());
            table.entry("schedulers").or_insert_with(default);
            let text = table.to_string();
            let folder = Folder::OnDisk(folder.unwrap_or_default());
            let scenario = Self::from("dict", &text, folder);
            scenario.batch()?;
            return Ok(scenario);
        }
        let name: PathBuf = source.extract()?;
        let scenario = Self::find(&name.to_string_lossy())?;
        scenario.batch()?;
        Ok(scenario)
    }

    /// A scenario from the text of a file; files that it names are looked up in `folder`.
    #[staticmethod]
    #[pyo3(signature = (text, *, name = "text", folder = None))]
    fn from_text(text: &str, name: &str, folder: Option<PathBuf>) -> PyResult<Self> {
        let scenario = Self::from(name, text, Folder::OnDisk(folder.unwrap_or_default()));
        scenario.batch()?;
        Ok(scenario)
    }

    /// The same with a dotted key set, such as `links.a.delay`; an axis of that key goes.
    fn set(&self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let value = toml_of::flag(value, key)?;
        self.with(Alteration::Set(format!("{key}={value}")))
    }

    /// The same with a dotted key varied over values: an axis, whose every value makes a cell.
    fn vary(&self, key: &str, values: &Bound<'_, PySequence>) -> PyResult<Self> {
        let values = values.try_iter()?.map(|value| toml_of::flag(&value?, key));
        let values: Vec<String> = values.collect::<PyResult<_>>()?;
        if let Some(value) = values.iter().find(|value| value.contains(',')) {
            return Err(PyValueError::new_err(format!(
                "{key}: `{value}` has a comma, and values of an axis have none; write the axis \
                 under [vary] of a scenario file"
            )));
        }
        self.with(Alteration::Vary(format!("{key}={}", values.join(","))))
    }

    /// The same with other schedulers: names, a text with commas, or "all".
    fn compare(&self, schedulers: &Bound<'_, PyAny>) -> PyResult<Self> {
        let names = match schedulers.cast::<PyString>() {
            Ok(text) => text.extract()?,
            Err(_) => schedulers.extract::<Vec<String>>()?.join(","),
        };
        self.with(Alteration::Compare(names))
    }

    /// The same with other seeds: 1 to a number, or a list of them.
    fn repeat(&self, seeds: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.set("seeds", seeds)
    }

    /// What it does, in words.
    fn explain(&self) -> PyResult<String> {
        Ok(explain(&self.document()?, &self.first()?))
    }

    /// The combinations of its axes' values; one empty dict without axes.
    fn cells(&self, py: Python<'_>) -> PyResult<Vec<Py<pyo3::types::PyDict>>> {
        let cells = self.document()?.cells().into_iter();
        let cells = cells.map(|cell| {
            let dict = pyo3::types::PyDict::new(py);
            for (key, value) in cell {
                dict.set_item(key, value)?;
            }
            Ok(dict.unbind())
        });
        cells.collect()
    }

    /// Its schedulers.
    #[getter]
    fn schedulers(&self) -> PyResult<Vec<String>> {
        Ok(self.first()?.schedulers)
    }

    /// Its seeds.
    #[getter]
    fn seeds(&self) -> PyResult<Vec<u64>> {
        Ok(self.first()?.seeds)
    }

    /// Its title.
    #[getter]
    fn title(&self) -> PyResult<String> {
        Ok(self.first()?.title)
    }

    /// The file, as given.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Can every scheduler run it? Raises ScenarioError if not.
    fn check(&self) -> PyResult<()> {
        for (_, scenario) in &self.batch()?.cells {
            for scheduler in &scenario.schedulers {
                run::check(scenario, scheduler).map_err(ScenarioError::of)?;
            }
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("Scenario({:?})", self.name)
    }
}

/// The experiments that come with the program: folder/name.
#[pyfunction]
#[pyo3(name = "experiments")]
pub fn experiments_names() -> Vec<String> {
    let all = experiments::all().into_iter();
    let names = all.map(|one| one.path.trim_end_matches(".toml").to_owned());
    names.collect()
}
