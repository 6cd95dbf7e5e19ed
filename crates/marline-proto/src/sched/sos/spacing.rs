use alloc::collections::VecDeque;
use alloc::vec::Vec;

use libm::sqrt;

/// Packets that are remembered: about as many as a large object has (§3.2.2).
const WINDOW: usize = 5_000;
/// Moments are computed again after this number of packets, or after an eighth of those remembered
/// if that is less.
const STALE: usize = 64;
/// Groups whose sums show a deviation.
const FEW: usize = 8;

/// What is known of the time between a path's arrivals, in the unit of the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Mean, μ.
    pub mean: f64,
    /// Standard deviation, or what [`Spacing::in_groups`] takes for it.
    pub deviation: f64,
    /// Third central moment in cubes of the deviation: 0 of what is even, 2σ/μ of a gamma
    /// distribution.
    pub skewness: f64,
    /// Least, a.
    pub min: f64,
    /// 95th percentile, b.
    pub p95: f64,
}

/// The time between arrivals of the last packets of a path at its receiver.
#[derive(Clone, Debug)]
pub struct Spacing {
    samples: VecDeque<f32>,
    most: usize,
    moments: Option<Moments>,
    /// Samples since the moments were computed.
    fresh: usize,
    /// The deviation is that of the sums of this number.
    group: usize,
}

impl Default for Spacing {
    /// Of 5000 packets, as in the paper.
    fn default() -> Self {
        Self::of(WINDOW)
    }
}

impl Spacing {
    /// Of this number of packets, at least one.
    pub fn of(packets: usize) -> Self {
        Self {
            samples: VecDeque::new(),
            most: packets.max(1),
            moments: None,
            fresh: 0,
            group: 1,
        }
    }

    /// Takes deviation and skewness from sums of `group` samples (at least 1; fewer than 8 such
    /// sums count one by one), scaled to one sample: σ is what makes the sum of n samples deviate
    /// by √n·σ, as (2) and (7) have it.
    ///
    /// Where samples are independent it is their own. It is much less where delays vary, so that a
    /// late packet is followed by an early one, and more where the rate changes slowly.
    pub fn in_groups(mut self, group: usize) -> Self {
        self.group = group.max(1);
        self
    }

    /// A packet arrived this long after the one before it, or after it could have. Negative times
    /// count as 0, because packets that overtake each other arrive together as far as an object is
    /// concerned; what is not a number is left out.
    pub fn record(&mut self, time: f64) {
        if !time.is_finite() {
            return;
        }
        if self.samples.len() >= self.most {
            self.samples.pop_front();
        }
        self.samples.push_back(time.max(0.0) as f32);
        self.fresh += 1;
        if self.fresh >= STALE.min(self.samples.len() / 8) {
            self.moments = None;
        }
    }

    /// Packets that are remembered.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Is nothing known?
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Mean, deviation, skewness, least and 95th percentile; `None` before the first packet.
    pub fn moments(&mut self) -> Option<Moments> {
        if self.moments.is_none() && !self.samples.is_empty() {
            self.moments = Some(self.compute());
            self.fresh = 0;
        }
        self.moments
    }

    fn compute(&self) -> Moments {
        let mut values: Vec<f32> = self.samples.iter().copied().collect();
        let count = values.len() as f64;
        let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / count;
        // Few groups show little.
        let group = match values.len() / self.group {
            0..FEW => 1,
            _ => self.group,
        };
        let sums = values.chunks_exact(group);
        let groups = sums.len() as f64;
        // Of a sum of independent times variance and third moment are those of one, times their
        // number.
        let (mut squares, mut cubes) = (0.0, 0.0);
        for values in sums {
            let off = values.iter().map(|v| f64::from(*v) - mean).sum::<f64>();
            squares += off * off;
            cubes += off * off * off;
        }
        let each = groups * group as f64;
        let deviation = sqrt(squares / each);
        let skewness = match squares > 0.0 {
            true => cubes / each / (deviation * deviation * deviation),
            false => 0.0,
        };
        let min = values.iter().copied().fold(f32::INFINITY, f32::min);
        // The smallest that 95 % do not exceed: the ⌈0.95 n⌉-th.
        let rank = (values.len() * 95).div_ceil(100);
        let (_, p95, _) = values.select_nth_unstable_by(rank - 1, f32::total_cmp);
        Moments {
            mean,
            deviation,
            skewness,
            min: f64::from(min),
            p95: f64::from(*p95),
        }
    }
}
