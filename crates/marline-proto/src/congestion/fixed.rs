//! A fixed rate, for links whose rate is known and that no other traffic shares.

use alloc::boxed::Box;

use marline_base::{Duration, Instant, Rate};

use super::{Ack, Controller, Loss, Params, Phase, View};

pub(super) const NAME: &str = "fixed";

/// Rate without [`Params::rate`]. The reader of configuration refuses that case (see
/// [`Entry::needs_rate`](super::registry::Entry::needs_rate)); this keeps the constructor total.
const DEFAULT_RATE: Rate = Rate::from_mbps(1);

/// Round-trip time before the first sample (RFC 9002 §6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// Windows a round trip: one is in flight, the other covers delayed acknowledgements and the
/// retransmission of what was lost.
const WINDOW_GAIN: u32 = 2;

/// Datagrams on top, so that a slow path with a short round trip can send at all.
const HEADROOM: u64 = 10;

#[derive(Debug)]
struct Fixed {
    mtu: u64,
    rate: Rate,
    srtt: Duration,
}

pub(super) fn new(_now: Instant, params: &Params) -> Box<dyn Controller> {
    Box::new(Fixed {
        mtu: params.mtu,
        rate: params.rate.unwrap_or(DEFAULT_RATE),
        srtt: INITIAL_RTT,
    })
}

impl Controller for Fixed {
    fn on_ack(&mut self, _now: Instant, ack: &Ack) {
        self.srtt = ack.srtt;
    }

    fn on_loss(&mut self, _now: Instant, _loss: &Loss) {}

    fn on_mtu(&mut self, mtu: u64) {
        self.mtu = mtu;
    }

    fn window(&self) -> u64 {
        let flight = self.rate.bytes_in(self.srtt.saturating_mul(WINDOW_GAIN));
        flight.saturating_add(HEADROOM * self.mtu)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.rate)
    }

    fn view(&self) -> View {
        View {
            name: NAME,
            phase: Phase::Steady,
            window_gain: f64::from(WINDOW_GAIN),
            pacing_gain: 1.0,
            bandwidth: Some(self.rate),
            min_rtt: None,
            ssthresh: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::ack;

    #[test]
    fn window_is_two_round_trips_of_the_rate_and_ten_datagrams() {
        let params = Params {
            mtu: 1_200,
            rate: Some(Rate::from_mbps(20)),
            paced: true,
            seed: 0,
        };
        let mut fixed = new(Instant::ZERO, &params);
        // 20 Mb/s · 666 ms = 1 665 000 bytes.
        assert_eq!(fixed.window(), 1_665_000 + 12_000);
        assert_eq!(fixed.pacing_rate(), params.rate);
        // 20 Mb/s · 80 ms = 200 000 bytes.
        fixed.on_ack(
            Instant::from_millis(40),
            &ack(1_200, Instant::ZERO, Duration::from_millis(40)),
        );
        assert_eq!(fixed.window(), 200_000 + 12_000);
    }
}
