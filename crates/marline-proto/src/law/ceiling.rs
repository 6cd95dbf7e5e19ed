//! When do packets arrive at the latest, whatever is expected of the next one?
//!
//! A forecast follows the delay, and how wrong it was says how far the next packet may be from it,
//! either way. Where delay only wanders between bounds, a path that is quick now may become much
//! slower and a slow one hardly: that is to be seen over a longer time only.

/// The percentile that it is: one packet in twenty may be later, as of `late_us`.
const UPPER: f64 = 0.95;
/// Packets in the mean: a second or two of a live stream, longer than a delay is held.
const MEMORY: f64 = 1_024.0;
/// Packets in the mean deviation from it, which gives the steps their size only.
const DEVIATION: f64 = 128.0;
/// Steps of the percentile in a mean deviation: it is to last for longer than a delay is held.
const STEPS: f64 = 200.0;
/// Of delay that is drawn evenly or by a normal law, the percentile is no more than this number of
/// mean deviations, and no less than one. Steps of the mean beyond that would be those of a stall,
/// whose few packets may take seconds: it would be all that is seen, for long. Before there was any
/// jitter, this (µs) is as much as it may be.
const STALE: f64 = 2.5;
const LEAST: f64 = 1e3;

/// Mean and 95th percentile of when packets arrived that met no queue of ours (µs).
#[derive(Debug, Default)]
pub(super) struct Ceiling {
    packets: f64,
    mean: f64,
    /// Mean deviation from the mean.
    deviation: f64,
    /// How far the percentile is beyond the mean, at least zero: by stochastic approximation, in
    /// steps of the deviation's size.
    swing: f64,
}

impl Ceiling {
    /// A packet arrived then (µs).
    pub(super) fn sample(&mut self, residual: f64) {
        if self.packets == 0.0 {
            // Or the first arrival would be a deviation.
            self.mean = residual;
        }
        self.packets = (self.packets + 1.0).min(MEMORY);
        let beyond = residual - self.mean;
        self.mean += beyond / self.packets;
        let (packets, steps) = (self.packets.min(DEVIATION), self.packets.min(STEPS));
        let most = match self.packets < STEPS {
            true => f64::INFINITY,
            false => self.swing.max(LEAST),
        };
        self.deviation += (beyond.abs() - self.deviation) / packets;
        let step = self.deviation.clamp(self.swing / STALE, most) / steps;
        let share = if beyond > self.swing {
            UPPER
        } else {
            UPPER - 1.0
        };
        self.swing = (self.swing + share * step).max(0.0);
    }

    /// The 95th percentile (µs).
    pub(super) fn percentile(&self) -> f64 {
        self.mean + self.swing()
    }

    /// How far that is from the mean (µs): the path's delay variation.
    pub(super) fn swing(&self) -> f64 {
        self.swing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use marline_base::Rng;

    #[test]
    fn it_is_the_percentile_of_delays_that_are_held_for_long() {
        for (hold, off) in [(1, 3e3), (80, 14e3)] {
            let mut rng = Rng::new(3).stream("held");
            let mut ceiling = Ceiling::default();
            let (mut delay, mut seen) = (0.0, Vec::new());
            for n in 0..100_000 {
                // 20 to 100 ms, for the same number of packets each.
                if n % hold == 0 {
                    delay = 20e3 + 80e3 * rng.uniform();
                }
                ceiling.sample(delay);
                seen.push(ceiling.percentile());
            }
            seen.sort_by(f64::total_cmp);
            let [low, high] = [seen[10_000], seen[90_000]];
            assert!(low > 96e3 - off && high < 96e3 + off, "{low} {high}");
        }
    }

    #[test]
    fn a_stall_is_a_small_part_of_it() {
        let mut rng = Rng::new(3).stream("stall");
        let mut ceiling = Ceiling::default();
        let mut steady = |ceiling: &mut Ceiling, count| {
            (0..count).for_each(|_| ceiling.sample(10e3 * rng.uniform()));
        };
        steady(&mut ceiling, 5_000);
        let usual = ceiling.swing();
        // What waited for 3 s comes at once.
        (0..300).for_each(|n| ceiling.sample(3e6 - 10e3 * f64::from(n)));
        let after = ceiling.swing();
        assert!(after < 5.0 * usual, "{usual} {after}");
        steady(&mut ceiling, 20_000);
        let later = ceiling.swing();
        assert!(later < 1.3 * usual, "{usual} {later}");
    }

    #[test]
    fn it_is_the_delay_itself_where_that_is_constant() {
        let mut ceiling = Ceiling::default();
        (0..1_000).for_each(|_| ceiling.sample(7e3));
        assert_eq!((ceiling.percentile(), ceiling.swing()), (7e3, 0.0));
    }
}
