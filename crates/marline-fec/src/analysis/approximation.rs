//! Theorem 2's closed forms, which take all paths for equally lossy (S₁ in the paper).
//!
//! `interval` is τ ≥ 1, the coded slot included; `loss` is ε̄, between 0 and 1. The moments are for
//! τε̄ < 1 and infinite beyond.

use libm::{exp, lgamma, log, pow};

/// P(S₁ = k), equation 15 and, for k > 1, equation 13. Its sum over k ≥ 1 is P(S₁ > 0).
pub fn probability(interval: u32, loss: f64, k: u32) -> f64 {
    let (tau, n) = (f64::from(interval), f64::from(interval) - 1.0);
    if k == 0 {
        return pow(1.0 - loss, n);
    }
    if loss <= 0.0 || loss >= 1.0 || interval < 2 {
        return 0.0;
    }
    let k = f64::from(k);
    // The binomial coefficient of (k − 1)τ over k − 1.
    let above = (k - 1.0) * tau;
    let binomial = lgamma(above + 1.0) - lgamma(k) - lgamma(above - k + 2.0);
    exp(log(n / k) + k * log(loss) + k * n * log(1.0 - loss) + binomial)
}

/// E\[S₁\], equation 16.
pub fn mean(interval: u32, loss: f64) -> f64 {
    let tau = f64::from(interval);
    let spare = 1.0 - tau * loss;
    if spare <= 0.0 {
        return f64::INFINITY;
    }
    (tau - 1.0) * loss * pow(1.0 - loss, tau - 1.0) / spare
}

/// E\[S₁²\], equation 17, whose E\[S\] must read E\[S₁\].
pub fn second_moment(interval: u32, loss: f64) -> f64 {
    let tau = f64::from(interval);
    let spare = 1.0 - tau * loss;
    if spare <= 0.0 {
        return f64::INFINITY;
    }
    let tail = tau * (tau - 1.0) * loss * loss * pow(1.0 - loss, tau) / (spare * spare * spare);
    mean(interval, loss) + tail
}
