//! Microseconds per plan of a block: `cargo bench -p marline-proto --bench hop`.
//!
//! Two and four paths with backlogs that no two nodes share, so that nothing is merged, at loads
//! for which few and many packets are found; the least of some runs.

#![allow(missing_docs, reason = "a program")]
#![allow(clippy::disallowed_types, reason = "a benchmark reads the clock")]
#![allow(clippy::print_stdout, reason = "its output")]

use std::hint::black_box;
use std::time::Instant as Clock;

use marline_proto::sched::capacity::{Backlog, Batch, CapacityForecast, Lateness};
use marline_proto::sched::hop::{Demand, Limits, PRICE, Planner, Way};

const RUNS: usize = 40;
const DEMAND: Demand = Demand {
    reliability: 0.98,
    tolerance: 0.0,
};

/// Paths that bring `k`/`load` packets in time on average.
fn ways(paths: usize, k: u32, load: f64) -> Vec<Way> {
    let each = f64::from(k) / load / paths as f64;
    let rate = each * 12_000.0 / 22.5e-3;
    let way = |i: usize| {
        let mean = rate * (0.8 + 0.4 * i as f64 / (paths.max(2) - 1) as f64);
        let batch = Batch {
            came: 0.0,
            bits: 1.6 * mean * 25e-3,
        };
        Way {
            lateness: Lateness {
                backlog: Backlog::unseen(&[batch], 0.0, 25e-3, 1.3 * mean, 0.2 * mean),
                capacity: CapacityForecast::normal(mean * 1.3, 0.25 * mean),
                window: 22.5e-3,
                slots: 1,
                packet: 12_000.0,
            },
            limits: Limits {
                least: 10,
                most: u32::MAX,
            },
            loss: 0.0,
        }
    };
    (0..paths).map(way).collect()
}

fn least(mut run: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Clock::now();
        run();
        start.elapsed().as_secs_f64() * 1e6
    };
    (0..RUNS).map(time).fold(f64::INFINITY, f64::min)
}

fn main() {
    let planner = Planner::new();
    println!(
        "{:>6} {:>6} {:>6} {:>9} {:>9} {:>9}  µs",
        "k", "paths", "load", "jump", "priced", "hybrid"
    );
    for paths in [2, 4] {
        for k in [100, 1_000] {
            for load in [0.5, 0.8, 1.0, 1.3] {
                let ways = ways(paths, k, load);
                let price = (PRICE, 25e-3);
                let jump = least(|| drop(black_box(planner.jump(&ways, k, DEMAND))));
                let priced = least(|| drop(black_box(planner.priced(&ways, k, price.0, price.1))));
                let hybrid = least(|| drop(black_box(planner.hybrid(&ways, k, DEMAND, price))));
                println!("{k:>6} {paths:>6} {load:>6} {jump:>9.1} {priced:>9.1} {hybrid:>9.1}");
            }
        }
    }
}
