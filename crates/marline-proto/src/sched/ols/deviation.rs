use marline_base::Duration;

/// Round-trip times remembered.
const SAMPLES: usize = 64;

/// Median absolute deviation of the last round-trip times.
#[derive(Debug)]
pub(super) struct Deviation {
    /// In the order of their coming, and sorted (µs).
    ring: [u32; SAMPLES],
    sorted: [u32; SAMPLES],
    seen: usize,
    median: u32,
}

impl Default for Deviation {
    fn default() -> Self {
        Self {
            ring: [0; SAMPLES],
            sorted: [0; SAMPLES],
            seen: 0,
            median: 0,
        }
    }
}

impl Deviation {
    /// Takes a round-trip time.
    pub(super) fn sample(&mut self, rtt: Duration) {
        let rtt = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
        let held = self.seen.min(SAMPLES);
        let slot = self.seen % SAMPLES;
        let held = if held == SAMPLES {
            let oldest = self.sorted.partition_point(|&x| x < self.ring[slot]);
            self.sorted.copy_within(oldest + 1..SAMPLES, oldest);
            SAMPLES - 1
        } else {
            held
        };
        let place = self.sorted[..held].partition_point(|&x| x < rtt);
        self.sorted.copy_within(place..held, place + 1);
        self.sorted[place] = rtt;
        self.ring[slot] = rtt;
        self.seen += 1;
        self.median = median_deviation(&self.sorted[..=held]);
    }

    /// Median of the distances from the median; zero before the first sample.
    pub(super) fn median(&self) -> Duration {
        Duration::from_micros(u64::from(self.median))
    }
}

/// The lower median of |x − median| over an ascending slice, by walking outwards from the median.
fn median_deviation(sorted: &[u32]) -> u32 {
    let middle = (sorted.len() - 1) / 2;
    let median = sorted[middle];
    let (mut below, mut above) = (middle, middle + 1);
    // The median itself is the first and nearest; as many more follow as lie before the middle one.
    let mut deviation = 0;
    for _ in 0..middle {
        let down = below.checked_sub(1).map(|i| median - sorted[i]);
        let up = sorted.get(above).map(|x| x - median);
        match (down, up) {
            (Some(down), up) if up.is_none_or(|up| down <= up) => {
                deviation = down;
                below -= 1;
            }
            (_, Some(up)) => {
                deviation = up;
                above += 1;
            }
            (_, None) => break,
        }
    }
    deviation
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use marline_base::Rng;

    /// By sorting, as the definition says.
    fn brute(samples: &[u32]) -> u32 {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let median = sorted[(sorted.len() - 1) / 2];
        let mut distances: Vec<u32> = sorted.iter().map(|x| x.abs_diff(median)).collect();
        distances.sort_unstable();
        distances[(distances.len() - 1) / 2]
    }

    #[test]
    fn is_the_median_distance_from_the_median_of_the_last_samples() {
        let mut rng = Rng::new(1);
        for spread in [1, 10, 100_000] {
            let mut deviation = Deviation::default();
            let mut all = Vec::new();
            for _ in 0..500 {
                let rtt = 20_000 + rng.below(spread) as u32;
                all.push(rtt);
                deviation.sample(Duration::from_micros(u64::from(rtt)));
                let last = &all[all.len().saturating_sub(SAMPLES)..];
                let expected = Duration::from_micros(u64::from(brute(last)));
                assert_eq!(deviation.median(), expected);
            }
        }
    }

    #[test]
    fn is_zero_without_jitter() {
        let mut deviation = Deviation::default();
        assert_eq!(deviation.median(), Duration::ZERO);
        deviation.sample(Duration::from_millis(20));
        assert_eq!(deviation.median(), Duration::ZERO);
    }
}
