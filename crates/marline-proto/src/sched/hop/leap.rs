//! LEAP: the largest block that is reliable enough (HOP §IV-A).

use super::count::sum;
use super::{Found, Lane, Order, jump};

/// The largest block, in steps, of which fewer packets than it has are on time with probability
/// P_e ≤ `target` (7), and its smallest schedule; `None` if not even one packet is reliable enough.
///
/// Packets never make P_e larger, so that the lanes filled to their bounds decide, and the number
/// of packets that are on time then has one distribution, whose quantile is the block. The paper
/// searches over blocks instead, with a JUMP for each.
pub fn leap(lanes: &[Lane], order: &Order, target: f64) -> Option<(usize, Found)> {
    let packets = order.packets(order.most());
    let k = sum(lanes, &packets, order.most()).reached(1.0 - target);
    (k > 0).then(|| (k, jump(lanes, order, k, target)))
}
