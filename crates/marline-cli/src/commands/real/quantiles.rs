//! Quantiles of delays.

use marline_base::nearest_rank;
use serde::Serialize;

/// Quantiles of the delay in order (milliseconds).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(in crate::commands) struct Quantiles {
    pub(in crate::commands) p50: f64,
    pub(in crate::commands) p95: f64,
    pub(in crate::commands) p99: f64,
}

impl Quantiles {
    /// Of delays in nanoseconds, by nearest rank; `None` without any.
    pub(in crate::commands) fn of(mut delays: Vec<u64>) -> Option<Self> {
        delays.sort_unstable();
        let at = |percent| nearest_rank(&delays, percent).map(|nanos| nanos as f64 / 1e6);
        Some(Self {
            p50: at(50)?,
            p95: at(95)?,
            p99: at(99)?,
        })
    }

    /// Each quantile's mean over runs; `None` without any.
    pub(in crate::commands) fn mean(runs: &[Self]) -> Option<Self> {
        let mean = |one: fn(&Self) -> f64| runs.iter().map(one).sum::<f64>() / runs.len() as f64;
        (!runs.is_empty()).then(|| Self {
            p50: mean(|q| q.p50),
            p95: mean(|q| q.p95),
            p99: mean(|q| q.p99),
        })
    }

    /// With their names, ascending.
    pub(in crate::commands) fn named(&self) -> [(&'static str, f64); 3] {
        [("p50", self.p50), ("p95", self.p95), ("p99", self.p99)]
    }
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
}
