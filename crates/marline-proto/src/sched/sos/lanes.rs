//! What a session shows of its paths, as lanes.

use marline_base::Instant;
use smallvec::SmallVec;

use super::arrivals::Known;
use super::{EPSILON, Lane, Moments, Scale, Width};
use crate::sched::PathView;

/// A path as the schedulers see it (seconds).
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) moments: Moments,
    scale: Scale,
    /// P; only differences between paths mean anything.
    delay: f64,
    /// Packets that are served before one which is queued now.
    pub(super) ahead: f64,
    /// Half the least round-trip time: P by our own clock.
    half: f64,
}

impl Way {
    /// With `more` packets ahead.
    pub(super) fn lane(&self, more: f64) -> Lane {
        self.scale
            .lane(&self.moments, self.delay, self.ahead + more)
    }

    /// For packets that left the given number of seconds ago, with `before` packets before them:
    /// times from now.
    pub(super) fn lane_after(&self, before: f64, age: f64) -> Lane {
        let delay = (self.half - age).max(0.0);
        let spread = self.scale.spread(&self.moments);
        Lane::new(self.moments.mean, spread, delay, before)
    }
}

/// The paths, for symbols of `symbol` bytes.
///
/// What is under way counts as far as the bottleneck has not served it yet: the rest is covered by
/// P, unlike in (7), where packets take no other time than their spacing.
pub(super) fn ways(
    now: Instant,
    views: &[PathView],
    known: &mut Known,
    width: Width,
    symbol: u32,
) -> SmallVec<[Way; 4]> {
    let scale = width.scale(EPSILON, views.len());
    let clocked = views.iter().all(|view| known.way(view.id).is_some());
    let symbol = symbol.max(1);
    let way = |view: &PathView| {
        let moments = known.moments(view, symbol);
        let packets = |bytes: u64| bytes as f64 / f64::from(symbol);
        let busy = match view.forecast {
            Some(arrival) => {
                let busy = arrival.free.since(now).as_secs_f64() / moments.mean.max(1e-9);
                busy.min(packets(view.in_flight))
            }
            None => {
                let pipe = view.rate.bytes_in(view.min_rtt);
                packets(view.in_flight.saturating_sub(pipe))
            }
        };
        let half = view.min_rtt.as_secs_f64() / 2.0;
        let way = known.way(view.id).filter(|_| clocked);
        Way {
            scale,
            moments,
            delay: way.unwrap_or(half),
            ahead: busy + packets(view.queued),
            half,
        }
    };
    views.iter().map(way).collect()
}
