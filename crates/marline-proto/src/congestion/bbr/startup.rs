//! BBR's STARTUP and DRAIN (§4.3.2, §4.3.3).

use marline_base::Rate;

use super::probe_rtt::Manner;
use super::{Bbr, Event, Phase};

/// §4.3.2.1 `BBRHighGain`, 2/ln 2: the smallest gain that doubles the rate every round trip.
pub(super) const HIGH_GAIN: f64 = 2.0 / core::f64::consts::LN_2;

/// §4.3.2.2: bandwidth that grows by less than a quarter in a round ...
const GROWTH: f64 = 1.25;

/// ... and does so so many times in a row has reached the pipe's: three as the draft says, five to
/// be sure where random delays make a round look poor.
const fn rounds(manner: Manner) -> u32 {
    match manner {
        Manner::FourPackets => 3,
        Manner::HalfPipe => 5,
    }
}

/// A round overruns the queue if more than one byte in so many of it is lost, and so many
/// bandwidth-delay products were in flight.
const OVERRUN: u64 = 8;
const OVERFULL: f64 = 1.25;

/// Of a round that loses more than one byte in so many in this way, no other is needed.
const FLOODED: u64 = 4;

/// Packets that must be lost for either: among a few, as many may be lost at random.
const LEAST_LOST: u64 = 48;

/// What happened in a round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    acked: u64,
    lost: u64,
    /// More was in flight than the pipe holds.
    overfull: bool,
}

impl Round {
    /// Did it lose more than one byte in so many for its own flight?
    fn lost_one_in(&self, many: u64, mtu: u64) -> bool {
        let all = self.acked.saturating_add(self.lost);
        let enough = self.lost >= LEAST_LOST * mtu;
        self.overfull && enough && self.lost.saturating_mul(many) > all
    }
}

/// Estimator of whether STARTUP has filled the pipe.
#[derive(Debug)]
pub(super) struct FullPipe {
    /// Bandwidth that the next round has to exceed by [`GROWTH`].
    bandwidth: Rate,
    /// Rounds without growth that are still missing.
    left: u32,
    patience: u32,
    round: Round,
}

impl FullPipe {
    pub(super) const fn new(manner: Manner) -> Self {
        Self {
            bandwidth: Rate::ZERO,
            left: rounds(manner),
            patience: rounds(manner),
            round: Round {
                acked: 0,
                lost: 0,
                overfull: false,
            },
        }
    }

    pub(super) const fn filled(&self) -> bool {
        self.left == 0
    }

    /// §4.3.2.2 `BBRCheckFullPipe`. A sample that is app-limited, or none at all, says nothing,
    /// unless the round overran the queue: then it was the path that took no more. A stream whose
    /// receiver waits for what was lost is app-limited just because of that.
    fn check(&mut self, event: &Event, bandwidth: Option<Rate>, overfull: bool, mtu: u64) {
        if self.filled() {
            return;
        }
        self.round.acked = self.round.acked.saturating_add(event.ack.bytes);
        self.round.lost = self.round.lost.saturating_add(event.lost);
        self.round.overfull |= overfull;
        if !event.round_start {
            return;
        }
        let round = core::mem::take(&mut self.round);
        let (Some(bandwidth), Some(sample)) = (bandwidth, event.sample) else {
            return;
        };
        if sample.app_limited && !round.lost_one_in(OVERRUN, mtu) {
            return;
        }
        if bandwidth >= self.bandwidth.scaled(GROWTH) {
            self.bandwidth = bandwidth;
            self.left = self.patience;
        } else if round.lost_one_in(FLOODED, mtu) {
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
            .check(event, self.model.bandwidth(), overfull, mtu);
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
