//! Runs in threads, while Python stays alive: signals are handled, progress is reported.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline_sim::batch::{Batch, Job};
use marline_sim::results::Run;
use marline_sim::run::run_unless;
use pyo3::prelude::*;

use crate::errors::RunError;

/// How often a thread that waits for runs looks for signals: quick for a finger on Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// What runs under way share: whether to go on, and what went wrong.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    over: AtomicUsize,
    error: Mutex<Option<PyErr>>,
}

impl Control {
    /// No more runs are begun, and those under way end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends it all because of an error; the first one is raised.
    pub fn fail(&self, error: PyErr) {
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        drop(first);
        self.stop();
    }

    /// Is it over?
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The error that ended it, if one did.
    pub fn take_error(&self) -> Option<PyErr> {
        let mut error = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        error.take()
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Control>>> = const { RefCell::new(None) };
}

/// What the run on this thread shares with others, for schedulers and applications in it.
pub fn current() -> Option<Arc<Control>> {
    CURRENT.with_borrow(Clone::clone)
}

/// A run on this thread; `None` if it was stopped or failed.
pub fn one(job: &Job<'_>, control: &Arc<Control>) -> Option<Run> {
    CURRENT.set(Some(control.clone()));
    let made = catch_unwind(AssertUnwindSafe(|| {
        run_unless(job.scenario, job.scheduler, job.seed, &control.stop)
    }));
    CURRENT.set(None);
    match made {
        Ok(run) => run.map(|run| Run {
            cell: job.cell.iter().cloned().collect(),
            ..run
        }),
        Err(panic) => {
            let why = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("it ended unexpectedly");
            let (scheduler, seed) = (job.scheduler, job.seed);
            control.fail(RunError::new_err(format!(
                "the run of {scheduler} with seed {seed}: {why}"
            )));
            None
        }
    }
}

/// The runs of these jobs on `threads` threads, in their order.
pub fn all(jobs: &[Job<'_>], threads: usize, control: &Arc<Control>) -> Vec<Option<Run>> {
    let next = AtomicUsize::new(0);
    let made: Mutex<Vec<Option<Run>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let work = || {
        while !control.is_stopped() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(number) else { return };
            let run = one(job, control);
            made.lock().unwrap_or_else(PoisonError::into_inner)[number] = run;
            control.over.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    made.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What Python wants to be called for meanwhile.
#[derive(Clone, Copy, Default)]
pub struct Callbacks<'a, 'py> {
    /// `progress(over, total)`, when more is over.
    pub progress: Option<&'a Bound<'py, PyAny>>,
    /// `check()`, again and again; it ends the work by raising something.
    pub check: Option<&'a Bound<'py, PyAny>>,
}

impl<'a, 'py> Callbacks<'a, 'py> {
    /// Of progress alone.
    pub fn progress(progress: Option<&'a Bound<'py, PyAny>>) -> Self {
        Self {
            progress,
            check: None,
        }
    }
}

/// Does `work` on a thread of its own without the interpreter's lock. Ctrl-C stops it and raises
/// KeyboardInterrupt.
pub fn watched<T: Send>(
    py: Python<'_>,
    total: usize,
    callbacks: Callbacks<'_, '_>,
    work: impl FnOnce(&Arc<Control>) -> T + Send,
) -> PyResult<T> {
    let control = Arc::new(Control::default());
    let kept = |callback: Option<&Bound<'_, PyAny>>| callback.map(|one| one.clone().unbind());
    let (progress, check) = (kept(callbacks.progress), kept(callbacks.check));
    let look = |py: Python<'_>, seen: &mut Option<usize>| -> PyResult<()> {
        py.check_signals()?;
        if let Some(check) = &check {
            check.call0(py)?;
        }
        let over = control.over.load(Ordering::Relaxed);
        if let Some(callback) = &progress
            && *seen != Some(over)
        {
            *seen = Some(over);
            callback.call1(py, (over, total))?;
        }
        Ok(())
    };
    let made = py.detach(|| {
        std::thread::scope(|scope| {
            let (done, wait) = channel();
            let worker = control.clone();
            let worker = scope.spawn(move || {
                let made = work(&worker);
                let _ = done.send(());
                made
            });
            let mut seen = None;
            loop {
                let ended = wait.recv_timeout(LOOK);
                if let Err(error) = Python::attach(|py| look(py, &mut seen)) {
                    control.fail(error);
                }
                if ended != Err(RecvTimeoutError::Timeout) {
                    return worker.join();
                }
            }
        })
    });
    if let Some(error) = control.take_error() {
        return Err(error);
    }
    made.map_err(|_| RunError::new_err("the simulator ended unexpectedly"))
}

/// The runs of a batch, all of them.
pub fn batch(
    py: Python<'_>,
    batch: &Batch,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Run>> {
    let jobs = batch.jobs();
    let made = watched(py, jobs.len(), Callbacks::progress(progress), |control| {
        all(&jobs, threads_of(threads), control)
    })?;
    Ok(made.into_iter().flatten().collect())
}

/// Threads to use: as many as asked for, or one a core.
pub fn threads_of(asked: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.unwrap_or_else(cores).max(1)
}
