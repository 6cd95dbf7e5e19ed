//! Coded symbols of units that were emitted whole, as long as they could help: `sos-rateless`.

use alloc::collections::BTreeMap;

use libm::{ceil, sqrt};
use marline_base::{Duration, Instant};
use smallvec::SmallVec;

use super::lanes::Way;
use super::{Lane, Reach, helps};
use crate::sched::{Feedback, Outcome, PathView, Plan, Unit};
use crate::wire::PathId;

/// Standard deviations of the losses to be expected that repair symbols make up for in advance.
const LOSSES: f64 = 1.0;

/// Symbols of a unit that fly on a path.
#[derive(Clone, Copy, Debug)]
struct Flight {
    path: PathId,
    count: u32,
    /// When the last of them left.
    last: Instant,
}

/// What flies of each unit whose fate is not known.
#[derive(Debug, Default)]
pub(super) struct Tail {
    reach: Reach,
    flights: BTreeMap<u64, SmallVec<[Flight; 4]>>,
    /// When something that flies is overdue next.
    due: Option<Instant>,
}

/// A unit's flight on one path, as a plan sees it.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// Symbols that fly, and those that the bottleneck has not served yet; at least the last.
    count: u32,
    waits: u32,
    /// Others' packets before these.
    before: f64,
    /// How long ago the last one left (seconds).
    age: f64,
    overdue: bool,
}

impl Tail {
    pub(super) fn on_feedback(&mut self, feedback: &Feedback) {
        let (unit, path) = (feedback.symbol.unit, feedback.path);
        match feedback.outcome {
            Outcome::Sent => {
                let flights = self.flights.entry(unit).or_default();
                let last = feedback.sent;
                match flights.iter_mut().find(|flight| flight.path == path) {
                    Some(flight) => {
                        flight.count += 1;
                        flight.last = last;
                    }
                    None => flights.push(Flight {
                        path,
                        count: 1,
                        last,
                    }),
                }
            }
            Outcome::Acked | Outcome::Lost => {
                let flights = self.flights.get_mut(&unit);
                let flight = flights.and_then(|f| f.iter_mut().find(|f| f.path == path));
                if let Some(flight) = flight {
                    flight.count = flight.count.saturating_sub(1);
                }
            }
            Outcome::Recovered => {}
        }
    }

    pub(super) fn forget(&mut self, unit: u64) {
        self.flights.remove(&unit);
    }

    /// When to look again although nothing happened.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// A plan begins.
    pub(super) fn begin(&mut self) {
        self.due = None;
    }

    /// Emits coded symbols where they help; nothing is unsent. The most urgent units first.
    pub(super) fn fill(&mut self, plan: &mut Plan<'_>, ways: &[Way]) {
        let mut units = plan.units();
        units.retain(|unit| unit.len == 0 && unit.code.is_some_and(|code| code.spare > 0));
        units.sort_by_key(|unit| (unit.urgency, unit.id));
        for unit in units {
            self.serve(plan, ways, &unit);
        }
    }

    fn serve(&mut self, plan: &mut Plan<'_>, ways: &[Way], unit: &Unit) {
        let Some(code) = unit.code else { return };
        let missing = code.symbols.saturating_sub(code.acked);
        if missing == 0 {
            return;
        }
        let mut standing = self.standing(plan, ways, unit.id);
        let lost = plan.paths().iter().zip(&standing);
        let lost: f64 = lost.map(|(view, s)| view.loss * f64::from(s.count)).sum();
        let (mut open, mut spare) = (code.open, code.spare);
        // As many more as are missing would do whatever became of the others.
        let most = missing.saturating_mul(2);
        let sure = match lost > 0.05 {
            true => missing + ceil(lost + LOSSES * sqrt(lost)) as u32,
            false => missing,
        };
        while open < most && spare > 0 {
            let room = |i: &usize| {
                plan.paths()[*i].has_room() && self.has_reach(plan, ways, &standing, *i)
            };
            let rooms = (0..ways.len()).filter(room);
            let useful = rooms.filter(|i| open < sure || is_useful(ways, &standing, *i));
            let at = |i: usize| {
                ways[i]
                    .lane_after(standing[i].before, 0.0)
                    .expected(standing[i].waits + 1)
            };
            let Some(index) = useful.min_by(|a, b| at(*a).total_cmp(&at(*b))) else {
                return;
            };
            if plan.repair_of(unit.id, index).is_none() {
                return;
            }
            let here = &mut standing[index];
            *here = Standing {
                count: here.count + 1,
                waits: here.waits + 1,
                age: 0.0,
                overdue: false,
                ..*here
            };
            (open, spare) = (open + 1, spare - 1);
        }
    }

    fn has_reach(&self, plan: &Plan<'_>, ways: &[Way], standing: &[Standing], i: usize) -> bool {
        let feedback = plan.paths()[i].srtt.as_secs_f64();
        let most = self.reach.packets(&ways[i].moments, feedback, false);
        standing[i].count < most
    }

    fn standing(&mut self, plan: &Plan<'_>, ways: &[Way], unit: u64) -> SmallVec<[Standing; 4]> {
        let now = plan.now();
        let flights = self.flights.get(&unit);
        let mut due = self.due;
        let one = |(view, way): (&PathView, &Way)| {
            let flight = flights.and_then(|f| f.iter().find(|f| f.path == view.id));
            let flight = flight.filter(|flight| flight.count > 0);
            let Some(flight) = flight else {
                return Standing {
                    count: 0,
                    waits: 0,
                    before: way.ahead,
                    age: 0.0,
                    overdue: false,
                };
            };
            let limit = flight.last + overdue_after(view, way);
            if limit > now {
                due = Some(due.map_or(limit, |due: Instant| due.min(limit)));
            }
            let waits = flight.count.min(ceil(way.ahead) as u32).max(1);
            Standing {
                count: flight.count,
                waits,
                before: (way.ahead - f64::from(waits)).max(0.0),
                age: now.since(flight.last).as_secs_f64(),
                overdue: limit <= now,
            }
        };
        let standing = plan.paths().iter().zip(ways).map(one).collect();
        self.due = due;
        standing
    }
}

/// After this nothing is heard of a symbol only if it is late.
fn overdue_after(view: &PathView, way: &Way) -> Duration {
    let busy = way.ahead * way.moments.mean;
    view.srtt + view.rtt_var * 4 + Duration::from_secs_f64(busy.clamp(0.0, 10.0))
}

/// Could one more on this path arrive before the last of those elsewhere?
fn is_useful(ways: &[Way], standing: &[Standing], index: usize) -> bool {
    if standing
        .iter()
        .enumerate()
        .any(|(i, s)| i != index && s.overdue)
    {
        return true;
    }
    let lane = |(i, (way, s)): (usize, (&Way, &Standing))| {
        // What left long ago is the nearer; what would leave now is not.
        let age = if i == index { 0.0 } else { s.age };
        way.lane_after(s.before, age)
    };
    let lanes = ways.iter().zip(standing).enumerate().map(lane);
    let lanes: SmallVec<[Lane; 4]> = lanes.collect();
    let flying: SmallVec<[u32; 4]> = standing.iter().map(|s| s.waits).collect();
    helps(&lanes, &flying, index)
}
