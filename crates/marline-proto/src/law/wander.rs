//! How the delay of a path changes slowly: a level that wanders.
//!
//! The delay that is not waiting behind packets of ours is a level plus each packet's own scatter.
//! The level walks at random: over a time t its variance grows by q·t. What a packet will meet that
//! leaves now is known from packets that left a round trip ago, so the horizon t counts: with it
//! grows how wrong the level may be.
//!
//! For one ratio λ of q to the variance of the scatter this is a Kalman filter in one dimension.
//! Nobody knows λ, and paths differ in it by orders: delay that is drawn again for each packet
//! calls for a small one, delay that steps for a large one. So several filters run side by side,
//! each is weighted by how likely it made what arrived *from where it stood when the packets left*,
//! and the level is their mixture's mean (Bayesian model averaging; the weights forget, as λ
//! changes too).

use libm::{log, sqrt};

use super::weights::weights;

/// Filters.
pub(super) const FILTERS: usize = 3;
/// λ of the filters (1/s): variance that the level gains in a second in units of the scatter's. On
/// a path of 500 packets/s with an acknowledgement for every other one, the filters have memories
/// of 1/√(λ/250): 50, 6 and 1 acknowledgements.
const RATIOS: [f64; FILTERS] = [0.1, 8.0, 250.0];
/// Acknowledgements in a filter's mean error: half a second of a path that carries 1 Mb/s, long
/// enough for a mean of errors to be known to 15 %.
const SCALED: f64 = 48.0;
/// The same in the mean that counts where it is larger: a tenth of a second of such a path, so that
/// the law is wide as soon as a link changes.
const QUICK: f64 = 8.0;
/// Three acknowledgements in succession on one side of the level, each farther from it than this
/// many mean absolute values of the scatter, show a step of the delay, whatever the filter's λ:
/// chance makes one of a million (a normal variable is as far to one side once in 120).
const STEP: f64 = 3.0;
/// Acknowledgements in a filter's weight. A choice, not tuned.
const WEIGHED: f64 = 24.0;
/// Before anything is known of a path's errors their mean is this (µs), for as much as this number
/// of acknowledgements: between a cable's and a busy cell's jitter, and for as long as a queue of
/// ours takes to show itself.
const FIRST: (f64, f64) = (1e3, 8.0);
/// Errors are at least this (µs): timers of hosts and the reading of batches are no better.
const LEAST: f64 = 25.0;
/// Square of a normal variable's deviation over its mean absolute value: π/2.
const NORMAL: f64 = core::f64::consts::FRAC_PI_2;
/// A normal variable's mean absolute value over the square of its mean root: 0.798/0.822².
const ROOT: f64 = 1.181;
/// No horizon is longer (s), and no variance gathers for longer: of a path that was quiet for as
/// long nothing more is forgotten.
const LONGEST: f64 = 10.0;

/// One filter: a level and how wrong it may be.
#[derive(Clone, Copy, Debug, Default)]
struct Filter {
    /// The level (µs), relative to the first delay seen.
    level: f64,
    /// Its variance, in units of the scatter's.
    doubt: f64,
    /// Mean root of the errors of what it said of packets when they left, over how wrong it may
    /// have been: of roots, so that errors of an outage are forgotten twice as soon as they would
    /// be (√µs).
    root: f64,
    /// The same of the last few: where a link changes, errors grow at once.
    quick: f64,
    /// How far the last two acknowledgements were from it (µs).
    off: [f64; 2],
    /// Logarithm of its likelihood, lately.
    score: f64,
}

impl Filter {
    /// Mean absolute value of the scatter (µs), or of the last few errors if that is more.
    fn scatter(&self) -> f64 {
        let root = self.root.max(self.quick);
        ROOT * root * root
    }

    /// The level that packets show which left `elapsed` seconds after those before.
    fn follow(&mut self, residual: f64, ratio: f64, elapsed: f64) {
        let off = residual - self.level;
        let [before, last] = self.off;
        self.off = [last, off];
        let mut doubt = self.doubt + ratio * elapsed;
        if off * last > 0.0 && off * before > 0.0 {
            let off = off.abs().min(last.abs()).min(before.abs());
            let off = off / (ROOT * self.root * self.root).max(LEAST);
            if off > STEP {
                doubt = doubt.max(off * off);
            }
        }
        let gain = doubt / (doubt + 1.0);
        self.doubt = doubt * (1.0 - gain);
        self.level += gain * off;
    }
}

/// What was believed of the level when a packet left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Levels {
    /// Of each filter (µs).
    each: [f32; FILTERS],
    /// Of all (µs).
    level: f32,
    /// How long before it the newest packet had left whose fate was known (s).
    horizon: f32,
}

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wander {
    filters: [Filter; FILTERS],
    /// Acknowledgements taken in, at most [`SCALED`].
    known: f64,
    /// Of the mixture: its level (µs), its variance now (µs²), and what that gains in a second.
    level: f64,
    variance: f64,
    drift: f64,
    /// Mean horizon of the packets that were reported lately (s).
    horizon: f64,
}

/// What one acknowledgement says of packets that arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Batch {
    packets: f64,
    residual: f64,
    believed: [f64; FILTERS],
    horizon: f64,
}

impl Batch {
    /// A packet took this long, its wait behind ours left out (µs).
    pub(super) fn add(&mut self, residual: f64, levels: &Levels) {
        self.packets += 1.0;
        self.residual += residual;
        self.horizon += f64::from(levels.horizon);
        for (sum, level) in self.believed.iter_mut().zip(levels.each) {
            *sum += f64::from(level);
        }
    }

    /// Is it of no packet?
    pub(super) fn is_empty(&self) -> bool {
        self.packets == 0.0
    }
}

impl Wander {
    /// What is believed now of a packet that leaves when the newest that is known of left `horizon`
    /// seconds ago.
    pub(super) fn levels(&self, horizon: f64) -> Levels {
        Levels {
            each: self.filters.map(|filter| filter.level as f32),
            level: self.level as f32,
            horizon: horizon.min(LONGEST) as f32,
        }
    }

    /// Did anything arrive?
    pub(super) fn is_known(&self) -> bool {
        self.known > 0.0
    }

    /// The level (µs).
    pub(super) fn level(&self) -> f64 {
        self.level
    }

    /// The variance (µs²) of what a packet's delay is beyond the level, scatter included.
    pub(super) fn variance(&self, horizon: f64) -> f64 {
        (self.variance + self.drift * horizon.min(LONGEST)).max(LEAST * LEAST)
    }

    /// The same (µs²) of a packet that leaves as far beyond what is known as those lately.
    pub(super) fn usual(&self) -> f64 {
        self.variance(self.horizon)
    }

    /// An acknowledgement reports packets; the newest left `elapsed` seconds after the newest of
    /// the acknowledgement before.
    pub(super) fn on_batch(&mut self, batch: &Batch, elapsed: f64) {
        if batch.is_empty() {
            return;
        }
        let residual = batch.residual / batch.packets;
        if self.known == 0.0 {
            self.filters = [Filter {
                level: residual,
                doubt: 1.0,
                root: sqrt(FIRST.0 / ROOT),
                quick: 0.0,
                off: [0.0; 2],
                score: 0.0,
            }; FILTERS];
            self.known = FIRST.1;
            self.settle();
            return;
        }
        self.known = (self.known + 1.0).min(SCALED);
        let horizon = (batch.horizon / batch.packets).min(LONGEST);
        let elapsed = elapsed.clamp(0.0, LONGEST);
        self.horizon += (horizon - self.horizon) / self.known.min(WEIGHED);
        for ((filter, ratio), believed) in self.filters.iter_mut().zip(RATIOS).zip(batch.believed) {
            let error = (residual - believed / batch.packets).abs();
            let wide = sqrt(filter.doubt + ratio * horizon + 1.0);
            let expected = (filter.scatter() * wide).max(LEAST);
            // Of a Laplace law of this mean error: no single packet decides.
            let likelihood = -log(expected) - error / expected;
            filter.score += likelihood - filter.score / WEIGHED;
            let root = sqrt(error / wide);
            filter.root += (root - filter.root) / self.known;
            filter.quick += (root - filter.quick) / QUICK;
            filter.follow(residual, ratio, elapsed);
        }
        self.settle();
    }

    /// The mixture of the filters.
    fn settle(&mut self) {
        let weights = weights(self.filters.map(|filter| filter.score));
        let each = || self.filters.iter().zip(weights).zip(RATIOS);
        let level = each()
            .map(|((filter, weight), _)| weight * filter.level)
            .sum();
        let (mut variance, mut drift) = (0.0, 0.0);
        for ((filter, weight), ratio) in each() {
            let scatter = NORMAL * filter.scatter() * filter.scatter();
            let off = filter.level - level;
            variance += weight * (scatter * (filter.doubt + 1.0) + off * off);
            drift += weight * scatter * ratio;
        }
        (self.level, self.variance, self.drift) = (level, variance, drift);
    }
}

impl Levels {
    /// What was believed of the level (µs).
    pub(super) fn level(&self) -> f64 {
        f64::from(self.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Rng;

    /// A path of 500 packets/s, two an acknowledgement, 50 ms from departure to acknowledgement.
    fn after(count: usize, mut delay: impl FnMut(usize) -> f64) -> (Wander, f64) {
        let mut wander = Wander::default();
        let mut believed = alloc::collections::VecDeque::new();
        let (mut errors, mut wanted) = (0.0, 0.0);
        for n in 0..count {
            believed.push_back(wander.levels(0.05));
            if n < 12 {
                continue;
            }
            let mut batch = Batch::default();
            for k in 0..2 {
                batch.add(delay(2 * (n - 12) + k), &believed[0]);
            }
            if n > count / 2 {
                let error = batch.residual / 2.0 - f64::from(believed[0].level);
                errors += error * error;
                wanted += wander.variance(0.05);
            }
            believed.pop_front();
            wander.on_batch(&batch, 0.004);
        }
        (wander, errors / wanted)
    }

    #[test]
    fn delay_drawn_for_each_packet_leaves_the_level_at_its_mean() {
        let mut rng = Rng::new(3).stream("drawn");
        let (wander, share) = after(4_000, |_| 10e3 + 4e3 * rng.normal());
        assert!((wander.level() - 10e3).abs() < 900.0, "{}", wander.level());
        // A mean of two has half of the variance, and the level is not exact.
        assert!((0.7..1.4).contains(&share), "{share}");
    }

    #[test]
    fn a_step_is_followed_and_doubt_grows_with_the_horizon() {
        let mut rng = Rng::new(4).stream("walk");
        let (mut level, mut last) = (0.0, 0);
        // A walk of 20 ms a second.
        let (wander, share) = after(4_000, |n| {
            level += 20e3 * rng.normal() * sqrt((n - last) as f64 / 500.0);
            last = n;
            level + 300.0 * rng.normal()
        });
        assert!(
            (wander.level() - level).abs() < 5e3,
            "{} {level}",
            wander.level()
        );
        assert!((0.6..1.7).contains(&share), "{share}");
        let (near, far) = (wander.variance(0.05), wander.variance(1.0));
        assert!(far > 8.0 * near, "{near} {far}");
        assert_eq!(
            wander.variance(1e9),
            wander.variance(10.0),
            "it does not grow for ever"
        );
    }

    #[test]
    fn a_step_that_lasts_is_followed_by_all_filters_and_the_law_is_wide_at_once() {
        let mut rng = Rng::new(5).stream("step");
        let mut noise = [(); 1_100].map(|()| 300.0 * rng.normal());
        noise[990] = 60e3;
        let stepped = |n: usize| if n < 1_000 { 20e3 } else { 80e3 };
        let (outlier, _) = after(12 + 496, |n| stepped(n) + noise[n]);
        let [slow, ..] = outlier.filters.map(|filter| filter.level);
        assert!((slow - 20e3).abs() < 2e3, "{slow}");
        let (before, _) = after(12 + 500, |n| stepped(n) + noise[n]);
        // Twelve acknowledgements later: all these packets had left before it was known.
        let (wander, _) = after(12 + 512, |n| stepped(n) + noise[n]);
        let levels = wander.filters.map(|filter| filter.level);
        let is_there = |level: &f64| (level - 80e3).abs() < 5e3;
        assert!(levels.iter().all(is_there), "{levels:?}");
        let widths = [before, wander].map(|wander| sqrt(wander.variance(0.0)));
        assert!(widths[1] > 8.0 * widths[0], "{widths:?}");
    }

    #[test]
    fn a_path_without_any_scatter_is_known_to_the_clocks_of_hosts() {
        let (wander, _) = after(1_000, |_| 7e3);
        assert!((wander.level() - 7e3).abs() < 1e-6);
        assert!(wander.variance(0.05) <= 2.0 * LEAST * LEAST);
    }
}
