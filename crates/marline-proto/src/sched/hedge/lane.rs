//! A path during one plan.

use marline_base::{Duration, Instant};

use super::super::PathView;
use crate::law::ArrivalForecast;
use crate::path::LOSSY;

/// A spread below so many packets' transmission times is not worth a copy.
pub(super) const NOISE: f64 = 3.0;
/// How far from the mean to the 95th percentile of lateness paths are compared. All packets wait
/// for the latest: with the mean, a path whose delay varies is filled until every second packet
/// comes after those of the steadier path; with the percentile it is hardly used.
const CAUTION: f64 = 0.5;
/// Bytes in flight are bounded by this many pipes and [`SPARE`] packets, and a [`BURST`] where
/// packets are lost.
const PIPES: f64 = 1.25;
const SPARE: f64 = 3.0;
/// So many packets of such a path in a row may be lost before its silence means anything else.
const BURST: f64 = 8.0;
/// Lateness counts at its 95th percentile: of a path that loses a larger share than this, that is
/// what comes again.
const OFTEN: f64 = 0.05;
/// The delay of another path wanders as this one's does if it does so by this part of it, or more.
const ALIKE: f64 = 0.5;
/// Share of the rates that is no surplus: a target counts what applications write, rates what
/// travels, headers and all.
const HEADERS: f64 = 0.03;
/// Share of the rate of a path whose delay varies that may be filled: nobody sees there how a queue
/// grows.
const UNSEEN: f64 = 0.9;

/// A path during one plan: all that does not change with what the plan emits. Times in µs from now
/// on a clock that all paths share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    /// When an empty packet would arrive that waits behind nothing at the sender.
    empty: f64,
    /// From a packet's expected arrival until those before it are there.
    pub(super) behind: f64,
    /// 95th percentile of how much later than expected it arrives.
    pub(super) late: f64,
    /// How much later still it is counted on to be of use, because the path flaps or loses often.
    pub(super) again: f64,
    /// Where its delay wanders: when an empty packet arrives at the 95th percentile of a longer
    /// time, whatever is expected of it.
    ceiling: f64,
    /// How far that is from the mean of that time.
    swing: f64,
    /// How long the bottleneck is still busy with what has left.
    pub(super) standing: f64,
    /// Transmission time of a byte.
    pub(super) service: f64,
    /// Bytes that may be queued on the path now, by its window and by what it holds without a
    /// queue of ours.
    room: f64,
    /// The same of redundancy, by the least that the path holds.
    least_room: f64,
    /// Share of the packets lost lately.
    pub(super) loss: f64,
    /// Bytes in a microsecond, within the window.
    rate: f64,
    /// Those that the congestion control's model has seen, if it has one.
    measured: f64,
}

impl Lane {
    /// Of the bytes in flight on the path `own` are this flow's. Without a `bound` it is filled as
    /// far as its window goes.
    pub(super) fn new(
        now: Instant,
        path: &PathView,
        own: f64,
        known: Option<&ArrivalForecast>,
        silence: bool,
        bound: bool,
    ) -> Self {
        // Without a forecast, what the round trip says; nothing of how sure that is.
        let forecast = known.copied().unwrap_or(ArrivalForecast {
            offset_us: micros(path.min_rtt) / 2.0,
            behind_us: 0.0,
            late_us: 0.0,
            ceiling_us: micros(path.min_rtt) / 2.0,
            swing_us: 0.0,
            due: None,
            free: now,
            service_us: 8e6 / path.rate.as_bps().max(1) as f64,
        });
        let standing = micros_since(forecast.free, now);
        let (service, late) = (forecast.service_us, forecast.late_us);
        let silent = forecast.due.filter(|_| silence);
        let silent = silent.map_or(0.0, |due| micros_since(now, due) - gap(path, &forecast));
        // Such lateness is counted on anyway.
        let silent = (silent - usual(forecast.behind_us, late)).max(0.0);
        let measured = path.congestion.bandwidth;
        Self {
            empty: forecast.offset_us + standing + silent,
            behind: forecast.behind_us,
            late,
            again: again(path),
            ceiling: forecast.ceiling_us + standing,
            swing: forecast.swing_us,
            standing,
            service,
            room: room(path, own, service, pipe(path, late), bound),
            least_room: room(path, own, service, least_pipe(path, late), true),
            loss: path.loss,
            rate: rate(path, service, late),
            measured: measured.map_or(f64::INFINITY, |rate| rate.as_bps() as f64 / 8e6),
        }
    }

    /// When a packet is expected that is queued behind so many bytes, its own included.
    pub(super) fn expected(&self, queued: f64) -> f64 {
        self.empty + queued * self.service
    }

    /// When a packet that is queued behind so many bytes, its own included, arrives at the latest,
    /// however the delay wanders until it leaves; no sooner than is expected now, for the path may
    /// be silent.
    pub(super) fn at_latest(&self, queued: f64) -> f64 {
        self.ceiling.max(self.empty) + queued * self.service
    }

    /// Does the other one's delay wander as this one's does: both by more than a few packets' time,
    /// and its by no less than [`ALIKE`] of this one's?
    pub(super) fn wander(&self, other: &Self, len: f64) -> bool {
        let wanders = |lane: &Self| lane.swing >= NOISE * len * lane.service;
        wanders(self) && wanders(other) && other.swing >= ALIKE * self.swing
    }

    /// When a packet is of use that is queued behind so many bytes, its own included.
    pub(super) fn of_use(&self, queued: f64) -> f64 {
        self.expected(queued) + usual(self.behind, self.late) + self.again
    }

    /// May a packet be queued so that so many bytes are?
    pub(super) fn has_room(&self, queued: f64) -> bool {
        queued <= self.room
    }

    /// When an empty packet would be of use if nothing stood on the path (µs from now, on the
    /// shared clock).
    pub(super) fn unqueued(&self) -> f64 {
        self.of_use(0.0) - self.standing
    }

    /// May a packet of so many bytes be queued so that `queued` bytes are, with no more than so
    /// many like it before it?
    pub(super) fn takes_behind(&self, packets: f64, queued: f64, len: f64) -> bool {
        let before = self.standing + (queued - len) * self.service;
        before <= packets * len * self.service && self.has_room(queued)
    }

    /// Bytes of the flow in a microsecond that can be counted on: without what is lost and then
    /// sent again.
    pub(super) fn carries(&self, len: f64) -> f64 {
        let share = if self.is_steady(len) { 1.0 } else { UNSEEN };
        share * self.takes_in() * (1.0 - 2.0 * self.loss).max(0.0)
    }

    /// The same for redundancy, which pays for what is sent again besides. Where delay varies, more
    /// would make a queue that nobody sees.
    pub(super) fn spares(&self, len: f64) -> f64 {
        if self.is_steady(len) {
            self.takes_in()
        } else {
            self.carries(len)
        }
    }

    fn takes_in(&self) -> f64 {
        self.rate * (1.0 - HEADERS)
    }

    /// The same, as far as it was measured: a rate that is still sought may be far too high.
    pub(super) fn proved(&self, len: f64) -> f64 {
        self.carries(len).min(self.measured)
    }

    /// Do its packets keep their order?
    pub(super) fn keeps_order(&self, len: f64) -> bool {
        self.behind < NOISE * len * self.service
    }

    /// Do its packets keep their order, and nearly their times?
    pub(super) fn is_steady(&self, len: f64) -> bool {
        self.late < NOISE * len * self.service
    }

    /// As [`Lane::takes_behind`], for redundancy.
    pub(super) fn takes(&self, packets: f64, queued: f64, len: f64) -> bool {
        queued <= self.least_room && self.takes_behind(packets, queued, len)
    }
}

/// How much later than expected a packet is counted on to be of use, of these two of a [`Lane`].
fn usual(behind: f64, late: f64) -> f64 {
    behind + CAUTION * (late - behind).max(0.0)
}

/// What a path loses comes again after a round trip: where it flaps, or loses often, the order
/// waits for that as for the latest of those that arrive.
fn again(path: &PathView) -> f64 {
    if path.flaps || path.loss > OFTEN {
        CAUTION * micros(path.srtt)
    } else {
        0.0
    }
}

/// How long (µs) the path holds a packet without a queue of ours, when it is as late as it comes:
/// at the least.
fn least_pipe(path: &PathView, late: f64) -> f64 {
    micros(path.min_rtt) + 2.0 * late
}

/// The same by the quickest round, if the controller knows its mean, and by what stands on the way
/// back: of a path whose delay varies by far, or for a while, the luckiest packet of ten seconds
/// says too little.
fn pipe(path: &PathView, late: f64) -> f64 {
    let quickest_round = path.congestion.min_rtt.map_or(0.0, micros);
    least_pipe(path, late).max(quickest_round + micros(path.back_queueing) + late)
}

/// Bytes that a path takes beside what is in flight, of which `own` are this flow's: by its window,
/// and by its pipe (µs) if it has a `bound`.
fn room(path: &PathView, own: f64, service: f64, pipe: f64, bound: bool) -> f64 {
    // What a burst took and nobody knows of yet is not in the way of anything.
    let spare = if path.loss > LOSSY {
        SPARE + BURST
    } else {
        SPARE
    };
    let most = PIPES * pipe / service.max(1e-6) + spare * f64::from(path.symbol);
    let (window, in_flight) = (path.window as f64, path.in_flight as f64);
    // Others fill it beyond that: to hold back would only leave them our share.
    let filled = in_flight - own > most;
    let most = if filled || !bound {
        window
    } else {
        most.min(window)
    };
    most - in_flight
}

/// A burst of losses is a silence, too: how long one lasts that is taken for nothing else (µs),
/// beyond what packets may be late anyway.
fn gap(path: &PathView, forecast: &ArrivalForecast) -> f64 {
    let burst = BURST * f64::from(path.symbol) * forecast.service_us;
    if path.loss > LOSSY {
        (burst - forecast.late_us).max(0.0)
    } else {
        0.0
    }
}

/// See [`Lane::rate`].
fn rate(path: &PathView, service: f64, late: f64) -> f64 {
    let windowed = path.window as f64 / micros(path.srtt).max(1.0);
    let noise = NOISE * f64::from(path.symbol) * service;
    // Jitter stretches what few arrivals tell of the service time.
    let served = if late < noise {
        1.0 / service
    } else {
        path.rate.as_bps() as f64 / 8e6
    };
    served.min(windowed)
}

pub(super) fn micros(duration: Duration) -> f64 {
    duration.as_secs() as f64 * 1e6 + f64::from(duration.subsec_nanos()) / 1e3
}

/// From `earlier` to `later`; zero if it is the other way round.
pub(super) fn micros_since(later: Instant, earlier: Instant) -> f64 {
    later.as_nanos().saturating_sub(earlier.as_nanos()) as f64 / 1e3
}
