//! Timing two things side by side: machines drift by a factor of two, ratios of interleaved runs
//! hold.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// How long one run of one side takes, roughly.
const RUN: Duration = Duration::from_millis(20);
/// How many pairs of runs are compared.
const PAIRS: usize = 15;

/// What this thread has computed for so far; other programs' turns do not count.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU nanoseconds a call, over as many calls as fill a run.
fn run(calls: u32, work: &mut dyn FnMut()) -> f64 {
    let start = cpu();
    for _ in 0..calls {
        work();
    }
    (cpu() - start).as_nanos() as f64 / f64::from(calls)
}

/// Calls that fill a run.
fn calibrate(work: &mut dyn FnMut()) -> u32 {
    let mut calls = 1;
    loop {
        let took = run(calls, work) * f64::from(calls);
        if took > RUN.as_nanos() as f64 / 4.0 {
            let scaled = f64::from(calls) * RUN.as_nanos() as f64 / took;
            return (scaled as u32).max(1);
        }
        calls *= 4;
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// CPU nanoseconds a call of `work`, the median over many runs.
#[allow(dead_code, reason = "not every benchmark measures one thing alone")]
pub(crate) fn alone(work: &mut dyn FnMut()) -> f64 {
    let calls = calibrate(work);
    let mut times: Vec<f64> = (0..PAIRS).map(|_| run(calls, work)).collect();
    median(&mut times)
}

/// Medians over interleaved pairs: CPU nanoseconds a call of `ours`, of `theirs`, and of the ratio
/// of ours to theirs.
#[allow(dead_code, reason = "not every benchmark compares")]
pub(crate) fn paired(ours: &mut dyn FnMut(), theirs: &mut dyn FnMut()) -> (f64, f64, f64) {
    let (our_calls, their_calls) = (calibrate(ours), calibrate(theirs));
    let (mut a, mut b, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let (x, y) = (run(our_calls, ours), run(their_calls, theirs));
        a.push(x);
        b.push(y);
        ratios.push(x / y);
    }
    (median(&mut a), median(&mut b), median(&mut ratios))
}

/// Bytes that follow from `seed`.
pub(crate) fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let byte = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 56) as u8
    };
    std::iter::repeat_with(byte).take(len).collect()
}
