//! Units and instants of a session as the planning knows them.

use marline_base::Instant;

use super::Block;
use crate::sched::{PathView, Plan, Unit};

/// Reliability of blocks that ask for none.
const RELIABILITY: f64 = 0.98;
/// What is asked for beyond this counts as this: no schedule is certain.
const SUREST: f64 = 0.99999;
/// Longest time that a block without a deadline may take (seconds).
pub(super) const LONGEST: f64 = 1.0;
/// How exactly the shortest deadline is found (seconds).
pub(super) const QUANTUM: f64 = 0.5e-3;
/// The largest block (packets) that is looked at.
pub(super) const MOST_PACKETS: u32 = 65_535;

/// Source symbols of the block that have not been emitted.
pub(super) fn source_left(plan: &Plan<'_>, id: u64) -> u32 {
    let symbol = plan.paths().iter().map(|path| path.symbol).min();
    match plan.unit() {
        Some(unit) if unit.id == id => {
            let symbol = unit.code.map_or(symbol.unwrap_or(1), |code| code.symbol);
            let left = unit.len.div_ceil(u64::from(symbol.max(1)));
            left.min(u64::from(MOST_PACKETS)) as u32
        }
        _ => 0,
    }
}

/// The symbols that every path takes (bytes).
pub(super) fn symbol(paths: &[PathView]) -> u32 {
    paths
        .iter()
        .map(|path| path.symbol)
        .min()
        .unwrap_or(1)
        .max(1)
}

/// The block that a unit which was written now is.
pub(super) fn block_of(now: Instant, unit: &Unit, paths: &[PathView]) -> Block {
    let symbol = symbol(paths);
    let within = unit.deadline.map(|at| at.since(now).as_secs_f64());
    let packets = unit.len.div_ceil(u64::from(symbol));
    Block {
        at: seconds(now),
        within: within.unwrap_or(LONGEST),
        reliability: unit.reliability.map_or(RELIABILITY, asked),
        packets: packets.min(u64::from(MOST_PACKETS)) as u32,
        packet: f64::from(symbol) * 8.0,
    }
}

impl Block {
    /// The block, with `ahead` packets that leave before its own.
    pub(super) fn after(&self, ahead: u32) -> Self {
        Self {
            packets: self.packets.saturating_add(ahead).min(MOST_PACKETS),
            ..*self
        }
    }
}

/// A reliability that can be asked for; of nonsense the usual one.
pub(super) fn asked(reliability: f64) -> f64 {
    match reliability.is_nan() {
        true => RELIABILITY,
        false => reliability.clamp(0.0, SUREST),
    }
}

/// An instant on the estimators' scale.
pub(super) fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 * 1e-9
}

/// From when a packet leaves until it is sent again if it was lost (seconds): RACK's 9/8 of a round
/// trip (RFC 9002 section 6.1.2), with what the round trip may last longer than usual.
pub(super) fn again(view: &PathView) -> f64 {
    1.125 * (view.srtt + 4 * view.rtt_var).as_secs_f64()
}
