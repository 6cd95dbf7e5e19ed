//! When the machine stood still.
//!
//! A virtual machine whose host runs others loses its processors for some milliseconds now and
//! then. What is under way then is late, and so is what follows until the queues of nearly full
//! links are short again: one stall of 10 ms in a second decides the 99th percentile. What is
//! measured here is not the machine, so what is compared with the simulator leaves out messages
//! that met a stall, whatever became of them. A thread on each processor reports them, which has
//! nothing to do but to wake up every millisecond. Where it wakes up late because another program
//! had the processor, that is no stall: a program of ours that computes for long must show.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the threads wake up.
const TICK: Duration = Duration::from_millis(1);
/// A thread that wakes up this much later did not get the processor. Timers are late by some tenths
/// of a millisecond.
const STALL: Duration = Duration::from_millis(2);
/// What stood for a time is gone after this number of such times on a link that is loaded by nine
/// tenths.
const DRAIN: u64 = 10;

/// Looks for stalls from its start to its end.
pub(super) struct Watch {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<(Instant, Instant)>>>,
}

/// From when to when some processor stood still (nanoseconds from a beginning).
pub(super) struct Stalls(Vec<(u64, u64)>);

impl Watch {
    pub(super) fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let watcher = |processor: usize| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                stay_on(processor);
                watch(&over)
            })
        };
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads: (0..processors).map(watcher).collect(),
            over,
        }
    }

    /// The stalls, in nanoseconds from `begin`.
    pub(super) fn end(self, begin: Instant) -> Stalls {
        self.over.store(true, Ordering::Relaxed);
        let nanos = |at: Instant| at.saturating_duration_since(begin).as_nanos() as u64;
        let found = self.threads.into_iter().filter_map(|one| one.join().ok());
        let stalls = found.flatten().map(|(from, to)| (nanos(from), nanos(to)));
        Stalls(stalls.collect())
    }
}

impl Stalls {
    /// Did a message that was under way from `written` to `received` meet a stall, or what it left
    /// behind?
    pub(super) fn met(&self, written: u64, received: u64) -> bool {
        self.0.iter().any(|(from, to)| {
            let drained = to.saturating_add(DRAIN.saturating_mul(to - from));
            received > *from && written < drained
        })
    }
}

/// Stalls of the processor that this thread runs on; none where the system does not report how long
/// it waited for others.
fn watch(over: &AtomicBool) -> Vec<(Instant, Instant)> {
    let mut stalls = Vec::new();
    let mut waited = waited();
    let mut wish = Instant::now() + TICK;
    while !over.load(Ordering::Relaxed) {
        thread::sleep(wish.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        let before = waited;
        waited = self::waited();
        if let (Some(before), Some(waited)) = (before, waited)
            && is_stall(now - wish.min(now), waited.saturating_sub(before))
        {
            stalls.push((wish, now));
        }
        wish = now + TICK;
    }
    stalls
}

/// Is that a stall, if a thread woke up so `late` and was runnable for this part of it while others
/// ran?
fn is_stall(late: Duration, waited: Duration) -> bool {
    late.saturating_sub(waited) > STALL
}

/// How long this thread has been runnable while others ran, by the kernel's statistics of its
/// scheduler.
fn waited() -> Option<Duration> {
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = told.split_ascii_whitespace().nth(1)?;
    nanos.parse().ok().map(Duration::from_nanos)
}

/// Binds this thread to one of the processors that it may use; where that cannot be done it runs
/// anywhere, and sees less.
#[cfg(target_os = "linux")]
fn stay_on(processor: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(all) = sched_getaffinity(None) else {
        return;
    };
    let mut allowed = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu));
    if let Some(cpu) = allowed.nth(processor) {
        let mut one = CpuSet::new();
        one.set(cpu);
        let _ = sched_setaffinity(None, &one);
    }
}

#[cfg(not(target_os = "linux"))]
fn stay_on(_: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_under_way_and_what_came_into_its_queue_met_the_stall() {
        const MS: u64 = 1_000_000;
        let stalls = Stalls(vec![(100 * MS, 105 * MS)]);
        let met = |written, received| stalls.met(written * MS, received * MS);
        assert!(!met(70, 99));
        assert!(met(70, 101));
        assert!(met(103, 120));
        // Ten times 5 ms after its end.
        assert!(met(154, 170));
        assert!(!met(156, 170));
    }

    #[test]
    fn who_waits_for_another_program_saw_no_stall() {
        let ms = Duration::from_millis;
        assert!(is_stall(ms(10), ms(0)) && is_stall(ms(10), ms(7)));
        assert!(!is_stall(ms(10), ms(9)) && !is_stall(ms(2), ms(0)));
        // The clocks of the two are not the same.
        assert!(!is_stall(ms(3), ms(4)));
    }

    #[test]
    fn a_watch_ends_and_counts_from_the_beginning() {
        let begin = Instant::now();
        let watch = Watch::start();
        thread::sleep(Duration::from_millis(20));
        let stalls = watch.end(begin);
        assert!(stalls.0.iter().all(|(from, to)| from < to));
    }
}
