//! FLIP: the smallest deadline that is reliable enough (HOP §IV-A).

use alloc::vec::Vec;

use super::{Found, Lane, Order, failure, jump};

/// Deadlines that are tried at most.
const TRIES: u32 = 12;

/// The smallest deadline (seconds) up to `longest` at which P_e ≤ `target` for a block of `k` steps
/// (9), and the smallest schedule for it; `None` if `longest` is too short. `lanes` makes the lanes
/// for a deadline; the answer is within `quantum`, or within `longest`/4096 if that is more.
///
/// With a later deadline no packet is more likely to be late, so that halving finds it; the lanes
/// filled to their bounds decide each time.
pub fn flip(
    mut lanes: impl FnMut(f64) -> Vec<Lane>,
    k: usize,
    target: f64,
    tolerance: f64,
    (longest, quantum): (f64, f64),
) -> Option<(f64, Found)> {
    let mut possible = |deadline: f64| {
        let lanes = lanes(deadline);
        let most: Vec<usize> = lanes.iter().map(Lane::most).collect();
        let possible = failure(&lanes, &most, k) <= target;
        possible.then_some(lanes)
    };
    let mut best = possible(longest)?;
    let (mut low, mut high) = (0.0, longest);
    for _ in 0..TRIES {
        if high - low <= quantum {
            break;
        }
        let middle = 0.5 * (low + high);
        match possible(middle) {
            Some(lanes) => (high, best) = (middle, lanes),
            None => low = middle,
        }
    }
    let found = jump(&best, &Order::new(&best, tolerance), k, target);
    Some((high, found))
}
