use super::draw;
use crate::delay::{from_nanos_f64, nanos_f64};
use core::time::Duration;
use marline_base::Rng;

/// The time that the server spends on one packet, independent from packet to packet.
///
/// Means are above zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServiceTime {
    /// Normal, censored from the left at zero.
    Normal {
        /// Mean before censoring.
        mean: Duration,
        /// Standard deviation before censoring.
        sd: Duration,
    },
    /// Gamma (`sd` more than zero), as the synthetic links of the SOS paper.
    Gamma {
        /// Mean.
        mean: Duration,
        /// Standard deviation.
        sd: Duration,
    },
    /// Log-normal.
    LogNormal {
        /// Mean of the time itself, not of its logarithm.
        mean: Duration,
        /// Standard deviation of the time itself.
        sd: Duration,
    },
}

impl ServiceTime {
    /// Mean time for a packet (before censoring).
    pub const fn mean(&self) -> Duration {
        match *self {
            Self::Normal { mean, .. } | Self::Gamma { mean, .. } | Self::LogNormal { mean, .. } => {
                mean
            }
        }
    }

    /// Standard deviation (before censoring).
    pub const fn sd(&self) -> Duration {
        match *self {
            Self::Normal { sd, .. } | Self::Gamma { sd, .. } | Self::LogNormal { sd, .. } => sd,
        }
    }

    /// Draws a time.
    pub fn draw(&self, rng: &mut Rng) -> Duration {
        let (mean, sd) = (nanos_f64(self.mean()), nanos_f64(self.sd()));
        from_nanos_f64(match self {
            Self::Normal { .. } => draw::normal(mean, sd, rng),
            Self::Gamma { .. } => draw::gamma(mean, sd, rng),
            Self::LogNormal { .. } => draw::lognormal(mean, sd, rng),
        })
    }
}

/// [`ServiceTime`] at work.
#[derive(Clone, Debug)]
pub(super) struct Times {
    times: ServiceTime,
    rng: Rng,
}

impl Times {
    pub(super) fn new(times: ServiceTime, rng: Rng) -> Self {
        Self { times, rng }
    }

    pub(super) fn draw(&mut self) -> Duration {
        self.times.draw(&mut self.rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn distributions_have_their_moments() {
        let (mean, sd) = (Duration::from_millis(10), Duration::from_millis(2));
        for times in [
            ServiceTime::Normal { mean, sd },
            ServiceTime::Gamma { mean, sd },
            ServiceTime::LogNormal { mean, sd },
        ] {
            let mut process = Times::new(times, Rng::new(2).stream("capacity"));
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..200_000 {
                let x = nanos_f64(process.draw()) * 1e-6;
                sum += x;
                squares += x * x;
            }
            let mean = sum / 200_000.0;
            let sd = libm::sqrt(squares / 200_000.0 - mean * mean);
            // Six standard errors of the mean are 0.027 ms; the log-normal's sd needs 0.04 ms.
            assert!(libm::fabs(mean - 10.0) < 0.027, "{times:?}: mean {mean}");
            assert!(libm::fabs(sd - 2.0) < 0.04, "{times:?}: sd {sd}");
        }
    }

    /// Largest distance between the distribution of 40 000 draws and `cdf`, which takes a time in
    /// ms (Kolmogorov and Smirnov).
    fn distance(times: ServiceTime, cdf: impl Fn(f64) -> f64) -> f64 {
        let mut process = Times::new(times, Rng::new(6).stream("capacity"));
        let mut draws: Vec<f64> = (0..40_000)
            .map(|_| nanos_f64(process.draw()) * 1e-6)
            .collect();
        draws.sort_by(f64::total_cmp);
        let n = draws.len() as f64;
        (draws.iter().enumerate())
            .map(|(i, x)| {
                let (below, above) = (i as f64 / n, (i + 1) as f64 / n);
                f64::max(libm::fabs(cdf(*x) - below), libm::fabs(cdf(*x) - above))
            })
            .fold(0.0, f64::max)
    }

    fn normal_cdf(z: f64) -> f64 {
        0.5 * libm::erfc(-z / core::f64::consts::SQRT_2)
    }

    #[test]
    fn draws_follow_their_distributions() {
        // Exceeded by chance once in a thousand: 1.95/√N.
        let bound = 1.95 / libm::sqrt(40_000.0);
        let (mean, sd) = (Duration::from_millis(10), Duration::from_millis(2));
        let normal = distance(ServiceTime::Normal { mean, sd }, |x| {
            normal_cdf((x - 10.0) / 2.0)
        });
        assert!(normal < bound, "normal: {normal}");
        let lognormal = distance(ServiceTime::LogNormal { mean, sd }, |x| {
            // exp(s²) = 1 + (sd/mean)² = 1.04, exp(m) = mean/√1.04.
            let s = libm::sqrt(libm::log(1.04));
            let m = libm::log(10.0 / libm::sqrt(1.04));
            normal_cdf((libm::log(x) - m) / s)
        });
        assert!(lognormal < bound, "log-normal: {lognormal}");
        // Shape 25 is a whole number, so that this is Erlang's distribution:
        // 1 − e^(−x/θ)·Σ (x/θ)^i/i! for i < 25, with the scale θ = 0.4 ms.
        let gamma = distance(ServiceTime::Gamma { mean, sd }, |x| {
            let y = x / 0.4;
            let mut term = libm::exp(-y);
            let mut sum = 0.0;
            for i in 1..=25 {
                sum += term;
                term *= y / f64::from(i);
            }
            1.0 - sum
        });
        assert!(gamma < bound, "gamma: {gamma}");
        // The bound is narrow enough to distinguish the three.
        let other = distance(ServiceTime::Gamma { mean, sd }, |x| {
            normal_cdf((x - 10.0) / 2.0)
        });
        assert!(other > 2.0 * bound, "{other}");
    }

    #[test]
    fn the_normal_is_censored_at_zero() {
        let times = ServiceTime::Normal {
            mean: Duration::from_millis(1),
            sd: Duration::from_millis(1),
        };
        let mut process = Times::new(times, Rng::new(3).stream("capacity"));
        let draws: Vec<f64> = (0..200_000)
            .map(|_| nanos_f64(process.draw()) * 1e-6)
            .collect();
        let n = draws.len() as f64;
        let none = draws.iter().filter(|x| **x == 0.0).count() as f64 / n;
        let mean = draws.iter().sum::<f64>() / n;
        // P(X ≤ 0) = Φ(−1) = 0.15866, and E max(0, X) = Φ(1) + φ(1) = 1.08332; six standard errors
        // are 0.0049 and 0.0117.
        assert!(libm::fabs(none - 0.158_66) < 0.0049, "{none}");
        assert!(libm::fabs(mean - 1.083_32) < 0.0117, "{mean}");
    }
}
