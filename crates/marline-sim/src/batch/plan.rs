//! A sweep as a file: all that its runs depend on, and each of them by its digest, so that they can
//! be made anywhere, in any order, more than once, and still count once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Batch, Job, digest};
use crate::run::{RunError, check};
use crate::scenario::{Axis, Cell, Document, Mistakes, Scenario};

/// The version of the file; grows when a field changes its meaning or goes.
pub const PLAN_FORMAT: u32 = 1;

/// What flags change of a scenario file, in the order in which they do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Alteration {
    /// `KEY=VALUE`, as [`Document::set`] takes it.
    Set(String),
    /// `KEY=VALUE,VALUE`, as [`Document::vary`] takes it.
    Vary(String),
    /// `NAME,NAME`, as [`Document::compare`] takes it.
    Compare(String),
}

/// One run of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// The [digest](fn@digest) of what it depends on.
    pub key: String,
    /// The axes' values.
    pub cell: Vec<(String, String)>,
    /// The scheduler.
    pub scheduler: String,
    /// The seed.
    pub seed: u64,
}

/// A sweep that other programs can run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// [`PLAN_FORMAT`].
    pub format: u32,
    /// The version that its runs are made by; another one may measure something else.
    pub version: String,
    /// The scenario's title.
    pub title: String,
    /// The scenario file, as given.
    pub file: String,
    /// What is written in it.
    pub text: String,
    /// What is changed of it.
    pub alterations: Vec<Alteration>,
    /// The texts of the files that it names.
    pub files: BTreeMap<String, String>,
    /// The runs, ordered by cell, scheduler and seed.
    pub runs: Vec<PlannedRun>,
}

/// A plan that cannot be made or followed.
#[derive(Debug)]
pub enum PlanError {
    /// It is no plan of a format that is known here.
    Format(String),
    /// It is of another version; both are named.
    Version {
        /// The plan's.
        plan: String,
        /// This one's.
        here: String,
    },
    /// Its scenario is wrong.
    Scenario(Mistakes),
    /// A scheduler cannot run its scenario.
    Run(RunError),
    /// There is no run of this number.
    NoRun(usize),
    /// What a run depends on is not what its digest was made of: the file was changed by hand, or
    /// a scheduler or an application of that name is another one here.
    Changed(usize),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(why) => write!(f, "not a plan that can be read: {why}"),
            Self::Version { plan, here } => write!(
                f,
                "the plan is for version {plan}, this is {here}: write the plan again, or install \
                 version {plan}"
            ),
            Self::Scenario(mistakes) => mistakes.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::NoRun(number) => write!(f, "the plan has no run {number}"),
            Self::Changed(number) => write!(
                f,
                "run {number} of the plan is not what its key says: write the plan again"
            ),
        }
    }
}

impl std::error::Error for PlanError {}

impl From<Mistakes> for PlanError {
    fn from(mistakes: Mistakes) -> Self {
        Self::Scenario(mistakes)
    }
}

/// The scenario of a plan, read once for many runs.
#[derive(Clone, Debug)]
pub struct Opened<'a> {
    plan: &'a Plan,
    document: Document,
}

impl Plan {
    /// The plan of a scenario file's text. `read` answers the texts of files that it names.
    ///
    /// # Errors
    /// All mistakes of the scenario, or the first scheduler that cannot run it.
    pub fn new(
        file: &str,
        text: &str,
        alterations: Vec<Alteration>,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, PlanError> {
        let files = RefCell::new(BTreeMap::new());
        let keep = |name: &str| {
            let text = read(name)?;
            files.borrow_mut().insert(name.to_owned(), text.clone());
            Ok(text)
        };
        let cells = document(file, text, &alterations)?.scenarios(&keep)?;
        let batch = batch(file, cells);
        batch.check().map_err(PlanError::Run)?;
        let mut plan = Self {
            format: PLAN_FORMAT,
            version: batch.version.clone(),
            title: batch.results(Vec::new()).title,
            file: file.to_owned(),
            text: text.to_owned(),
            alterations,
            files: files.into_inner(),
            runs: Vec::new(),
        };
        let program = plan.program();
        let jobs = batch.jobs();
        plan.runs = jobs.iter().map(|job| planned(job, &program)).collect();
        Ok(plan)
    }

    /// Reads the text of a plan.
    ///
    /// # Errors
    /// No plan, or one of another format or version.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let plan: Self =
            serde_json::from_str(text).map_err(|error| PlanError::Format(error.to_string()))?;
        if plan.format != PLAN_FORMAT {
            let why = format!("format {}, not {PLAN_FORMAT}", plan.format);
            return Err(PlanError::Format(why));
        }
        let here = env!("CARGO_PKG_VERSION");
        if plan.version != here {
            return Err(PlanError::Version {
                plan: plan.version,
                here: here.to_owned(),
            });
        }
        Ok(plan)
    }

    /// Stands for the program and the scenario's files in the digests of its runs: what a
    /// [`Store`](super::Store) of them is opened with.
    pub fn program(&self) -> String {
        format!("marline {}\n{:?}", self.version, self.files)
    }

    /// Reads its scenario, whose runs can then be had one by one.
    ///
    /// # Errors
    /// Mistakes of the scenario.
    pub fn open(&self) -> Result<Opened<'_>, PlanError> {
        Ok(Opened {
            plan: self,
            document: document(&self.file, &self.text, &self.alterations)?,
        })
    }

    /// All of its runs as a batch.
    ///
    /// # Errors
    /// Mistakes of the scenario, a scheduler that cannot run it, or runs that are not those of the
    /// plan.
    pub fn batch(&self) -> Result<Batch, PlanError> {
        let cells = self.open()?.document.scenarios(&|file| self.read(file))?;
        let batch = batch(&self.file, cells);
        batch.check().map_err(PlanError::Run)?;
        let (jobs, program) = (batch.jobs(), self.program());
        let differs = |(job, run): (&Job<'_>, &PlannedRun)| planned(job, &program) != *run;
        let changed = jobs.iter().zip(&self.runs).position(differs);
        if changed.is_some() || jobs.len() != self.runs.len() {
            let first = changed.unwrap_or(jobs.len().min(self.runs.len()));
            return Err(PlanError::Changed(first));
        }
        Ok(batch)
    }

    fn read(&self, file: &str) -> Result<String, String> {
        let text = self.files.get(file).cloned();
        text.ok_or_else(|| "the plan does not hold it".to_owned())
    }
}

impl Opened<'_> {
    /// The scenario of run `number`, checked against its digest.
    ///
    /// # Errors
    /// As [`Plan::batch`], and if there is no such run.
    pub fn scenario(&self, number: usize) -> Result<(&PlannedRun, Scenario), PlanError> {
        let plan = self.plan;
        let run = plan.runs.get(number).ok_or(PlanError::NoRun(number))?;
        let cell: &Cell = &run.cell;
        let axes = self.document.axes().iter().map(Axis::key);
        if !axes.eq(cell.iter().map(|(key, _)| key.as_str())) {
            return Err(PlanError::Changed(number));
        }
        let scenario = self.document.scenario(cell, &|file| plan.read(file))?;
        let job = Job {
            cell,
            scenario: &scenario,
            scheduler: &run.scheduler,
            seed: run.seed,
        };
        if digest(&job, &plan.program()) != run.key {
            return Err(PlanError::Changed(number));
        }
        check(&scenario, &run.scheduler).map_err(PlanError::Run)?;
        Ok((run, scenario))
    }
}

/// A job as it stands in a plan.
fn planned(job: &Job<'_>, program: &str) -> PlannedRun {
    PlannedRun {
        key: digest(job, program),
        cell: job.cell.clone(),
        scheduler: job.scheduler.to_owned(),
        seed: job.seed,
    }
}

fn document(file: &str, text: &str, alterations: &[Alteration]) -> Result<Document, Mistakes> {
    let mut document = Document::parse(file, text)?;
    for alteration in alterations {
        match alteration {
            Alteration::Set(set) => document.set(set)?,
            Alteration::Vary(axis) => document.vary(axis)?,
            Alteration::Compare(names) => document.compare(names),
        }
    }
    Ok(document)
}

fn batch(file: &str, cells: Vec<(Cell, Scenario)>) -> Batch {
    Batch {
        file: file.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cells,
    }
}
