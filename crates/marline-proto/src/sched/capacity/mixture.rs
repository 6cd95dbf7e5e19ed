//! One function summed over many shifts.

use alloc::vec;
use alloc::vec::Vec;

/// Points that an interpolation uses.
const POINTS: usize = 8;
/// Grid points a deviation at least. With these, interpolating Φ among [`POINTS`] is wrong by at
/// most 2·10⁻¹⁰: Π(½ … 3½)²/8! · 10⁻⁸ · max |φ⁽⁷⁾|.
const DENSE: f64 = 10.0;
/// Grid points a unit at most.
const FINEST: usize = 8;

/// A sum Σ w·f(i + shift) over weighted shifts for i = 0, 1, …: the shifts are moved onto a grid,
/// each as the points that interpolate there, so that f is needed once at each grid point and not
/// once for each shift.
#[derive(Clone, Debug)]
pub(super) struct Mixture {
    /// Grid points a unit.
    per: usize,
    /// The grid point of the first weight.
    first: f64,
    weights: Vec<f64>,
}

impl Mixture {
    /// For a function that is smooth on the scale of 1/`slope` units, such as Φ(`slope`·x). `None`
    /// if its values at `most` + 1 places are had as soon without.
    pub(super) fn new(
        shifts: impl Iterator<Item = (f64, f64)> + Clone,
        slope: f64,
        most: usize,
    ) -> Option<Self> {
        let per = libm::ceil(slope * DENSE).max(1.0);
        let (mut low, mut high, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0);
        for (shift, _) in shifts.clone() {
            (low, high) = (low.min(shift), high.max(shift));
            count += 1;
        }
        let spread = (high - low) * per + POINTS as f64;
        let needs = per * (most as f64 + 1.0) + spread;
        let pays = 2.0 * needs < (count * (most + 1)) as f64 && per <= FINEST as f64;
        // Of nonsense the slow way makes what it makes of it.
        if !pays || shifts.clone().any(|(shift, _)| !shift.is_finite()) {
            return None;
        }
        let before = (POINTS / 2 - 1) as f64;
        let first = libm::floor(low * per) - before;
        let mut weights = vec![0.0; spread as usize + 2];
        for (shift, weight) in shifts {
            let at = shift * per - before - first;
            let point = at as usize;
            let parts = lagrange(at - point as f64 + before);
            for (sum, part) in weights.iter_mut().skip(point).zip(parts) {
                *sum += weight * part;
            }
        }
        Some(Self {
            per: per as usize,
            first,
            weights,
        })
    }

    /// The sums for i = 0 to `most`. `add` adds to values that are 0 those of f at a place, one
    /// unit behind it, and so on.
    pub(super) fn sums(&self, most: usize, add: impl Fn(&mut [f64], f64)) -> Vec<f64> {
        let mut sums = vec![0.0; most + 1];
        let columns = self.weights.len().div_ceil(self.per);
        let mut values = vec![0.0; most + 1 + columns];
        // All points of the grid that lie equally between units: their values are one run for each
        // weight.
        for phase in 0..self.per {
            values.fill(0.0);
            add(&mut values, (self.first + phase as f64) / self.per as f64);
            let weights = self.weights.iter().skip(phase).step_by(self.per);
            for (from, weight) in weights.enumerate().filter(|(_, weight)| **weight != 0.0) {
                for (sum, value) in sums.iter_mut().zip(&values[from..]) {
                    *sum += weight * value;
                }
            }
        }
        sums
    }
}

/// Π (i − j) over all j but i, inverted.
const INVERSE: [f64; POINTS] = [
    -1.0 / 5_040.0,
    1.0 / 720.0,
    -1.0 / 240.0,
    1.0 / 144.0,
    -1.0 / 144.0,
    1.0 / 240.0,
    -1.0 / 720.0,
    1.0 / 5_040.0,
];

/// How much the values at 0, 1, … make of the value at `t`: Lagrange's polynomials.
fn lagrange(t: f64) -> [f64; POINTS] {
    let mut parts = INVERSE;
    let (mut before, mut behind) = (1.0, 1.0);
    for i in 0..POINTS {
        parts[i] *= before;
        before *= t - i as f64;
        let last = POINTS - 1 - i;
        parts[last] *= behind;
        behind *= t - last as f64;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::normal::below;
    use marline_base::Rng;

    #[test]
    fn polynomials_are_met_exactly() {
        let cubic = |x: f64| 1.0 + x * (0.5 - x * (0.25 - 0.125 * x));
        for t in [0.0, 3.0, 3.3, 4.0, 6.9] {
            let values = lagrange(t);
            let met: f64 = (0..POINTS).map(|i| values[i] * cubic(i as f64)).sum();
            assert!((met - cubic(t)).abs() < 1e-9, "{t}");
        }
    }

    #[test]
    fn sums_are_those_one_by_one() {
        let mut rng = Rng::new(17);
        for _ in 0..200 {
            let slope = 0.02 + 0.5 * rng.uniform();
            let shifts: Vec<(f64, f64)> = (0..24)
                .map(|_| (30.0 * rng.uniform(), 1.0 / 24.0))
                .collect();
            let most = 20 + rng.below(80) as usize;
            let f = |x: f64| below(slope * x - 5.0);
            let Some(mixture) = Mixture::new(shifts.iter().copied(), slope, most) else {
                continue;
            };
            let add = |values: &mut [f64], at: f64| {
                for (i, value) in values.iter_mut().enumerate() {
                    *value += f(at + i as f64);
                }
            };
            for (i, sum) in mixture.sums(most, add).iter().enumerate() {
                let one_by_one = shifts
                    .iter()
                    .map(|(shift, weight)| weight * f(i as f64 + shift));
                let expected: f64 = one_by_one.sum();
                assert!(
                    (sum - expected).abs() < 1e-9,
                    "{slope} {i}: {sum} {expected}"
                );
            }
        }
    }

    #[test]
    fn it_is_left_alone_where_it_does_not_pay() {
        let one = [(3.0, 1.0)];
        assert!(Mixture::new(one.into_iter(), 0.1, 100).is_none());
        let many = (0..24).map(|i| (f64::from(i), 1.0 / 24.0));
        assert!(Mixture::new(many.clone(), 0.1, 100).is_some());
        assert!(Mixture::new(many.clone(), 3.0, 100).is_none());
        assert!(Mixture::new(many.map(|(_, weight)| (f64::NAN, weight)), 0.1, 100).is_none());
    }
}
