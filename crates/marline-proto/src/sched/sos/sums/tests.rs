use libm::{exp, lgamma, log};

use super::*;
use crate::sched::normal;

/// P(X ≤ x) of a gamma variable of shape `a`, by its series (no table, no approximation).
pub(in crate::sched::sos) fn gamma_below(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let (mut term, mut sum, mut k) = (1.0 / a, 1.0 / a, a);
    while term > 1e-17 * sum {
        k += 1.0;
        term *= x / k;
        sum += term;
    }
    (sum * exp(a * log(x) - x - lgamma(a))).min(1.0)
}

#[test]
fn values_are_those_of_the_gamma_distribution() {
    for skew in [0.1, 0.3, 0.49, 0.51, 0.8, 1.3, 2.0, 3.1, 5.0, 8.3, 10.0] {
        let shape = Shape::new(skew, 1.0);
        let a = 4.0 / (skew * skew);
        for z in [1.0, 1.3, 1.645, 1.96, 2.33, 3.0, 3.7] {
            let x = a * (1.0 + 0.5 * skew * shape.value(z));
            let (truth, tail) = (normal::below(-z), 1.0 - gamma_below(a, x));
            let within = if z < 3.0 { 0.035 } else { 0.07 };
            assert!(
                (tail / truth - 1.0).abs() < within,
                "{skew} {z}: {tail} {truth}"
            );
        }
    }
}

#[test]
fn scores_undo_values() {
    for skew in [0.0, 0.2, 0.6, 2.0, 7.0, 30.0] {
        for packets in [1.0, 3.0, 40.0, 9_000.0] {
            let shape = Shape::new(skew, packets);
            let mut last = f64::NEG_INFINITY;
            for step in 0..=40 {
                let z = 0.1 * f64::from(step);
                let value = shape.value(z);
                assert!(value > last - 1e-12, "{skew} {packets} {z}");
                last = value;
                let back = shape.score(value);
                assert!(
                    (back - z).abs() < 1e-3 || value < -0.01,
                    "{skew} {packets} {z} {back}"
                );
            }
        }
    }
}

#[test]
fn a_normal_sum_is_normal_and_odd_numbers_are_planned_with() {
    assert_eq!(Shape::new(-3.0, 10.0).value(1.7), 1.7);
    assert_eq!(Shape::new(0.0, 10.0).score(-2.5), -2.5);
    assert!(Shape::new(1e9, 0.0).value(2.0).is_finite());
    // A sum of many is nearly normal, however skewed its parts are.
    assert!((Shape::new(10.0, 1e6).value(1.96) - 1.96).abs() < 0.01);
}
