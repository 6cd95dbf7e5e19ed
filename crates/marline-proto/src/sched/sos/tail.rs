//! Coded symbols of units that were emitted whole, as long as they could help: `sos-rateless`.

use alloc::collections::BTreeMap;

use libm::{ceil, sqrt};
use marline_base::{Duration, Instant};
use smallvec::SmallVec;

use super::gaps::Gaps;
use super::lanes::Way;
use super::{Lane, Reach};
use crate::sched::per_path::PerPath;
use crate::sched::{Feedback, Outcome, PathView, Plan, Unit};
use crate::wire::PathId;

/// Standard deviations of the losses to be expected that repair symbols make up for in advance,
/// where they delay nothing else.
const LOSSES: f64 = 3.0;

/// Symbols of a unit that fly on a path.
#[derive(Clone, Copy, Debug)]
struct Flight {
    path: PathId,
    count: u32,
    /// When the last of them left, as which of the path's packets.
    last: Instant,
    place: u64,
}

/// What is in flight of each unit whose fate is not known.
#[derive(Debug, Default)]
pub(super) struct Tail {
    reach: Reach,
    flights: BTreeMap<u64, SmallVec<[Flight; 4]>>,
    /// Packets that have left on each path.
    left: PerPath<u64>,
    /// When something in flight is overdue next.
    due: Option<Instant>,
    gaps: Gaps,
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
    /// Packets that are served before another one, whosever they are.
    ahead: f64,
}

impl Standing {
    fn of_none(way: &Way) -> Self {
        Self {
            count: 0,
            waits: 0,
            before: way.ahead,
            age: 0.0,
            overdue: false,
            ahead: way.ahead,
        }
    }

    /// With one more, which comes behind all others.
    fn with_one(self) -> Self {
        Self {
            count: self.count + 1,
            waits: self.waits + 1,
            before: self.ahead - f64::from(self.waits),
            age: 0.0,
            overdue: false,
            ahead: self.ahead + 1.0,
        }
    }

    /// When the bottleneck has served one more for sure (seconds from now).
    fn served_after(&self, way: &Way) -> f64 {
        way.lane_after(self.ahead, f64::INFINITY).bound(1)
    }
}

impl Tail {
    pub(super) fn on_feedback(&mut self, feedback: &Feedback) {
        let (unit, path) = (feedback.symbol.unit, feedback.path);
        match feedback.outcome {
            Outcome::Sent => {
                let left = self.left.of(path, || 0);
                *left += 1;
                let place = *left;
                let flights = self.flights.entry(unit).or_default();
                let last = feedback.sent;
                match flights.iter_mut().find(|flight| flight.path == path) {
                    Some(flight) => {
                        flight.count += 1;
                        (flight.last, flight.place) = (last, place);
                    }
                    None => flights.push(Flight {
                        path,
                        count: 1,
                        last,
                        place,
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

    /// A unit begins to be sent.
    pub(super) fn begins(&mut self, now: Instant, unit: u64) {
        self.gaps.begins(now, unit);
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
        let next = self.gaps.quiet_until(plan.now());
        let next = next.map_or(f64::INFINITY, |at| at.since(plan.now()).as_secs_f64());
        let lost = plan.paths().iter().zip(&standing);
        let lost: f64 = lost.map(|(view, s)| view.loss * f64::from(s.count)).sum();
        let (mut open, mut spare) = (code.open, code.spare);
        // As many more as are missing would do whatever became of the others.
        let most = missing.saturating_mul(2);
        let sure = match lost > 0.05 {
            true => missing + ceil(lost + LOSSES * sqrt(lost)) as u32,
            false => missing,
        };
        let whole = wait_here(&mut standing, plan.paths(), open);
        while open < most && spare > 0 {
            let room = |i: &usize| {
                plan.paths()[*i].has_room() && self.has_reach(plan, ways, &standing, *i)
            };
            let rooms = (0..ways.len()).filter(room);
            // What would wait when the next unit comes delays that one.
            let free = |i: usize| whole && standing[i].served_after(&ways[i]) <= next;
            let helps = |i: usize| open < sure || is_useful(ways, &standing, missing, i);
            let useful = rooms.filter(|i| open < missing || (free(*i) && helps(*i)));
            let at = |i: usize| ways[i].lane_after(standing[i].ahead, 0.0).expected(1);
            let Some(index) = useful.min_by(|a, b| at(*a).total_cmp(&at(*b))) else {
                return;
            };
            if plan.repair_of(unit.id, index).is_none() {
                return;
            }
            standing[index] = standing[index].with_one();
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
            let Some(flight) = flight.filter(|flight| flight.count > 0) else {
                return Standing::of_none(way);
            };
            let limit = flight.last + overdue_after(view, way);
            if limit > now {
                due = Some(due.map_or(limit, |due: Instant| due.min(limit)));
            }
            // Others' that left or will leave behind these.
            let queued = view.queued as f64 / f64::from(view.symbol.max(1));
            let left = self.left.get(view.id).copied().unwrap_or(0);
            let behind = queued + left.saturating_sub(flight.place) as f64;
            let unserved = (way.ahead - behind).max(0.0);
            let waits = flight.count.min(ceil(unserved) as u32).max(1);
            Standing {
                count: flight.count,
                waits,
                before: (unserved - f64::from(waits)).max(0.0),
                age: now.since(flight.last).as_secs_f64(),
                overdue: limit <= now,
                ahead: way.ahead,
            }
        };
        let standing = plan.paths().iter().zip(ways).map(one).collect();
        self.due = due;
        standing
    }
}

/// After this a symbol is unacknowledged only if it is late.
fn overdue_after(view: &PathView, way: &Way) -> Duration {
    let busy = way.ahead * way.moments.mean;
    view.srtt + view.rtt_var * 4 + Duration::from_secs_f64(busy.clamp(0.0, 10.0))
}

/// Adds the unit's symbols that wait for a path on this side, of `open` in all; are all found?
fn wait_here(standing: &mut [Standing], paths: &[PathView], open: u32) -> bool {
    let fly: u32 = standing.iter().map(|s| s.count).sum();
    let mut hidden = open.saturating_sub(fly);
    for (s, path) in standing.iter_mut().zip(paths) {
        let own = path.queued_own.div_ceil(u64::from(path.symbol.max(1)));
        let own = hidden.min(own.min(u64::from(u32::MAX)) as u32);
        if own > 0 {
            s.count += own;
            s.waits = s.count.min(ceil(s.ahead) as u32).max(own);
            s.before = (s.ahead - f64::from(s.waits)).max(0.0);
            s.age = 0.0;
            hidden -= own;
        }
    }
    hidden == 0
}

/// Could one more on this path arrive before enough of those that fly are there for sure? Of those
/// the latest do not count, if there are more than are missing.
fn is_useful(ways: &[Way], standing: &[Standing], missing: u32, index: usize) -> bool {
    if standing
        .iter()
        .enumerate()
        .any(|(i, s)| i != index && s.overdue)
    {
        return true;
    }
    // What left long ago is the nearer.
    let lanes = ways.iter().zip(standing);
    let lanes = lanes.map(|(way, s)| way.lane_after(s.before, s.age));
    let lanes: SmallVec<[Lane; 4]> = lanes.collect();
    let served: u32 = standing
        .iter()
        .map(|s| s.count - s.waits.min(s.count))
        .sum();
    let waits: SmallVec<[u32; 4]> = standing.iter().map(|s| s.waits).collect();
    let complete = complete(&lanes, &waits, missing.saturating_sub(served));
    let another = ways[index].lane_after(standing[index].ahead, 0.0);
    another.lucky(1) < complete
}

/// When `needed` of the symbols that fly on these lanes are there for sure.
fn complete(lanes: &[Lane], flying: &[u32], needed: u32) -> f64 {
    let mut counts: SmallVec<[u32; 4]> = SmallVec::from_slice(flying);
    let mut spare = counts.iter().sum::<u32>().saturating_sub(needed);
    loop {
        let ends = lanes.iter().zip(&counts).enumerate();
        let ends = ends.filter(|(_, (_, n))| **n > 0);
        let ends = ends.map(|(i, (lane, n))| (i, lane.bound(*n)));
        match ends.max_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((latest, _)) if spare > 0 => counts[latest] -= 1,
            Some((_, end)) => return end,
            None => return f64::NEG_INFINITY,
        }
        spare -= 1;
    }
}
