//! Many runs at once.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::run;
use crate::results::Run;
use crate::scenario::Scenario;

/// A run to be made.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The scenario with the cell's values set.
    pub scenario: &'a Scenario,
    /// The axes' values, as written, for [`Run::cell`].
    pub cell: BTreeMap<String, String>,
    /// The scheduler.
    pub scheduler: &'a str,
    /// The seed.
    pub seed: u64,
}

impl Job<'_> {
    fn run(&self) -> Run {
        Run {
            cell: self.cell.clone(),
            ..run(self.scenario, self.scheduler, self.seed)
        }
    }
}

/// Makes the runs on so many threads (at least one) and returns them in the order of the jobs,
/// whatever the threads' timing. `done` hears of every run as soon as it is over, with its job's
/// index, in the order in which runs end.
///
/// # Panics
/// As [`run`] does.
pub fn run_all(jobs: &[Job<'_>], threads: usize, done: impl Fn(usize, &Run) + Sync) -> Vec<Run> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Run>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some((index, job)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(index).map(|job| (index, job))
        } {
            let run = job.run();
            done(index, &run);
            if let Ok(mut slot) = results[index].lock() {
                *slot = Some(run);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let finished = results
        .into_iter()
        .filter_map(|slot| slot.into_inner().ok()?);
    finished.collect()
}
