//! How many packets are on time.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;

use super::Lane;
use super::losses::Losses;

/// Probabilities below this count as zero.
const NOTHING: f64 = 1e-12;

/// Distribution of a number of packets that are on time.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    first: usize,
    /// Probability of `first`, `first + 1`, …
    weights: Vec<f64>,
}

impl Count {
    /// No packets, for certain.
    pub fn none() -> Self {
        Self {
            first: 0,
            weights: vec![1.0],
        }
    }

    /// Of the first `sent` packets of a lane. Being late is nested: when a packet is on time so are
    /// all before it. So exactly d are on time with probability λ(d+1) − λ(d) (the printed (5)
    /// multiplies, and does not sum to 1). Of those each may have been lost.
    pub fn of(lane: &Lane, sent: usize) -> Self {
        let late = lane.late();
        let sent = sent.min(lane.most());
        let first = late[1..=sent].partition_point(|late| *late < NOTHING);
        let mut weights: Vec<f64> = late[first..=sent].windows(2).map(|w| w[1] - w[0]).collect();
        weights.push(1.0 - late.get(sent).copied().unwrap_or(0.0));
        Self { first, weights }.thinned(lane.loss())
    }

    /// What is left if each is lost with this probability.
    fn thinned(self, loss: f64) -> Self {
        if loss <= 0.0 {
            return self;
        }
        let mut losses = Losses::none(loss);
        for _ in 0..self.first {
            losses.one_more();
        }
        let first = (self.first + 1).saturating_sub(losses.weights().len());
        let mut weights = vec![0.0; self.first + self.weights.len() - first];
        for (at, weight) in self.weights.iter().enumerate() {
            // What is next to impossible may reach below the first: it counts as the first.
            for (lost, chance) in losses.weights().iter().enumerate() {
                let left = (self.first + at).saturating_sub(lost).max(first);
                weights[left - first] += weight * chance;
            }
            losses.one_more();
        }
        Self { first, weights }
    }

    /// The sum of two independent numbers; what exceeds `most` counts as `most`.
    pub fn plus(&self, other: &Self, most: usize) -> Self {
        let first = (self.first + other.first).min(most);
        let length = (self.weights.len() + other.weights.len() - 1).min(most - first + 1);
        let mut weights = vec![0.0; length];
        let (short, long) = match self.weights.len() < other.weights.len() {
            true => (&self.weights, &other.weights),
            false => (&other.weights, &self.weights),
        };
        // What the last of `long` sum to, from each place on.
        let mut tails = vec![0.0; long.len() + 1];
        for (at, weight) in long.iter().enumerate().rev() {
            tails[at] = tails[at + 1] + weight;
        }
        for (at, factor) in short.iter().enumerate() {
            if *factor == 0.0 {
                continue;
            }
            // What fits, as one run without a check for each; the rest is lumped together.
            let fits = long.len().min(length.saturating_sub(at));
            if let Some(run) = weights.get_mut(at..at + fits) {
                for (sum, weight) in run.iter_mut().zip(&long[..fits]) {
                    *sum += factor * weight;
                }
            }
            weights[length - 1] += factor * tails[fits];
        }
        Self { first, weights }
    }

    /// Probability of exactly `n`.
    pub fn exactly(&self, n: usize) -> f64 {
        let at = n.checked_sub(self.first);
        at.and_then(|at| self.weights.get(at))
            .copied()
            .unwrap_or(0.0)
    }

    /// Probability of less than `n`.
    pub fn below(&self, n: usize) -> f64 {
        let end = n.saturating_sub(self.first).min(self.weights.len());
        self.weights[..end].iter().sum()
    }

    /// The largest number that is reached with at least this probability.
    pub fn reached(&self, probability: f64) -> usize {
        let mut below = 0.0;
        for (at, weight) in self.weights.iter().enumerate() {
            below += weight;
            if 1.0 - below < probability {
                return self.first + at;
            }
        }
        self.first + self.weights.len() - 1
    }

    /// Probability that this and an independent number are together less than `n`.
    fn below_with(&self, other: &Self, n: usize) -> f64 {
        // With t of this, the other must be less than n − t; its distribution is summed on the way.
        let (mut sum, mut below, mut counted) = (0.0, 0.0, 0);
        for (at, weight) in self.weights.iter().enumerate().rev() {
            let end = n
                .saturating_sub(self.first + at + other.first)
                .min(other.weights.len());
            while counted < end {
                below += other.weights[counted];
                counted += 1;
            }
            sum += weight * below;
        }
        sum
    }
}

/// The sum over the lanes, up to `most`.
pub(super) fn sum(lanes: &[Lane], packets: &[usize], most: usize) -> Count {
    let parts = lanes.iter().zip(packets);
    let parts: Vec<Count> = parts.map(|(lane, n)| Count::of(lane, *n)).collect();
    sum_of(parts.iter(), most)
}

/// The sum of independent numbers, up to `most`.
pub(super) fn sum_of<'a>(parts: impl Iterator<Item = &'a Count>, most: usize) -> Count {
    let mut parts: Vec<Cow<'_, Count>> = parts.map(Cow::Borrowed).collect();
    // In pairs: short with short is cheapest.
    while parts.len() > 1 {
        let mut pairs = parts.chunks_exact(2);
        let mut sums: Vec<Cow<'_, Count>> = Vec::new();
        for pair in pairs.by_ref() {
            sums.push(Cow::Owned(pair[0].plus(&pair[1], most)));
        }
        sums.extend(pairs.remainder().iter().cloned());
        parts = sums;
    }
    parts.pop().map_or_else(Count::none, Cow::into_owned)
}

/// P_e (4): probability that fewer than `k` packets are on time if `packets` go on each lane.
pub fn failure(lanes: &[Lane], packets: &[usize], k: usize) -> f64 {
    let half = lanes.len() / 2;
    let a = sum(&lanes[..half], &packets[..half], k);
    let b = sum(&lanes[half..], &packets[half..], k);
    a.below_with(&b, k).clamp(0.0, 1.0)
}
