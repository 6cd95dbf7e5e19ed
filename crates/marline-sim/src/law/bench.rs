//! The runs whose packets are scored.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use marline_base::{Duration, Instant};
use marline_proto::sched::AUTO;

use super::table::{Judged, Report};
use super::watch::Witness;
use crate::experiments;
use crate::field;
use crate::run::{check, jobs, run};
use crate::scenario::{Document, Scenario};

/// Runs of experiments are cut after this time: a law knows a path after a second, and experiments
/// last up to ten minutes.
const LONGEST: Duration = Duration::from_secs(20);
/// Cells of an experiment that are run: its first, its last, and such as lie between.
const CELLS: usize = 3;

/// How the laws are judged.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// From which all that is drawn follows.
    pub seed: u64,
    /// Fewer and shorter runs.
    pub quick: bool,
    /// The folder of recordings.
    pub traces: &'a Path,
    /// Only sets of these names; empty: all.
    pub only: &'a [String],
}

/// A run.
#[derive(Debug)]
struct Job {
    set: String,
    name: String,
    scenario: Scenario,
    seed: u64,
}

/// Runs that can be made.
#[derive(Debug)]
pub struct Prepared {
    /// From which all follows that is drawn.
    pub seed: u64,
    /// What is not there, in words.
    pub missing: Vec<String>,
    jobs: Vec<Job>,
}

/// Reads recordings and scenario files, and draws links.
///
/// # Errors
/// What cannot be read, or that nothing is left of what was asked for.
pub fn prepare(options: Options<'_>) -> Result<Prepared, String> {
    let wanted = |set: &str| options.only.is_empty() || options.only.iter().any(|one| one == set);
    let bench = field::prepare(field::Options {
        seed: options.seed,
        quick: options.quick,
        seeds: Some(1),
        ideal: false,
        auto_only: true,
        traces: options.traces,
        only: &[],
    })?;
    let mut jobs = Vec::new();
    for cell in &bench.cells {
        let place = &bench.places[cell.place];
        for &seed in bench.seeds.iter().filter(|_| wanted(&place.set)) {
            jobs.push(Job {
                set: place.set.clone(),
                name: format!("{}, {}", place.name, cell.load.name()),
                scenario: place.scenario(cell.load, None, seed),
                seed,
            });
        }
    }
    let mut missing = bench.missing;
    let traces = Some(options.traces).filter(|folder| folder.is_dir());
    for one in experiments::all() {
        // Those of misbehaving links are a set of the bench.
        if one.folder == field::FOLDER || !wanted(one.folder) {
            continue;
        }
        if traces.is_none() && one.needs_traces() {
            missing.push(format!("{}: its traces are not there", one.path));
            continue;
        }
        let files = |file: &str| one.read(file, traces);
        let cells = Document::parse(one.path, one.text).and_then(|file| file.scenarios(&files));
        let mut cells = cells.map_err(|mistakes| mistakes.to_string())?;
        // Models have no sessions.
        cells
            .retain(|(_, scenario)| !scenario.sessions.is_empty() && check(scenario, AUTO).is_ok());
        let count = if options.quick { 1 } else { CELLS }.min(cells.len());
        for n in 0..count {
            let (_, mut scenario) = cells[n * (cells.len() - 1) / (count.max(2) - 1)].clone();
            scenario.duration = scenario.duration.min(LONGEST);
            scenario.warmup = scenario.warmup.min(LONGEST / 4);
            jobs.push(Job {
                set: one.folder.to_owned(),
                name: format!("{}, {n}", one.name),
                scenario,
                seed: bench.seeds[0],
            });
        }
    }
    match jobs.is_empty() {
        true => Err("there is no such set".to_owned()),
        false => Ok(Prepared {
            seed: options.seed,
            missing,
            jobs,
        }),
    }
}

impl Prepared {
    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.jobs.len()
    }

    /// Makes all runs on `threads` threads; `None` if it was stopped. `progress` is given how many
    /// are over.
    pub fn run(
        &self,
        threads: usize,
        stop: &AtomicBool,
        progress: impl Fn(usize) + Sync,
    ) -> Option<Report> {
        let made = jobs::each(self.jobs.len(), threads, stop, progress, |number| {
            let job = &self.jobs[number];
            let mut scenario = job.scenario.clone();
            let witness = Witness::new(Instant::ZERO + scenario.warmup);
            scenario.watch = witness.watch();
            run(&scenario, AUTO, job.seed);
            Judged {
                set: job.set.clone(),
                name: job.name.clone(),
                scores: witness.scores(),
            }
        });
        let made: Option<Vec<Judged>> = made.into_iter().collect();
        Some(Report::new(self.seed, &made?))
    }
}
