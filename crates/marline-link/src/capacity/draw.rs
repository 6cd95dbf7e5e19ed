//! Draws by mean and standard deviation.

use crate::delay::gamma_shape_and_scale;
use marline_base::Rng;

pub(super) fn normal(mean: f64, sd: f64, rng: &mut Rng) -> f64 {
    mean + sd * rng.normal()
}

/// Uniform; its half-width is √3 standard deviations.
pub(super) fn uniform(mean: f64, sd: f64, rng: &mut Rng) -> f64 {
    mean + libm::sqrt(3.0) * sd * (2.0 * rng.uniform() - 1.0)
}

/// Gamma. `sd` is more than zero.
pub(super) fn gamma(mean: f64, sd: f64, rng: &mut Rng) -> f64 {
    let (shape, scale) = gamma_shape_and_scale(mean, sd);
    rng.gamma(shape) * scale
}

/// Log-normal: mean = exp(m + s²/2) and variance = (exp(s²) − 1)·mean².
pub(super) fn lognormal(mean: f64, sd: f64, rng: &mut Rng) -> f64 {
    let s2 = libm::log1p((sd / mean) * (sd / mean));
    libm::exp(libm::log(mean) - s2 / 2.0 + libm::sqrt(s2) * rng.normal())
}
