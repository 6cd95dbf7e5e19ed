//! Several models of the same thing side by side count by how likely each made what was seen.

use libm::exp;

/// Weights, together 1, of models with these logarithms of their likelihood.
pub(super) fn weights<const N: usize>(scores: [f64; N]) -> [f64; N] {
    let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights = scores.map(|score| match score == best {
        // As `exp` says, too.
        true => 1.0,
        false => exp(score - best),
    });
    let sum: f64 = weights.iter().sum();
    weights.map(|weight| weight / sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_counts_by_its_likelihood_however_small_that_is() {
        for base in [0.0, -1e4, 1e3] {
            let [one, other] = weights([base, base + libm::log(3.0)]);
            assert!((one - 0.25).abs() < 1e-9 && (other - 0.75).abs() < 1e-9);
        }
    }
}
