//! Stochastic earliest delivery path first, with a code that repairs as it streams (Garcia-Saavedra,
//! Karzand and Leith, "Low Delay Random Linear Coding and Scheduling Over Multiple Interfaces").
//!
//! A stream waits for the latest of all earlier packets, so each packet goes where the expected
//! *maximum* of all arrivals grows least: argmin over q of E\[max(Y₁, …, Y_P, a_q)\], equation 9.
//! Arrivals are normal variables, and so is their maximum (Clark 1961), or, with `seen`, as they
//! were seen. Their moments come from arrival times at the receiver and are learnt anew ten times a
//! second (Algorithm 2's timer).
//!
//! Every τ-th packet is a repair symbol (Algorithm 1), on the path that loses most (Theorem 4); the
//! next lossiest path takes those that it does not get rid of. When nothing is unsent but something
//! is unacknowledged, further repair symbols fill slots that would stay empty, and only these: a
//! repair symbol that waits in a queue would delay data. Where `tau=auto` finds that coding gains
//! nothing, there are none of either.
//!
//! Where the paper is silent or wrong: Algorithm 1 begins with a repair symbol of nothing, which is
//! left out; eq. (9) takes Y_q and a_q for independent, although on a path that keeps its order one
//! follows the other, so their correlation is measured; symbols are queued ahead of a path's window only as far as
//! `horizon` goes, and what waits is planned anew every few milliseconds.

use alloc::boxed::Box;
use alloc::vec::Vec;

use marline_base::{Duration, Instant};
use smallvec::SmallVec;

use super::registry::Entry;
use super::{Choice, Feedback, OptionSpec, Outcome, PathView, Plan, Scheduler};
use crate::path::EmissionKind;
use crate::wire::{FlowKind, PathId};
use arrivals::Arrivals;
use interval::Interval;
use lanes::{Known, Lanes};

mod arrivals;
pub(super) mod gauss;
mod interval;
mod lanes;
pub(super) mod mend;
mod sample;

/// How often the laws of arrivals are learnt anew (`Z_timer`).
const REFRESH: Duration = Duration::from_millis(100);
/// A slot is not looked for more often, however quick the paths.
const LEAST_SLOT: Duration = Duration::from_micros(250);
/// How often what waits is planned anew.
const REVISE: Duration = Duration::from_millis(10);
/// Repair symbols that may be due, or packets that may wait, before another path than the lossiest
/// takes repair symbols.
const SATURATED: u32 = 3;
/// Weight of a packet in the share of its path.
const SHARE_GAIN: f64 = 1.0 / 128.0;

const HORIZON: OptionSpec = OptionSpec::time(
    "horizon",
    Duration::from_millis(500),
    (Duration::ZERO, Duration::from_secs(10)),
    "how far ahead of a path's window packets may be queued, in time at its rate",
);
const IDLE: OptionSpec = OptionSpec::switch(
    "idle",
    true,
    "repair symbols in slots that nothing else needs, while something is unacknowledged",
);

pub(super) const ENTRY: Entry = Entry {
    name: "s-edpf",
    publication: "Garcia-Saavedra, Karzand and Leith, IEEE/ACM ToN 2018",
    help: "where the expected latest of all arrivals grows least, with repair symbols",
    kinds: &[FlowKind::Stream, FlowKind::Packets],
    options: &[
        interval::OPTION,
        IDLE,
        OptionSpec::switch(
            "seen",
            false,
            "take delays as they were seen, not for normally distributed",
        ),
        HORIZON,
    ],
    new,
};

fn new(choice: &Choice) -> Box<dyn Scheduler> {
    let seen = choice.switch("seen");
    Box::new(Ordered {
        order: Order::new(choice, seen),
        variant: AsPublished,
    })
}

/// A scheduler of this family: the order that all share, and what its variant does otherwise.
#[derive(Debug)]
struct Ordered<V> {
    order: Order,
    variant: V,
}

impl<V: Variant + core::fmt::Debug + Send> Scheduler for Ordered<V> {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        self.order.plan(plan, &self.variant);
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.order.on_feedback(now, feedback);
    }

    fn codes(&self) -> bool {
        self.order.interval.codes()
    }

    fn wake_at(&self) -> Option<Instant> {
        self.order.wake_at()
    }
}

/// Equation 9 as it is. What is late counts as lost until it arrives, so repair symbols go where
/// most is late.
#[derive(Debug)]
struct AsPublished;

impl Variant for AsPublished {
    fn prepare(&self, _: &mut Lanes<'_>, _: &Outlook<'_>) {}

    fn rank(&self, lanes: &Lanes<'_>, path: usize) -> f64 {
        lanes.spread(path)
    }
}

/// What is remembered of a path.
#[derive(Debug)]
struct Memory {
    path: PathId,
    arrivals: Arrivals,
    /// When the last packet left.
    last: Option<Instant>,
    /// Which share of the flow's packets it carries, and of these, without repair symbols.
    share: f64,
    sources: f64,
}

/// Places symbols by equation 9 and repair symbols by Algorithm 1.
#[derive(Debug)]
struct Order {
    interval: Interval,
    idle: bool,
    seen: bool,
    horizon: Duration,
    memories: Vec<Memory>,
    refreshed: Instant,
    revised: Instant,
    /// Something was queued beyond a window.
    ahead: bool,
    /// When a slot may be free for an idle repair symbol.
    slot: Option<Instant>,
}

/// What a variant of the order knows when it looks at the lanes.
#[derive(Debug)]
struct Outlook<'a> {
    paths: &'a [PathView],
    /// Shares of all packets that each path carries, and of these, without repair symbols.
    shares: &'a [f64],
    sources: &'a [f64],
    tau: Option<u32>,
    /// Mean time between packets (µs), if it is known.
    gap: f64,
}

/// How a variant differs from the paper.
trait Variant {
    /// Changes the lanes before packets are placed.
    fn prepare(&self, lanes: &mut Lanes<'_>, outlook: &Outlook<'_>);

    /// Of paths that lose alike, the one with the most of this carries repair symbols.
    fn rank(&self, lanes: &Lanes<'_>, path: usize) -> f64;
}

impl Order {
    fn new(choice: &Choice, seen: bool) -> Self {
        Self {
            interval: Interval::new(choice),
            idle: choice.switch("idle"),
            seen,
            horizon: choice.time("horizon"),
            memories: Vec::new(),
            refreshed: Instant::ZERO,
            revised: Instant::ZERO,
            ahead: false,
            slot: None,
        }
    }

    fn plan(&mut self, plan: &mut Plan<'_>, variant: &impl Variant) {
        let now = plan.now();
        self.slot = None;
        if plan.paths().is_empty() {
            return;
        }
        self.remember(plan.paths());
        let shares = self.shares(plan.paths(), |memory| memory.share);
        let sources = self.shares(plan.paths(), |memory| memory.sources);
        if now.since(self.refreshed) >= REFRESH || self.refreshed == Instant::ZERO {
            self.refreshed = now;
            for memory in &mut self.memories {
                memory.arrivals.refresh();
            }
            self.interval.refresh(plan.paths(), &shares);
        }
        if self.ahead && now.since(self.revised) >= REVISE {
            plan.take_back();
            self.revised = now;
            self.ahead = false;
        }
        let Self {
            interval,
            memories,
            horizon,
            ahead,
            ..
        } = self;
        let known: SmallVec<[Known<'_>; 4]> = plan
            .paths()
            .iter()
            .map(|path| known(memories, path.id))
            .collect();
        let len = plan.paths().iter().map(|p| p.symbol).min().unwrap_or(1);
        let mut lanes = Lanes::new(now, plan.paths(), &known, len, self.seen);
        let outlook = Outlook {
            paths: plan.paths(),
            shares: &shares,
            sources: &sources,
            tau: interval.tau(),
            gap: interval.gap() / 1e3,
        };
        variant.prepare(&mut lanes, &outlook);
        while plan.next_len().is_some() {
            // Symbols are queued beyond a window only to find those that a path with room should
            // take out of turn.
            if !plan.paths().iter().any(PathView::has_room) {
                return;
            }
            let Some(best) = lanes.best() else {
                return;
            };
            let path = &plan.paths()[best];
            if !path.has_room() {
                if path.queued_own > path.rate.bytes_in(*horizon) {
                    return;
                }
                *ahead = true;
            }
            let due = interval.due();
            let takes_it = || repair_path(plan, &lanes, variant, |_| true) == Some(best);
            if due > SATURATED || due > 0 && takes_it() {
                interval.on_repair();
                if plan.repair(best).is_some() {
                    lanes.send(best);
                    continue;
                }
            }
            plan.send(best);
            lanes.send(best);
        }
        while interval.due() > 0
            && let Some(path) = repair_path(plan, &lanes, variant, is_free_for_repairs)
        {
            interval.on_repair();
            if plan.repair(path).is_some() {
                lanes.send(path);
            }
        }
        if self.idle && interval.tau().is_some() {
            self.slot = fill_slots(plan, &mut lanes, interval, len);
        }
    }

    fn remember(&mut self, paths: &[PathView]) {
        for path in paths {
            if !self.memories.iter().any(|m| m.path == path.id) {
                self.memories.push(Memory {
                    path: path.id,
                    arrivals: Arrivals::default(),
                    last: None,
                    share: 0.0,
                    sources: 0.0,
                });
            }
        }
    }

    /// Shares of the paths; by their rates until something was sent.
    fn shares(&self, paths: &[PathView], of: impl Fn(&Memory) -> f64) -> SmallVec<[f64; 4]> {
        let memory = |p: &PathView| self.memories.iter().find(|m| m.path == p.id);
        if self.memories.iter().map(|m| m.share).sum::<f64>() > 0.5 {
            return paths.iter().map(|p| memory(p).map_or(0.0, &of)).collect();
        }
        let sum: f64 = paths.iter().map(|p| p.rate.as_bps() as f64).sum();
        let share = |p: &PathView| p.rate.as_bps() as f64 / sum.max(1.0);
        paths.iter().map(share).collect()
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        match feedback.outcome {
            Outcome::Sent => {
                self.interval.on_sent(now, feedback.kind);
                let source = feedback.kind != EmissionKind::Repair;
                for memory in &mut self.memories {
                    let here = memory.path == feedback.path;
                    if here {
                        memory.last = Some(feedback.sent);
                    }
                    let follow = |share: &mut f64, hit: bool| {
                        *share += SHARE_GAIN * (f64::from(u8::from(hit)) - *share);
                    };
                    follow(&mut memory.share, here);
                    follow(&mut memory.sources, here && source);
                }
            }
            Outcome::Acked => {
                let memory = self.memories.iter_mut().find(|m| m.path == feedback.path);
                if let (Some(memory), Some(at_us)) = (memory, feedback.arrived_us) {
                    memory.arrivals.on_arrival(feedback.sent, at_us);
                }
            }
            Outcome::Lost | Outcome::Recovered => {}
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let revise = self.ahead.then(|| self.revised + REVISE);
        [revise, self.slot].into_iter().flatten().min()
    }
}

fn known(memories: &[Memory], path: PathId) -> Known<'_> {
    match memories.iter().find(|m| m.path == path) {
        Some(memory) => Known {
            arrivals: &memory.arrivals,
            last: memory.last,
        },
        None => unreachable!("the plan's paths are remembered first"),
    }
}

/// The path for repair symbols: of those that `may` carry one the one that loses most (Theorem 4);
/// of paths that lose alike, the variant's choice.
fn repair_path(
    plan: &Plan<'_>,
    lanes: &Lanes<'_>,
    variant: &impl Variant,
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
            let more = variant.rank(lanes, i) > variant.rank(lanes, best);
            !alike && path.loss > loss || alike && more
        });
        if better {
            best = Some(i);
        }
    }
    best
}

/// Has the path room, and no queue of the flow?
fn is_free_for_repairs(path: &PathView) -> bool {
    let waiting = path.queued_own / u64::from(path.symbol.max(1));
    waiting <= u64::from(SATURATED) && path.has_room()
}

/// One repair symbol into each slot that is free now; when the next one may be.
fn fill_slots(
    plan: &mut Plan<'_>,
    lanes: &mut Lanes<'_>,
    interval: &mut Interval,
    len: u32,
) -> Option<Instant> {
    let useful = |plan: &Plan<'_>| {
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
        if !useful(plan) {
            return slot;
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
mod tests;
