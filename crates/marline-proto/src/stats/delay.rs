//! Quantiles of a delay in constant memory.

use marline_base::Duration;

/// Buckets for each doubling of the delay: a quantile is exact to 2^(1/8), or 9 %.
const PER_OCTAVE: u32 = 8;
const BUCKETS: usize = 256;
/// The first bucket ends here (µs).
const LOWEST: f64 = 16.0;

/// A histogram with logarithmic buckets from 16 µs to some 18 hours.
#[derive(Clone, Debug, PartialEq)]
pub struct Delays {
    buckets: [u32; BUCKETS],
    count: u64,
    worst: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            buckets: [0; BUCKETS],
            count: 0,
            worst: Duration::ZERO,
        }
    }
}

impl Delays {
    pub(crate) fn record(&mut self, delay: Duration) {
        let us = delay.as_nanos() as f64 / 1e3;
        let octaves = libm::log2((us / LOWEST).max(1.0));
        let index = (octaves * f64::from(PER_OCTAVE)) as usize;
        let bucket = &mut self.buckets[index.min(BUCKETS - 1)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
        self.worst = self.worst.max(delay);
    }

    /// How many delays were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest.
    pub fn worst(&self) -> Duration {
        self.worst
    }

    /// The delay that the fraction `q` (0..=1) did not exceed, at most 9 % too high; `None` if
    /// nothing was recorded.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let total: u64 = self.buckets.iter().map(|&n| u64::from(n)).sum();
        if total == 0 {
            return None;
        }
        let rank = libm::ceil(q.clamp(0.0, 1.0) * total as f64).max(1.0) as u64;
        let mut seen = 0;
        for (index, &n) in self.buckets.iter().enumerate() {
            seen += u64::from(n);
            if seen >= rank {
                let upper = LOWEST * libm::exp2((index + 1) as f64 / f64::from(PER_OCTAVE));
                return Some(Duration::from_nanos((upper * 1e3) as u64).min(self.worst));
            }
        }
        Some(self.worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_nine_percent() {
        let mut delays = Delays::default();
        assert_eq!(delays.quantile(0.5), None);
        for ms in 1..=1000_u64 {
            delays.record(Duration::from_millis(ms));
        }
        for (q, exact) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = delays.quantile(q).unwrap().as_secs_f64() * 1e3;
            assert!(
                found >= exact && found <= exact * 1.0906,
                "{q}: {found} for {exact}"
            );
        }
        assert_eq!(delays.quantile(1.0), Some(Duration::from_secs(1)));
        delays.record(Duration::ZERO);
        delays.record(Duration::MAX);
        assert_eq!(delays.count(), 1002);
    }
}
