//! Hits out of trials, pooled over seeds.

use super::Fraction;

/// The standard normal quantile behind a two-sided 95 % interval.
const Z: f64 = 1.96;

/// A fraction of all trials of all seeds, with its Wilson score interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proportion {
    /// Hits of all seeds.
    pub hits: u64,
    /// Trials of all seeds; at least 1.
    pub trials: u64,
    /// Number of seeds.
    pub n: usize,
    /// `hits / trials`.
    pub value: f64,
    /// Wilson's 95 % interval: for independent trials it holds its level near 0 and 1 too, where
    /// mean ± 1.96 standard errors does not (Wilson, 1927).
    pub interval: (f64, f64),
}

impl Proportion {
    /// Pools `fractions`; `None` without a single trial.
    pub fn pooled(fractions: &[Fraction]) -> Option<Self> {
        let hits: u64 = fractions.iter().map(|fraction| fraction.hits).sum();
        let trials: u64 = fractions.iter().map(|fraction| fraction.trials).sum();
        if trials == 0 {
            return None;
        }
        let (n, p) = (trials as f64, hits as f64 / trials as f64);
        let scale = 1.0 + Z * Z / n;
        let centre = (p + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        Some(Self {
            hits,
            trials,
            n: fractions.len(),
            value: p,
            // Rounding may leave the proportion just outside where it is 0 or 1.
            interval: ((centre - half).clamp(0.0, p), (centre + half).clamp(p, 1.0)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pooled(fractions: &[(u64, u64)]) -> Option<Proportion> {
        let fractions: Vec<Fraction> = fractions
            .iter()
            .map(|&(hits, trials)| Fraction { hits, trials })
            .collect();
        Proportion::pooled(&fractions)
    }

    #[test]
    fn eight_of_ten_by_hand() {
        // Centre (0.8 + 0.19208) / 1.38416, half 1.96 / 1.38416 · √(0.016 + 0.009604).
        let proportion = pooled(&[(5, 5), (3, 5)]).unwrap();
        assert_eq!((proportion.value, proportion.n), (0.8, 2));
        assert!((proportion.interval.0 - 0.490_157).abs() < 1e-5);
        assert!((proportion.interval.1 - 0.943_319).abs() < 1e-5);
    }

    #[test]
    fn no_hit_still_has_an_upper_bound() {
        // z² / (n + z²) = 3.8416 / 23.8416.
        let proportion = pooled(&[(0, 20)]).unwrap();
        assert_eq!(proportion.interval.0, 0.0);
        assert!((proportion.interval.1 - 0.161_130).abs() < 1e-5);
    }

    #[test]
    fn no_interval_leaves_out_its_proportion() {
        for trials in 1..500 {
            for hits in [0, 1, trials / 2, trials] {
                let proportion = pooled(&[(hits, trials)]).unwrap();
                let (low, high) = proportion.interval;
                assert!(low <= proportion.value && proportion.value <= high);
                assert!(0.0 <= low && high <= 1.0, "{proportion:?}");
            }
        }
    }

    #[test]
    fn no_trials_are_no_proportion() {
        assert_eq!(pooled(&[]), None);
        assert_eq!(pooled(&[(0, 0), (0, 0)]), None);
    }
}
