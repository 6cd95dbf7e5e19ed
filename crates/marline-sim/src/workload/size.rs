//! Sizes drawn from a distribution.

use marline_base::Rng;

use crate::scenario::SizeLaw;

impl SizeLaw {
    /// Draws a size: whole bytes, at least 1.
    pub(super) fn draw(self, rng: &mut Rng) -> u64 {
        let bytes = match self {
            Self::Constant(size) => return size.max(1),
            Self::Uniform(low, high) => {
                return (low + rng.below(high.saturating_sub(low) + 1)).max(1);
            }
            Self::LogNormal(mean, sd) => {
                // Of the logarithm: σ² = ln(1 + sd²/mean²), μ = ln(mean) − σ²/2.
                let variance = libm::log1p((sd / mean) * (sd / mean));
                let mu = libm::log(mean) - variance / 2.0;
                libm::exp(mu + libm::sqrt(variance) * rng.normal())
            }
            Self::Exponential(mean) => mean * rng.exponential(),
        };
        (libm::round(bytes) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard deviation of 200 000 draws.
    fn moments(law: SizeLaw) -> (f64, f64) {
        let mut rng = Rng::new(5);
        let n = 200_000.0;
        let draws: Vec<f64> = (0..n as u32).map(|_| law.draw(&mut rng) as f64).collect();
        let mean = draws.iter().sum::<f64>() / n;
        let square = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, square.sqrt())
    }

    #[test]
    fn draws_have_the_moments_of_their_law() {
        // A hundredth is six standard errors of the mean where the spread is largest.
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.02;
        for (law, mean, sd) in [
            (SizeLaw::LogNormal(30_000.0, 12_000.0), 30_000.0, 12_000.0),
            (SizeLaw::Exponential(8_000.0), 8_000.0, 8_000.0),
            (SizeLaw::Uniform(100, 700), 400.0, 600.0 / 12.0_f64.sqrt()),
        ] {
            let (m, s) = moments(law);
            assert!(near(m, mean) && near(s, sd), "{law:?}: mean {m}, sd {s}");
        }
        assert_eq!(SizeLaw::Constant(0).draw(&mut Rng::new(1)), 1);
        let mut rng = Rng::new(1);
        let ends: std::collections::BTreeSet<u64> = (0..200)
            .map(|_| SizeLaw::Uniform(3, 5).draw(&mut rng))
            .collect();
        assert!(ends.iter().eq(&[3, 4, 5]));
    }
}
