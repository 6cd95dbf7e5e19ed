//! When two distributions of delay count as the same.

use serde::Serialize;

/// Largest difference of a quantile whatever its size (milliseconds).
const MOST_MS: f64 = 1.0;
/// Largest difference as a share of the real quantile.
const MOST_SHARE: f64 = 0.1;

/// Quantiles of the delay in order (milliseconds).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Quantiles {
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
}

impl Quantiles {
    /// Of delays in nanoseconds, by nearest rank; `None` without any.
    pub(super) fn of(mut delays: Vec<u64>) -> Option<Self> {
        delays.sort_unstable();
        let at = |percent: usize| {
            let rank = (delays.len() * percent).div_ceil(100).max(1);
            delays.get(rank - 1).map(|nanos| *nanos as f64 / 1e6)
        };
        Some(Self {
            p50: at(50)?,
            p95: at(95)?,
            p99: at(99)?,
        })
    }

    /// Each quantile's mean over runs; `None` without any.
    pub(super) fn mean(runs: &[Self]) -> Option<Self> {
        let mean = |one: fn(&Self) -> f64| runs.iter().map(one).sum::<f64>() / runs.len() as f64;
        (!runs.is_empty()).then(|| Self {
            p50: mean(|q| q.p50),
            p95: mean(|q| q.p95),
            p99: mean(|q| q.p99),
        })
    }

    /// With their names, ascending.
    pub(super) fn named(&self) -> [(&'static str, f64); 3] {
        [("p50", self.p50), ("p95", self.p95), ("p99", self.p99)]
    }
}

/// Is the simulated value within 10 % of the real one, or within 1 ms of it?
pub(super) fn agree(simulated_ms: f64, real_ms: f64) -> bool {
    (simulated_ms - real_ms).abs() <= MOST_MS.max(MOST_SHARE * real_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_nearest_rank() {
        let delays = (1..=200).rev().map(|ms| ms * 1_000_000).collect();
        let quantiles = Quantiles::of(delays).unwrap();
        assert_eq!(
            quantiles.named(),
            [("p50", 100.0), ("p95", 190.0), ("p99", 198.0)]
        );
        assert_eq!(Quantiles::of(vec![7_000_000]).unwrap().p99, 7.0);
        assert_eq!(Quantiles::of(Vec::new()), None);
    }

    #[test]
    fn runs_are_averaged_quantile_by_quantile() {
        let of = |ms: f64| Quantiles {
            p50: ms,
            p95: 2.0 * ms,
            p99: 3.0 * ms,
        };
        assert_eq!(Quantiles::mean(&[of(1.0), of(3.0)]), Some(of(2.0)));
        assert_eq!(Quantiles::mean(&[]), None);
    }

    #[test]
    fn short_delays_may_differ_by_a_millisecond_and_long_ones_by_a_tenth() {
        assert!(agree(0.0, 1.0) && agree(2.0, 1.0));
        assert!(!agree(0.0, 1.01) && !agree(5.1, 4.0));
        assert!(agree(90.0, 100.0) && agree(110.0, 100.0));
        assert!(!agree(89.9, 100.0) && !agree(110.1, 100.0));
        assert!(!agree(f64::NAN, 1.0));
    }
}
