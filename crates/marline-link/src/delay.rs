use crate::slots::PerSlot;
use core::time::Duration;
use marline_base::{Instant, Rng};

/// The propagation delay: what a packet needs after its last byte has left the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delay {
    /// The same for every packet.
    Constant(Duration),
    /// Normal, censored from the left: what falls below `min` becomes `min`, so that the mean
    /// lies above `mean` when `min` cuts much off.
    Normal {
        /// Mean before censoring.
        mean: Duration,
        /// Standard deviation before censoring.
        sd: Duration,
        /// Nothing is faster.
        min: Duration,
    },
    /// Uniform between two bounds.
    Uniform {
        /// Shortest delay.
        min: Duration,
        /// Longest delay, at least `min`.
        max: Duration,
    },
    /// `min` plus a gamma distributed time (a long tail to the right).
    Gamma {
        /// Mean, `min` included.
        mean: Duration,
        /// Standard deviation, more than zero.
        sd: Duration,
        /// Nothing is faster; below `mean`.
        min: Duration,
    },
}

impl Default for Delay {
    fn default() -> Self {
        Self::Constant(Duration::ZERO)
    }
}

/// When a random [`Delay`] is drawn again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Redraw {
    /// For each packet.
    #[default]
    EachPacket,
    /// At every whole multiple of this time (more than zero), for the packets that leave the queue
    /// until the next one: jitter that is held, as a radio holds a route or a rate.
    Every(Duration),
    /// At the end of each [outage](crate::Outages): outages are handovers to a cell with a delay of
    /// its own.
    AfterOutage,
}

/// [`Delay`] at work.
#[derive(Clone, Debug)]
pub(crate) struct Propagation {
    delay: Delay,
    redraw: Redraw,
    rng: Rng,
    held: PerSlot<Duration>,
}

/// Whole nanoseconds as a duration; negative and NaN count as none.
pub(crate) const fn from_nanos_f64(nanos: f64) -> Duration {
    Duration::from_nanos(nanos as u64)
}

pub(crate) fn nanos_f64(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

impl Propagation {
    pub(crate) fn new(delay: Delay, redraw: Redraw, rng: Rng) -> Self {
        Self {
            delay,
            redraw,
            held: PerSlot::new(rng.stream("held")),
            rng,
        }
    }

    /// The delay of a packet that leaves the queue at `departs`, after `outages` outages.
    pub(crate) fn draw(&mut self, departs: Instant, outages: impl FnOnce() -> u64) -> Duration {
        let slot = match self.redraw {
            Redraw::EachPacket => return self.delay.draw(&mut self.rng),
            Redraw::Every(time) => departs.as_nanos() / time.as_nanos() as u64,
            Redraw::AfterOutage => outages(),
        };
        let delay = self.delay;
        self.held.get(slot, |rng| delay.draw(rng))
    }

    /// The delay of a second copy of a packet whose own is `first`: the same when it is held.
    pub(crate) fn draw_again(&self, first: Duration, rng: &mut Rng) -> Duration {
        match self.redraw {
            Redraw::EachPacket => self.delay.draw(rng),
            Redraw::Every(_) | Redraw::AfterOutage => first,
        }
    }
}

impl Delay {
    fn draw(self, rng: &mut Rng) -> Duration {
        match self {
            Self::Constant(delay) => delay,
            Self::Normal { mean, sd, min } => {
                from_nanos_f64(nanos_f64(mean) + nanos_f64(sd) * rng.normal()).max(min)
            }
            Self::Uniform { min, max } => {
                min + from_nanos_f64(nanos_f64(max - min) * rng.uniform())
            }
            Self::Gamma { mean, sd, min } => {
                let (mean, sd) = (nanos_f64(mean - min), nanos_f64(sd));
                let (shape, scale) = gamma_shape_and_scale(mean, sd);
                min + from_nanos_f64(rng.gamma(shape) * scale)
            }
        }
    }
}

/// Shape and scale of the gamma distribution with this mean and standard deviation.
pub(crate) fn gamma_shape_and_scale(mean: f64, sd: f64) -> (f64, f64) {
    ((mean / sd) * (mean / sd), sd * sd / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: u32 = 200_000;

    /// Mean and standard deviation in milliseconds.
    fn moments(delay: Delay) -> (f64, f64, f64) {
        let mut rng = Rng::new(5).stream("delay");
        let (mut sum, mut squares, mut least) = (0.0, 0.0, f64::MAX);
        for _ in 0..N {
            let x = nanos_f64(delay.draw(&mut rng)) * 1e-6;
            sum += x;
            squares += x * x;
            least = least.min(x);
        }
        let mean = sum / f64::from(N);
        (
            mean,
            libm::sqrt(squares / f64::from(N) - mean * mean),
            least,
        )
    }

    fn assert_near(value: f64, expected: f64, bound: f64) {
        assert!(
            libm::fabs(value - expected) < bound,
            "{value} is not within {bound} of {expected}"
        );
    }

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn distributions_have_their_moments() {
        // Bounds: six standard errors (sd/√N for a mean, about sd/√(2N) for an sd, more for gamma).
        let (mean, sd, _) = moments(Delay::Normal {
            mean: ms(40),
            sd: ms(5),
            min: Duration::ZERO,
        });
        assert_near(mean, 40.0, 0.07);
        assert_near(sd, 5.0, 0.05);
        let (mean, sd, least) = moments(Delay::Uniform {
            min: ms(10),
            max: ms(16),
        });
        assert_near(mean, 13.0, 0.03);
        assert_near(sd, 6.0 / libm::sqrt(12.0), 0.02);
        assert!(least >= 10.0);
        let (mean, sd, least) = moments(Delay::Gamma {
            mean: ms(30),
            sd: ms(8),
            min: ms(20),
        });
        assert_near(mean, 30.0, 0.11);
        assert_near(sd, 8.0, 0.15);
        assert!(least >= 20.0);
        assert_eq!(moments(Delay::Constant(ms(7))).0, 7.0);
    }

    #[test]
    fn the_censored_normal_has_tobins_mean() {
        // E max(a, X) = a·Φ(α) + μ·(1 − Φ(α)) + σ·φ(α) with α = (a − μ)/σ.
        let (mean, _, least) = moments(Delay::Normal {
            mean: ms(20),
            sd: ms(10),
            min: ms(15),
        });
        let alpha = -0.5;
        let density = libm::exp(-alpha * alpha / 2.0) / libm::sqrt(2.0 * core::f64::consts::PI);
        let below = 0.5 * (1.0 + libm::erf(alpha / core::f64::consts::SQRT_2));
        assert_near(
            mean,
            15.0 * below + 20.0 * (1.0 - below) + 10.0 * density,
            0.12,
        );
        assert_eq!(least, 15.0);
    }
}
