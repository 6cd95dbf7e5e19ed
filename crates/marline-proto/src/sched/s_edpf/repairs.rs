//! Where repair symbols go, and when an idle slot is worth one.

use marline_base::{Duration, Instant};

use super::REFRESH;
use super::interval::Interval;
use super::lanes::Lanes;
use crate::path::EmissionKind;
use crate::sched::{PathView, Plan};

/// A slot is not looked for more often, however quick the paths.
const LEAST_SLOT: Duration = Duration::from_micros(250);
/// Repair symbols that may be due, or packets that may wait, before another path than the lossiest
/// takes repair symbols.
pub(super) const SATURATED: u32 = 3;

/// What may be missing at the receiver for loss.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Risk {
    /// Source symbols that were lost in the mean, less the repair symbols that left after them.
    pub(super) lost: f64,
    /// When the last source symbol left.
    pub(super) last: Instant,
}

impl Risk {
    /// A packet leaves on a path that loses this share of its packets.
    pub(super) fn on_sent(&mut self, now: Instant, kind: EmissionKind, loss: f64) {
        match kind {
            EmissionKind::Source => {
                self.lost += loss;
                self.last = now;
            }
            EmissionKind::Repair => self.lost = (self.lost - (1.0 - loss)).max(0.0),
            EmissionKind::Copy | EmissionKind::Retransmission => {}
        }
    }
}

/// The path for repair symbols: of those that `may` carry one the one that loses most (Theorem 4);
/// of paths that lose alike the one whose delays vary most, because what is late counts as lost
/// until it arrives.
pub(super) fn path(
    plan: &Plan<'_>,
    lanes: &Lanes<'_>,
    may: impl Fn(&PathView) -> bool,
) -> Option<usize> {
    let mut best: Option<usize> = None;
    for (i, path) in plan.paths().iter().enumerate() {
        if !may(path) {
            continue;
        }
        let better = best.is_none_or(|best| {
            let loss = plan.paths()[best].loss;
            // Measured over a few hundred packets, less tells nothing.
            let alike = (path.loss - loss).abs() < 0.005;
            let more = lanes.spread(i) > lanes.spread(best);
            !alike && path.loss > loss || alike && more
        });
        if better {
            best = Some(i);
        }
    }
    best
}

/// Has the path room, and no queue of the flow?
pub(super) fn is_free(path: &PathView) -> bool {
    let waiting = path.queued_own / u64::from(path.symbol.max(1));
    waiting <= u64::from(SATURATED) && path.has_room()
}

/// One repair symbol into each slot that is free now, if one is of use by then; when to look again.
pub(super) fn fill_slots(
    plan: &mut Plan<'_>,
    lanes: &mut Lanes<'_>,
    interval: &mut Interval,
    len: u32,
    of_use: impl Fn(&Plan<'_>, &Lanes<'_>) -> Option<Instant>,
) -> Option<Instant> {
    let possible = |plan: &Plan<'_>| {
        let coding = plan.coding();
        coding.is_some_and(|coding| {
            coding.unknown > 0
                && coding.repairs_queued == 0
                && coding.budget >= u64::from(len)
                && coding.repairs_in_flight < coding.unknown
        })
    };
    let mut slot: Option<Instant> = None;
    for index in 0..plan.paths().len() {
        if !possible(plan) {
            return slot;
        }
        match of_use(plan, lanes) {
            Some(at) if at <= plan.now() => {}
            later => return later,
        }
        let path = &plan.paths()[index];
        let slot_time = path.rate.time_for(u64::from(len));
        let next = plan.now() + slot_time.clamp(LEAST_SLOT, REFRESH);
        if path.queued == 0
            && path.has_room()
            && lanes.is_free(index)
            && plan.repair(index).is_some()
        {
            lanes.send(index);
            interval.on_idle_repair();
        }
        slot = Some(slot.map_or(next, |slot| slot.min(next)));
    }
    slot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_risk_grows_with_what_left_and_a_repair_symbol_takes_one_loss() {
        let mut risk = Risk::default();
        for n in 1..=30 {
            risk.on_sent(Instant::from_millis(n), EmissionKind::Source, 0.1);
        }
        assert!((risk.lost - 3.0).abs() < 1e-9);
        let at = Instant::from_millis(31);
        risk.on_sent(at, EmissionKind::Repair, 0.2);
        risk.on_sent(at, EmissionKind::Copy, 0.2);
        assert!((risk.lost - 2.2).abs() < 1e-9);
        assert_eq!(risk.last, Instant::from_millis(30));
        for _ in 0..5 {
            risk.on_sent(at, EmissionKind::Repair, 0.0);
        }
        assert_eq!(risk.lost, 0.0);
    }
}
