//! Rates over time: as a recording or a process gives them, and as a link has them in a run, where
//! they vary within each step.

use marline_base::{Duration, Instant, Rate, Rng};
use marline_link::{Capacity, Outage, Outages, RateTrace};

use super::network::{Grain, SLOT};

/// A rate and how long it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// How long (ms, above zero).
    pub ms: u64,
    /// The mean rate in it (kb/s).
    pub kbps: f64,
}

/// Rates that hold one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// At least one.
    pub steps: Vec<Step>,
}

/// Slots that vary together slowly: a tenth of a second.
const SLOTS_TOGETHER: u64 = 10;
/// A link with less in the mean (kb/s) is dark: it does not carry a packet a second.
const DARK: f64 = 8.0;

impl Profile {
    /// The same rate for `ms` milliseconds.
    pub fn constant(ms: u64, kbps: f64) -> Self {
        Self {
            steps: vec![Step { ms, kbps }],
        }
    }

    /// How long it lasts (ms).
    pub fn length(&self) -> u64 {
        self.steps.iter().map(|step| step.ms).sum()
    }

    /// The mean rate (kb/s).
    pub fn mean(&self) -> f64 {
        let area = self.steps.iter().map(|step| step.kbps * step.ms as f64);
        area.sum::<f64>() / self.length().max(1) as f64
    }

    /// The rate below which it is for this share of the time (kb/s).
    pub fn quantile(&self, share: f64) -> f64 {
        let mut steps = self.steps.clone();
        steps.sort_by(|a, b| a.kbps.total_cmp(&b.kbps));
        let mut left = share * self.length() as f64;
        for step in &steps {
            left -= step.ms as f64;
            if left <= 0.0 {
                return step.kbps;
            }
        }
        steps.last().map_or(0.0, |step| step.kbps)
    }

    /// All rates times `factor`.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        for step in &mut self.steps {
            step.kbps *= factor;
        }
        self
    }

    /// What it has from `begin` on for `length` (ms); after its end it begins again.
    #[must_use]
    pub fn window(&self, begin: u64, length: u64) -> Self {
        let mut skip = begin % self.length().max(1);
        let (mut left, mut steps) = (length, Vec::new());
        for step in self.steps.iter().cycle() {
            let ms = step.ms.saturating_sub(skip);
            skip = skip.saturating_sub(step.ms);
            let ms = ms.min(left);
            if ms > 0 {
                steps.push(Step { ms, ..*step });
                left -= ms;
            }
            if left == 0 {
                break;
            }
        }
        Self { steps }
    }

    /// The rates of each slot, which vary within each step and have its mean: lengths and kb/s.
    pub fn drawn(&self, grain: Grain, rng: &mut Rng) -> Vec<Step> {
        let slot = SLOT.as_millis() as u64;
        let mut slots = Vec::new();
        for step in &self.steps {
            let first = slots.len();
            let (mut left, mut together) = (step.ms, 1.0);
            let mut weight = 0.0;
            let mut number = 0;
            while left > 0 {
                if number % SLOTS_TOGETHER == 0 {
                    together = varying(grain.slow, rng);
                }
                number += 1;
                let ms = slot.min(left);
                left -= ms;
                let idle = grain.idle > 0.0 && rng.chance(grain.idle);
                let own = varying(grain.fast, rng) * together * f64::from(!idle);
                weight += own * ms as f64;
                slots.push(Step { ms, kbps: own });
            }
            let scale = match weight > 0.0 {
                true => step.kbps * step.ms as f64 / weight,
                false => 0.0,
            };
            for one in &mut slots[first..] {
                one.kbps = match weight > 0.0 {
                    true => one.kbps * scale,
                    // Every slot was idle, which only happens to a step of very few.
                    false => step.kbps,
                };
            }
        }
        slots
    }

    /// The capacity of a link in a run, and when it is dark all the same.
    pub(super) fn capacity(&self, name: &str, grain: Grain, rng: &mut Rng) -> (Capacity, Outages) {
        if self.mean() < DARK {
            let always = Outage {
                start: Instant::ZERO,
                length: Duration::from_millis(self.length().max(1)),
            };
            return (Capacity::Unlimited, Outages::Scheduled(vec![always]));
        }
        let slots = self.drawn(grain, rng).into_iter();
        let slots = slots.map(|slot| {
            let rate = Rate::from_bps((slot.kbps * 1e3).round() as u64);
            (Duration::from_millis(slot.ms), rate)
        });
        let trace = RateTrace::of(name, slots);
        let trace = trace.unwrap_or_else(|error| unreachable!("rates of our own: {error}"));
        (Capacity::Rates(trace), Outages::Never)
    }
}

/// A gamma distributed factor with mean 1 and this standard deviation.
fn varying(sd: f64, rng: &mut Rng) -> f64 {
    if sd <= 0.0 {
        return 1.0;
    }
    let shape = 1.0 / (sd * sd);
    rng.gamma(shape) / shape
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::network::Network;

    fn walk() -> Profile {
        let step = |ms, kbps| Step { ms, kbps };
        Profile {
            steps: vec![
                step(1_000, 8_000.0),
                step(1_000, 0.0),
                step(500, 3_000.0),
                step(5, 900.0),
            ],
        }
    }

    fn area(steps: &[Step]) -> f64 {
        steps.iter().map(|step| step.kbps * step.ms as f64).sum()
    }

    #[test]
    fn every_step_keeps_its_mean_and_varies_within() {
        for network in [
            Network::Wifi,
            Network::Cellular,
            Network::Leo,
            Network::Fixed,
        ] {
            let slots = walk().drawn(network.grain(), &mut Rng::new(3));
            let lengths: u64 = slots.iter().map(|slot| slot.ms).sum();
            assert_eq!(lengths, walk().length());
            let (first, rest) = slots.split_at(100);
            assert!((area(first) / 8e6 - 1.0).abs() < 1e-9, "{network:?}");
            assert_eq!(area(&rest[..100]), 0.0, "nothing stays nothing");
            assert!((area(&rest[100..150]) / 1.5e6 - 1.0).abs() < 1e-9);
            let varies = first.iter().any(|slot| (slot.kbps - 8_000.0).abs() > 1.0);
            assert_eq!(varies, network != Network::Fixed, "{network:?}");
        }
    }

    #[test]
    fn draws_follow_from_the_seed() {
        let drawn = |seed| walk().drawn(Network::Cellular.grain(), &mut Rng::new(seed));
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }

    #[test]
    fn lte_varies_as_much_as_was_measured() {
        let slots =
            Profile::constant(200_000, 10_000.0).drawn(Network::Cellular.grain(), &mut Rng::new(5));
        // Over 20 ms here, over 25 ms there: 0.29 to 0.50.
        let bins: Vec<f64> = slots.chunks(2).map(|two| area(two) / 20.0).collect();
        let squares = bins.iter().map(|kbps| (kbps / 10_000.0 - 1.0).powi(2));
        let sd = (squares.sum::<f64>() / bins.len() as f64).sqrt();
        assert!((0.4..0.6).contains(&sd), "{sd}");
    }

    #[test]
    fn a_window_goes_round() {
        let two = walk().window(1_900, 1_000);
        assert_eq!(two.length(), 1_000);
        let rates: Vec<(u64, f64)> = two.steps.iter().map(|s| (s.ms, s.kbps)).collect();
        assert_eq!(
            rates,
            [(100, 0.0), (500, 3_000.0), (5, 900.0), (395, 8_000.0)]
        );
        assert_eq!(walk().window(2_505, 10), walk().window(0, 10));
    }

    #[test]
    fn means_and_quantiles_count_by_time() {
        let mean = (8e6 + 1.5e6 + 4_500.0) / 2_505.0;
        assert!((walk().mean() - mean).abs() < 1e-9);
        assert_eq!(walk().quantile(0.1), 0.0);
        assert_eq!(walk().quantile(0.5), 3_000.0);
        assert_eq!(walk().scaled(2.0).quantile(0.9), 16_000.0);
    }

    #[test]
    fn what_carries_nothing_is_dark_and_no_error() {
        let dark = Profile::constant(1_000, 0.5);
        let (capacity, outages) = dark.capacity("x", Network::Wifi.grain(), &mut Rng::new(1));
        assert_eq!(capacity, Capacity::Unlimited);
        assert!(matches!(outages, Outages::Scheduled(list) if list.len() == 1));
        let (lit, _) = walk().capacity("x", Network::Wifi.grain(), &mut Rng::new(1));
        let mean = lit.mean_rate().expect("a rate").as_bps() as f64 / 1e3;
        assert!((mean / walk().mean() - 1.0).abs() < 0.001, "{mean}");
    }
}
