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

/// Estimator of whether STARTUP has filled the pipe.
#[derive(Debug)]
pub(super) struct FullPipe {
    /// Bandwidth that the next round has to exceed by [`GROWTH`].
    bandwidth: Rate,
    /// Rounds without growth that are still missing.
    left: u32,
    patience: u32,
}

impl FullPipe {
    pub(super) const fn new(manner: Manner) -> Self {
        Self {
            bandwidth: Rate::ZERO,
            left: rounds(manner),
            patience: rounds(manner),
        }
    }

    pub(super) const fn filled(&self) -> bool {
        self.left == 0
    }

    /// §4.3.2.2 `BBRCheckFullPipe`. A sample that is app-limited, or none at all, says nothing.
    pub(super) fn check(&mut self, event: &Event, bandwidth: Option<Rate>) {
        let (Some(bandwidth), Some(sample)) = (bandwidth, event.sample) else {
            return;
        };
        if self.filled() || !event.round_start || sample.app_limited {
            return;
        }
        if bandwidth >= self.bandwidth.scaled(GROWTH) {
            self.bandwidth = bandwidth;
            self.left = self.patience;
        } else {
            self.left -= 1;
        }
    }
}

impl Bbr {
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
