//! No congestion control: for paths whose sender decides otherwise how much may leave, such as a
//! scheduler with an implicit window or a carrier that has a control of its own.

use alloc::boxed::Box;

use marline_base::{Instant, Rate};

use super::{Ack, Controller, Loss, Params, Phase, View};

pub(super) const NAME: &str = "none";

#[derive(Debug)]
struct Unlimited;

pub(super) fn new(_now: Instant, _params: &Params) -> Box<dyn Controller> {
    Box::new(Unlimited)
}

impl Controller for Unlimited {
    fn on_ack(&mut self, _now: Instant, _ack: &Ack) {}

    fn on_loss(&mut self, _now: Instant, _loss: &Loss) {}

    fn window(&self) -> u64 {
        u64::MAX
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps(u64::MAX))
    }

    fn view(&self) -> View {
        View {
            name: NAME,
            phase: Phase::Steady,
            window_gain: 1.0,
            pacing_gain: 1.0,
            bandwidth: None,
            min_rtt: None,
            ssthresh: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_held_back() {
        let params = Params {
            mtu: 1_200,
            rate: None,
            paced: true,
            seed: 0,
        };
        let mut none = new(Instant::ZERO, &params);
        none.on_loss(
            Instant::ZERO,
            &Loss {
                bytes: 1 << 30,
                sent: Instant::ZERO,
                in_flight: 0,
                persistent: true,
            },
        );
        assert_eq!(none.window(), u64::MAX);
        assert_eq!(none.pacing_rate(), Some(Rate::from_bps(u64::MAX)));
    }
}
