//! What Linux MPTCP does when the send window is blocked by data that a slow path holds (Raiciu et
//! al., "How Hard Can It Be? Designing and Implementing a Deployable Multipath TCP", NSDI 2012,
//! §4.2): opportunistic retransmission and penalisation.
//!
//! Both act for the quickest path with room, when a stream has data and no credit of the peer left
//! ([`Plan::blocked`]), and concern the slower paths that carry the oldest outstanding symbol:
//!
//! * **opportunistic retransmission** copies that symbol to the quick path, once. Linux does so
//!   only if the slow path's window is at most 4 symbols or its round trip is more than 4 times as
//!   long;
//! * **penalisation** halves the slow path's window, at most once in a round trip of the quick
//!   path. Windows belong to congestion control here, so it is the scheduler that keeps to the
//!   half, and adds a symbol per round trip of the slow path until the window is reached, as a
//!   window in congestion avoidance would grow.
//!
//! Linux acts also when the send buffer is full and nothing is unsent; this does not.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use marline_base::Instant;
use smallvec::SmallVec;

use super::{Blocked, Feedback, Outcome, PathView, Plan, pick};
use crate::flow::Symbol;
use crate::wire::PathId;

/// Round trips that differ by less than this factor are not worth a copy.
const RTT_RATIO: u32 = 4;
/// A slow path with a window of at most this number of symbols is always worth one.
const TINY_WINDOW: u64 = 4;

#[derive(Debug, Default)]
pub(super) struct Relief {
    pub(super) opportunistic: bool,
    pub(super) penalise: bool,
    /// Symbols in flight by offset, each with the paths that carry it.
    outstanding: BTreeMap<u64, (Symbol, SmallVec<[PathId; 2]>)>,
    penalties: Vec<Penalty>,
    penalised: Instant,
}

/// A path that may use only part of its window for a while.
#[derive(Clone, Copy, Debug)]
struct Penalty {
    path: PathId,
    /// Bytes in flight that it was left with.
    bytes: u64,
    since: Instant,
}

impl Penalty {
    fn allows(&self, now: Instant, path: &PathView) -> u64 {
        let rounds = now.since(self.since).as_nanos() / path.srtt.as_nanos().max(1);
        let more = u64::from(path.symbol).saturating_mul(rounds.min(1 << 20) as u64);
        self.bytes.saturating_add(more)
    }
}

impl Relief {
    pub(super) fn is_on(&self) -> bool {
        self.opportunistic || self.penalise
    }

    pub(super) fn on_feedback(&mut self, feedback: &Feedback) {
        if !self.is_on() {
            return;
        }
        let (symbol, path) = (feedback.symbol, feedback.path);
        match feedback.outcome {
            Outcome::Sent => {
                let entry = self.outstanding.entry(symbol.offset);
                let (_, paths) = entry.or_insert_with(|| (symbol, SmallVec::new()));
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
            Outcome::Acked | Outcome::Recovered => {
                self.outstanding.remove(&symbol.offset);
            }
            Outcome::Lost => {
                if let Some((_, paths)) = self.outstanding.get_mut(&symbol.offset) {
                    paths.retain(|p| *p != path);
                    if paths.is_empty() {
                        self.outstanding.remove(&symbol.offset);
                    }
                }
            }
        }
    }

    /// Forgets penalties that are over.
    pub(super) fn expire(&mut self, now: Instant, paths: &[PathView]) {
        self.penalties.retain(|penalty| {
            let path = paths.iter().find(|p| p.id == penalty.path);
            path.is_some_and(|path| penalty.allows(now, path) < path.window)
        });
    }

    /// May the path take another symbol?
    pub(super) fn lets(&self, now: Instant, path: &PathView) -> bool {
        let penalty = self.penalties.iter().find(|p| p.path == path.id);
        penalty.is_none_or(|penalty| {
            let after = path.in_flight + path.queued + u64::from(path.symbol);
            after <= penalty.allows(now, path).max(u64::from(path.symbol))
        })
    }

    /// Acts on a blocked send window.
    pub(super) fn relieve(&mut self, plan: &mut Plan<'_>, blocked: Blocked) {
        while let Some(first) = self.outstanding.first_entry()
            && first.key() + u64::from(first.get().0.len) <= blocked.oldest
        {
            first.remove();
        }
        let now = plan.now();
        let quick = pick::quickest(plan.paths(), |p| p.has_room() && self.lets(now, p));
        let (Some(quick), Some((_, (symbol, carriers)))) =
            (quick, self.outstanding.first_key_value())
        else {
            return;
        };
        let (symbol, fast) = (*symbol, plan.paths()[quick]);
        let carriers: SmallVec<[PathView; 2]> = plan
            .paths()
            .iter()
            .filter(|p| carriers.contains(&p.id))
            .copied()
            .collect();
        if self.penalise && now.since(self.penalised) >= fast.srtt {
            for slow in carriers.iter().filter(|p| p.srtt > fast.srtt) {
                self.penalties.retain(|p| p.path != slow.id);
                self.penalties.push(Penalty {
                    path: slow.id,
                    bytes: slow.window / 2,
                    since: now,
                });
                self.penalised = now;
            }
        }
        let already = carriers.iter().any(|p| p.id == fast.id);
        let worth = |slow: &PathView| {
            slow.window <= TINY_WINDOW * u64::from(slow.symbol) || fast.srtt * RTT_RATIO < slow.srtt
        };
        if self.opportunistic && !already && !carriers.is_empty() && carriers.iter().all(worth) {
            plan.copy(quick, symbol);
            if let Some((_, paths)) = self.outstanding.get_mut(&symbol.offset) {
                paths.push(fast.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::EmissionKind;
    use crate::sched::tests::{Backlog, path};
    use marline_base::Duration;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn sent(offset: u64, on: u64) -> Feedback {
        Feedback {
            symbol: Symbol {
                unit: 0,
                offset,
                len: 1_200,
            },
            path: PathId(on),
            kind: EmissionKind::Source,
            outcome: Outcome::Sent,
            sent: Instant::ZERO,
            arrived_us: None,
            own_way: true,
        }
    }

    /// A quick path of 10 ms and a slow one, each with a window of 20 symbols.
    fn paths(slow_ms: u64) -> [PathView; 2] {
        let mut paths = [path(0), path(1)];
        paths[0].srtt = MS(10);
        paths[1].srtt = MS(slow_ms);
        for path in &mut paths {
            path.window = 20 * 1_200;
        }
        paths
    }

    fn relief(opportunistic: bool, penalise: bool) -> Relief {
        let mut relief = Relief {
            opportunistic,
            penalise,
            ..Relief::default()
        };
        // The oldest symbol is on the slow path, the next on the quick one.
        relief.on_feedback(&sent(0, 1));
        relief.on_feedback(&sent(1_200, 0));
        relief
    }

    fn relieve(
        relief: &mut Relief,
        slow_ms: u64,
        at: Instant,
        oldest: u64,
    ) -> alloc::vec::Vec<usize> {
        let mut backlog = Backlog::of(0).blocked_at(oldest);
        let mut paths = paths(slow_ms);
        let blocked = Blocked { oldest };
        relief.relieve(&mut Plan::new(at, &mut paths, &mut backlog), blocked);
        backlog.copied_to().to_vec()
    }

    #[test]
    fn the_oldest_symbol_is_copied_once_from_a_much_slower_path() {
        // 4 · 10 = 40 ms: 41 ms is worth it, 40 ms is not.
        assert!(relieve(&mut relief(true, false), 40, Instant::ZERO, 0).is_empty());
        let mut relief = relief(true, false);
        assert_eq!(relieve(&mut relief, 41, Instant::ZERO, 0), [0]);
        assert!(
            relieve(&mut relief, 41, Instant::ZERO, 0).is_empty(),
            "once"
        );
        // With that acknowledged, the next oldest is on the quick path already.
        assert!(relieve(&mut relief, 41, Instant::ZERO, 1_200).is_empty());
        assert_eq!(relief.outstanding.len(), 1);
    }

    #[test]
    fn a_penalty_halves_a_window_and_wears_off() {
        let mut relief = relief(false, true);
        let start = Instant::from_millis(10);
        assert!(relieve(&mut relief, 100, start, 0).is_empty());
        let [_, mut slow] = paths(100);
        // 20 symbols / 2 = 10: nine in flight let a tenth go, ten do not.
        slow.in_flight = 9 * 1_200;
        assert!(relief.lets(start, &slow));
        slow.in_flight = 10 * 1_200;
        assert!(!relief.lets(start, &slow));
        // A round trip later it is 11; after ten of them the penalty is over.
        assert!(relief.lets(start + MS(100), &slow));
        relief.expire(start + MS(999), &[slow]);
        assert_eq!(relief.penalties.len(), 1);
        relief.expire(start + MS(1_000), &[slow]);
        assert!(relief.penalties.is_empty());
    }

    #[test]
    fn penalties_come_at_most_once_in_a_quick_round_trip() {
        let mut relief = relief(false, true);
        for (ms, since) in [(10, 10), (19, 10), (20, 20)] {
            relieve(&mut relief, 100, Instant::from_millis(ms), 0);
            assert_eq!(relief.penalties[0].since, Instant::from_millis(since));
        }
    }
}
