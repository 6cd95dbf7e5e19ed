//! One scheduler against another over the same seeds.

use statrs::statistics::Statistics;

use super::summary::student_t;

/// A ratio of two means, paired by seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Number of pairs.
    pub n: usize,
    /// Mean of the first over mean of the second.
    pub value: f64,
    /// 95 % confidence interval after Fieller (1954): every ratio r for which a paired t test does
    /// not distinguish the first from r times the second. `None` for one pair, or if the second's
    /// mean cannot be distinguished from zero, when no bounded interval exists.
    pub interval: Option<(f64, f64)>,
}

impl Ratio {
    /// The ratio over `pairs`, one a seed; `None` without pairs, if a value is not finite, or if
    /// the second mean is zero.
    pub fn paired(pairs: &[(f64, f64)]) -> Option<Self> {
        let (first, second): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        if pairs.is_empty() || first.iter().chain(&second).any(|value| !value.is_finite()) {
            return None;
        }
        let (a, b) = ((&first).mean(), (&second).mean());
        if b == 0.0 {
            return None;
        }
        Some(Self {
            n: pairs.len(),
            value: a / b,
            interval: (pairs.len() > 1)
                .then(|| fieller(&first, &second))
                .flatten(),
        })
    }
}

/// Solves (a − r·b)² = t²/n · (s_aa − 2·r·s_ab + r²·s_bb) for r.
fn fieller(first: &[f64], second: &[f64]) -> Option<(f64, f64)> {
    let (a, b) = (first.mean(), second.mean());
    let n = first.len();
    let g = student_t(n - 1).powi(2) / n as f64;
    let square = b * b - g * second.variance();
    let linear = a * b - g * first.covariance(second);
    let constant = a * a - g * first.variance();
    if square <= 0.0 {
        return None;
    }
    // Not negative when `square` is positive; rounding may say otherwise.
    let root = (linear * linear - square * constant).max(0.0).sqrt();
    Some(((linear - root) / square, (linear + root) / square))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(pairs: &[(f64, f64)]) -> (f64, f64) {
        Ratio::paired(pairs).unwrap().interval.unwrap()
    }

    #[test]
    fn a_constant_divisor_scales_the_interval_of_the_mean() {
        // Mean 10, sd 1, t(2) = 4.302653, so 10 ± 2.484138; all over 5.
        let (low, high) = interval(&[(9.0, 5.0), (10.0, 5.0), (11.0, 5.0)]);
        assert!((low - 1.503_172).abs() < 1e-5, "{low}");
        assert!((high - 2.496_828).abs() < 1e-5, "{high}");
    }

    #[test]
    fn a_constant_dividend_gives_the_inverse_of_the_divisors_interval() {
        // 10 / (5 ± 2.484138).
        let (low, high) = interval(&[(10.0, 4.0), (10.0, 5.0), (10.0, 6.0)]);
        assert!((low - 1.336_160).abs() < 1e-5, "{low}");
        assert!((high - 3.974_780).abs() < 1e-5, "{high}");
    }

    #[test]
    fn what_seeds_have_in_common_cancels() {
        let ratio = Ratio::paired(&[(2.0, 1.0), (20.0, 10.0), (6.0, 3.0)]).unwrap();
        assert_eq!(ratio.value, 2.0);
        // Unpaired, 4.67 ± 11.7 over 9.33 ± 23.5 would say nothing; here the second mean cannot be
        // distinguished from zero, so there is no interval either.
        assert_eq!(ratio.interval, None);
        let (low, high) = interval(&[(22.0, 11.0), (20.0, 10.0), (24.0, 12.0)]);
        assert!((low - 2.0).abs() < 1e-6 && (high - 2.0).abs() < 1e-6);
    }

    #[test]
    fn one_pair_has_a_ratio_and_no_interval() {
        let ratio = Ratio::paired(&[(3.0, 2.0)]).unwrap();
        assert_eq!((ratio.value, ratio.interval, ratio.n), (1.5, None, 1));
    }

    #[test]
    fn what_has_no_ratio_is_refused() {
        assert_eq!(Ratio::paired(&[]), None);
        assert_eq!(Ratio::paired(&[(1.0, 0.0)]), None);
        assert_eq!(Ratio::paired(&[(f64::NAN, 1.0)]), None);
    }
}
