//! How many packets are lost on the way.

use smallvec::{SmallVec, smallvec};

/// Probabilities below this count as zero.
const NOTHING: f64 = 1e-12;
/// Losses of one block on one path that are counted apart at most.
const MOST: usize = 128;

/// Distribution of the number that is lost of packets each of which is lost with the same
/// probability, independently: binomial, without what is next to impossible.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    loss: f64,
    /// Probability of 0, 1, … lost.
    weights: SmallVec<[f64; 16]>,
}

impl Losses {
    /// Of no packets, each of which is lost with probability `loss`.
    pub(super) fn none(loss: f64) -> Self {
        Self {
            loss,
            weights: smallvec![1.0],
        }
    }

    /// Of one packet more.
    pub(super) fn one_more(&mut self) {
        let mut before = 0.0;
        for weight in &mut self.weights {
            let kept = *weight * (1.0 - self.loss) + before * self.loss;
            before = core::mem::replace(weight, kept);
        }
        let last = before * self.loss;
        if last > NOTHING && self.weights.len() < MOST {
            self.weights.push(last);
        }
    }

    /// Probability of 0, 1, … lost.
    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }
}

/// Packets besides `k` of which that many are lost hardly ever (once in 100 000 times).
pub(super) fn spare(k: u32, loss: f64) -> u32 {
    if loss <= 0.0 {
        return 0;
    }
    // A normal tail is too short for few losses: one for each of the first are added.
    let mean = f64::from(k) * loss / (1.0 - loss);
    let spare = mean + 4.3 * libm::sqrt(mean) + 3.0;
    (libm::ceil(spare) as u32).min(k.saturating_add(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_binomial() {
        let mut losses = Losses::none(0.1);
        for _ in 0..3 {
            losses.one_more();
        }
        let expected = [0.729, 0.243, 0.027, 0.001];
        assert_eq!(losses.weights().len(), 4);
        for (have, want) in losses.weights().iter().zip(expected) {
            assert!((have - want).abs() < 1e-12, "{have} is not {want}");
        }
        let mut never = Losses::none(0.0);
        never.one_more();
        assert_eq!(never.weights(), [1.0]);
    }

    #[test]
    fn the_spare_packets_suffice() {
        for (k, loss) in [(10, 0.001), (100, 0.02), (30, 0.2), (400, 0.05)] {
            let spare = spare(k, loss);
            let mut losses = Losses::none(loss);
            for _ in 0..k + spare {
                losses.one_more();
            }
            let enough: f64 = losses.weights().iter().take(spare as usize + 1).sum();
            assert!(
                enough > 1.0 - 5e-5,
                "{k}, {loss}: {spare} leave {}",
                1.0 - enough
            );
        }
        assert_eq!(spare(100, 0.0), 0);
    }
}
