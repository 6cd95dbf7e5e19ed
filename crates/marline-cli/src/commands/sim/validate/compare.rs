//! When two distributions of delay count as the same.

/// Largest difference of a quantile whatever its size (milliseconds).
const MOST_MS: f64 = 1.0;
/// Largest difference as a share of the real quantile.
const MOST_SHARE: f64 = 0.1;

/// Real runs at most, unless somebody asks for more.
const MOST_RUNS: f64 = 8.0;

/// By how much a quantile of this length may differ (milliseconds).
fn tolerance(ms: f64) -> f64 {
    MOST_MS.max(MOST_SHARE * ms)
}

/// How many real runs to average, where simulated ones of other seeds had these values of a
/// quantile: as many as the standard error of the mean is a third of what the quantile may differ
/// by. From 1 to 8.
pub(super) fn runs_for(simulated_ms: &[f64]) -> u64 {
    let n = simulated_ms.len() as f64;
    let mean = simulated_ms.iter().sum::<f64>() / n;
    let squares = simulated_ms.iter().map(|ms| (ms - mean) * (ms - mean));
    let variance = squares.sum::<f64>() / (n - 1.0).max(1.0);
    let error = tolerance(mean) / 3.0;
    (variance / (error * error)).ceil().clamp(1.0, MOST_RUNS) as u64
}

/// Is the simulated value within 10 % of the real one, or within 1 ms of it?
pub(super) fn agree(simulated_ms: f64, real_ms: f64) -> bool {
    (simulated_ms - real_ms).abs() <= tolerance(real_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_averaged_out_and_nothing_else() {
        assert_eq!(runs_for(&[20.0]), 1);
        assert_eq!(runs_for(&[20.0, 20.1, 19.9, 20.0]), 1);
        // A standard deviation of 2 ms, a third of 5 ms allowed: (2 / 1.67)², rounded up.
        assert_eq!(runs_for(&[48.0, 50.0, 52.0]), 2);
        assert_eq!(runs_for(&[40.0, 80.0, 160.0]), 8);
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
