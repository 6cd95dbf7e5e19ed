use crate::outage::Cursor;
use core::time::Duration;
use marline_base::{Instant, Rate, Rng};

/// A rate that is drawn anew at the start of every interval: normal, censored from the left.
///
/// The HOP paper's synthetic links have 40 Mb/s, standard deviation 8 Mb/s, every 25 ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VaryingRate {
    /// Mean before censoring, at least 1 kbit/s.
    pub mean: Rate,
    /// Standard deviation before censoring.
    pub sd: Rate,
    /// What is drawn below becomes this; may be zero.
    pub min: Rate,
    /// Length of an interval, at least 0.1 ms.
    pub every: Duration,
    /// How far the first interval has run at time zero; less than `every`. Blocks that are
    /// written every `every` from zero see the rate change `every − phase` into the block.
    pub phase: Duration,
}

/// [`VaryingRate`] at work.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    varying: VaryingRate,
    seed: u64,
    /// The last slot asked for, and its rate.
    drawn: Option<(u64, Rate)>,
}

impl Slots {
    pub(super) fn new(varying: VaryingRate, mut rng: Rng) -> Self {
        Self {
            varying,
            seed: rng.next_u64(),
            drawn: None,
        }
    }

    fn slot(&self, time: Instant) -> u64 {
        (time + self.varying.phase).as_nanos() / self.every()
    }

    const fn every(&self) -> u64 {
        self.varying.every.as_nanos() as u64
    }

    fn slot_end(&self, slot: u64) -> Instant {
        Instant::from_nanos((slot + 1).saturating_mul(self.every())) - self.varying.phase
    }

    /// Every slot has a generator of its own, so that a rate depends on nothing but the slot,
    /// and idle hours cost nothing.
    fn rate(&mut self, slot: u64) -> Rate {
        if let Some((drawn, rate)) = self.drawn
            && drawn == slot
        {
            return rate;
        }
        // An odd factor other than the one inside the seeding keeps the slots' states apart.
        let mut rng = Rng::new(self.seed ^ slot.wrapping_mul(0xd134_2543_de82_ef95));
        let bps =
            self.varying.mean.as_bps() as f64 + self.varying.sd.as_bps() as f64 * rng.normal();
        let rate = Rate::from_bps(bps as u64).max(self.varying.min);
        self.drawn = Some((slot, rate));
        rate
    }

    /// When `size` bytes have left that begin at `start`.
    pub(super) fn after(&mut self, start: Instant, size: u32, dark: &mut Cursor) -> Instant {
        // Work is counted in bit·ns, in which all quantities are whole.
        let mut left = u128::from(size) * 8_000_000_000;
        let mut time = start;
        while left > 0 && time != Instant::FAR_FUTURE {
            time = dark.lit_from(time);
            let slot = self.slot(time);
            let until = self.slot_end(slot).min(dark.at_or_after(time).0);
            let bps = u128::from(self.rate(slot).as_bps());
            let work = bps * until.since(time).as_nanos();
            if work >= left {
                return time + Duration::from_nanos(left.div_ceil(bps) as u64);
            }
            left -= work;
            time = until;
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn slots(phase: Duration) -> Slots {
        let varying = VaryingRate {
            mean: Rate::from_mbps(40),
            sd: Rate::from_mbps(8),
            min: Rate::ZERO,
            every: Duration::from_millis(25),
            phase,
        };
        Slots::new(varying, Rng::new(9).stream("capacity"))
    }

    #[test]
    fn rates_are_normal_and_independent() {
        let mut slots = slots(Duration::ZERO);
        let draws: Vec<f64> = (0..100_000)
            .map(|slot| slots.rate(slot).as_mbps_f64())
            .collect();
        let n = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / n;
        let covariance = |lag: usize| {
            draws
                .iter()
                .zip(&draws[lag..])
                .map(|(a, b)| (a - mean) * (b - mean))
                .sum::<f64>()
                / n
        };
        let variance = covariance(0);
        // Six standard errors: 8/√N·6 for the mean, 64·√(2/N)·6 for the variance, 6/√N for a
        // correlation.
        assert!(libm::fabs(mean - 40.0) < 0.152, "{mean}");
        assert!(libm::fabs(variance - 64.0) < 1.72, "{variance}");
        for lag in 1..5 {
            let correlation = covariance(lag) / variance;
            assert!(libm::fabs(correlation) < 0.019, "lag {lag}: {correlation}");
        }
    }

    #[test]
    fn work_crosses_slots_exactly() {
        let phase = Duration::from_micros(6_250);
        let mut slots = slots(phase);
        let first = slots.rate(0).as_bps() as f64;
        let second = slots.rate(1).as_bps() as f64;
        // The first slot has 18.75 ms left; the rest is sent at the second rate.
        let bytes = 100_000_u32;
        let in_first = first * 0.01875;
        let expected = 0.01875 + (f64::from(bytes) * 8.0 - in_first) / second;
        let mut dark = Cursor::never();
        let got = slots.after(Instant::ZERO, bytes, &mut dark).as_secs_f64();
        assert!(libm::fabs(got - expected) < 2e-9, "{got} {expected}");
    }

    #[test]
    fn a_rate_is_a_function_of_its_slot() {
        let (mut forward, mut backward) = (slots(Duration::ZERO), slots(Duration::ZERO));
        let up: Vec<Rate> = (0..50).map(|slot| forward.rate(slot)).collect();
        let mut down: Vec<Rate> = (0..50).rev().map(|slot| backward.rate(slot)).collect();
        down.reverse();
        assert_eq!(up, down);
    }
}
