//! A distribution as it was seen: equally likely values.

use smallvec::SmallVec;

/// Values that stand for a distribution.
const VALUES: usize = 32;

/// A distribution by its quantiles at 1/64, 3/64, …, 63/64.
#[derive(Clone, Debug)]
pub(in crate::sched) struct Sample([f64; VALUES]);

impl Sample {
    /// Of these values, at least one, which are sorted on the way.
    pub(in crate::sched) fn of(values: &mut [f64]) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let at = |i: usize| values[(2 * i + 1) * values.len() / (2 * VALUES)];
        Self(core::array::from_fn(at))
    }

    #[cfg(test)]
    pub(in crate::sched) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / VALUES as f64
    }

    /// The value that a share of about `q` does not exceed.
    pub(in crate::sched) fn quantile(&self, q: f64) -> f64 {
        let place = (q * VALUES as f64 - 0.5).clamp(0.0, (VALUES - 1) as f64);
        let below = place as usize;
        let above = (below + 1).min(VALUES - 1);
        let part = place - below as f64;
        self.0[below] + part * (self.0[above] - self.0[below])
    }
}

/// A variable that is a sample, cut from above and shifted.
#[derive(Clone, Copy, Debug)]
pub(in crate::sched) struct Term<'a> {
    pub(in crate::sched) sample: &'a Sample,
    pub(in crate::sched) shift: f64,
    /// Values above this one become it, before they are shifted.
    pub(in crate::sched) most: f64,
}

impl Term<'_> {
    fn value(&self, i: usize) -> Option<f64> {
        Some(self.sample.0.get(i)?.min(self.most) + self.shift)
    }
}

/// Expected greatest of independent variables.
pub(in crate::sched) fn expected_max(terms: &[Term<'_>]) -> f64 {
    // Below the greatest of the least values P(max ≤ x) is 0.
    let least = terms.iter().filter_map(|term| term.value(0));
    let start = least.fold(f64::NEG_INFINITY, f64::max);
    let count = |term: &Term<'_>| {
        let values = (0..VALUES).filter_map(|i| term.value(i));
        values.take_while(|value| *value <= start).count()
    };
    let mut taken: SmallVec<[usize; 8]> = terms.iter().map(count).collect();
    let below = |taken: &[usize]| -> f64 {
        let shares = taken.iter().map(|n| *n as f64 / VALUES as f64);
        shares.product()
    };
    let mut passed = below(&taken);
    let mut mean = start * passed;
    loop {
        let next = terms.iter().enumerate();
        let next = next.filter_map(|(i, term)| Some((i, term.value(taken[i])?)));
        let Some((i, value)) = next.min_by(|a, b| a.1.total_cmp(&b.1)) else {
            return mean;
        };
        taken[i] += 1;
        let now = below(&taken);
        mean += value * (now - passed);
        passed = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    use marline_base::Rng;

    #[test]
    fn the_expected_greatest_is_that_of_all_combinations() {
        let mut rng = Rng::new(8);
        for _ in 0..20 {
            let mut draw = |spread: f64| {
                let mut values: Vec<f64> = (0..64).map(|_| spread * rng.uniform()).collect();
                Sample::of(&mut values)
            };
            let (a, b, c) = (draw(10.0), draw(3.0), draw(20.0));
            let shift = [0.0, 4.0, -6.0];
            let mut sum = 0.0;
            for x in a.0 {
                for y in b.0 {
                    for z in c.0 {
                        sum += (x + shift[0]).max(y + shift[1]).max(z.min(12.0) + shift[2]);
                    }
                }
            }
            let truth = sum / (VALUES * VALUES * VALUES) as f64;
            let term = |sample, shift, most| Term {
                sample,
                shift,
                most,
            };
            let got = expected_max(&[
                term(&a, shift[0], f64::INFINITY),
                term(&b, shift[1], f64::INFINITY),
                term(&c, shift[2], 12.0),
            ]);
            assert!((got - truth).abs() < 1e-9, "{got} {truth}");
        }
    }

    #[test]
    fn quantiles_lie_between_the_values() {
        let mut values: Vec<f64> = (0..320).map(f64::from).collect();
        let sample = Sample::of(&mut values);
        for q in [0.1, 0.25, 0.5, 0.9] {
            assert!((sample.quantile(q) - 320.0 * q).abs() < 2.0, "{q}");
        }
        assert_eq!(sample.quantile(0.0), sample.0[0]);
        assert_eq!(sample.quantile(1.0), sample.0[VALUES - 1]);
        assert_eq!(Sample::of(&mut [3.0]).quantile(0.3), 3.0);
    }
}
