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
//! repair symbol that waits in a queue would delay data.
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
use crate::wire::{FlowKind, PathId};
use arrivals::Arrivals;
use interval::Interval;
use lanes::{Known, Lanes};

mod arrivals;
mod gauss;
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
/// Repair symbols that may wait for the lossiest path before the next one takes some.
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
    Box::new(SEdpf(Order::new(choice, seen)))
}

#[derive(Debug)]
struct SEdpf(Order);

impl Scheduler for SEdpf {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        self.0.plan(plan, |_, _| {});
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.0.on_feedback(now, feedback);
    }

    fn codes(&self) -> bool {
        self.0.interval.codes()
    }

    fn wake_at(&self) -> Option<Instant> {
        self.0.wake_at()
    }
}

/// What is remembered of a path.
#[derive(Debug)]
struct Memory {
    path: PathId,
    arrivals: Arrivals,
    /// When the last packet left.
    last: Option<Instant>,
    /// Which share of the flow's packets it carries.
    share: f64,
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

/// What a variant of the order may change before packets are placed: the lanes, by the share of
/// packets that each path carries and τ.
#[derive(Debug)]
struct Outlook<'a> {
    paths: &'a [PathView],
    shares: &'a [f64],
    tau: Option<u32>,
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

    fn plan(&mut self, plan: &mut Plan<'_>, mend: impl Fn(&mut Lanes<'_>, &Outlook<'_>)) {
        let now = plan.now();
        self.slot = None;
        if plan.paths().is_empty() {
            return;
        }
        self.remember(plan.paths());
        let shares = self.shares(plan.paths());
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
            tau: interval.tau(),
        };
        mend(&mut lanes, &outlook);
        let lossiest = lossiest(plan.paths(), &lanes);
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
            if due > 0 && (best == lossiest || due > SATURATED) {
                let sent = plan.repair(best).is_some();
                interval.on_repair();
                if sent {
                    lanes.send(best);
                    continue;
                }
            }
            plan.send(best);
            interval.on_packet();
            lanes.send(best);
        }
        if self.idle && self.interval.codes() {
            self.slot = fill_slots(plan, &mut lanes, len);
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
                });
            }
        }
    }

    /// Shares of the paths; by their rates until something was sent.
    fn shares(&self, paths: &[PathView]) -> SmallVec<[f64; 4]> {
        let share = |p: &PathView| {
            self.memories
                .iter()
                .find(|m| m.path == p.id)
                .map(|m| m.share)
        };
        let mut shares: SmallVec<[f64; 4]> =
            paths.iter().map(|p| share(p).unwrap_or(0.0)).collect();
        let mut sum: f64 = shares.iter().sum();
        if sum < 0.5 {
            shares = paths.iter().map(|p| p.rate.as_bps() as f64).collect();
            sum = shares.iter().sum::<f64>().max(1.0);
        }
        shares.iter_mut().for_each(|share| *share /= sum);
        shares
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        match feedback.outcome {
            Outcome::Sent => {
                self.interval.on_sent(now);
                for memory in &mut self.memories {
                    let here = memory.path == feedback.path;
                    if here {
                        memory.last = Some(feedback.sent);
                    }
                    memory.share += SHARE_GAIN * (f64::from(u8::from(here)) - memory.share);
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

/// The path for repair symbols: the one that loses most (Theorem 4); of paths that lose equally,
/// the one whose packets are late by most, because what is late counts as lost until it arrives.
fn lossiest(paths: &[PathView], lanes: &Lanes<'_>) -> usize {
    let mut lossiest = 0;
    for (i, path) in paths.iter().enumerate().skip(1) {
        let loss = paths[lossiest].loss;
        // Measured over a few hundred packets, less tells nothing.
        let equal = (path.loss - loss).abs() < 0.005;
        let later = lanes.spread(i) > lanes.spread(lossiest);
        if !equal && path.loss > loss || equal && later {
            lossiest = i;
        }
    }
    lossiest
}

/// One repair symbol into each slot that is free now; when the next one may be.
fn fill_slots(plan: &mut Plan<'_>, lanes: &mut Lanes<'_>, len: u32) -> Option<Instant> {
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
        }
        slot = Some(slot.map_or(next, |slot| slot.min(next)));
    }
    slot
}

#[cfg(test)]
mod tests;
