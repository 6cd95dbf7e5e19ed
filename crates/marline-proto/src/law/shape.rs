//! A law: when something is there, and with what probability it never is.
//!
//! It is kept by nineteen of its quantiles, closer together towards the ends. In between the
//! distribution is a straight line, so that [`Law::by`] and [`Law::quantile`] are each other's
//! inverse exactly. Before the first quantile the line goes on until nothing is left; beyond the
//! last one the rest falls with the square of time, as what waits for an outage to end does: a
//! line would end, and say of something late that it cannot be.

use libm::sqrt;

/// Quantiles that are kept: from one in a thousand on, closer together in the tails.
pub(super) const KNOTS: usize = 19;
/// Their probabilities. A scheduler asks for medians, for the last percent, and for what is rarer
/// than one in a thousand only roughly.
pub(super) const SHARES: [f64; KNOTS] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975,
    0.99, 0.995, 0.999,
];
/// The same quantiles of the standard normal distribution.
pub(super) const NORMAL: [f64; KNOTS] = [
    -3.090_232, -2.575_829, -2.326_348, -1.959_964, -1.644_854, -1.281_552, -0.841_621, -0.524_401,
    -0.253_347, 0.0, 0.253_347, 0.524_401, 0.841_621, 1.281_552, 1.644_854, 1.959_964, 2.326_348,
    2.575_829, 3.090_232,
];
/// The quantile that is the median.
const MEDIAN: usize = 9;
/// What is beyond the last quantile.
const REST: f64 = 1.0 - SHARES[KNOTS - 1];
/// Quantiles lie this far apart at least (µs): arrival times are whole microseconds.
const APART: f64 = 1.0;
/// Where the distribution of two laws together is looked at besides their quantiles: the greatest
/// of two has its last quantile beyond both of theirs.
const BEYOND: [f64; 2] = [0.9995, 0.9999];
/// Places at which one law is looked at: its beginning, its quantiles, and those beyond.
const PLACES: usize = 1 + KNOTS + BEYOND.len();

/// When something arrives, on the peer's clock (µs), and the probability that it never does.
///
/// ```
/// use marline_proto::law::Law;
///
/// // 40 ms from the peer's zero, ±5 ms, one in fifty lost.
/// let law = Law::normal(40e3, 5e3, 0.02);
/// let there = law.by(45e3);
/// assert!((there - 0.98 * 0.841).abs() < 0.01);
/// let at = law.quantile(there).expect("it is not beyond what ever arrives");
/// assert!((at - 45e3).abs() < 1.0);
/// assert_eq!(law.quantile(0.99), None, "one in fifty never arrives");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// What the quantiles are relative to (µs on the peer's clock).
    at: f64,
    /// Quantiles of what arrives, ascending (µs).
    knots: [f64; KNOTS],
    /// Probability that it never arrives.
    loss: f64,
}

/// Quantiles from a function of their probabilities.
pub(super) fn knots(of: impl Fn(f64) -> f64) -> [f64; KNOTS] {
    SHARES.map(of)
}

impl Law {
    /// Of these quantiles relative to `at`, which are put in order.
    pub(super) fn new(at: f64, mut knots: [f64; KNOTS], loss: f64) -> Self {
        // The median stays where it is.
        for n in MEDIAN + 1..KNOTS {
            knots[n] = knots[n].max(knots[n - 1] + APART);
        }
        for n in (0..MEDIAN).rev() {
            knots[n] = knots[n].min(knots[n + 1] - APART);
        }
        let loss = loss.clamp(0.0, 1.0);
        Self { at, knots, loss }
    }

    /// A normal law of mean and deviation (µs), and a probability of loss.
    pub fn normal(mean: f64, deviation: f64, loss: f64) -> Self {
        Self::new(mean, NORMAL.map(|z| z * deviation), loss)
    }

    /// Probability that it never arrives, 0..=1.
    pub fn loss(&self) -> f64 {
        self.loss
    }

    /// The same with another probability of loss.
    #[must_use]
    pub fn with_loss(self, loss: f64) -> Self {
        Self {
            loss: loss.clamp(0.0, 1.0),
            ..self
        }
    }

    /// The same, `by` µs later.
    #[must_use]
    pub fn shifted(self, by: f64) -> Self {
        Self {
            at: self.at + by,
            ..self
        }
    }

    /// Probability that it is there at `t` (µs on the peer's clock), 0..=1; never falls with `t`.
    pub fn by(&self, t: f64) -> f64 {
        (1.0 - self.loss) * self.share(t)
    }

    /// When it is there with probability `p`; `None` if a larger share never arrives.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        let arrives = 1.0 - self.loss;
        (p >= 0.0 && p < arrives).then(|| self.place(p / arrives))
    }

    /// The median of when it arrives, if it does.
    pub fn median(&self) -> f64 {
        self.at + self.knots[MEDIAN]
    }

    /// When it arrives on average, if it does.
    pub fn mean(&self) -> f64 {
        let knots = &self.knots;
        let begin = self.begin() - self.at;
        let mut mean = SHARES[0] * 0.5 * (begin + knots[0]);
        for n in 1..KNOTS {
            mean += (SHARES[n] - SHARES[n - 1]) * 0.5 * (knots[n] + knots[n - 1]);
        }
        // Of a rest that falls with the square the mean lies one scale beyond its beginning.
        self.at + mean + REST * (knots[KNOTS - 1] + self.scale())
    }

    /// When both are there, where neither knows of the other.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        let loss = 1.0 - (1.0 - self.loss) * (1.0 - other.loss);
        self.together(other, loss, |a, b| a * b)
    }

    /// When the first of the two is there, where neither knows of the other.
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        let (here, there) = (1.0 - self.loss, 1.0 - other.loss);
        let loss = self.loss * other.loss;
        let arrives = (1.0 - loss).max(f64::MIN_POSITIVE);
        let either = |a: f64, b: f64| (1.0 - (1.0 - here * a) * (1.0 - there * b)) / arrives;
        self.together(other, loss, either)
    }

    /// This one, or with probability `weight` the other.
    #[must_use]
    pub fn or(&self, other: &Self, weight: f64) -> Self {
        let loss = (1.0 - weight) * self.loss + weight * other.loss;
        let arrives = (1.0 - loss).max(f64::MIN_POSITIVE);
        let here = (1.0 - weight) * (1.0 - self.loss) / arrives;
        let there = weight * (1.0 - other.loss) / arrives;
        self.together(other, loss, |a, b| here * a + there * b)
    }

    /// When the packet and all that left before it at this spacing (µs) are there, if each is late
    /// by itself; losses are not waited for.
    #[must_use]
    pub fn and_those_before(&self, spacing: f64, most: u32) -> Self {
        let range = self.place(BEYOND[1]) - self.begin();
        let count = (range / spacing.max(APART)).min(f64::from(most)) as u32;
        let all = |t: f64| {
            let earlier = (0..=count).map(|n| self.share(t + f64::from(n) * spacing));
            earlier.product()
        };
        let places = self.places();
        Self::through(places.iter().map(|&t| (t, all(t))), self.at, self.loss)
    }

    /// The share of what arrives that is there at `t`.
    pub fn share(&self, t: f64) -> f64 {
        let (t, knots) = (t - self.at, &self.knots);
        let last = knots[KNOTS - 1];
        if t >= last {
            let beyond = 1.0 + (t - last) / self.scale();
            return 1.0 - REST / (beyond * beyond);
        }
        let above = knots.partition_point(|knot| *knot <= t);
        if above == 0 {
            let begin = self.begin() - self.at;
            return SHARES[0] * ((t - begin) / (knots[0] - begin)).max(0.0);
        }
        let (low, high) = (knots[above - 1], knots[above]);
        let part = (t - low) / (high - low);
        SHARES[above - 1] + part * (SHARES[above] - SHARES[above - 1])
    }

    /// Until when a share of what arrives, 0..1, is there.
    fn place(&self, share: f64) -> f64 {
        let knots = &self.knots;
        if share >= SHARES[KNOTS - 1] {
            let beyond = sqrt(REST / (1.0 - share).max(f64::EPSILON)) - 1.0;
            return self.at + knots[KNOTS - 1] + self.scale() * beyond;
        }
        let above = SHARES.partition_point(|one| *one <= share);
        if above == 0 {
            let begin = self.begin();
            return begin + share / SHARES[0] * (self.at + knots[0] - begin);
        }
        let part = (share - SHARES[above - 1]) / (SHARES[above] - SHARES[above - 1]);
        self.at + knots[above - 1] + part * (knots[above] - knots[above - 1])
    }

    /// Before that nothing arrives.
    fn begin(&self) -> f64 {
        let slope = (self.knots[1] - self.knots[0]) / (SHARES[1] - SHARES[0]);
        self.at + self.knots[0] - SHARES[0] * slope
    }

    /// How slowly the rest beyond the last quantile falls (µs).
    fn scale(&self) -> f64 {
        self.knots[KNOTS - 1] - self.knots[MEDIAN]
    }

    fn places(&self) -> [f64; PLACES] {
        core::array::from_fn(|n| match n {
            0 => self.begin(),
            n if n <= KNOTS => self.at + self.knots[n - 1],
            n => self.place(BEYOND[n - KNOTS - 1]),
        })
    }

    /// The law whose distribution is `of` the two shares, exact at the quantiles of both.
    fn together(&self, other: &Self, loss: f64, of: impl Fn(f64, f64) -> f64) -> Self {
        let mut places = [0.0; 2 * PLACES];
        places[..PLACES].copy_from_slice(&self.places());
        places[PLACES..].copy_from_slice(&other.places());
        places.sort_unstable_by(f64::total_cmp);
        let points = places
            .iter()
            .map(|&t| (t, of(self.share(t), other.share(t))));
        Self::through(points, self.at, loss)
    }

    /// The law whose distribution is straight between these points, which ascend.
    fn through(points: impl Iterator<Item = (f64, f64)>, at: f64, loss: f64) -> Self {
        let mut knots = [0.0; KNOTS];
        let (mut next, mut last) = (0, (f64::NEG_INFINITY, 0.0));
        for (t, share) in points {
            while next < KNOTS && share >= SHARES[next] {
                let part = (SHARES[next] - last.1) / (share - last.1);
                let from = last.0.max(t - f64::MAX);
                knots[next] = if last.0.is_finite() {
                    from + part * (t - from)
                } else {
                    t
                } - at;
                next += 1;
            }
            last = (t, share);
        }
        for knot in &mut knots[next..] {
            *knot = last.0 - at;
        }
        Self::new(at, knots, loss)
    }
}

#[cfg(test)]
mod tests;
