//! Many runs at once, stoppable.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The answers of `work` for 0 to `count`, by number; those that `stop` prevented are missing.
/// `progress` is given how many are over.
pub(crate) fn each<T: Send>(
    count: usize,
    threads: usize,
    stop: &AtomicBool,
    progress: impl Fn(usize) + Sync,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<Option<T>> {
    let (next, over) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let made: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let one = || {
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let answer = work(number);
            // A panic elsewhere ends the whole by itself; what the lock holds is whole.
            let lock = made.lock();
            lock.unwrap_or_else(std::sync::PoisonError::into_inner)[number] = Some(answer);
            progress(over.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, count.max(1)) {
            scope.spawn(one);
        }
        one();
    });
    let made = made.into_inner();
    made.unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_made_and_in_order() {
        let stop = AtomicBool::new(false);
        let squares = each(20, 3, &stop, |_| {}, |n| n * n);
        let wanted: Vec<Option<usize>> = (0..20).map(|n| Some(n * n)).collect();
        assert_eq!(squares, wanted);
    }

    #[test]
    fn once_stopped_nothing_more_begins() {
        let stop = AtomicBool::new(false);
        let halt = |over| stop.store(over >= 3, Ordering::Relaxed);
        let some = each(20, 1, &stop, halt, |n| n);
        assert_eq!(some.iter().flatten().count(), 3);
    }
}
