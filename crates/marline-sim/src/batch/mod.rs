//! All runs of an experiment: cells × schedulers × seeds, on many threads, stoppable, and taken up
//! again where they were left.

mod digest;
mod plan;
mod store;

pub use digest::digest;
pub use plan::{Alteration, Opened, PLAN_FORMAT, Plan, PlanError, PlannedRun};
pub use store::{Store, StoreError};

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use crate::results::{FORMAT, Results, Run};
use crate::run::{RunError, check, jobs, run};
use crate::scenario::{Cell, Scenario};

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The scenario file, as given.
    pub file: String,
    /// Version of the program.
    pub version: String,
    /// The scenario of each cell.
    pub cells: Vec<(Cell, Scenario)>,
}

/// One run of a batch.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The axes' values.
    pub cell: &'a Cell,
    /// The scenario with them.
    pub scenario: &'a Scenario,
    /// The scheduler.
    pub scheduler: &'a str,
    /// The seed.
    pub seed: u64,
}

/// What came of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The runs that are over, in order.
    pub results: Results,
    /// How many there should be.
    pub wanted: usize,
    /// How many of them were taken from the store.
    pub kept: usize,
}

impl Batch {
    /// Every run, ordered by cell, scheduler and seed.
    pub fn jobs(&self) -> Vec<Job<'_>> {
        let mut jobs = Vec::new();
        for (cell, scenario) in &self.cells {
            for scheduler in &scenario.schedulers {
                jobs.extend(scenario.seeds.iter().map(|&seed| Job {
                    cell,
                    scenario,
                    scheduler,
                    seed,
                }));
            }
        }
        jobs
    }

    /// Can all of it be run?
    ///
    /// # Errors
    ///
    /// The first scenario that cannot be run with a scheduler.
    pub fn check(&self) -> Result<(), RunError> {
        for (_, scenario) in &self.cells {
            for scheduler in &scenario.schedulers {
                check(scenario, scheduler)?;
            }
        }
        Ok(())
    }

    /// Makes the runs on `threads` threads, except those that `store` has, and adds them to it.
    /// When `stop` is set, the runs under way are finished and no more begun. `progress` is given
    /// how many are over.
    ///
    /// The results do not depend on the number of threads, nor on what the store had.
    ///
    /// # Errors
    ///
    /// A store that cannot be written.
    ///
    /// # Panics
    ///
    /// As [`run`] does; [`Self::check`] tells before.
    pub fn run(
        &self,
        threads: usize,
        stop: &AtomicBool,
        store: Option<&Store>,
        progress: impl Fn(usize) + Sync,
    ) -> Result<Outcome, StoreError> {
        let jobs = self.jobs();
        let mut runs: Vec<Option<Run>> = jobs.iter().map(|_| None).collect();
        let keys: Vec<String> = match store {
            Some(store) => jobs.iter().map(|job| store.key(job)).collect(),
            None => Vec::new(),
        };
        if let Some(store) = store {
            for (slot, (key, job)) in runs.iter_mut().zip(keys.iter().zip(&jobs)) {
                *slot = store.get(key).map(|run| job.labelled(run.clone()));
            }
        }
        let todo: Vec<usize> = (0..jobs.len()).filter(|&i| runs[i].is_none()).collect();
        let kept = jobs.len() - todo.len();
        progress(kept);
        let failed: OnceLock<StoreError> = OnceLock::new();
        let progress = |over| progress(kept + over);
        let made = jobs::each(todo.len(), threads, stop, progress, |number| {
            if failed.get().is_some() {
                return None;
            }
            let (key, job) = (keys.get(todo[number]), &jobs[todo[number]]);
            let run = job.labelled(run(job.scenario, job.scheduler, job.seed));
            if let Some((store, key)) = store.zip(key)
                && let Err(error) = store.add(key, &run)
            {
                let _ = failed.set(error);
                return None;
            }
            Some(run)
        });
        if let Some(error) = failed.into_inner() {
            return Err(error);
        }
        for (index, run) in todo.into_iter().zip(made) {
            runs[index] = run.flatten();
        }
        Ok(Outcome {
            results: self.results(runs.into_iter().flatten().collect()),
            wanted: jobs.len(),
            kept,
        })
    }

    /// These runs as results of the batch.
    pub fn results(&self, runs: Vec<Run>) -> Results {
        let title = self
            .cells
            .first()
            .map(|(_, scenario)| scenario.title.clone());
        Results {
            format: FORMAT,
            title: title.unwrap_or_default(),
            file: self.file.clone(),
            version: self.version.clone(),
            runs,
        }
    }
}

impl Job<'_> {
    /// The run with the cell's values as they are called now.
    fn labelled(&self, run: Run) -> Run {
        let cell: BTreeMap<String, String> = self.cell.iter().cloned().collect();
        Run { cell, ..run }
    }
}
