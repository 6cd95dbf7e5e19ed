//! SOS over a session: `sos`, `sos-fec`, `sos-rateless`.
//!
//! All three divide what is left of each unit among the paths so that its last symbol arrives as
//! early as can be promised, the most urgent unit first; what comes later counts those before it as
//! under way (7). They differ in what follows: nothing; the δ repair symbols of (8) and (9) on each
//! path; or coded symbols as long as they could help.
//!
//! Where this goes beyond the paper: what was queued for a path and has not left is divided again
//! every few milliseconds, and at once when something more urgent comes, because objects do not
//! depend on each other's order; what was lost is sent again, or replaced by coded symbols, by the
//! session. A path counts what its bottleneck has not served yet instead of all that is in flight.
//!
//! [`Plan::unit`] gives the most urgent object and what is left of it.
//! The paths' views, and the spacing of arrivals learnt from feedback, give T_U of each path (eq.
//! 2, 7).

use alloc::boxed::Box;
use core::any::Any;

use marline_base::{Duration, Instant};

use super::arrivals::Known;
use super::lanes::{Way, ways};
use super::owed::Owed;
use super::quotas::Quotas;
use super::tail::Tail;
use super::{Lane, Width};
use crate::flow::Fate;
use crate::sched::entry::Entry;
use crate::sched::revision::{REVISE, Revision};
use crate::sched::{Choice, Feedback, OptionSpec, PathView, Plan, Scheduler, Unit};
use crate::wire::FlowKind;

const HOEFFDING: OptionSpec = OptionSpec::switch(
    "hoeffding",
    false,
    "how late a path may be by Hoeffding's bound, as published, not by mean, deviation and skewness",
);
const MEMORY: OptionSpec = OptionSpec::count(
    "memory",
    1_000,
    (64, 5_000),
    "packets of each path that its spacing is learnt from; 5000 as published",
);
const HORIZON: OptionSpec = OptionSpec::time(
    "horizon",
    Duration::from_millis(500),
    (Duration::ZERO, Duration::from_secs(10)),
    "how far ahead of a path's window symbols may be queued, in time at its rate",
);
const PREEMPT: OptionSpec = OptionSpec::switch(
    "preempt",
    true,
    "divide anew what waits when something more urgent comes",
);

const fn entry(
    name: &'static str,
    help: &'static str,
    options: &'static [OptionSpec],
    new: fn(&Choice) -> Box<dyn Scheduler>,
) -> Entry {
    Entry {
        name,
        publication: "Fahmi et al., 2018",
        help,
        kinds: &[FlowKind::Blocks, FlowKind::Objects],
        options,
        new,
    }
}

pub(in crate::sched) const SOS: Entry = entry(
    "sos",
    "objects whole: their split over the paths with the earliest promised end",
    &[HOEFFDING, MEMORY, HORIZON, PREEMPT],
    |choice| Box::new(Sos::new(Extra::None, choice)),
);

pub(in crate::sched) const FEC: Entry = entry(
    "sos-fec",
    "as sos, with the repair symbols that lucky paths would carry",
    &[
        OptionSpec::number(
            "gamma",
            0.5,
            (0.0, 1.0),
            "how lucky each path is taken to be: 0 adds most repair symbols, 1 none",
        ),
        HOEFFDING,
        MEMORY,
        HORIZON,
        PREEMPT,
    ],
    |choice| {
        let owed = Owed::new(choice.number("gamma"));
        Box::new(Sos::new(Extra::Owed(owed), choice))
    },
);

pub(in crate::sched) const RATELESS: Entry = Entry {
    publication: "Marline; after Fahmi et al., 2018",
    ..entry(
        "sos-rateless",
        "as sos, then coded symbols as paths have room, while they could make it earlier",
        &[HOEFFDING, MEMORY, HORIZON, PREEMPT],
        |choice| Box::new(Sos::new(Extra::Tail(Box::default()), choice)),
    )
};

/// What follows the source symbols.
#[derive(Debug)]
enum Extra {
    None,
    Owed(Owed),
    Tail(Box<Tail>),
}

#[derive(Debug)]
struct Sos {
    extra: Extra,
    width: Width,
    horizon: Duration,
    preempt: bool,
    known: Known,
    /// Length of a symbol that fits every path (bytes).
    symbol: u32,
    revision: Revision,
    /// Urgency of the least urgent that was queued since then.
    queued: Option<u8>,
}

impl Sos {
    fn new(extra: Extra, choice: &Choice) -> Self {
        Self {
            extra,
            width: match choice.switch("hoeffding") {
                true => Width::Hoeffding,
                false => Width::Clt,
            },
            horizon: choice.time("horizon"),
            preempt: choice.switch("preempt"),
            known: Known::new(choice.number("memory") as usize),
            symbol: 0,
            revision: Revision::new(REVISE),
            queued: None,
        }
    }

    /// Takes back what waits, if it is time or if something more urgent came.
    fn revise(&mut self, plan: &mut Plan<'_>) {
        let waits = plan.paths().iter().any(|path| path.queued_own > 0);
        let urgency = plan.unit().map(|unit| unit.urgency);
        let urgent = self.preempt && urgency < self.queued && urgency.is_some();
        let due = self.revision.is_due(plan.now());
        if waits && (urgent || due) {
            plan.take_back();
        }
        if !waits || urgent || due {
            self.revision.begin(plan.now());
            self.queued = None;
        }
    }

    /// Emits source symbols until none is left, or no path has room.
    fn emit(&mut self, plan: &mut Plan<'_>, ways: &[Way]) {
        let mut quotas = Quotas::new(ways);
        while plan.next_len().is_some() {
            // Symbols are queued beyond a window only to keep the split. Without a path with room,
            // later is early enough.
            if !plan.paths().iter().any(PathView::has_room) {
                return;
            }
            let Some(unit) = plan.unit() else { return };
            if !quotas.knows(unit.id) {
                if let Extra::Tail(tail) = &mut self.extra {
                    tail.begins(plan.now(), unit.id);
                }
                let symbols = symbols(&unit, self.symbol);
                if let Extra::Owed(owed) = &mut self.extra {
                    let lanes: smallvec::SmallVec<[Lane; 4]> = quotas.lanes();
                    owed.begin(unit.id, &lanes, plan.paths(), symbols);
                }
                quotas.divide(unit.id, symbols);
            }
            let Some(index) = quotas.path(unit.id) else {
                // It was cut into more symbols than it seemed to have.
                quotas.divide(unit.id, 1);
                continue;
            };
            let path = &plan.paths()[index];
            if !path.has_room() {
                if path.queued_own > path.rate.bytes_in(self.horizon) {
                    return;
                }
                self.revision.queued_ahead();
            }
            plan.send(index);
            quotas.take(unit.id, index);
            self.queued = self.queued.max(Some(unit.urgency));
        }
    }
}

/// Symbols that are left of a unit.
fn symbols(unit: &Unit, symbol: u32) -> u32 {
    let symbol = unit.code.map_or(symbol, |code| code.symbol).max(1);
    let symbols = unit.len.div_ceil(u64::from(symbol)).max(1);
    symbols.min(u64::from(u32::MAX)) as u32
}

impl Scheduler for Sos {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        if let Extra::Tail(tail) = &mut self.extra {
            tail.begin();
        }
        let Some(symbol) = plan.paths().iter().map(|path| path.symbol).min() else {
            return;
        };
        self.symbol = symbol;
        self.revise(plan);
        let ways = ways(
            plan.now(),
            plan.paths(),
            &mut self.known,
            self.width,
            symbol,
        );
        self.emit(plan, &ways);
        match &mut self.extra {
            Extra::None => {}
            Extra::Owed(owed) => owed.pay(plan),
            Extra::Tail(tail) => {
                if plan.next_len().is_none() {
                    let ways = super::lanes::ways(
                        plan.now(),
                        plan.paths(),
                        &mut self.known,
                        self.width,
                        symbol,
                    );
                    tail.fill(plan, &ways);
                }
            }
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.known.on_feedback(now, feedback, self.symbol);
        if let Extra::Tail(tail) = &mut self.extra {
            tail.on_feedback(feedback);
        }
    }

    fn on_unit(&mut self, _: Instant, unit: u64, _: Fate) {
        match &mut self.extra {
            Extra::None => {}
            Extra::Owed(owed) => owed.forget(unit),
            Extra::Tail(tail) => tail.forget(unit),
        }
    }

    fn codes(&self) -> bool {
        !matches!(self.extra, Extra::None)
    }

    fn inherits(&self) -> bool {
        true
    }

    fn legacy(&self) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(self.known.clone()))
    }

    fn inherit(&mut self, legacy: &dyn Any) {
        if let Some(known) = legacy.downcast_ref::<Known>() {
            self.known = known.clone();
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let revise = self.revision.at();
        let tail = match &self.extra {
            Extra::Tail(tail) => tail.due(),
            _ => None,
        };
        revise.into_iter().chain(tail).min()
    }
}

#[cfg(test)]
mod tests;
