//! Live streams without reordering, our way: where [`ols`](super::ols) estimates, this one
//! forecasts; where `ols` counts the surplus once per path, this one counts it once.
//!
//! What differs from OLS (Xing et al., IEEE TWC 2021):
//!
//! * A packet's arrival on a path is forecast from arrival times at the receiver
//!   ([`ArrivalForecast`]): one clock for all paths, no halved round trips, our own queue by
//!   recursion instead of equation (2)'s share of a window. The interval ends at the 95th
//!   percentile of how wrong such forecasts were about packets when they left.
//! * Copies are paid from one bucket, filled with the paths' rates less the target. Equation (3)
//!   grants the whole surplus to every path and so drops below the target.
//! * A copy goes only to a path whose queue is short: behind a long one it comes too late to help
//!   and delays what follows. The session drops copies whose symbol was acknowledged meanwhile.
//! * A path is never filled beyond its pipe and a few packets, whatever its window: a standing
//!   queue is delay for everybody and ends in loss.
//! * When no path has room and data waits, there was no surplus after all, whatever the rates said:
//!   the bucket is emptied.
//! * A spread of a few packets' time is no reason for a copy: it would delay what follows by as
//!   much as it could save.

use alloc::boxed::Box;

use marline_base::{Duration, Instant};
use smallvec::SmallVec;

use super::ols::target::{self, Target};
use super::registry::{Entry, PACKET_WISE};
use super::{Choice, OptionSpec, PathView, Plan, Scheduler};
use crate::path::ArrivalForecast;

/// A path takes a copy only if no more packets than this stand before it.
const SHORT_QUEUE: f64 = 3.0;
/// A spread below so many packets' transmission times is not worth a copy.
const NOISE: f64 = 3.0;
/// Bytes in flight are bounded by this many pipes and [`SPARE`] packets.
const PIPES: f64 = 1.25;
const SPARE: f64 = 3.0;
/// The bucket holds the surplus of so long.
const BUCKET: Duration = Duration::from_millis(100);
/// Packets wait for a path at most so long, in time at its rate.
const HORIZON: Duration = Duration::from_millis(500);
/// What waits for a path beyond its bound is planned anew so often.
const REVISE: Duration = Duration::from_millis(10);

pub(super) const ENTRY: Entry = Entry {
    name: "hedge",
    publication: "Marline; after Xing et al., IEEE TWC 2021",
    help: "live streams: arrival by forecast, copies where it is uncertain, within one surplus",
    kinds: PACKET_WISE,
    options: &[
        OptionSpec::switch("copies", true, "copies where arrival is uncertain"),
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
    target: Target,
    /// Bytes that copies may use.
    tokens: f64,
    filled: Instant,
    revised: Instant,
    /// Something waits beyond a path's bound.
    ahead: bool,
}

/// When a packet would arrive on a path, from now on a clock that all paths share (µs).
#[derive(Clone, Copy, Debug)]
struct Arrival {
    expected: f64,
    /// 95th percentile.
    late: f64,
    /// Packets of this size that stand before it.
    ahead: f64,
    /// Time that the link needs for it.
    service: f64,
    /// May it leave now?
    has_room: bool,
}

impl Hedge {
    fn new(choice: &Choice) -> Self {
        Self {
            copies: choice.switch("copies"),
            target: Target::new(choice.number("target")),
            tokens: 0.0,
            filled: Instant::ZERO,
            revised: Instant::ZERO,
            ahead: false,
        }
    }

    /// Fills the bucket with the surplus of the time that passed.
    fn fill(&mut self, now: Instant, paths: &[PathView]) {
        let rates: f64 = paths.iter().map(|p| p.rate.as_bps() as f64 / 8.0).sum();
        let surplus = (rates - self.target.bytes_per_second()).max(0.0);
        let passed = now.since(self.filled).min(BUCKET).as_secs_f64();
        self.filled = now;
        self.tokens = (self.tokens + surplus * passed).min(surplus * BUCKET.as_secs_f64());
    }
}

/// Arrivals of a packet of `len` bytes on each path.
fn arrivals(now: Instant, paths: &[PathView], len: u32) -> SmallVec<[Arrival; 4]> {
    // A clock that not all paths have told cannot be compared.
    let told = paths.iter().all(|p| p.forecast.is_some());
    let forecast = |p: &PathView| p.forecast.filter(|_| told);
    paths
        .iter()
        .map(|p| arrival(now, p, forecast(p), len))
        .collect()
}

fn arrival(now: Instant, path: &PathView, known: Option<ArrivalForecast>, len: u32) -> Arrival {
    let len = f64::from(len);
    // µs a byte.
    let service = 8e6 / path.rate.as_bps().max(1) as f64;
    let waiting = path.queued as f64 * service;
    let (standing, offset, late) = match known {
        Some(forecast) => (
            forecast.free.since(now).as_nanos() as f64 / 1e3,
            forecast.offset_us,
            forecast.late_us,
        ),
        // What the round trip says; nothing of how sure that is.
        None => (0.0, path.min_rtt.as_nanos() as f64 / 2e3, 0.0),
    };
    let expected = offset + standing + waiting;
    let pipe = PIPES * path.rate.bytes_in(path.min_rtt) as f64 + SPARE * len;
    let flight = path.in_flight as f64 + path.queued as f64 + len;
    Arrival {
        expected,
        late: expected + late,
        ahead: (standing + waiting) / (len * service).max(1e-3),
        service: len * service,
        has_room: path.has_room() && flight <= pipe,
    }
}

impl Scheduler for Hedge {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        let now = plan.now();
        self.target.observe(now, plan.target_rate(), plan.unsent());
        self.fill(now, plan.paths());
        if self.ahead && now.since(self.revised) >= REVISE {
            plan.take_back();
            self.revised = now;
            self.ahead = false;
        }
        while let Some(len) = plan.next_len() {
            let arrivals = arrivals(now, plan.paths(), len);
            if !arrivals.iter().any(|a| a.has_room) {
                self.tokens = 0.0;
                return;
            }
            let order = arrivals.iter().enumerate();
            let first = order.min_by(|a, b| a.1.expected.total_cmp(&b.1.expected));
            let Some((first, _)) = first else {
                return;
            };
            if !arrivals[first].has_room {
                let path = &plan.paths()[first];
                if path.queued_own > path.rate.bytes_in(HORIZON) {
                    return;
                }
                self.ahead = true;
            }
            let symbol = plan.send(first);
            self.target.sent(symbol.len);
            let sure = arrivals[first];
            let spread = sure.late - sure.expected;
            if !self.copies || spread < NOISE * sure.service {
                continue;
            }
            for (other, at) in arrivals.iter().enumerate().filter(|(i, _)| *i != first) {
                let cost = f64::from(symbol.len);
                if at.expected < sure.late
                    && at.ahead <= SHORT_QUEUE
                    && at.has_room
                    && self.tokens >= cost
                {
                    self.tokens -= cost;
                    plan.copy(other, symbol);
                }
            }
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.ahead.then(|| self.revised + REVISE)
    }
}

#[cfg(test)]
mod tests;
