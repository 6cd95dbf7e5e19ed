//! LEAP: the largest block that is reliable enough (HOP §IV-A).

use alloc::vec::Vec;

use super::count::sum;
use super::{Found, Lane, Order, jump};

/// The largest block, in steps, of which fewer packets than it has are on time with probability
/// P_e ≤ `target` (7), and its smallest schedule; `None` if not even one packet is reliable enough.
///
/// Packets never make P_e larger, so that the lanes filled to their bounds decide, and the number
/// of packets that are on time then has one distribution, whose quantile is the block. The paper
/// searches over blocks instead, with a JUMP for each; here there is one JUMP, of the block found.
pub fn leap(lanes: &[Lane], tolerance: f64, target: f64) -> Option<(usize, Found)> {
    let most: Vec<usize> = lanes.iter().map(Lane::most).collect();
    let k = sum(lanes, &most, most.iter().sum()).reached(1.0 - target);
    if k == 0 {
        return None;
    }
    // The bounds are those of the largest block that could be; of this one fewer packets are
    // useful on one path (§IV).
    let useful: Vec<Lane> = lanes.iter().map(|lane| lane.useful(k)).collect();
    let found = jump(&useful, &Order::new(&useful, tolerance), k, target);
    if found.feasible {
        return Some((k, found));
    }
    // Losses that hardly ever happen, but just now matter.
    Some((k, jump(lanes, &Order::new(lanes, tolerance), k, target)))
}
