//! Stochastic earliest delivery path first, with a code that repairs as it streams
//! (Garcia-Saavedra, Karzand and Leith, "Low Delay Random Linear Coding and Scheduling Over
//! Multiple Interfaces").
//!
//! A stream waits for the latest of all earlier packets, so each packet goes where the expected
//! *maximum* of all arrivals grows least: argmin over q of E\[max(Y₁, …, Y_P, a_q)\], equation 9.
//! Arrivals are normal variables, and so is their maximum (Clark 1961), or, with `seen`, as they
//! were seen. Their moments come from arrival times at the receiver and are learnt again ten times
//! a second (Algorithm 2's timer).
//!
//! Every τ-th packet is a repair symbol (Algorithm 1), on the path that loses most (Theorem 4); the
//! next lossiest path takes those that it does not get rid of. When nothing is unsent but something
//! is unacknowledged, further repair symbols fill slots that would stay empty, and only these: a
//! repair symbol that waits in a queue would delay data. As many under way as symbols are unknown
//! suffice, but not where packets overtake each other: the next one may be there first. Where
//! `tau=auto` finds that coding gains nothing, there are none of either.
//!
//! Where the paper is silent or wrong: Algorithm 1 begins with a repair symbol of nothing, which is
//! left out; eq. (9) takes Y_q and a_q for independent, although on a path that keeps its order one
//! follows the other, so their correlation is measured; symbols are queued ahead of a path's window
//! only as far as `horizon` goes, and what waits is planned again every few milliseconds.
//!
//! Algorithm 2's queue per path, with at least one packet in it, is the queue that
//! [`Plan::send`] fills; its slots are granted by window and pacer. The laws of
//! arrivals, Z_p among them, are centred on [`PathView::forecast`].
//! "Only into a free slot" means that nothing is unsent and nothing waits before the path.

use alloc::boxed::Box;

use marline_base::{Duration, Instant};
use smallvec::SmallVec;

use super::entry::Entry;
use super::laws::{Histories, REFRESH};
use super::per_path::PerPath;
use super::revision::{REVISE, Revision};
use super::{Choice, Feedback, OptionSpec, Outcome, PathView, Plan, Scheduler};
use crate::path::EmissionKind;
use crate::wire::{FlowKind, PathId};
use interval::Interval;
use lanes::{Known, Lanes, Sight};
use repairs::Risk;

mod interval;
mod lanes;
pub(super) mod mend;
mod repairs;

/// What waits beyond the horizon takes a path before which less than this part of its round trip
/// stands: as much as a controller's own probes of the capacity leave there. More would be lost in
/// the end, and everything after it wait for a path that is far away.
const STANDING: u32 = 4;
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
    let sight = match choice.switch("seen") {
        true => Sight::Seen,
        false => Sight::Normal,
    };
    Box::new(Ordered {
        order: Order::new(choice, sight),
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
        let mut histories = core::mem::take(&mut self.order.histories);
        self.order.is_alone = !plan.exchange_histories(&mut histories);
        self.order.plan(plan, &mut self.variant, &mut histories);
        plan.exchange_histories(&mut histories);
        self.order.histories = histories;
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.order.on_feedback(now, feedback);
    }

    fn codes(&self) -> bool {
        self.order.interval.codes()
    }

    fn coding_interval(&self) -> Option<u32> {
        self.order.interval.tau()
    }

    fn awaits_room(&self) -> bool {
        true
    }

    fn wake_at(&self) -> Option<Instant> {
        self.order.wake_at()
    }
}

/// Equation 9 as it is.
#[derive(Debug)]
struct AsPublished;

impl Variant for AsPublished {
    fn prepare(&mut self, _: &mut Lanes<'_>, _: &[PathView], _: &Outlook<'_>) {}
}

/// What is remembered of a path.
#[derive(Debug, Default)]
struct Memory {
    /// When the last packet that the receiver waits for leaves the bottleneck.
    last: Option<Instant>,
    /// It left us after the last plan, and when the bottleneck lets it go is not known yet.
    is_fresh: bool,
    /// Share of its packets that are lost, and its round trip, as of the last plan.
    loss: f64,
    trip: Duration,
    /// What repair symbols over it are good for.
    risk: Risk,
    /// Shares of the flow's packets: what it carries in all, as source symbols that leave for the
    /// first time, and as repair symbols. Copies and what is sent again count only in the first.
    share: f64,
    sources: f64,
    repairs: f64,
}

/// Places symbols by equation 9 and repair symbols by Algorithm 1.
#[derive(Debug)]
struct Order {
    interval: Interval,
    idle: bool,
    sight: Sight,
    horizon: Duration,
    memories: PerPath<Memory>,
    /// What arrivals were like, of a flow that is alone: those of a session share theirs.
    histories: Histories,
    is_alone: bool,
    refreshed: Instant,
    revision: Revision,
    /// When a slot may be free for an idle repair symbol.
    slot: Option<Instant>,
}

/// What a variant of the order knows when it looks at the lanes.
#[derive(Debug)]
struct Outlook<'a> {
    now: Instant,
    /// Shares of all packets that each path carries: of any kind, as source symbols, as repair
    /// symbols.
    shares: &'a [f64],
    sources: &'a [f64],
    repairs: &'a [f64],
    tau: Option<u32>,
    /// Mean time between packets (µs), if it is known.
    gap: f64,
    /// Bytes of the flow that have not left.
    waiting: u64,
}

/// How a variant differs from the paper.
trait Variant {
    /// Changes the lanes before packets are placed.
    fn prepare(&mut self, lanes: &mut Lanes<'_>, paths: &[PathView], outlook: &Outlook<'_>);

    /// Is nothing to be gained by repair symbols while this much waits?
    fn is_coding_vain(&self, paths: &[PathView], outlook: &Outlook<'_>) -> bool {
        let _ = (paths, outlook);
        false
    }

    /// From when on a repair symbol in an idle slot of path `q` is worth its bytes, if nothing else
    /// leaves.
    fn fills(
        &self,
        lanes: &Lanes<'_>,
        paths: &[PathView],
        outlook: &Outlook<'_>,
        (q, risk): (usize, &Risk),
    ) -> Option<Instant> {
        let _ = (lanes, paths, q, risk);
        outlook.tau.map(|_| outlook.now)
    }
}

impl Order {
    fn new(choice: &Choice, sight: Sight) -> Self {
        Self {
            interval: Interval::new(choice),
            idle: choice.switch("idle"),
            sight,
            horizon: choice.time("horizon"),
            memories: PerPath::default(),
            histories: Histories::default(),
            is_alone: true,
            refreshed: Instant::ZERO,
            revision: Revision::new(REVISE),
            slot: None,
        }
    }

    fn plan(&mut self, plan: &mut Plan<'_>, variant: &mut impl Variant, histories: &mut Histories) {
        let now = plan.now();
        self.slot = None;
        if plan.paths().is_empty() {
            return;
        }
        self.remember(plan.paths());
        histories.refresh(now);
        let shares = self.shares(plan.paths(), |memory| memory.share);
        let sources = self.shares(plan.paths(), |memory| memory.sources);
        let repairs = self.repairs(plan.paths());
        if now.since(self.refreshed) >= REFRESH || self.refreshed == Instant::ZERO {
            self.refreshed = now;
            match self.knows_shares() {
                true => self.interval.refresh(plan.paths(), &sources, &repairs),
                false => {
                    let first = first_share(plan.paths());
                    self.interval.refresh(plan.paths(), &first, &repairs);
                }
            }
        }
        self.revision.take_back(plan);
        let Self {
            interval,
            memories,
            horizon,
            revision,
            ..
        } = self;
        let known: SmallVec<[Known<'_>; 4]> = plan
            .paths()
            .iter()
            .map(|path| Known {
                arrivals: histories.arrivals(path.id),
                last: memory_of(memories, path.id).last,
            })
            .collect();
        let len = plan.paths().iter().map(|p| p.symbol).min().unwrap_or(1);
        let mut lanes = Lanes::new(now, plan.paths(), &known, len, self.sight);
        let mut outlook = Outlook {
            now,
            shares: &shares,
            sources: &sources,
            repairs: &repairs,
            tau: None,
            gap: interval.gap() / 1e3,
            waiting: plan.paths().iter().fold(plan.unsent(), |sum, path| {
                sum.saturating_add(path.queued_own)
            }),
        };
        interval.suspend(variant.is_coding_vain(plan.paths(), &outlook));
        outlook.tau = interval.tau();
        variant.prepare(&mut lanes, plan.paths(), &outlook);
        while plan.next_len().is_some() {
            // Symbols are queued beyond a window only to find those that a path with room should
            // take out of turn.
            if !plan.paths().iter().any(PathView::has_room) {
                return;
            }
            let Some(mut best) = lanes.best(|_| true) else {
                return;
            };
            let path = &plan.paths()[best];
            if !path.has_room() {
                revision.queued_ahead();
                if path.queued_own > path.rate.bytes_in(*horizon) {
                    let takes = |q: usize| {
                        let path = &plan.paths()[q];
                        // While the capacity is sought, what seems to stand is the unknown rate.
                        let known = !path.congestion.phase.is_search();
                        let standing = known && lanes.standing(q) > path.min_rtt / STANDING;
                        path.has_room() && !standing
                    };
                    let Some(other) = lanes.best(takes) else {
                        break;
                    };
                    best = other;
                }
            }
            let due = interval.due();
            let takes_it = || repairs::path(plan, &lanes, |_| true) == Some(best);
            if due > repairs::SATURATED || due > 0 && takes_it() {
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
            && let Some(path) = repairs::path(plan, &lanes, repairs::is_free)
        {
            interval.on_repair();
            if plan.repair(path).is_some() {
                lanes.send(path);
            }
        }
        if self.idle {
            self.slot = repairs::fill_slots(plan, &mut lanes, interval, len, |plan, lanes, q| {
                let risk = &memory_of(memories, plan.paths()[q].id).risk;
                variant.fills(lanes, plan.paths(), &outlook, (q, risk))
            });
        }
    }

    fn remember(&mut self, paths: &[PathView]) {
        for path in paths {
            let memory = self.memories.of(path.id, Memory::default);
            (memory.loss, memory.trip) = (path.loss, path.srtt);
            if core::mem::take(&mut memory.is_fresh)
                && let (Some(left), Some(forecast)) = (memory.last, path.forecast)
            {
                let service = path.rate.time_for(u64::from(path.symbol));
                let behind = forecast.free.since(left).saturating_sub(service);
                memory.last = Some(left + behind);
            }
        }
    }

    /// Shares of the paths; by their rates until something was sent.
    fn shares(&self, paths: &[PathView], of: impl Fn(&Memory) -> f64) -> SmallVec<[f64; 4]> {
        if self.knows_shares() {
            return paths
                .iter()
                .map(|p| self.memory(p).map_or(0.0, &of))
                .collect();
        }
        let sum: f64 = paths.iter().map(|p| p.rate.as_bps() as f64).sum();
        let share = |p: &PathView| p.rate.as_bps() as f64 / sum.max(1.0);
        paths.iter().map(share).collect()
    }

    /// Shares of the repair symbols; none until enough was sent.
    fn repairs(&self, paths: &[PathView]) -> SmallVec<[f64; 4]> {
        let known = self.knows_shares();
        let memory = |p: &PathView| self.memory(p).filter(|_| known);
        paths
            .iter()
            .map(|p| memory(p).map_or(0.0, |memory| memory.repairs))
            .collect()
    }

    fn knows_shares(&self) -> bool {
        self.memories.values().map(|m| m.share).sum::<f64>() > 0.5
    }

    fn memory(&self, path: &PathView) -> Option<&Memory> {
        self.memories.get(path.id)
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        match feedback.outcome {
            Outcome::Sent => {
                self.interval.on_sent(now, feedback.kind);
                self.bear_risk(now, feedback);
                let is = |kind: EmissionKind| feedback.kind == kind;
                for (path, memory) in self.memories.iter_mut() {
                    let here = path == feedback.path;
                    if here {
                        // Nothing waits for copies.
                        if feedback.kind != EmissionKind::Copy {
                            memory.last = Some(feedback.sent);
                            memory.is_fresh = true;
                        }
                    }
                    let follow = |share: &mut f64, hit: bool| {
                        *share += SHARE_GAIN * (f64::from(u8::from(hit)) - *share);
                    };
                    follow(&mut memory.share, here);
                    follow(&mut memory.sources, here && is(EmissionKind::Source));
                    follow(&mut memory.repairs, here && is(EmissionKind::Repair));
                }
            }
            Outcome::Acked => {
                if self.is_alone {
                    self.histories.on_feedback(feedback);
                }
            }
            Outcome::Lost | Outcome::Recovered => {}
        }
    }

    /// A packet leaves, and may be lost.
    fn bear_risk(&mut self, now: Instant, feedback: &Feedback) {
        let Some(carrier) = self.memories.get(feedback.path) else {
            return;
        };
        let (trip, loss) = (carrier.trip, carrier.loss);
        let trips = self.memories.values().map(|memory| memory.trip);
        let least = trips.min().unwrap_or_default();
        for (_, memory) in self.memories.iter_mut() {
            if repairs::is_sooner(memory.trip, trip, least) {
                memory.risk.on_sent(now, feedback.kind, loss);
            }
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        [self.revision.at(), self.slot].into_iter().flatten().min()
    }
}

/// Shares of source symbols before any are known: the first ones go over the quickest path. A code
/// for the losses of another one would lead them there.
fn first_share(paths: &[PathView]) -> SmallVec<[f64; 4]> {
    let quickest = paths.iter().min_by_key(|p| p.srtt).map(|p| p.id);
    let share = |p: &PathView| f64::from(u8::from(Some(p.id) == quickest));
    paths.iter().map(share).collect()
}

fn memory_of(memories: &PerPath<Memory>, path: PathId) -> &Memory {
    match memories.get(path) {
        Some(memory) => memory,
        None => unreachable!("the plan's paths are remembered first"),
    }
}

#[cfg(test)]
mod tests;
