//! A path, and its truth.

use std::fmt;

use marline_base::{Duration, Rate};
use marline_link::{Capacity, Delay, Link, LinkConfig};

/// A path of the model.
#[derive(Clone, Debug)]
pub struct ModelPath {
    /// Its name in the measures.
    pub name: String,
    /// The link from the sender to the receiver; it needs a capacity with a mean.
    pub link: LinkConfig,
    /// Packets that may wait for the server, the one in service included; at least 1.
    pub ahead: u32,
}

/// Why a model cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    /// The path.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {}: {}", self.path, self.reason)
    }
}

impl std::error::Error for ModelError {}

impl ModelPath {
    pub(super) fn check(&self, packet: u32) -> Result<(), ModelError> {
        self.link(0).map(drop)?;
        self.rate(packet).map(drop)
    }

    /// The link at work.
    pub(super) fn link(&self, seed: u64) -> Result<Link, ModelError> {
        Link::new(self.link.clone(), seed).map_err(|error| self.error(error))
    }

    /// The mean rate of packets of this size.
    pub(super) fn rate(&self, packet: u32) -> Result<Rate, ModelError> {
        let rate = match &self.link.capacity {
            Capacity::Service(times) => {
                Some(Rate::from_bytes_over(u64::from(packet), times.mean()))
            }
            other => other.mean_rate(),
        };
        let mend = "needs a rate or a service time, which says how often a packet may leave";
        rate.ok_or_else(|| self.error(mend))
    }

    /// The mean delay, and its standard deviation.
    pub(super) fn delay(&self) -> (Duration, Duration) {
        match self.link.delay {
            Delay::Constant(delay) => (delay, Duration::ZERO),
            Delay::Uniform { min, max } => ((min + max) / 2, (max - min).div_f64(12.0_f64.sqrt())),
            Delay::Gamma { mean, sd, .. } => (mean, sd),
            Delay::Normal { mean, sd, min } => {
                if sd.is_zero() {
                    return (mean.max(min), sd);
                }
                censored(mean.as_secs_f64(), sd.as_secs_f64(), min.as_secs_f64())
            }
        }
    }

    fn error(&self, reason: impl fmt::Display) -> ModelError {
        ModelError {
            path: self.name.clone(),
            reason: reason.to_string(),
        }
    }
}

/// Mean and standard deviation of max(N(mean, sd²), min), in seconds.
fn censored(mean: f64, sd: f64, min: f64) -> (Duration, Duration) {
    use statrs::distribution::{Continuous, ContinuousCDF, Normal};
    let normal = Normal::standard();
    let z = (mean - min) / sd;
    let (above, density) = (normal.cdf(z), normal.pdf(z));
    // What exceeds `min` has these moments.
    let first = (mean - min) * above + sd * density;
    let second = ((mean - min).powi(2) + sd * sd) * above + (mean - min) * sd * density;
    let sd = (second - first * first).max(0.0).sqrt();
    (
        Duration::from_secs_f64(min + first),
        Duration::from_secs_f64(sd),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Rng;

    #[test]
    fn a_censored_normal_has_the_moments_of_its_draws() {
        let (mean, sd) = censored(0.050, 0.100, 0.001);
        assert!((mean.as_secs_f64() - 0.070_1).abs() < 1e-4, "{mean:?}");
        let mut rng = Rng::new(1);
        let draws: Vec<f64> = (0..200_000)
            .map(|_| (0.050 + 0.100 * rng.normal()).max(0.001))
            .collect();
        let drawn = draws.iter().sum::<f64>() / draws.len() as f64;
        let square = draws.iter().map(|d| (d - drawn).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean.as_secs_f64() - drawn).abs() < 1e-3);
        assert!((sd.as_secs_f64() - square.sqrt()).abs() < 1e-3);
    }

    #[test]
    fn a_path_without_a_rate_is_refused() {
        let path = ModelPath {
            name: "a".into(),
            link: LinkConfig::default(),
            ahead: 1,
        };
        let error = path.check(1_500).unwrap_err().to_string();
        assert!(error.starts_with("path a: needs a rate"), "{error}");
    }
}
