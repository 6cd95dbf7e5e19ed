//! Quantiles of a delay in constant memory.

use marline_base::{Duration, nanos_f64};

/// Buckets for each doubling of the delay: a quantile is exact to 2^(1/8), or 9 %.
const PER_OCTAVE: u32 = 8;
const BUCKETS: usize = 256;
/// The first bucket ends here (µs).
const LOWEST: f64 = 16.0;

/// 2^(k/8) for k from 1 to 7: where an octave's buckets end.
const EIGHTHS: [f64; PER_OCTAVE as usize - 1] = [
    1.090_507_732_665_257_7,
    1.189_207_115_002_721,
    1.296_839_554_651_009_6,
    core::f64::consts::SQRT_2,
    1.542_210_825_407_940_7,
    1.681_792_830_507_429,
    1.834_008_086_409_342_4,
];

/// The bucket of a delay (µs): eight times its binary logarithm over [`LOWEST`]. Read from exponent
/// and mantissa, because one is recorded for nearly every packet.
fn bucket(us: f64) -> usize {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = (us / LOWEST).max(1.0).to_bits();
    let octaves = (bits >> 52) as usize - 1023;
    let mantissa = f64::from_bits(bits & MANTISSA | 1.0_f64.to_bits());
    let eighths = EIGHTHS.iter().filter(|e| mantissa >= **e).count();
    (octaves * PER_OCTAVE as usize + eighths).min(BUCKETS - 1)
}

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
        let us = nanos_f64(delay) / 1e3;
        let bucket = &mut self.buckets[bucket(us)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
        self.worst = self.worst.max(delay);
    }

    /// Adds what `other` has recorded.
    pub fn add(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket = bucket.saturating_add(*more);
        }
        self.count = self.count.saturating_add(other.count);
        self.worst = self.worst.max(other.worst);
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
    fn buckets_are_eighths_of_octaves() {
        for n in 0..200_000_u32 {
            let us = f64::from(n) * 7.3 + 0.1;
            let octaves = libm::log2((us / LOWEST).max(1.0));
            assert_eq!(bucket(us), (octaves * 8.0) as usize, "{us} µs");
        }
        assert_eq!(bucket(LOWEST * 8.0), 24);
        assert_eq!(bucket(1e18), BUCKETS - 1);
    }

    #[test]
    fn added_delays_are_those_of_both() {
        let (mut one, mut two, mut both) = <(Delays, Delays, Delays)>::default();
        for ms in 1..=100_u64 {
            let of = if ms % 3 == 0 { &mut one } else { &mut two };
            of.record(Duration::from_millis(ms));
            both.record(Duration::from_millis(ms));
        }
        one.add(&two);
        assert_eq!(one, both);
    }

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
