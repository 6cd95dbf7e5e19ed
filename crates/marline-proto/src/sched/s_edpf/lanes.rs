//! When packets would arrive: one lane a path, for one plan.

use libm::sqrt;
use marline_base::{Duration, Instant, nanos_f64};
use smallvec::SmallVec;

use crate::sched::PathView;
use crate::sched::laws::arrivals::{Arrivals, Laws};
use crate::sched::laws::gauss::Gauss;
use crate::sched::laws::sample;

/// Standard deviations from a normal variable's mean to its 95th percentile.
const UPPER: f64 = 1.644_853_626_951_472_2;
/// The same to its 99th.
const LATE: f64 = 2.326_347_874;
/// Delays that differ by less (µs) are equal; the earlier arrival then decides.
const EQUAL: f64 = 1.0;
/// Delays of packets in a row that are correlated less are draws of their own.
const UNCORRELATED: f64 = 0.5;
/// Nothing has left on the path yet: its latest arrival lies in the past (µs).
const NEVER: f64 = -1e15;

/// A path as eq. (9) sees it. Times in µs from now, on a clock that all paths share.
#[derive(Clone, Debug)]
pub(super) struct Lane<'a> {
    /// A packet's delay from its departure.
    delay: Gauss,
    /// The latest arrival of all that left or wait.
    latest: Gauss,
    /// The same with the next packet.
    with_next: Gauss,
    /// Correlation of delays of two packets in a row.
    correlation: f64,
    /// Packets come in any order, as far as that matters: what varies by less than a packet's own
    /// time holds nothing up, and clocks that count microseconds are not exact.
    scatters: bool,
    /// The laws as they were seen, and what their values are to be shifted by.
    seen: Option<(&'a Laws, f64)>,
    /// A repair symbol brings what has not arrived this long after its departure.
    mended: f64,
    /// When the next packet would leave.
    departs: f64,
    /// When the last one left.
    last: f64,
    /// Time between departures.
    service: f64,
}

/// All lanes of a plan.
pub(super) struct Lanes<'a> {
    lanes: SmallVec<[Lane<'a>; 4]>,
    /// Delays count as they were seen, not as normal variables.
    seen: bool,
    /// Arrivals are compared by when they are there almost certainly, not by their means.
    late: bool,
}

/// As what delays count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// As normal variables.
    Normal,
    /// As they were seen.
    Seen,
    /// As they were seen, if packets of some path come in any order.
    SeenIfScattered,
}

/// What is known of a path besides its view.
pub(super) struct Known<'a> {
    pub(super) arrivals: Option<&'a Arrivals>,
    /// When the last packet that the receiver waits for leaves the bottleneck.
    pub(super) last: Option<Instant>,
}

impl<'a> Known<'a> {
    fn laws(&self) -> Option<&'a Laws> {
        self.arrivals?.laws()
    }
}

impl<'a> Lanes<'a> {
    /// The lanes of `paths`, of which `known` says what is known, for packets of `len` bytes.
    pub(super) fn new(
        now: Instant,
        paths: &[PathView],
        known: &[Known<'a>],
        len: u32,
        sight: Sight,
    ) -> Self {
        // A clock that not all paths have reported cannot be compared.
        let known_all = known.iter().all(|k| k.laws().is_some());
        let forecast = known_all && paths.iter().all(|p| p.forecast.is_some());
        let lane = |(path, known): (&PathView, &Known<'a>)| {
            let laws = known.laws().filter(|_| known_all);
            let mut lane = lane(now, path, known, laws, forecast, len);
            lane.look_ahead();
            lane
        };
        let mut lanes = Self {
            lanes: paths.iter().zip(known).map(lane).collect(),
            seen: false,
            late: false,
        };
        lanes.seen = known_all
            && match sight {
                Sight::Normal => false,
                Sight::Seen => true,
                Sight::SeenIfScattered => lanes.any_scatters(),
            };
        lanes
    }

    /// The path where E\[max(Y₁, …, Y_P, a_q)\] is least (eq. 9): all packets up to this one are
    /// there at the earliest. Of equals, where this one arrives first. Only paths that `may`.
    pub(super) fn best(&self, may: impl Fn(usize) -> bool) -> Option<usize> {
        let mut best: Option<(usize, f64, f64)> = None;
        for (i, lane) in self.lanes.iter().enumerate() {
            if !may(i) {
                continue;
            }
            let arrival = lane.departs + self.value(lane.delay).min(lane.mended);
            let all = self.all_there(i);
            let better = best.is_none_or(|(_, least, first)| {
                all < least - EQUAL || all < least + EQUAL && arrival < first
            });
            if better {
                best = Some((i, all, arrival));
            }
        }
        best.map(|best| best.0)
    }

    /// E\[max\], or when all are there almost certainly, if the packet takes path `q`.
    fn all_there(&self, q: usize) -> f64 {
        if self.seen {
            return self.all_there_as_seen(q);
        }
        let mut own = self.lanes[q].with_next;
        let mut others = self.lanes.iter().enumerate().filter(|(p, _)| *p != q);
        let Some((_, last)) = others.next_back() else {
            return self.value(own);
        };
        for (_, other) in others {
            own = own.max(other.latest, 0.0);
        }
        match self.late {
            true => self
                .value(own.max(last.latest, 0.0))
                .max(self.late_without(q)),
            false => own.expected_max(last.latest),
        }
    }

    /// The latest of what path `q`'s next packet and all others would be each by itself: all of
    /// them are not there sooner, but the greater of two normal variables, taken for normal, varies
    /// less than either, and so would seem to be there sooner the more packets a late path gets.
    fn late_without(&self, q: usize) -> f64 {
        let own = self.lanes[q].delay.shifted(self.lanes[q].departs);
        let latest = self.lanes.iter().map(|lane| self.value(lane.latest));
        latest.fold(self.value(own), f64::max)
    }

    /// By what a normal variable is compared.
    fn value(&self, gauss: Gauss) -> f64 {
        match self.late {
            true => gauss.mean + LATE * sqrt(gauss.var),
            false => gauss.mean,
        }
    }

    /// The same from the distributions that were seen, cut where repair symbols come first.
    fn all_there_as_seen(&self, q: usize) -> f64 {
        let mut terms: SmallVec<[sample::Term<'_>; 5]> = SmallVec::new();
        for (p, lane) in self.lanes.iter().enumerate() {
            let Some((laws, shift)) = lane.seen else {
                continue;
            };
            let [delay, latest] = &laws.seen;
            let term = |sample, departs| sample::Term {
                sample,
                shift: departs + shift,
                most: lane.mended - shift,
            };
            // On a path that keeps the order, the latest arrival is this packet's.
            let follows = p == q && !lane.scatters;
            if p == q && !follows {
                terms.push(term(delay, lane.departs));
            }
            terms.push(term(latest, if follows { lane.departs } else { lane.last }));
        }
        sample::expected_max(&terms)
    }

    /// A packet goes to path `q`.
    pub(super) fn send(&mut self, q: usize) {
        let lane = &mut self.lanes[q];
        lane.last = lane.departs;
        lane.departs += lane.service;
        if !self.seen {
            lane.latest = lane.with_next;
            lane.look_ahead();
        }
    }

    /// Has path `q` nothing to do that is known of?
    pub(super) fn is_free(&self, q: usize) -> bool {
        let lane = &self.lanes[q];
        lane.departs <= 0.0 && lane.last + lane.service <= 0.0
    }

    /// How long the next packet would wait before it leaves path `q`'s bottleneck.
    pub(super) fn standing(&self, q: usize) -> Duration {
        Duration::from_nanos((1e3 * self.lanes[q].departs).max(0.0) as u64)
    }

    /// Standard deviation of a packet's delay on path `q` (µs).
    pub(super) fn spread(&self, q: usize) -> f64 {
        sqrt(self.lanes[q].delay.var)
    }

    /// Do packets on path `q` come in any order?
    pub(super) fn scatters(&self, q: usize) -> bool {
        self.lanes[q].scatters
    }

    /// Do those of some path?
    pub(super) fn any_scatters(&self) -> bool {
        (0..self.lanes.len()).any(|q| self.scatters(q))
    }

    /// Compares arrivals by when they are there almost certainly, not by their means. What was seen
    /// is not enough to know; it holds the paths' queues, too.
    pub(super) fn compare_late(&mut self) {
        (self.late, self.seen) = (true, false);
    }

    /// The least mean delay of all paths (µs, on the peer's clock).
    pub(super) fn quickest(&self) -> f64 {
        let means = self.lanes.iter().map(|lane| lane.delay.mean);
        means.fold(f64::INFINITY, f64::min)
    }

    /// What path `q` brings later than all but a share `late` of its packets, and later than
    /// `soonest`, repair symbols bring then.
    pub(super) fn mend(&mut self, q: usize, late: f64, soonest: f64) {
        let lane = &mut self.lanes[q];
        if let Some((laws, shift)) = lane.seen {
            lane.mended = (laws.seen[0].quantile(1.0 - late) + shift).max(soonest);
        }
    }
}

impl Lane<'_> {
    fn look_ahead(&mut self) {
        let arrival = self.delay.shifted(self.departs);
        self.with_next = arrival.max(self.latest, self.correlation);
    }
}

fn lane<'a>(
    now: Instant,
    path: &PathView,
    known: &Known<'a>,
    laws: Option<&'a Laws>,
    forecast: bool,
    len: u32,
) -> Lane<'a> {
    // µs a byte.
    let service = 8e6 / path.rate.as_bps().max(1) as f64;
    let waiting = path.queued as f64 * service;
    let service = f64::from(len) * service;
    let from_now =
        |then: Instant| nanos_f64(then.since(now)) / 1e3 - nanos_f64(now.since(then)) / 1e3;
    let last = known.last.map_or(NEVER, from_now);
    // `latest` comes as a delay from the departure of the last packet.
    let lane = |delay: Gauss, latest: Gauss, standing: f64| {
        let departs = standing + waiting;
        // What stands before the next packet need not be the flow's.
        let last = match path.queued_own > 0 {
            true => departs - service,
            false => last.min(departs - service),
        };
        Lane {
            delay,
            latest: latest.shifted(last),
            with_next: delay,
            correlation: laws.map_or(1.0, |laws| laws.correlation),
            scatters: laws.is_some_and(|laws| {
                laws.correlation < UNCORRELATED && laws.delay.var > service * service
            }),
            seen: None,
            mended: f64::INFINITY,
            departs,
            last,
            service,
        }
    };
    let Some(laws) = laws else {
        // What round trips say.
        let pipe = path.rate.bytes_in(path.min_rtt);
        let standing = path.in_flight.saturating_sub(pipe) as f64 * service / f64::from(len.max(1));
        let spread = nanos_f64(path.rtt_var) / 1e3;
        let delay = Gauss {
            mean: nanos_f64(path.min_rtt) / 2e3 + service,
            var: spread * spread,
        };
        return lane(delay, delay, standing);
    };
    let origin = known.arrivals.map_or(0.0, Arrivals::origin);
    let of_forecast = path.forecast.filter(|_| forecast);
    let Some(forecast) = of_forecast else {
        return Lane {
            seen: Some((laws, origin)),
            ..lane(laws.delay.shifted(origin), laws.latest.shifted(origin), 0.0)
        };
    };
    // The forecast knows our own queue; the laws know how far from the mean delays lie.
    let spread = forecast.late_us / UPPER;
    // What was not acknowledged in time is late by the time since at least, and so is what follows.
    let silence = forecast.due.map_or(Duration::ZERO, |due| now.since(due));
    let silence = nanos_f64(silence) / 1e3;
    let delay = Gauss {
        mean: forecast.offset_us + silence,
        var: spread * spread,
    };
    let shift = delay.mean - laws.delay.mean;
    let latest = match laws.latest == laws.delay {
        true => delay,
        false => laws.latest.shifted(shift),
    };
    let standing = nanos_f64(forecast.free.since(now)) / 1e3;
    Lane {
        seen: Some((laws, shift)),
        ..lane(delay, latest, standing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    /// A path whose packets come in any order.
    fn lane(delay: (f64, f64), latest: (f64, f64), departs: f64) -> Lane<'static> {
        let gauss = |(mean, deviation): (f64, f64)| Gauss {
            mean,
            var: deviation * deviation,
        };
        let mut lane = Lane {
            delay: gauss(delay),
            latest: gauss(latest),
            with_next: gauss(delay),
            correlation: 0.0,
            scatters: true,
            seen: None,
            mended: f64::INFINITY,
            departs,
            last: departs,
            service: 500.0,
        };
        lane.look_ahead();
        lane
    }

    #[test]
    fn what_is_late_anyway_does_not_draw_packets_from_an_idle_path() {
        let idle = lane((8_500.0, 20.0), (-5_000.0, 20.0), 0.0);
        // Its queue is long, and what it carries comes between 170 and 220 ms.
        let late = lane((90_000.0, 5_000.0), (195_000.0, 12_000.0), 80_000.0);
        let lanes = Lanes {
            lanes: smallvec![idle, late.clone()],
            seen: false,
            late: true,
        };
        // One packet more makes the normal law of the latest narrower.
        let upper = |lane: Gauss| lane.mean + LATE * sqrt(lane.var);
        assert!(upper(late.with_next) < upper(late.latest) - 2.0 * EQUAL);
        assert_eq!(lanes.best(|_| true), Some(0));
    }
}
