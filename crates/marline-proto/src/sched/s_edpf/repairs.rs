//! Where repair symbols go, and when an idle slot is worth one.

use marline_base::{Duration, Instant};

use super::interval::Interval;
use super::lanes::Lanes;
use crate::path::EmissionKind;
use crate::sched::laws::REFRESH;
use crate::sched::{PathView, Plan};

/// A slot is not looked for more often, however quick the paths.
const LEAST_SLOT: Duration = Duration::from_micros(250);
/// Repair symbols that may be due, or packets that may wait, before another path than the lossiest
/// takes repair symbols.
pub(super) const SATURATED: u32 = 3;

/// Probability with which something must be missing to be worth a repair symbol while more follows;
/// with less it is as good as there.
pub(super) const AT_RISK: f64 = 0.05;
/// Where this number of losses is expected, some are missing.
const CERTAIN: f64 = 300.0;
/// Repair symbols that count; what half of them brought back is past then.
const MOST: u32 = 32;

/// What may be missing at the receiver for loss, of what repair symbols over one path bring back
/// [sooner](is_sooner) than it is sent again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Risk {
    /// Packets that were lost in the mean of those that left since something may be missing,
    lost: f64,
    /// and the repair symbols among them.
    repairs: u32,
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
            EmissionKind::Repair => {
                self.lost += loss;
                self.repairs += 1;
                let missing = self.missing();
                if missing < AT_RISK {
                    // They bring back what came before them, not what follows.
                    (self.lost, self.repairs) = (missing, 0);
                } else if self.repairs == MOST {
                    let half = MOST / 2;
                    (self.lost, self.repairs) = (self.lost - f64::from(half), half);
                }
            }
            EmissionKind::Copy | EmissionKind::Retransmission => {}
        }
    }

    /// Probability that more was lost than the repair symbols bring back. Losses are rare and
    /// independent enough to count as Poisson's.
    pub(super) fn missing(&self) -> f64 {
        if self.lost > CERTAIN {
            return 1.0;
        }
        let mut term = libm::exp(-self.lost);
        let mut enough = term;
        for count in 1..=self.repairs {
            term *= self.lost / f64::from(count);
            enough += term;
        }
        (1.0 - enough).max(0.0)
    }
}

/// Does a repair symbol that leaves over a path with the round trip `via` arrive before what leaves
/// now and is lost over one with `lost_on` has been sent again, over the path with the `least` one?
pub(super) fn is_sooner(via: Duration, lost_on: Duration, least: Duration) -> bool {
    via / 2 < lost_on + least / 2
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
            // Measured over a few hundred packets, less shows nothing.
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

/// One repair symbol into each slot that is free now, if one is of use by then over that path; when
/// to look again.
pub(super) fn fill_slots(
    plan: &mut Plan<'_>,
    lanes: &mut Lanes<'_>,
    interval: &mut Interval,
    len: u32,
    of_use: impl Fn(&Plan<'_>, &Lanes<'_>, usize) -> Option<Instant>,
) -> Option<Instant> {
    // Where packets come in any order, the next one may be there before all that are under way.
    let is_race = lanes.any_scatters();
    let possible = |plan: &Plan<'_>| {
        let coding = plan.coding();
        coding.is_some_and(|coding| {
            coding.unknown > 0
                && coding.repairs_queued == 0
                && coding.budget >= u64::from(len)
                && (is_race || coding.repairs_in_flight < coding.unknown)
        })
    };
    let mut slot: Option<Instant> = None;
    let sooner = |slot: Option<Instant>, at| Some(slot.map_or(at, |slot| slot.min(at)));
    for index in 0..plan.paths().len() {
        if !possible(plan) {
            return slot;
        }
        let Some(at) = of_use(plan, lanes, index) else {
            continue;
        };
        if at > plan.now() {
            slot = sooner(slot, at);
            continue;
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
        slot = sooner(slot, next);
    }
    slot
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of this kind leave over a path that loses a tenth.
    fn sent(risk: &mut Risk, kind: EmissionKind, count: u64) {
        for n in 1..=count {
            risk.on_sent(Instant::from_millis(n), kind, 0.1);
        }
    }

    #[test]
    fn the_risk_is_that_of_more_losses_than_repair_symbols() {
        let mut risk = Risk::default();
        assert_eq!(risk.missing(), 0.0);
        sent(&mut risk, EmissionKind::Source, 29);
        // By hand, for three losses in the mean: 1 - e⁻³, and 1 - e⁻³ (1 + 3).
        sent(&mut risk, EmissionKind::Copy, 1);
        let before = 1.0 - libm::exp(-2.9);
        assert!((risk.missing() - before).abs() < 1e-9, "{risk:?}");
        sent(&mut risk, EmissionKind::Repair, 1);
        let after = 1.0 - 4.0 * libm::exp(-3.0);
        assert!((risk.missing() - after).abs() < 1e-9, "{risk:?}");
    }

    #[test]
    fn a_burst_takes_repair_symbols_until_hardly_anything_can_be_missing() {
        let mut risk = Risk::default();
        sent(&mut risk, EmissionKind::Source, 30);
        let mut repairs = 0;
        while risk.missing() >= AT_RISK {
            sent(&mut risk, EmissionKind::Repair, 1);
            repairs += 1;
        }
        // More than 7 of 37 are lost in one case of 30, more than 6 of 36 in one of 14.
        assert_eq!((repairs, risk.repairs), (7, 0));
        assert!(risk.missing() > 0.0, "what is left counts on");
        assert_eq!(risk.last, Instant::from_millis(30));
    }

    #[test]
    fn what_no_repair_symbol_keeps_up_with_takes_no_time_to_judge() {
        let mut risk = Risk::default();
        for _ in 0..10_000 {
            sent(&mut risk, EmissionKind::Source, 50);
            sent(&mut risk, EmissionKind::Repair, 1);
            assert!(risk.repairs < MOST);
        }
        assert_eq!(risk.missing(), 1.0);
    }
}
