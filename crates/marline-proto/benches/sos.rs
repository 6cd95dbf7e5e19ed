//! Microseconds per plan of an object: `cargo bench -p marline-proto --bench sos`.
//!
//! Paths with bounds of their own (`hoeffding`), and with laws whose tails are chosen together
//! (`clt`). They differ in mean, spread, delay and in what is under way. Printed is the mean of
//! many plans, in the quickest of some runs.

#![allow(missing_docs, reason = "a program")]
#![allow(clippy::disallowed_types, reason = "a benchmark reads the clock")]
#![allow(clippy::print_stdout, reason = "its output")]

use std::hint::black_box;
use std::time::Instant as Clock;

use marline_base::Rng;
use marline_proto::sched::sos::{Lane, redundant, split};

const RUNS: usize = 40;
const CASES: usize = 64;

fn lanes(paths: usize, laws: bool, rng: &mut Rng) -> Vec<Lane> {
    let mut lane = || {
        let mean = 0.2e-3 + 2e-3 * rng.uniform();
        let spread = 4.0 * mean * rng.uniform();
        let ahead = (20.0 * rng.uniform()).floor();
        let delay = 50e-3 * rng.uniform();
        match laws {
            true => Lane::with_law(mean, 0.5 * spread, 9.0, 0.05).behind(delay, ahead),
            false => Lane::new(mean, spread, delay, ahead),
        }
    };
    (0..paths).map(|_| lane()).collect()
}

fn least(cases: &[Vec<Lane>], plan: impl Fn(&[Lane])) -> f64 {
    let time = |_| {
        let start = Clock::now();
        cases.iter().for_each(|lanes| plan(lanes));
        start.elapsed().as_secs_f64() * 1e6 / cases.len() as f64
    };
    (0..RUNS).map(time).fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut rng = Rng::new(1);
    println!(
        "{:>8} {:>6} {:>6} {:>8} {:>10}  µs",
        "packets", "paths", "laws", "split", "redundant"
    );
    for (paths, laws) in [2, 3, 4, 8]
        .into_iter()
        .flat_map(|n| [(n, false), (n, true)])
    {
        let cases: Vec<_> = (0..CASES).map(|_| lanes(paths, laws, &mut rng)).collect();
        for n in [1, 10, 100, 1_000, 30_000] {
            let plain = least(&cases, |lanes| drop(black_box(split(lanes, n))));
            let coded = least(&cases, |lanes| drop(black_box(redundant(lanes, n, 0.5))));
            println!("{n:>8} {paths:>6} {laws:>6} {plain:>8.2} {coded:>10.2}");
        }
    }
}
