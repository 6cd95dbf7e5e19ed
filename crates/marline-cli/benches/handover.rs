//! Handover by real processes: 8 Mb/s of timestamped messages over two links of 20 Mb/s (RTT 30 and
//! 50 ms), the better one dark for 3 s: `cargo bench -p marline-cli --bench handover [-- SEEDS
//! SCHEDULER...]`.
//!
//! Aims: nothing lost, at most 100 ms of silence at the receiver, at most 60 ms of in-order delay
//! at the 99th percentile. A busy machine adds to both.

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]

#[path = "../tests/it/real/harness/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    clippy::print_stderr,
    reason = "the tests by real processes need the rest"
)]
mod harness;

use harness::{Figures, HandoverPlan, handover};
use std::time::Duration;

const SILENCE: Duration = Duration::from_millis(100);
const P99: Duration = Duration::from_millis(60);

fn main() {
    // Cargo adds --bench.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let seeds = words
        .next()
        .map_or(5, |word| word.parse().expect("SEEDS is a count"));
    let mut schedulers: Vec<String> = words.collect();
    if schedulers.is_empty() {
        schedulers.push("auto".to_owned());
    }
    println!("{:<12} {:>4} {}", "scheduler", "seed", Figures::HEAD);
    let mut met = 0;
    for scheduler in &schedulers {
        for seed in 0..seeds {
            let figures = handover(&HandoverPlan {
                scheduler: scheduler.clone(),
                // The outage begins at another phase of whatever is periodic, such as probes, in
                // each run.
                before: Duration::from_millis(3000 + 173 * seed),
                dark: Duration::from_secs(3),
                after: Duration::from_secs(4),
            });
            let good = figures.lost == 0 && figures.silence <= SILENCE && figures.p99 <= P99;
            met += usize::from(good);
            println!("{scheduler:<12} {seed:>4} {figures}");
        }
    }
    println!(
        "aims (nothing lost, silence at most {} ms, p99 at most {} ms) met in {met} of {} runs",
        SILENCE.as_millis(),
        P99.as_millis(),
        seeds as usize * schedulers.len()
    );
}
