//! Quantities over time, with a bounded number of samples.

use marline_base::Duration;

use crate::results::{Run, Series};

/// How often queues are looked at.
pub const EVERY: Duration = Duration::from_millis(100);
/// Most values of a series: longer runs keep one tick in several.
pub const MOST_SAMPLES: u64 = 1_000;

/// Which ticks of a run become samples of its series.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampler {
    /// Ticks for each sample.
    stride: u64,
    tick: u64,
}

impl Sampler {
    pub(crate) fn new(duration: Duration) -> Self {
        let ticks = duration.as_nanos().div_ceil(EVERY.as_nanos()) as u64;
        Self {
            stride: ticks.div_ceil(MOST_SAMPLES).max(1),
            tick: 0,
        }
    }

    /// Counts a tick; is it one whose values are kept in series?
    pub(crate) fn tick(&mut self) -> bool {
        self.tick += 1;
        self.tick.is_multiple_of(self.stride)
    }

    /// Time between two samples of a series.
    pub(crate) fn step(&self) -> Duration {
        EVERY * self.stride as u32
    }
}

/// One quantity over time.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    values: Vec<f64>,
    last: u64,
}

impl Timeline {
    /// A value as it is now.
    pub(crate) fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    /// The rate (Mb/s) of a counter of bytes since the last sample.
    pub(crate) fn push_rate(&mut self, bytes: u64, step: Duration) {
        let bits = 8.0 * bytes.saturating_sub(self.last) as f64;
        self.values.push(bits / step.as_secs_f64() / 1e6);
        self.last = bytes;
    }

    /// Writes the series into the run.
    pub(crate) fn report(self, name: String, unit: &str, step: Duration, run: &mut Run) {
        let series = Series {
            unit: unit.to_owned(),
            step_s: step.as_secs_f64(),
            values: self.values,
        };
        run.series.insert(name, series);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_keep_no_more_samples_than_short_ones() {
        for seconds in [1, 100, 101, 86_400] {
            let mut sampler = Sampler::new(Duration::from_secs(seconds));
            let kept = (0..10 * seconds).filter(|_| sampler.tick()).count() as u64;
            assert!(kept <= MOST_SAMPLES, "{seconds} s keep {kept}");
            assert!(
                kept >= (10 * seconds).min(MOST_SAMPLES / 2),
                "{seconds} s keep {kept}"
            );
        }
    }
}
