//! Capacity in an outage.

use super::positive;

/// Terms that are summed at most; the deadline is a few slots away.
const MOST: u32 = 64;

/// Probability that the sum of `slots` exponential variables of mean 1 is at most `x`: the Erlang
/// distribution. HOP takes the capacity in a fall as exponential in every slot; its Gamma(2k, C)
/// (before §VI) is the form that the chi-square distribution has, the sum has shape k.
pub fn erlang(slots: u32, x: f64) -> f64 {
    // Also for NaN.
    if !positive(x) {
        return 0.0;
    }
    let (mut term, mut sum) = (1.0, 0.0);
    for i in 0..slots.clamp(1, MOST) {
        sum += term;
        term *= x / f64::from(i + 1);
    }
    // Of a huge x the terms overflow before the exponential takes them back.
    let above = libm::exp(-x) * sum;
    if above.is_finite() {
        (1.0 - above).clamp(0.0, 1.0)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Rng;

    #[test]
    fn sums_of_exponentials_are_distributed_so() {
        let mut rng = Rng::new(5);
        for slots in [1, 2, 7] {
            for x in [0.3, 1.0, 4.0, 9.0] {
                let sum = |rng: &mut Rng| (0..slots).map(|_| rng.exponential()).sum::<f64>();
                let hits = (0..40_000).filter(|_| sum(&mut rng) <= x).count();
                // Six standard errors of at most 0.5/√40000.
                let error = hits as f64 / 40_000.0 - erlang(slots, x);
                assert!(libm::fabs(error) < 0.015, "{slots} {x}: {error}");
            }
        }
    }

    #[test]
    fn ends_are_defined() {
        assert_eq!(erlang(1, 0.0), 0.0);
        assert_eq!(erlang(3, f64::NAN), 0.0);
        assert_eq!(erlang(3, f64::INFINITY), 1.0);
        assert_eq!(erlang(60, 1e300), 1.0);
        assert_eq!(erlang(0, 1.0), erlang(1, 1.0));
    }
}
