//! JUMP: the smallest schedule that is reliable enough (HOP §IV).

use alloc::vec::Vec;

use super::{Lane, Order, failure};

/// Most computations of P_e in one search.
pub(super) const EVALUATIONS: u32 = 10;

/// A block's packets to the redundancy that is tried first, and to what is tried beyond if that is
/// too little.
const LITTLE: usize = 8;
const MUCH: usize = 2;

/// A schedule of lanes, in steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Packets on each lane.
    pub packets: Vec<usize>,
    /// P_e.
    pub failure: f64,
    /// P_e is at most what was asked for.
    pub feasible: bool,
    /// How often P_e was computed.
    pub evaluations: u32,
}

/// The smallest schedule of the order with P_e ≤ `target` (1), or the largest if none is.
///
/// P_e falls with every packet, and its logarithmic odds fall nearly along a parabola:
/// Chandrupatla's search (1997), which interpolates where that is safe and halves the interval
/// where not, between what fails and the first of three sizes that does not: little redundancy
/// mostly suffices, and small schedules are quicker to compute. It ends after ten evaluations,
/// which may leave a schedule some packets too large where hundreds could be sent.
pub fn jump(lanes: &[Lane], order: &Order, k: usize, target: f64) -> Found {
    let at = |total: usize, evaluations: u32| {
        let packets = order.packets(total);
        let failure = failure(lanes, &packets, k);
        Found {
            feasible: failure <= target,
            packets,
            failure,
            evaluations,
        }
    };
    let low = k.max(order.fewest()).min(order.most());
    let smallest = at(low, 1);
    if smallest.feasible || low == order.most() {
        return smallest;
    }
    let try_next = |total: usize, evaluations: &mut u32| {
        *evaluations += 1;
        at(total.min(order.most()), *evaluations)
    };
    let (mut low, mut fails, mut evaluations) = (low, smallest, 1);
    let mut best = try_next(low + k / LITTLE, &mut evaluations);
    if !best.feasible && total(&best) < order.most() {
        (low, fails) = (total(&best), best);
        best = try_next(order.most(), &mut evaluations);
        let middle = low + k / MUCH;
        if best.feasible && middle < order.most() {
            let tried = try_next(middle, &mut evaluations);
            if tried.feasible {
                best = tried;
            } else {
                (low, fails) = (middle, tried);
            }
        }
    }
    if !best.feasible {
        return best;
    }
    let excess = |total: usize, found: &Found| (total as f64, odds(found.failure) - odds(target));
    // The latest, the end on the other side, and the latest before that was on this side.
    let mut new = excess(total(&best), &best);
    let mut other = excess(low, &fails);
    let mut share = 0.5;
    while libm::fabs(new.0 - other.0) > 1.0 && evaluations < EVALUATIONS {
        let (left, right) = (new.0.min(other.0), new.0.max(other.0));
        // Rounded up: if the curve is right, this is the answer, and the next below it fails.
        let total = libm::ceil(new.0 + share * (other.0 - new.0)).clamp(left + 1.0, right - 1.0);
        evaluations += 1;
        let tried = at(total as usize, evaluations);
        let latest = excess(total as usize, &tried);
        let old;
        if (latest.1 > 0.0) == (new.1 > 0.0) {
            old = new;
        } else {
            (old, other) = (other, new);
        }
        new = latest;
        if tried.feasible {
            best = tried;
        }
        share = parabola(new, other, old);
    }
    best.evaluations = evaluations;
    best
}

fn total(found: &Found) -> usize {
    found.packets.iter().sum()
}

/// Logarithmic odds, finite.
fn odds(p: f64) -> f64 {
    let p = p.clamp(1e-300, 1.0 - 1e-15);
    libm::log(p / (1.0 - p))
}

/// How far from `new` to `other` the inverse parabola through all three is zero, if it is monotone
/// in between; else half-way.
fn parabola(new: (f64, f64), other: (f64, f64), old: (f64, f64)) -> f64 {
    let x = (new.0 - other.0) / (old.0 - other.0);
    let y = (new.1 - other.1) / (old.1 - other.1);
    let monotone = 1.0 - libm::sqrt(1.0 - x) < y && y < libm::sqrt(x);
    let share = new.1 / (other.1 - new.1) * old.1 / (other.1 - old.1)
        + (old.0 - new.0) / (other.0 - new.0) * new.1 / (old.1 - new.1) * other.1
            / (old.1 - other.1);
    if monotone && share.is_finite() {
        share.clamp(0.0, 1.0)
    } else {
        0.5
    }
}
