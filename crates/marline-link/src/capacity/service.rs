use crate::delay::{from_nanos_f64, gamma_shape_and_scale, nanos_f64};
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
        let (mean, sd) = (nanos_f64(self.times.mean()), nanos_f64(self.times.sd()));
        from_nanos_f64(match self.times {
            ServiceTime::Normal { .. } => mean + sd * self.rng.normal(),
            ServiceTime::Gamma { .. } => {
                let (shape, scale) = gamma_shape_and_scale(mean, sd);
                self.rng.gamma(shape) * scale
            }
            ServiceTime::LogNormal { .. } => {
                // mean = exp(m + s²/2) and variance = (exp(s²) − 1)·mean².
                let s2 = libm::log1p((sd / mean) * (sd / mean));
                libm::exp(libm::log(mean) - s2 / 2.0 + libm::sqrt(s2) * self.rng.normal())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
