//! BBR's STARTUP and DRAIN (§4.3.2, §4.3.3).

use marline_base::{Duration, Rate};

use super::filters::Model;
use super::probe_rtt::Manner;
use super::{Bbr, Event, Live, Phase};

/// §4.3.2.1 `BBRHighGain`, 2/ln 2: the smallest gain that doubles the rate every round trip.
pub(super) const HIGH_GAIN: f64 = 2.0 / core::f64::consts::LN_2;

/// §4.3.2.2: bandwidth that grows by less than a quarter in a round ...
const GROWTH: f64 = 1.25;

/// ... and does so this number of times in a row has reached the pipe's: three as the draft says,
/// five to be sure where random delays make a round look poor.
const fn rounds(manner: Manner) -> u32 {
    match manner {
        Manner::FourPackets => 3,
        Manner::HalfPipe => 5,
    }
}

/// A round overruns the queue if more than one byte in [`OVERRUN`] is lost, and [`OVERFULL`]
/// bandwidth-delay products were in flight.
const OVERRUN: u64 = 8;
const OVERFULL: f64 = 1.25;

/// Of a round that loses more than one byte in [`FLOODED`] in this way, no other is needed. One
/// that does with less in flight counts, too: where the buffer is short for the round trip, what is
/// sent again in bursts overruns it.
const FLOODED: u64 = 4;

/// Packets that must be lost for either: among a few, as many may be lost at random.
const LEAST_LOST: u64 = 48;

/// A round found a queue if this number of packets or more brought a round-trip time, and all of
/// them exceeded the smallest by this part of it, and by this time.
const LEAST_SAMPLES: u32 = 16;
const QUEUED: u32 = 2;
const LEAST_QUEUE: Duration = Duration::from_millis(5);

/// What happened in a round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    acked: u64,
    lost: u64,
    /// More was in flight than the pipe holds.
    overfull: bool,
    /// Its smallest round-trip time, without what the way back took longer, and of how many.
    quickest: Option<Duration>,
    samples: u32,
}

impl Round {
    fn on_ack(&mut self, event: &Event, overfull: bool) {
        self.acked = self.acked.saturating_add(event.ack.bytes);
        self.lost = self.lost.saturating_add(event.lost);
        self.overfull |= overfull;
        if let Some(rtt) = event.ack.rtt {
            let rtt = rtt.saturating_sub(event.ack.back_queueing);
            self.quickest = Some(self.quickest.map_or(rtt, |quickest| quickest.min(rtt)));
            self.samples += 1;
        }
    }

    /// Did its own flight stand in a queue from the first packet to the last?
    fn queued(&self, min_rtt: Option<Duration>) -> bool {
        let (Some(quickest), Some(min_rtt)) = (self.quickest, min_rtt) else {
            return false;
        };
        let beyond = quickest.saturating_sub(min_rtt);
        self.overfull && self.samples >= LEAST_SAMPLES && beyond > LEAST_QUEUE.max(min_rtt / QUEUED)
    }

    /// Did it lose more than one byte in `many`?
    fn lost_one_in(&self, many: u64, mtu: u64) -> bool {
        let all = self.acked.saturating_add(self.lost);
        self.lost >= LEAST_LOST * mtu && self.lost.saturating_mul(many) > all
    }
}

/// Estimator of whether STARTUP has filled the pipe.
#[derive(Debug)]
pub(super) struct FullPipe {
    /// Bandwidth that the next round has to exceed by [`GROWTH`].
    bandwidth: Rate,
    /// Rounds without growth that are still missing.
    left: u32,
    manner: Manner,
    round: Round,
}

impl FullPipe {
    pub(super) const fn new(manner: Manner) -> Self {
        Self {
            bandwidth: Rate::ZERO,
            left: rounds(manner),
            manner,
            round: Round {
                acked: 0,
                lost: 0,
                overfull: false,
                quickest: None,
                samples: 0,
            },
        }
    }

    pub(super) const fn filled(&self) -> bool {
        self.left == 0
    }

    /// §4.3.2.2 `BBRCheckFullPipe`. A sample that is app-limited, or none at all, says nothing,
    /// unless the round overran the queue, stood in it from beginning to end or lost a quarter:
    /// then it was the path that took no more. A stream whose receiver waits for what was lost is
    /// app-limited just because of that, and one that a scheduler spreads over several paths
    /// because of the scheduler. Beside live streams one round that stood in a queue is enough:
    /// with each that follows they would wait for twice as long.
    fn check(&mut self, event: &Event, model: &Model, overfull: bool, live: Live, mtu: u64) {
        if self.filled() {
            return;
        }
        self.round.on_ack(event, overfull);
        if !event.round_start {
            return;
        }
        let round = core::mem::take(&mut self.round);
        let (Some(bandwidth), Some(sample)) = (model.bandwidth(), event.sample) else {
            return;
        };
        let is_flooded = self.manner == Manner::HalfPipe && round.lost_one_in(FLOODED, mtu);
        let is_overrun = round.overfull && round.lost_one_in(OVERRUN, mtu);
        let queued = round.queued(model.min_rtt());
        let by_path = is_flooded || is_overrun || queued;
        if sample.app_limited && !by_path {
            return;
        }
        if bandwidth >= self.bandwidth.scaled(GROWTH) {
            self.bandwidth = bandwidth;
            self.left = rounds(self.manner);
        } else if is_flooded && round.overfull || queued && live != Live::Absent {
            self.left = 0;
        } else {
            self.left -= 1;
        }
    }
}

impl Bbr {
    /// Is the pipe full? Only the gentle manner minds what was lost.
    pub(super) fn check_full_pipe(&mut self, event: &Event) {
        let overfull = self.manner == Manner::HalfPipe
            && event.ack.prior_in_flight > self.control.inflight(&self.model, OVERFULL);
        let mtu = self.control.mtu;
        self.full_pipe
            .check(event, &self.model, overfull, self.live, mtu);
    }

    /// §4.3.3 `BBRCheckDrain`.
    pub(super) fn check_drain(&mut self, event: &Event) {
        if self.phase == Phase::Startup && self.full_pipe.filled() {
            self.phase = Phase::Drain;
        }
        if self.phase == Phase::Drain
            && event.ack.in_flight <= self.control.inflight(&self.model, 1.0)
        {
            self.enter_probe_bw(event.now);
        }
    }
}
