//! When two distributions of delay count as the same.

/// Largest difference of a quantile whatever its size (milliseconds).
const MOST_MS: f64 = 1.0;
/// Largest difference as a share of the real quantile.
const MOST_SHARE: f64 = 0.1;

/// Is the simulated value within 10 % of the real one, or within 1 ms of it?
pub(super) fn agree(simulated_ms: f64, real_ms: f64) -> bool {
    (simulated_ms - real_ms).abs() <= MOST_MS.max(MOST_SHARE * real_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_delays_may_differ_by_a_millisecond_and_long_ones_by_a_tenth() {
        assert!(agree(0.0, 1.0) && agree(2.0, 1.0));
        assert!(!agree(0.0, 1.01) && !agree(5.1, 4.0));
        assert!(agree(90.0, 100.0) && agree(110.0, 100.0));
        assert!(!agree(89.9, 100.0) && !agree(110.1, 100.0));
        assert!(!agree(f64::NAN, 1.0));
    }
}
