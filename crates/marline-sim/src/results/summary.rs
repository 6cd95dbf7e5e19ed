//! What repeated runs say about a quantity: a mean with its spread and its interval.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::statistics::{Data, OrderStatistics, Statistics};

/// One value a seed, summarised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of values.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Sample standard deviation (divisor n − 1); `None` if n = 1.
    pub sd: Option<f64>,
    /// 95 % confidence interval of the mean (Student's t, n − 1 degrees of freedom); `None` if
    /// n = 1, since one run says nothing about spread.
    pub interval: Option<(f64, f64)>,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Median; the mean of the middle two if n is even.
    pub median: f64,
}

impl Summary {
    /// Summarises `values`; `None` if there are none, or one of them is not finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let n = values.len();
        let mean = values.mean();
        let sd = (n > 1).then(|| values.std_dev());
        let interval = sd.map(|sd| {
            let half = student_t(n - 1) * sd / (n as f64).sqrt();
            (mean - half, mean + half)
        });
        Some(Self {
            n,
            mean,
            sd,
            interval,
            min: values.min(),
            max: values.max(),
            median: Data::new(values.to_vec()).median(),
        })
    }
}

/// What a two-sided 95 % interval multiplies the standard error with; `freedom` is at least 1.
pub(super) fn student_t(freedom: usize) -> f64 {
    student_t_at(freedom, 0.975)
}

/// A quantile of Student's t; `freedom` is at least 1.
pub(crate) fn student_t_at(freedom: usize, quantile: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64)
        .expect("degrees of freedom are positive")
        .inverse_cdf(quantile)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-4, "{a} is not {b}");
    }

    #[test]
    fn eight_values_by_hand() {
        // Sum of squared deviations 32, so sd = √(32 / 7); t(7) = 2.364624.
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((summary.n, summary.mean), (8, 5.0));
        assert_eq!((summary.min, summary.max, summary.median), (2.0, 9.0, 4.5));
        close(summary.sd.unwrap(), 2.138_090);
        let (low, high) = summary.interval.unwrap();
        close(low, 5.0 - 1.787_487);
        close(high, 5.0 + 1.787_487);
    }

    #[test]
    fn quantiles_of_students_t_are_those_of_the_tables() {
        for (freedom, quantile) in [(1, 12.7062), (2, 4.3027), (9, 2.2622), (29, 2.0452)] {
            close(student_t(freedom), quantile);
        }
    }

    #[test]
    fn one_value_has_no_spread() {
        let summary = Summary::of(&[3.5]).unwrap();
        assert_eq!(summary.mean, 3.5);
        assert_eq!((summary.sd, summary.interval), (None, None));
    }

    #[test]
    fn nothing_and_what_is_not_finite_are_refused() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[1.0, f64::INFINITY]), None);
    }
}
