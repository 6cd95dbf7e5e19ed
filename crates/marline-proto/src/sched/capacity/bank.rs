//! Several memories at once.

use super::CapacityForecast;

/// Weight of a new sample in each memory: from a mean over 250 samples to nearly the last one.
const GAINS: [f64; 5] = [0.004, 0.02, 0.08, 0.25, 0.6];
/// Largest number of samples between a forecast and what it is for.
const MOST_AHEAD: usize = 32;
/// Samples that the spread of a forecast's errors remembers.
const SPREAD: f64 = 400.0;
/// Share of a memory's score that stays when a sample is added: it sums the last 60 or so.
const SCORE: f64 = 59.0 / 60.0;
/// By how much (natural logarithm of a likelihood) a quicker memory must be better to be preferred.
const MARGIN: f64 = 0.5;
/// Relative deviation that is assumed of the first sample.
const FIRST: f64 = 0.25;

/// A forecast of capacity by exponential means of different length, each with the spread of its own
/// errors on the horizon at which the forecast is used. The one under which recent samples were the
/// most likely answers.
///
/// Where samples are independent the longest memory wins and mean and spread are those of the
/// distribution; the paper's filter instead goes on to assume that the mean moves. Where the
/// capacity drifts or steps, a shorter memory wins within some samples.
#[derive(Clone, Debug)]
pub struct Bank {
    /// How many samples after the one that a forecast is made with lies what it is for.
    ahead: usize,
    samples: u64,
    memories: [Memory; GAINS.len()],
}

#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    mean: f64,
    /// Mean square of the errors on the horizon.
    spread: f64,
    /// How likely recent samples were, by this memory's forecasts (natural logarithm).
    score: f64,
    /// The means after the latest samples, newest first.
    past: [f64; MOST_AHEAD],
}

impl Bank {
    /// A bank whose forecasts are for the sample that comes `ahead` samples after the newest
    /// (1 to 32): 2 where one whole block lies between what is measured and what is planned.
    pub fn new(ahead: usize) -> Self {
        Self {
            ahead: ahead.clamp(1, MOST_AHEAD),
            samples: 0,
            memories: [Memory::default(); GAINS.len()],
        }
    }

    /// Makes the forecasts for the sample that comes `ahead` after the newest, from the next on.
    pub fn look(&mut self, ahead: usize) {
        self.ahead = ahead.clamp(1, MOST_AHEAD);
    }

    /// Number of samples taken.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Takes a sample (bit/s); nonsense is left out.
    pub fn update(&mut self, capacity: f64) {
        if !(capacity >= 0.0 && capacity.is_finite()) {
            return;
        }
        self.samples += 1;
        let n = self.samples as f64;
        for (memory, gain) in self.memories.iter_mut().zip(GAINS) {
            if self.samples == 1 {
                memory.spread = FIRST * FIRST * capacity * capacity;
            }
            if self.samples > self.ahead as u64 {
                let error = capacity - memory.past[self.ahead - 1];
                memory.judge(error * error, n);
            }
            memory.mean += gain.max(1.0 / n) * (capacity - memory.mean);
            memory.past.rotate_right(1);
            memory.past[0] = memory.mean;
        }
    }

    /// What is expected; `None` before the first sample.
    pub fn forecast(&self) -> Option<CapacityForecast> {
        let memory = self.memories[self.best()?];
        Some(CapacityForecast::normal(
            memory.mean,
            libm::sqrt(memory.spread),
        ))
    }

    /// Weight of a new sample in the memory that answers now.
    pub fn gain(&self) -> Option<f64> {
        Some(GAINS[self.best()?])
    }

    fn best(&self) -> Option<usize> {
        if self.samples == 0 {
            return None;
        }
        let mut best = 0;
        for (i, memory) in self.memories.iter().enumerate() {
            if memory.score > self.memories[best].score + MARGIN {
                best = i;
            }
        }
        Some(best)
    }
}

impl Memory {
    /// The forecast for the sample that is the `n`-th was wrong by the root of `square`.
    fn judge(&mut self, square: f64, n: f64) {
        // Of a constant capacity the spread falls to nothing, and its logarithm without end.
        let spread = self.spread.max(1.0);
        // Heavier tails than normal, so that one step does not silence a good memory.
        let likelihood = -0.5 * libm::log(spread) - 2.5 * libm::log1p(square / (4.0 * spread));
        self.score = SCORE * self.score + likelihood;
        let weight = (1.0 / SPREAD).max(1.0 / (n + 4.0));
        self.spread += weight * (square - self.spread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Rng;

    fn near(a: f64, b: f64, within: f64) {
        assert!(libm::fabs(a - b) <= within, "{a} is not {b}");
    }

    #[test]
    fn independent_samples_give_their_distribution() {
        let mut rng = Rng::new(11);
        let mut bank = Bank::new(2);
        assert_eq!(bank.forecast(), None);
        let (mut mean, mut sd) = (0.0, 0.0);
        for i in 0..4_000 {
            bank.update(40e6 + 8e6 * rng.normal());
            if i >= 1_000 {
                let forecast = bank.forecast().unwrap();
                mean += forecast.mean / 3e3;
                sd += forecast.sd / 3e3;
            }
        }
        near(mean, 40e6, 0.3e6);
        near(sd, 8e6, 0.4e6);
        assert_eq!(bank.gain(), Some(0.004));
    }

    #[test]
    fn a_step_is_followed_within_some_samples() {
        let mut rng = Rng::new(12);
        let mut bank = Bank::new(2);
        for _ in 0..400 {
            bank.update(40e6 + 2e6 * rng.normal());
        }
        for _ in 0..30 {
            bank.update(20e6 + 2e6 * rng.normal());
        }
        let forecast = bank.forecast().unwrap();
        near(forecast.mean, 20e6, 3e6);
        assert!(bank.gain().unwrap() > 0.02);
    }

    #[test]
    fn correlated_samples_have_less_spread_than_their_distribution() {
        // AR(1) with 0.9: two samples ahead the best linear forecast is wrong by
        // 8·√(1 − 0.9⁴) = 4.69 Mb/s.
        let mut rng = Rng::new(13);
        let mut bank = Bank::new(2);
        let mut x = 0.0;
        let mut sd = 0.0;
        for i in 0..4_000 {
            x = 0.9 * x + 8e6 * libm::sqrt(1.0 - 0.81) * rng.normal();
            bank.update(40e6 + x);
            if i >= 1_000 {
                sd += bank.forecast().unwrap().sd / 3e3;
            }
        }
        assert!((4.4e6..6.0e6).contains(&sd), "{sd}");
    }

    #[test]
    fn the_spread_is_that_of_the_real_horizon() {
        // AR(1) with 0.9 again, five samples ahead: 8·√(1 − 0.9¹⁰) = 6.46 Mb/s.
        let mut rng = Rng::new(14);
        let (mut near, mut far) = (Bank::new(2), Bank::new(2));
        let (mut x, mut sd) = (0.0, [0.0; 2]);
        for i in 0..4_000 {
            x = 0.9 * x + 8e6 * libm::sqrt(1.0 - 0.81) * rng.normal();
            far.look(5);
            near.update(40e6 + x);
            far.update(40e6 + x);
            if i >= 1_000 {
                sd[0] += near.forecast().unwrap().sd / 3e3;
                sd[1] += far.forecast().unwrap().sd / 3e3;
            }
        }
        assert!(sd[0] < 6e6 && (6e6..8.5e6).contains(&sd[1]), "{sd:?}");
    }

    #[test]
    fn a_constant_and_nonsense_do_no_harm() {
        let mut bank = Bank::new(0);
        for _ in 0..5_000 {
            bank.update(1e6);
            bank.update(f64::NAN);
            bank.update(-1.0);
        }
        let forecast = bank.forecast().unwrap();
        near(forecast.mean, 1e6, 1.0);
        assert!(forecast.sd < 1e4, "{forecast:?}");
        assert_eq!(bank.samples(), 5_000);
    }
}
