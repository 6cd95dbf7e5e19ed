//! No congestion control of the session's own, on a path whose carrier has one: what the carrier
//! reports of it holds, for the session as for schedulers.

use alloc::boxed::Box;

use marline_base::{Duration, Instant, Rate};

use super::{Ack, Controller, Loss, Phase, View};

/// The name before the carrier has reported another.
const NAME: &str = "carrier";
/// Datagrams, and part of the window, that may wait in the carrier beyond its window. The session
/// learns of the carrier's acknowledgements only when it is woken; meanwhile this keeps it busy.
const SPARE_DATAGRAMS: u64 = 8;
const SPARE_PART: u64 = 8;

/// How the congestion control of a carrier stands, as a kernel's TCP reports it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CarrierState {
    /// Its name, its phase, its gains and its model.
    pub view: View,
    /// Its congestion window (bytes).
    pub window: u64,
    /// Bytes that the carrier has taken and that its peer has not acknowledged: in flight, or
    /// waiting to be sent.
    pub in_flight: u64,
}

#[derive(Debug)]
struct Observed {
    mtu: u64,
    window: u64,
    view: View,
}

/// A controller that knows no more than ten datagrams (RFC 6928) until the carrier reports.
pub(crate) fn new(mtu: u64) -> Box<dyn Controller> {
    Box::new(Observed {
        mtu,
        window: 10 * mtu,
        view: View {
            name: NAME,
            phase: Phase::SlowStart,
            window_gain: 1.0,
            pacing_gain: 1.0,
            bandwidth: None,
            min_rtt: None,
            ssthresh: None,
        },
    })
}

impl Controller for Observed {
    fn on_ack(&mut self, _now: Instant, _ack: &Ack) {}

    fn on_loss(&mut self, _now: Instant, _loss: &Loss) {}

    fn on_carrier(&mut self, state: &CarrierState) {
        self.window = state.window;
        self.view = state.view;
    }

    fn on_mtu(&mut self, mtu: u64) {
        self.mtu = mtu;
    }

    fn window(&self) -> u64 {
        self.window + (SPARE_DATAGRAMS * self.mtu).max(self.window / SPARE_PART)
    }

    /// The carrier paces.
    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps(u64::MAX))
    }

    fn view(&self) -> View {
        self.view
    }
}

/// What a carrier last reported, and what it took since.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reported {
    in_flight: u64,
}

impl Reported {
    pub(crate) const fn new(state: &CarrierState) -> Self {
        Self {
            in_flight: state.in_flight,
        }
    }

    pub(crate) const fn on_sent(&mut self, bytes: u64) {
        self.in_flight += bytes;
    }

    pub(crate) const fn in_flight(&self) -> u64 {
        self.in_flight
    }
}

/// What BBR's state in the kernel's numbers is: its gains show its phase, since they differ in all
/// of them except for the cruise, whose window's gain is 2.
///
/// Gains of 1 for pacing and window are those of its probe for the smallest round-trip time only.
pub fn bbr_view(bandwidth: Rate, min_rtt: Duration, pacing_gain: f64, window_gain: f64) -> View {
    let phase = if window_gain <= 1.0 {
        Phase::ProbeRtt
    } else if window_gain <= 2.0 {
        Phase::ProbeBw
    } else if pacing_gain < 1.0 {
        Phase::Drain
    } else {
        Phase::Startup
    };
    View {
        name: "kernel-bbr",
        phase,
        window_gain,
        pacing_gain,
        bandwidth: (bandwidth > Rate::ZERO).then_some(bandwidth),
        min_rtt: Some(min_rtt),
        ssthresh: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_carrier_tells_holds_and_nothing_else_moves_it() {
        let mut controller = new(1_362);
        let view = bbr_view(Rate::from_mbps(25), Duration::from_millis(40), 1.25, 2.0);
        controller.on_carrier(&CarrierState {
            view,
            window: 250_000,
            in_flight: 100_000,
        });
        let loss = Loss {
            bytes: 250_000,
            sent: Instant::ZERO,
            in_flight: 0,
            persistent: true,
        };
        controller.on_loss(Instant::ZERO, &loss);
        assert_eq!(controller.window(), 250_000 + 250_000 / 8);
        assert_eq!(controller.view(), view);
        assert_eq!(controller.pacing_rate(), Some(Rate::from_bps(u64::MAX)));
        controller.on_carrier(&CarrierState {
            view,
            window: 13_620,
            in_flight: 0,
        });
        assert_eq!(controller.window(), 13_620 + 8 * 1_362);
    }

    #[test]
    fn the_phases_of_the_kernels_bbr_are_known_by_its_gains() {
        // As the kernel has them, in 256ths: 739 is 2 / ln 2, 88 its inverse.
        for (pacing, window, phase) in [
            (739.0, 739.0, Phase::Startup),
            (88.0, 739.0, Phase::Drain),
            (320.0, 512.0, Phase::ProbeBw),
            (192.0, 512.0, Phase::ProbeBw),
            (256.0, 512.0, Phase::ProbeBw),
            (256.0, 256.0, Phase::ProbeRtt),
        ] {
            let gains = (pacing / 256.0, window / 256.0);
            let view = bbr_view(Rate::ZERO, Duration::ZERO, gains.0, gains.1);
            assert_eq!(view.phase, phase, "{pacing} {window}");
            assert_eq!(view.bandwidth, None, "nothing was measured yet");
        }
    }
}
