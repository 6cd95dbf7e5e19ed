//! Live streams without reordering, our way: where [`ols`](super::ols) estimates, this one
//! forecasts; where `ols` counts the surplus once per path, this one counts it once.
//!
//! What differs from OLS (Xing et al., IEEE TWC 2021):
//!
//! * A packet's arrival on a path is forecast from arrival times at the receiver
//!   ([`ArrivalForecast`](crate::law::ArrivalForecast)): one clock for all paths, no halved round
//!   trips, our own queue by recursion instead of equation (2)'s share of a window.
//! * Paths are compared by when a packet is of *use*: where packets overtake each other, it waits
//!   for those that left before it on the same path. The interval ends at the 95th percentile of
//!   how wrong forecasts were about packets when they left.
//! * A path of which nothing is heard when something should be is later than forecast by at least
//!   that silence, beyond the lateness that is counted on anyway: a step of its delay counts before
//!   the first late packet has arrived. Where packets are lost, a burst of losses is no step.
//! * Copies are paid from one bucket, filled with the paths' rates less the target, as is what is
//!   lost and sent again. Equation (3) grants the whole surplus to every path and so drops below
//!   the target. All flows of a session have one bucket, and the surplus is what is beyond the sum
//!   of their targets ([`Surplus`](surplus::Surplus)).
//! * Where packets are lost, what is left in the bucket goes into repair symbols of the flow's
//!   streaming code, each of which mends any of what is under way, lost or late; and what is lost
//!   is sent again on two paths at once.
//! * What costs next to nothing beside all that the session sends goes over every path at once,
//!   such as a call beside downloads: their queues differ by more than a forecast sees when one of
//!   the paths fades.
//! * A copy goes only to a path whose queue is short: behind a long one it comes too late to help
//!   and delays what follows. The session drops copies whose symbol was acknowledged meanwhile.
//! * Copies against jitter are sent for nearly all packets that may be late, or for none
//!   ([`Coverage`]): in order, the packets that were not copied hold up those that were.
//! * Where packets are lost and the quicker paths do not carry the target alone, what would queue
//!   at all on those goes to a slower path that is idle. The order waits for the slower path
//!   anyway, so that a queue on the quicker ones gains nothing; without one, what they lose is sent
//!   again in time.
//! * Where delay varies, a queue adds to it. What may come later, at its 99th percentile, than over
//!   a steady path that is longer, idle and needed, goes there. Where packets overtake each other,
//!   at its 95th: those that are there sooner wait, and the rest is little; at its 99th if `prompt`
//!   asks for it and nothing is lost. And as nobody sees such a queue before it has grown, the path
//!   takes no larger share of its rate meanwhile than all paths have together: the order waits for
//!   the longer one anyway.
//! * Where the delay of several paths wanders, the quickest now may be the slowest when its queue
//!   is gone. What queues there goes to another one that is idle and needed if it comes sooner by
//!   the delays of a longer time, at their 95th percentile. Not where packets are lost: repair
//!   symbols keep queues that look like delay.
//! * A path is not filled beyond its pipe and a few packets, whatever its window: a standing queue
//!   is delay for everybody and ends in loss. Where other flows fill it further, that is no reason
//!   to send nothing; nor where the stream waits, for a pipe whose delay varies by far may be
//!   longer than thought.
//! * When no path has room and data waits, there was no surplus after all, whatever the rates said:
//!   the bucket is emptied.
//! * A spread of a few packets' time is no reason for a copy: it would delay what follows by as
//!   much as it could save.

use alloc::boxed::Box;

use marline_base::Instant;
use smallvec::SmallVec;

use super::entry::{Entry, PACKET_WISE};
use super::ols::target::{self, Target};
use super::revision::{REVISE, Revision};
use super::{Choice, Coding, Feedback, OptionSpec, Outcome, Plan, Scheduler};
use crate::flow::Symbol;
use crate::path::{EmissionKind, LOSSY};

mod budget;
mod coverage;
mod lane;
mod own;
mod shares;
mod surplus;

use budget::Budget;
use coverage::Coverage;
use lane::{Lane, NOISE, micros};
use own::Own;
use shares::Shares;

/// So many times the 95th percentile of lateness is its 99th, about: 1.4 if lateness is normal, 1.5
/// if it is exponential.
const SURE: f64 = 1.5;
/// So many times that is enough where packets overtake each other, unless delay alone counts
/// (`prompt`) and nothing is lost: at the 99th percentile what is there by then fills the buffer by
/// up to a third more (21 instead of 16.5 kB over 60±20 and 160 ms in `ols/fig-9`, where 99 of 100
/// are in order after 83 ms instead of 91). With losses it comes later, not sooner.
const SURE_ENOUGH: f64 = 1.0;
/// A path is idle while no more packets than this stand before the next.
const IDLE: f64 = 1.0;
/// The same of the quicker path where packets are lost: one that is always busy keeps the queue
/// that what was sent again left there.
const QUITE_IDLE: f64 = 0.5;
/// A path takes copies only if no more packets than this stand before them.
const SHORT_QUEUE: f64 = 3.0;
/// A path takes repair symbols if it is [`IDLE`], or nothing stands there but what takes this share
/// of its round trip, within a [`SHORT_QUEUE`]: what comes after them waits so much longer.
const DELAY: f64 = 0.01;
/// A repair symbol is worth nothing that comes so many of the quickest round trips later than a
/// packet could: by then even what was lost twice has come again. It would fill paths that the
/// stream does not use.
const LATE: f64 = 3.0;
/// Redundancy against loss leaves so many packets in the bucket for what has to be sent again: a
/// copy of that is worth more.
const RESERVE: f64 = 4.0;
/// What waits for so long (s) while no path has room is held back by a bound that is wrong.
const STARVING: f64 = 0.1;
/// Packets wait for a path at most so long, in time at its rate (µs).
const HORIZON: f64 = 500e3;

pub(super) const ENTRY: Entry = Entry {
    name: "hedge",
    publication: "Marline; after Xing et al., IEEE TWC 2021",
    help: "live streams: arrival by forecast, copies where it is uncertain, within one surplus",
    kinds: PACKET_WISE,
    options: &[
        OptionSpec::switch("copies", true, "redundancy where arrival is uncertain"),
        OptionSpec::switch(
            "prompt",
            false,
            "sooner where packets overtake each other, at the cost of longer waits out of order",
        ),
        OptionSpec::switch(
            "repairs",
            true,
            "repair symbols rather than copies where packets are lost",
        ),
        OptionSpec::switch(
            "silence",
            true,
            "a path of which nothing is heard in time is taken for slower at once",
        ),
        target::OPTION,
    ],
    new,
};

fn new(choice: &Choice) -> Box<dyn Scheduler> {
    Box::new(Hedge::new(choice))
}

#[derive(Debug)]
struct Hedge {
    copies: bool,
    prompt: bool,
    repairs: bool,
    silence: bool,
    target: Target,
    budget: Budget,
    coverage: Coverage,
    revision: Revision,
    /// This flow's bytes in flight.
    own: Own,
    /// How far paths are ahead of their share.
    shares: Shares,
}

impl Hedge {
    fn new(choice: &Choice) -> Self {
        Self {
            copies: choice.switch("copies"),
            prompt: choice.switch("prompt"),
            repairs: choice.switch("copies") && choice.switch("repairs"),
            silence: choice.switch("silence"),
            target: Target::new(choice.number("target")),
            budget: Budget::default(),
            coverage: Coverage::default(),
            revision: Revision::new(REVISE),
            own: Own::default(),
            shares: Shares::default(),
        }
    }

    /// The path to send on instead of the `first` one, where packets would queue: one that is idle
    /// and that the stream needs. A longer one that is steady, or that it is idle says nothing of
    /// when; or one whose delay wanders as the first one's does, if it comes sooner at the latest.
    fn spill(&mut self, plan: &Plan<'_>, lanes: &[Lane], first: usize, len: f64) -> Option<usize> {
        let queued = |i: usize| plan.paths()[i].queued as f64 + len;
        let is_idle = |i: usize| lanes[i].takes_behind(IDLE, queued(i), len);
        let lossy = lanes.iter().any(|lane| lane.loss > LOSSY);
        let least = if lossy { QUITE_IDLE } else { IDLE };
        let lane = &lanes[first];
        let need = 1e-6 * self.budget.need;
        let all = lanes.iter().map(|lane| lane.proved(len)).sum::<f64>();
        // Until enough is found for all, nobody has a share.
        let ahead = if lane.is_steady(len) || all <= need {
            0.0
        } else {
            let share = 1e-6 * self.target.bytes_per_second() / all * lane.proved(len);
            self.shares.ahead(plan.now(), plan.paths()[first].id, share)
        };
        if ahead <= IDLE * len && lane.takes_behind(least, queued(first), len) {
            return None;
        }
        let is_needed = |lane: &Lane| {
            let shorter = lanes.iter().filter(|l| l.unqueued() < lane.unqueued());
            shorter.map(|l| l.carries(len)).sum::<f64>() < need
        };
        let others = || {
            let others = lanes.iter().enumerate().filter(|(i, _)| *i != first);
            others.filter(|(i, lane)| is_idle(*i) && is_needed(lane))
        };
        let soonest = |(i, a): &(usize, &Lane), (j, b): &(usize, &Lane)| {
            let [a, b] = [a.of_use(queued(*i)), b.of_use(queued(*j))];
            a.total_cmp(&b)
        };
        if !lossy && !lane.takes_behind(IDLE, queued(first), len) {
            let latest = lane.at_latest(queued(first));
            let earlier =
                others().filter(|(i, l)| lane.wander(l, len) && l.at_latest(queued(*i)) < latest);
            if let Some((index, _)) = earlier.min_by(soonest) {
                return Some(index);
            }
        }
        let latest = if lane.is_steady(len) {
            lossy.then_some(f64::INFINITY)
        } else {
            let sure = if lane.keeps_order(len) || self.prompt && !lossy {
                SURE
            } else {
                SURE_ENOUGH
            };
            Some(lane.expected(queued(first)) + sure * lane.late)
        }?;
        let longer = others().filter(|(i, l)| {
            let beyond = l.unqueued() > lane.unqueued();
            beyond && l.of_use(queued(*i)) < latest && l.is_steady(len)
        });
        longer.min_by(soonest).map(|(index, _)| index)
    }

    /// Copies the symbol that was just sent on the path at `first` to others, where that pays.
    fn hedge(&mut self, plan: &mut Plan<'_>, lanes: &[Lane], first: usize, symbol: Symbol) {
        let len = f64::from(symbol.len);
        let sure = &lanes[first];
        let noise = NOISE * len * sure.service;
        let late = sure.expected(plan.paths()[first].queued as f64) + sure.late - noise;
        let uncertain = sure.late - sure.behind >= noise;
        let lossy = sure.loss > LOSSY;
        if !uncertain && !lossy {
            return;
        }
        for (other, lane) in lanes.iter().enumerate().filter(|(i, _)| *i != first) {
            let queued = plan.paths()[other].queued as f64 + len;
            let helps = uncertain && lane.expected(queued) + lane.behind < late;
            if !helps && !lossy {
                continue;
            }
            let left = if lossy { RESERVE * len } else { 0.0 };
            let fits = lane.takes(SHORT_QUEUE, queued, len) && self.budget.has(len + left);
            // Each copy against loss is worth something alone.
            let wanted = lossy || self.coverage.is_worth_it(plan.now(), fits);
            if fits && wanted {
                self.budget.pay(len);
                plan.copy(other, symbol);
            }
        }
    }

    /// How the code stands, if packets are lost and repair symbols mend that.
    fn code(&self, plan: &Plan<'_>, lanes: &[Lane]) -> Option<Coding> {
        let lost = lanes.iter().any(|lane| lane.loss > LOSSY);
        plan.coding().filter(|_| lost && self.repairs)
    }

    /// Against losses repair symbols are worth more than copies: each mends any of what is under
    /// way. After a source symbol of this length, one goes where it arrives first; none if the
    /// flow's next one comes no sooner than what is sent again, nor where it comes [`LATE`].
    fn mend(&mut self, plan: &mut Plan<'_>, lanes: &[Lane], coding: Coding, len: f64) {
        let again = plan.paths().iter().map(|path| micros(path.srtt));
        let again = again.min_by(f64::total_cmp).unwrap_or(0.0);
        if len > 1e-6 * again * self.budget.part()
            || coding.repairs_queued > 0
            || coding.repairs_in_flight >= coding.unknown
            || !self.budget.has((1.0 + RESERVE) * len)
        {
            return;
        }
        let soonest = lanes.iter().map(Lane::unqueued).min_by(f64::total_cmp);
        let late = soonest.unwrap_or(0.0) + LATE * again;
        let lanes = lanes.iter().zip(plan.paths()).enumerate();
        let free = lanes.filter(|(_, (lane, path))| {
            let packets = DELAY * micros(path.min_rtt) / (len * lane.service);
            let packets = packets.clamp(IDLE, SHORT_QUEUE);
            let queued = path.queued as f64 + len;
            lane.takes(packets, queued, len) && lane.expected(queued) <= late
        });
        let first = free.min_by(|(_, (a, p)), (_, (b, q))| {
            let [a, b] = [a.expected(p.queued as f64), b.expected(q.queued as f64)];
            a.total_cmp(&b)
        });
        if let Some((index, _)) = first
            && plan.repair(index).is_some()
        {
            self.budget.pay(len);
        }
    }

    fn send(&mut self, plan: &mut Plan<'_>) {
        let now = plan.now();
        // What is planned anew, before what comes after it.
        let mut again = self.revision.take_back(plan).unwrap_or_default();
        self.target.taken_back(again);
        self.target.observe(now, plan.needed_rate(), plan.unsent());
        let paths = plan.paths();
        // A clock that not all paths know cannot be compared.
        let comparable = paths.iter().all(|p| p.forecast.is_some());
        let starves = plan.unsent() as f64 > STARVING * self.target.bytes_per_second();
        let mut lanes: SmallVec<[Lane; 4]> = SmallVec::new();
        for path in paths {
            let known = path.forecast.as_ref().filter(|_| comparable);
            let own = self.own.on(now, path.id, path.srtt) as f64;
            lanes.push(Lane::new(now, path, own, known, self.silence, !starves));
        }
        let symbol = paths.first().map_or(0, |path| path.symbol);
        let all = lanes.iter().map(|lane| lane.spares(f64::from(symbol)));
        let all = 1e6 * all.sum::<f64>();
        let most = plan.redundancy();
        self.budget.fill(now, all, most, &self.target);
        let everywhere = plan.is_negligible(self.budget.need);
        // Who needs the paths that flap or lose takes them as they are: redundancy mends that.
        let reliable = lanes.iter().filter(|lane| lane.again == 0.0);
        let carried = reliable.map(|lane| lane.carries(f64::from(symbol)));
        if carried.sum::<f64>() < 1e-6 * self.budget.need {
            lanes.iter_mut().for_each(|lane| lane.again = 0.0);
        }
        while let Some(len) = plan.next_len() {
            let mut first = (0, f64::INFINITY, false);
            let mut any_room = false;
            for (i, (lane, path)) in lanes.iter().zip(plan.paths()).enumerate() {
                let queued = path.queued as f64 + f64::from(len);
                let of_use = lane.of_use(queued);
                let has_room = lane.has_room(queued);
                any_room |= has_room;
                if of_use < first.1 {
                    first = (i, of_use, has_room);
                }
            }
            if !any_room {
                self.budget.empty();
                return;
            }
            let (mut first, _, mut has_room) = first;
            // What has waited would come later than all that was written meanwhile.
            let is_fresh = again == 0;
            again = again.saturating_sub(len.into());
            if is_fresh && let Some(idle) = self.spill(plan, &lanes, first, f64::from(len)) {
                (first, has_room) = (idle, true);
            }
            if !has_room {
                if plan.paths()[first].queued_own as f64 * lanes[first].service > HORIZON {
                    return;
                }
                self.revision.queued_ahead();
            }
            let symbol = plan.send(first);
            self.shares.took(now, plan.paths()[first].id, symbol.len);
            self.target.sent(symbol.len);
            if !self.copies || !self.target.is_known() {
                continue;
            }
            if everywhere {
                for other in (0..lanes.len()).filter(|&i| i != first) {
                    self.budget.waive(f64::from(symbol.len));
                    plan.copy(other, symbol);
                }
            } else if let Some(coding) = self.code(plan, &lanes) {
                // A repair symbol mends what is late as well: copies would only take its place.
                self.mend(plan, &lanes, coding, f64::from(symbol.len));
            } else {
                self.hedge(plan, &lanes, first, symbol);
            }
        }
    }
}

impl Scheduler for Hedge {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        let all = Choice::from(&ENTRY);
        plan.exchange(&all, &mut self.budget.bucket);
        self.send(plan);
        self.budget.close();
        plan.exchange(&all, &mut self.budget.bucket);
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.own.on_feedback(now, feedback);
        if feedback.outcome == Outcome::Sent && feedback.kind != EmissionKind::Source {
            self.budget.on_left_again(f64::from(feedback.symbol.len));
        }
    }

    fn codes(&self) -> bool {
        self.repairs
    }

    fn insures(&mut self, _now: Instant, symbol: &Symbol) -> bool {
        self.copies && self.budget.insures(f64::from(symbol.len))
    }

    fn wake_at(&self) -> Option<Instant> {
        self.revision.at()
    }
}

#[cfg(test)]
mod tests;
