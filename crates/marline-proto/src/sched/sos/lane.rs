use libm::{floor, sqrt};

use super::sums::{Shape, Sum};
use crate::sched::normal;

/// Of ε, what the promise uses. The split is the one whose (1 − ε)-quantile is least; what is
/// promised of it is a bit later, because moments that were learnt err.
pub(super) const PROMISED: f64 = 0.8;

/// A path as a split sees it.
///
/// n packets that are sent now have arrived after (n + u)μ + √(n + u)·w + P with high probability,
/// where u packets are under way before them: T_U + P of eq. (2) and (7). A lane [with a
/// law](Self::with_law) has no w of its own; what it may be late depends on the other lanes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lane {
    mean: f64,
    /// w, or the deviation of a lane with a law.
    spread: f64,
    delay: f64,
    ahead: f64,
    law: Option<Law>,
}

/// What is known of the times of a lane's packets besides mean and deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Law {
    skew: f64,
    epsilon: f64,
}

/// As a number that can be planned with.
fn sane(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

impl Lane {
    /// Of a path that delivers a packet every `mean` (μ), give or take `spread` (w), `delay` (P)
    /// after it was sent, with `ahead` (u) packets under way. All but the delay are at least 0;
    /// what is not a number counts as 0. Any unit of time will do, if it is the same for all lanes.
    pub fn new(mean: f64, spread: f64, delay: f64, ahead: f64) -> Self {
        Self {
            mean: sane(mean).max(0.0),
            spread: sane(spread).max(0.0),
            delay: sane(delay),
            ahead: sane(ahead).max(0.0),
            law: None,
        }
    }

    /// Of a path whose packets take times of this mean, deviation (σ) and skewness, of which all
    /// lanes together may be late with probability `epsilon` (ε, below 0.5). Skewness counts from 0
    /// to that of a gamma distribution, 2σ/μ; the others as for [`Self::new`].
    pub fn with_law(mean: f64, deviation: f64, skew: f64, epsilon: f64) -> Self {
        let lane = Self::new(mean, deviation, 0.0, 0.0);
        let most = 2.0 * lane.spread / lane.mean.max(1e-3 * lane.spread);
        // A constant has none.
        let skew = sane(skew).clamp(0.0, sane(most));
        let epsilon = sane(epsilon).clamp(1e-6, 0.5);
        Self {
            law: Some(Law { skew, epsilon }),
            ..lane
        }
    }

    /// The same, `delay` (P) after packets were sent, with `ahead` (u) under way.
    pub fn behind(self, delay: f64, ahead: f64) -> Self {
        Self {
            delay: sane(delay),
            ahead: sane(ahead).max(0.0),
            ..self
        }
    }

    pub(super) fn has_law(&self) -> bool {
        self.law.is_some()
    }

    /// With a width of its own instead of the law.
    pub(super) fn with_width(self, spread: f64) -> Self {
        Self::new(self.mean, spread, self.delay, self.ahead)
    }

    pub(super) fn mean(&self) -> f64 {
        self.mean
    }

    /// σ of a lane with a law.
    pub(super) fn deviation(&self) -> f64 {
        self.spread
    }

    fn skew(&self) -> f64 {
        self.law.map_or(0.0, |law| law.skew)
    }

    pub(super) fn epsilon(&self) -> f64 {
        self.law.map_or(0.0, |law| law.epsilon)
    }

    /// The same with `factor` times the spread; a negative factor makes a lucky path (§4.2).
    pub(super) fn with_luck(self, factor: f64) -> Self {
        Self {
            spread: self.spread * factor,
            ..self
        }
    }

    /// What `packets` packets and those before them take, of a lane with a law.
    pub(super) fn sum(&self, packets: u32) -> Sum {
        let all = f64::from(packets) + self.ahead;
        Sum {
            mean: all * self.mean + self.delay,
            deviation: sqrt(all) * self.spread,
            shape: Shape::new(self.skew(), all),
        }
    }

    /// When the n-th of these packets has arrived with high probability, T_U + P (7); `n` is at
    /// least 1, because a path that gets nothing makes nothing late. For a lane with a law, what
    /// could be promised if it were alone.
    pub fn bound(&self, n: u32) -> f64 {
        if let Some(law) = self.law {
            return self.sum(n).end(normal::score(PROMISED * law.epsilon));
        }
        let all = f64::from(n) + self.ahead;
        all * self.mean + sqrt(all) * self.spread + self.delay
    }

    /// When it has arrived on average.
    pub fn expected(&self, n: u32) -> f64 {
        (f64::from(n) + self.ahead) * self.mean + self.delay
    }

    /// When it has arrived if the path is as lucky as the bound is careful; a packet is never
    /// there before P.
    pub fn lucky(&self, n: u32) -> f64 {
        self.with_luck(-1.0).bound(n).max(self.delay)
    }

    /// Do any number of packets take as long as one?
    pub(super) fn is_flat(&self) -> bool {
        self.mean == 0.0 && self.spread == 0.0
    }

    pub(super) fn delay(&self) -> f64 {
        self.delay
    }

    /// How many packets, with fractions, have arrived at time `t`, and how fast that grows; convex
    /// in `t`. Not for flat lanes.
    pub(super) fn takes(&self, t: f64) -> (f64, f64) {
        let time = t - self.delay;
        if time <= 0.0 {
            return (0.0, 0.0);
        }
        // With r = √(n + u): r²μ + rw = time. In this form nothing cancels, and μ may be 0.
        let root = sqrt(self.spread * self.spread + 4.0 * self.mean * time);
        let r = 2.0 * time / (root + self.spread);
        let n = r * r - self.ahead;
        if n <= 0.0 {
            return (0.0, 0.0);
        }
        (n, 2.0 * r / root)
    }

    /// The same in whole packets, at most `most`.
    pub(super) fn whole(&self, t: f64, most: u32) -> u32 {
        floor(self.takes(t).0.min(f64::from(most))) as u32
    }
}
