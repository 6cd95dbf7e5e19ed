//! What is broken.

use super::measured::Measure;
use crate::results::student_t_at;

/// The promise: no worse than this share of the best single link.
const PROMISE: f64 = 0.95;
/// Seeds that a verdict needs.
pub(super) const SEEDS: usize = 5;
/// What a 90 % interval has below each end's quantile of Student's t.
const UPPER: f64 = 0.95;

/// One value over another, paired by seed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct PairedRatio {
    /// Geometric mean of the seeds' ratios.
    pub value: f64,
    /// Its 90 % interval; both ends are `value` where there is only one seed.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Number of seeds.
    pub n: usize,
}

impl PairedRatio {
    /// Over pairs of values above zero; `None` without any. Logarithms of ratios are nearer to a
    /// normal distribution than ratios, for which Student's t is meant.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let logs: Vec<f64> = pairs.iter().map(|(a, b)| (a / b).ln()).collect();
        if logs.is_empty() || logs.iter().any(|log| !log.is_finite()) {
            return None;
        }
        let n = logs.len();
        let mean = logs.iter().sum::<f64>() / n as f64;
        let half = match n {
            1 => 0.0,
            _ => {
                let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
                student_t_at(n - 1, UPPER) * (squares / (n - 1) as f64 / n as f64).sqrt()
            }
        };
        Some(Self {
            value: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
            n,
        })
    }

    /// How much worse than the other the first is: above one is worse, whatever is measured.
    pub fn badness(&self, measure: Measure) -> f64 {
        match measure.more_is_better() {
            true => 1.0 / self.value,
            false => self.value,
        }
    }

    /// Does the whole interval lie on the bad side of the promise? Of too few seeds nothing is
    /// said.
    pub fn breaks(&self, measure: Measure) -> bool {
        let beyond = match measure.more_is_better() {
            true => self.high < PROMISE,
            false => self.low > 1.0 / PROMISE,
        };
        beyond && self.n >= SEEDS
    }

    /// Does its mean lie there?
    pub fn misses(&self, measure: Measure) -> bool {
        self.badness(measure) > 1.0 / PROMISE
    }
}

/// Geometric mean; `None` of nothing.
pub(super) fn geometric(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = values.map(f64::ln).filter(|log| log.is_finite()).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(values: &[f64]) -> PairedRatio {
        let pairs: Vec<(f64, f64)> = values.iter().map(|value| (value * 3.0, 3.0)).collect();
        PairedRatio::of(&pairs).expect("values")
    }

    #[test]
    fn the_interval_is_students_on_logarithms() {
        let e = std::f64::consts::E;
        // Logarithms −1, 0, 1: mean 0, sd 1, t(2) = 2.919986 at 0.95, so ± 2.919986 / √3.
        let three = ratio(&[1.0 / e, 1.0, e]);
        assert!((three.value - 1.0).abs() < 1e-9);
        assert!((three.high.ln() - 1.685_854).abs() < 1e-4, "{three:?}");
        assert!((three.low.ln() + 1.685_854).abs() < 1e-4);
        assert_eq!(PairedRatio::of(&[]), None);
        assert_eq!(PairedRatio::of(&[(1.0, 0.0)]), None);
    }

    #[test]
    fn a_cell_is_broken_when_the_whole_interval_is() {
        // Of delays, more is worse: 1 / 0.95 = 1.053.
        assert!(ratio(&[1.1, 1.11, 1.12, 1.1, 1.11]).breaks(Measure::LiveP99));
        assert!(
            !ratio(&[1.04; 5]).breaks(Measure::LiveP99),
            "within the promise"
        );
        assert!(!ratio(&[0.5; 5]).breaks(Measure::LiveP99), "better");
        assert!(
            !ratio(&[0.9, 1.5, 1.0, 1.6, 0.95]).breaks(Measure::LiveP99),
            "nobody knows"
        );
        // Of goodput, less is.
        assert!(ratio(&[0.9, 0.91, 0.9, 0.89, 0.9]).breaks(Measure::Goodput));
        assert!(!ratio(&[0.96; 5]).breaks(Measure::Goodput));
        assert!(!ratio(&[1.5; 5]).breaks(Measure::Goodput));
    }

    #[test]
    fn too_few_seeds_break_nothing() {
        let four = ratio(&[2.0; 4]);
        assert!(!four.breaks(Measure::LiveP99) && four.misses(Measure::LiveP99));
        assert!(ratio(&[2.0; 5]).breaks(Measure::LiveP99));
    }

    #[test]
    fn means_are_geometric() {
        assert!((geometric([0.5, 2.0].into_iter()).expect("values") - 1.0).abs() < 1e-12);
        assert_eq!(geometric(std::iter::empty()), None);
    }
}
