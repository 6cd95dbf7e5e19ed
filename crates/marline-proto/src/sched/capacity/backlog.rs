//! What stands at a path's bottleneck, as far as the sender can know.

use smallvec::SmallVec;

use super::positive;

/// Equally likely values that stand for a normal distribution: the quantiles at (i + ½)/24,
/// stretched to unit variance.
pub const NODES: [f64; 24] = [
    -2.091_339_617_783_512,
    -1.575_173_463_035_062,
    -1.291_829_843_810_454,
    -1.082_690_033_481_494,
    -0.910_886_515_882_726,
    -0.761_439_029_374_655,
    -0.626_626_035_442_704,
    -0.501_856_021_014_484,
    -0.384_106_167_508_083,
    -0.271_215_524_600_599,
    -0.161_520_303_448_120,
    -0.053_643_256_393_776,
    0.053_643_256_393_776,
    0.161_520_303_448_120,
    0.271_215_524_600_599,
    0.384_106_167_508_083,
    0.501_856_021_014_484,
    0.626_626_035_442_704,
    0.761_439_029_374_655,
    0.910_886_515_882_726,
    1.082_690_033_481_494,
    1.291_829_843_810_454,
    1.575_173_463_035_062,
    2.091_339_617_783_512,
];

/// Packets that were sent at one time and are not known to have left the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch {
    /// When they reached the bottleneck (seconds).
    pub came: f64,
    /// Their length (bits).
    pub bits: f64,
}

/// A distribution of the bits that wait at a bottleneck: values with their probabilities, which sum
/// to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Backlog {
    nodes: SmallVec<[(f64, f64); NODES.len()]>,
}

impl Backlog {
    /// Exactly this number of bits.
    pub fn known(bits: f64) -> Self {
        let bits = if bits > 0.0 { bits } else { 0.0 };
        Self {
            nodes: SmallVec::from_slice(&[(bits, 1.0)]),
        }
    }

    /// What is left at `now` of batches (in the order of their coming) whose service began at
    /// `since`, if the capacity since then is normal with this mean and deviation (bit/s): the
    /// convolution with the slot that was not observed.
    pub fn unseen(batches: &[Batch], since: f64, now: f64, mean: f64, sd: f64) -> Self {
        let sent: f64 = batches.iter().map(|b| b.bits).sum();
        // Also for NaN.
        if !positive(sent) {
            return Self::known(0.0);
        }
        if !(since.is_finite() && now.is_finite()) {
            return Self::known(sent);
        }
        if !positive(sd) {
            return Self::known(left(batches, since, now, mean));
        }
        let each = 1.0 / NODES.len() as f64;
        let mut nodes: SmallVec<[(f64, f64); NODES.len()]> = SmallVec::new();
        for node in NODES {
            let bits = left(batches, since, now, mean + sd * node);
            // An empty queue is one value, however it came about.
            match nodes.last_mut() {
                Some((last, weight)) if *last == bits => *weight += each,
                _ => nodes.push((bits, each)),
            }
        }
        Self { nodes }
    }

    /// The same and these bits, which are known to wait.
    #[must_use]
    pub fn and(mut self, bits: f64) -> Self {
        if positive(bits) {
            self.nodes.iter_mut().for_each(|(waits, _)| *waits += bits);
        }
        self
    }

    /// The values (bits) and their probabilities.
    pub fn nodes(&self) -> &[(f64, f64)] {
        &self.nodes
    }

    /// Expected bits.
    pub fn mean(&self) -> f64 {
        self.nodes.iter().map(|(bits, weight)| bits * weight).sum()
    }
}

/// What a server of this capacity that began at `since` has left at `now`.
fn left(batches: &[Batch], since: f64, now: f64, capacity: f64) -> f64 {
    let capacity = if capacity > 0.0 { capacity } else { 0.0 };
    let (mut waiting, mut time) = (0.0_f64, since);
    for batch in batches {
        // Not clamp, which does not take nonsense.
        let came = batch.came.max(time).min(now.max(time));
        waiting = (waiting - capacity * (came - time)).max(0.0) + batch.bits;
        time = came;
    }
    (waiting - capacity * (now - time).max(0.0)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::normal::quantile;
    use marline_base::Rng;

    fn near(a: f64, b: f64, within: f64) {
        assert!(libm::fabs(a - b) <= within, "{a} is not {b}");
    }

    #[test]
    fn what_is_known_to_wait_adds_to_every_value() {
        let batches = [Batch {
            came: 0.0,
            bits: 1e6,
        }];
        let unseen = Backlog::unseen(&batches, 0.0, 10e-3, 40e6, 8e6);
        near(unseen.clone().and(5e5).mean(), unseen.mean() + 5e5, 1e-6);
        assert_eq!(unseen.clone().and(-1.0), unseen);
        assert_eq!(unseen.clone().and(f64::NAN), unseen);
    }

    #[test]
    fn nodes_are_quantiles_of_unit_variance() {
        let n = NODES.len() as f64;
        let raw = |i: usize| quantile((i as f64 + 0.5) / n);
        let variance: f64 = (0..NODES.len()).map(|i| raw(i) * raw(i)).sum::<f64>() / n;
        for (i, node) in NODES.iter().enumerate() {
            near(*node, raw(i) / libm::sqrt(variance), 1e-12);
        }
    }

    #[test]
    fn queues_carry_over_and_drain_in_between() {
        let batch = |came, bits| Batch { came, bits };
        // 1 Mb/s: of 10 000 bits 5 000 are left after 5 ms, when 3 000 more come.
        let batches = [batch(0.0, 10_000.0), batch(5e-3, 3_000.0)];
        near(left(&batches, 0.0, 8e-3, 1e6), 5_000.0, 1e-6);
        // Idle from 10 to 20 ms.
        let batches = [batch(0.0, 10_000.0), batch(20e-3, 3_000.0)];
        near(left(&batches, 0.0, 21e-3, 1e6), 2_000.0, 1e-6);
        near(left(&batches, 0.0, 1.0, 1e6), 0.0, 0.0);
        near(left(&batches, 0.0, 1.0, -1e6), 13_000.0, 0.0);
        assert_eq!(
            Backlog::unseen(&batches, 0.0, 1.0, 1e6, 1e3).nodes().len(),
            1
        );
        assert_eq!(
            Backlog::unseen(&[], 0.0, 1.0, 1e6, 1e3),
            Backlog::known(0.0)
        );
    }

    #[test]
    fn an_unseen_slot_spreads_the_backlog_as_its_capacity_does() {
        let batches = [Batch {
            came: 0.0,
            bits: 1e6,
        }];
        let backlog = Backlog::unseen(&batches, 0.0, 25e-3, 40e6, 8e6);
        let total: f64 = backlog.nodes().iter().map(|(_, weight)| weight).sum();
        near(total, 1.0, 1e-12);
        let mut rng = Rng::new(41);
        let mut mean = 0.0;
        let mut over = 0.0;
        for _ in 0..40_000 {
            let bits = (1e6 - 25e-3 * (40e6 + 8e6 * rng.normal())).max(0.0);
            mean += bits / 40_000.0;
            over += f64::from(u8::from(bits > 200_000.0)) / 40_000.0;
        }
        // The mean of draws deviates by 117 000/200; the nodes by their coarseness.
        near(backlog.mean(), mean, 3_500.0);
        let nodes = backlog.nodes().iter();
        let nodes_over: f64 = nodes.filter(|(b, _)| *b > 200_000.0).map(|(_, w)| w).sum();
        near(nodes_over, over, 1.0 / 24.0);
    }
}
