//! The greater of normal variables, taken for normal again (Clark, "The Greatest of a Finite Set of
//! Random Variables", Operations Research 1961; Sinha, Zhou and Shenoy, IEEE TCAD 2007).

use libm::sqrt;

use crate::sched::normal::density;

/// Beyond this number of standard deviations of the difference the greater of two is one of them.
const CERTAIN: f64 = 6.0;

/// A normal variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauss {
    /// Its mean.
    pub mean: f64,
    /// Its variance, at least 0.
    pub var: f64,
}

/// Φ(x) of the standard normal distribution from φ(x), within 7.5 · 10⁻⁸ (Abramowitz and Stegun,
/// 26.2.17): delays of seconds are distinguished to less than a microsecond.
fn below(x: f64, density: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let terms = [
        1.330_274_429,
        -1.821_255_978,
        1.781_477_937,
        -0.356_563_782,
        0.319_381_530,
    ];
    let tail = density * terms.iter().fold(0.0, |sum, term| (sum + term) * t);
    if x < 0.0 { tail } else { 1.0 - tail }
}

impl Gauss {
    /// The same, `by` later.
    pub fn shifted(self, by: f64) -> Self {
        Self {
            mean: self.mean + by,
            ..self
        }
    }

    /// E\[max(self, other)\] of independent variables: μ₁Φ(α) + μ₂Φ(−α) + θφ(α) with
    /// α = (μ₁ − μ₂)/θ and θ² = σ₁² + σ₂².
    pub fn expected_max(self, other: Self) -> f64 {
        let theta = sqrt(self.var + other.var);
        let gap = self.mean - other.mean;
        if gap.abs() >= CERTAIN * theta {
            return self.mean.max(other.mean);
        }
        let alpha = gap / theta;
        let density = density(alpha);
        other.mean + gap * below(alpha, density) + theta * density
    }

    /// The normal variable with the mean and the variance of max(self, other); `correlation` of
    /// the two is 0 to 1.
    pub fn max(self, other: Self, correlation: f64) -> Self {
        let common = 2.0 * correlation * sqrt(self.var * other.var);
        let theta = sqrt((self.var + other.var - common).max(0.0));
        let gap = self.mean - other.mean;
        if gap.abs() >= CERTAIN * theta {
            return if gap >= 0.0 { self } else { other };
        }
        // Moments relative to the other's mean, so that nothing large cancels.
        let alpha = gap / theta;
        let density = density(alpha);
        let (first, edge) = (below(alpha, density), theta * density);
        let mean = gap * first + edge;
        let square = (gap * gap + self.var) * first + other.var * (1.0 - first) + gap * edge;
        Self {
            mean: other.mean + mean,
            var: (square - mean * mean).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of max(a, b) by integration over both, ±8 standard deviations.
    fn integrated(a: Gauss, b: Gauss) -> (f64, f64) {
        const STEPS: i32 = 800;
        let at = |g: Gauss, i: i32| g.mean + sqrt(g.var) * f64::from(i) * 8.0 / f64::from(STEPS);
        let weight = |i: i32| density(f64::from(i) * 8.0 / f64::from(STEPS));
        let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
        for i in -STEPS..=STEPS {
            for j in -STEPS..=STEPS {
                let (w, m) = (weight(i) * weight(j), at(a, i).max(at(b, j)));
                total += w;
                first += w * m;
                second += w * m * m;
            }
        }
        let mean = first / total;
        (mean, second / total - mean * mean)
    }

    #[test]
    fn both_moments_are_those_of_numerical_integration() {
        for (a, b) in [
            ((0.0, 1.0), (0.0, 1.0)),
            ((50.0, 100.0), (40.0, 1.0)),
            ((70.1, 5_500.0), (51.2, 0.01)),
            ((10.0, 4.0), (13.0, 9.0)),
            ((-5.0, 2.0), (5.0, 30.0)),
        ] {
            let (a, b) = (
                Gauss {
                    mean: a.0,
                    var: a.1,
                },
                Gauss {
                    mean: b.0,
                    var: b.1,
                },
            );
            let (mean, var) = integrated(a, b);
            let scale = sqrt(a.var + b.var);
            for greater in [a.max(b, 0.0), b.max(a, 0.0)] {
                assert!((greater.mean - mean).abs() < 2e-3 * scale, "{a:?} {b:?}");
                assert!(
                    (greater.var - var).abs() < 5e-3 * scale * scale,
                    "{a:?} {b:?}"
                );
            }
            assert!((a.expected_max(b) - mean).abs() < 2e-3 * scale);
        }
    }

    #[test]
    fn two_standard_normals_have_a_greatest_of_one_over_root_pi() {
        let one = Gauss {
            mean: 0.0,
            var: 1.0,
        };
        let greatest = one.max(one, 0.0);
        let pi = core::f64::consts::PI;
        assert!((greatest.mean - 1.0 / sqrt(pi)).abs() < 1e-6);
        assert!((greatest.var - (1.0 - 1.0 / pi)).abs() < 1e-6);
        assert_eq!(one.shifted(3.0).expected_max(one.shifted(-40.0)), 3.0);
    }

    #[test]
    fn the_distribution_is_that_of_the_error_function() {
        for step in -600..=600 {
            let x = f64::from(step) / 100.0;
            let exact = 0.5 * libm::erfc(-x * core::f64::consts::FRAC_1_SQRT_2);
            assert!((below(x, density(x)) - exact).abs() < 7.6e-8, "{x}");
        }
    }

    #[test]
    fn what_moves_together_is_no_greater_than_each() {
        let one = Gauss {
            mean: 3.0,
            var: 4.0,
        };
        assert_eq!(one.max(one, 1.0), one);
        // θ² = 2 · 4 · (1 − 0.5), and E[max] = μ + θ/√(2π).
        let half = one.max(one, 0.5);
        assert!((half.mean - 3.0 - 2.0 * density(0.0)).abs() < 1e-6);
    }

    #[test]
    fn certain_arrivals_need_no_division() {
        let sure = |mean| Gauss { mean, var: 0.0 };
        assert_eq!(sure(1.0).max(sure(2.0), 0.0), sure(2.0));
        assert_eq!(sure(2.0).expected_max(sure(2.0)), 2.0);
    }
}
