//! Random sessions: everything at once, thousands of times, each repeatable by its seed.
//!
//! `MARLINE_SEED=n` runs one seed and prints its trace hash; `MARLINE_SEEDS=n` runs the first n.

mod plan;
mod run;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Seeds of a normal test run; a debug build does fewer.
const SEEDS: u64 = if cfg!(debug_assertions) { 100 } else { 3_000 };
/// Every so often a seed runs twice and must leave the same trace.
const TWICE: u64 = 8;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}

#[test]
fn random_sessions_keep_every_promise() {
    if let Some(seed) = number("MARLINE_SEED") {
        let first = run::run(seed);
        assert_eq!(run::run(seed), first, "seed {seed} left another trace");
        #[expect(clippy::print_stdout, reason = "asked for by hand")]
        {
            println!("seed {seed}: {first:?}");
        }
        return;
    }
    let seeds = number("MARLINE_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(0);
    let failed = AtomicU64::new(u64::MAX);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds || failed.load(Ordering::Relaxed) != u64::MAX {
                        break;
                    }
                    let result = catch_unwind(AssertUnwindSafe(|| {
                        let first = run::run(seed);
                        if seed.is_multiple_of(TWICE) {
                            assert_eq!(run::run(seed), first, "seed {seed} left another trace");
                        }
                    }));
                    if result.is_err() {
                        failed.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    assert_eq!(
        failed,
        u64::MAX,
        "seed {failed} failed; repeat it with\n  MARLINE_SEED={failed} cargo test --release \
         -p marline-sim random_sessions"
    );
}
