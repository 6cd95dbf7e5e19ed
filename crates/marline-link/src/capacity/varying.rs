use super::draw;
use super::steps::Steps;
use crate::slots::PerSlot;
use core::time::Duration;
use marline_base::{Instant, Rate, Rng};

/// From which family the rates of a [`VaryingRate`] are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RateDist {
    /// Normal.
    #[default]
    Normal,
    /// Uniform, within √3 standard deviations of the mean.
    Uniform,
    /// Gamma; its standard deviation is more than zero.
    Gamma,
    /// Log-normal.
    LogNormal,
}

/// A rate that is drawn again at the start of every interval, censored from the left.
///
/// The HOP paper's synthetic links have 40 Mb/s, standard deviation 8 Mb/s, every 25 ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VaryingRate {
    /// The family of the distribution.
    pub dist: RateDist,
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
    rates: PerSlot<Rate>,
}

impl Slots {
    pub(super) const fn new(varying: VaryingRate, rng: Rng) -> Self {
        Self {
            varying,
            rates: PerSlot::new(rng),
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

    fn rate(&mut self, slot: u64) -> Rate {
        let varying = self.varying;
        let (mean, sd) = (varying.mean.as_bps() as f64, varying.sd.as_bps() as f64);
        let draw = match varying.dist {
            RateDist::Normal => draw::normal,
            RateDist::Uniform => draw::uniform,
            RateDist::Gamma => draw::gamma,
            RateDist::LogNormal => draw::lognormal,
        };
        self.rates.get(slot, |rng| {
            Rate::from_bps(draw(mean, sd, rng) as u64).max(varying.min)
        })
    }
}

impl Steps for Slots {
    fn at(&mut self, time: Instant) -> (Rate, Instant) {
        let slot = self.slot(time);
        (self.rate(slot), self.slot_end(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::carry;
    use super::*;
    use crate::outage::Cursor;
    use alloc::vec::Vec;

    fn slots(phase: Duration) -> Slots {
        let varying = VaryingRate {
            dist: RateDist::Normal,
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

    fn phi(z: f64) -> f64 {
        0.5 * libm::erfc(-z / core::f64::consts::SQRT_2)
    }

    #[test]
    fn every_family_has_its_moments_and_its_shape() {
        // The probability of less than 30 Mb/s, 1.25 deviations below the mean: of the uniform
        // distribution by its half-width, of the log-normal by exp(s²) = 1.04, of the gamma with
        // shape 25 by 1 − Q(25, 18.75).
        let uniform = 0.5 - 1.25 / (2.0 * libm::sqrt(3.0));
        let s = libm::sqrt(libm::log(1.04));
        let lognormal = phi((libm::log(0.75) + s * s / 2.0) / s);
        let erlang = {
            let (mut term, mut sum) = (1.0, 1.0);
            for i in 1..25 {
                term *= 18.75 / f64::from(i);
                sum += term;
            }
            1.0 - libm::exp(-18.75) * sum
        };
        for (dist, below) in [
            (RateDist::Normal, phi(-1.25)),
            (RateDist::Uniform, uniform),
            (RateDist::Gamma, erlang),
            (RateDist::LogNormal, lognormal),
        ] {
            let mut slots = slots(Duration::ZERO);
            slots.varying.dist = dist;
            let draws: Vec<f64> = (0..100_000)
                .map(|slot| slots.rate(slot).as_mbps_f64())
                .collect();
            let n = draws.len() as f64;
            let mean = draws.iter().sum::<f64>() / n;
            let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
            let share = draws.iter().filter(|rate| **rate < 30.0).count() as f64 / n;
            // Six standard errors; of a variance √((κ − 1)/N)·64 with a kurtosis κ of at most 3.7.
            assert!(libm::fabs(mean - 40.0) < 0.152, "{dist:?}: {mean}");
            assert!(libm::fabs(variance - 64.0) < 2.0, "{dist:?}: {variance}");
            assert!(
                libm::fabs(share - below) < 0.0067,
                "{dist:?}: {share}, not {below}"
            );
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
        let got = carry(&mut slots, Instant::ZERO, bytes, &mut Cursor::never()).as_secs_f64();
        assert!(libm::fabs(got - expected) < 2e-9, "{got} {expected}");
    }

    #[test]
    fn a_rate_holds_for_its_interval_and_no_longer() {
        let mut slots = slots(Duration::from_millis(10));
        // The first interval has run for 10 of its 25 ms at time zero.
        for (slot, from, to) in [(0, 0, 15), (1, 15, 40), (2, 40, 65)] {
            let rate = slots.rate(slot);
            let expected = (rate, Instant::from_millis(to));
            assert_eq!(slots.at(Instant::from_millis(from)), expected);
            let last = Instant::from_millis(to) - Duration::from_nanos(1);
            assert_eq!(slots.at(last), expected);
        }
    }

    #[test]
    fn the_floor_holds_what_lies_below_it() {
        let mut slots = slots(Duration::ZERO);
        slots.varying.min = Rate::from_mbps(36);
        let draws: Vec<f64> = (0..100_000)
            .map(|slot| slots.rate(slot).as_mbps_f64())
            .collect();
        let n = draws.len() as f64;
        let at_floor = draws.iter().filter(|rate| **rate <= 36.0).count() as f64 / n;
        let mean = draws.iter().sum::<f64>() / n;
        // With α = (36 − 40)/8 = −1/2: P = Φ(α) = 0.30854, and the censored mean is
        // 36·Φ(α) + 40·(1 − Φ(α)) + 8·φ(α) = 41.5824. Six standard errors are 0.0088 and 0.13.
        assert!(draws.iter().all(|rate| *rate >= 36.0));
        assert!(libm::fabs(at_floor - 0.30854) < 0.0088, "{at_floor}");
        assert!(libm::fabs(mean - 41.5824) < 0.13, "{mean}");
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
