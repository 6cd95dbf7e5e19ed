//! How late the sum of some packets' times may be: by its mean, its deviation and its skewness.
//!
//! A sum of few very uneven times is far from normal. With its third moment it is taken for
//! Pearson's type III, a gamma distribution that is shifted and scaled to the three: exact for the
//! gamma distribution, whatever the number of packets, and for the normal one. Skewness is taken
//! for at most twice the coefficient of variation, that of a gamma distribution: where it is more,
//! as for log-normal times, it comes from packets that are so rare that they say nothing of most
//! objects, and a law that believed in it would promise the mean.

mod table;

use libm::{cbrt, sqrt};

use crate::sched::normal;
use table::{COLUMNS, FINE, FIRST_Z, ROOTS, ROWS};

/// Sums that are less skewed than this are normal,
const EVEN: f64 = 1e-3;
/// and less than this, so nearly that Wilson and Hilferty's line will do.
const MILD: f64 = 0.5;
/// More than this is not distinguished: the last row.
const MOST: f64 = 12.0;

/// What some packets take: mean, deviation and shape of the sum of their times.
pub(super) struct Sum {
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) shape: Shape,
}

impl Sum {
    /// When it is over, with probability Φ(z).
    pub(super) fn end(&self, z: f64) -> f64 {
        self.mean + self.deviation * self.shape.value(z)
    }

    /// The probability that it is over at `time`.
    pub(super) fn over(&self, time: f64) -> f64 {
        let late = time - self.mean;
        if self.deviation <= 0.0 {
            // A time that is this very end may have been rounded.
            return f64::from(u8::from(late >= -1e-9 * time.abs()));
        }
        normal::below(self.shape.score(late / self.deviation))
    }
}

/// The law of a sum with a mean of 0 and a deviation of 1, and this skewness.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    skew: f64,
    row: usize,
    /// How far the next row counts.
    part: f64,
}

impl Shape {
    /// Of a sum of this number of packets, each of whose times has this skewness. Skewness below 0
    /// counts as 0.
    pub(super) fn new(skew: f64, packets: f64) -> Self {
        let skew = skew / sqrt(packets.max(1e-6));
        if skew <= MILD {
            let skew = if skew > EVEN { skew } else { 0.0 };
            return Self {
                skew,
                row: 0,
                part: 0.0,
            };
        }
        let skew = skew.min(MOST);
        // The octave is the exponent, and the place in it what follows of the number.
        let bits = skew.to_bits();
        let octave = (bits >> 52) as usize - 1_022;
        let place = f64::from_bits(bits & ((1 << 52) - 1) | 1.0_f64.to_bits()) - 1.0;
        let at = place * FINE as f64;
        let row = (octave * FINE + at as usize).min(ROWS - 2);
        let part = at - (row - octave * FINE) as f64;
        Self { skew, row, part }
    }

    fn root(&self, column: usize) -> f64 {
        let (low, high) = (ROOTS[self.row][column], ROOTS[self.row + 1][column]);
        let (low, high) = (f64::from(low), f64::from(high));
        low + self.part * (high - low)
    }

    /// The value at the score `z`: it stays below with probability Φ(z).
    pub(super) fn value(&self, z: f64) -> f64 {
        let g = self.skew;
        if g == 0.0 {
            return z;
        }
        let root = if g <= MILD {
            1.0 - g * g / 36.0 + g * z / 6.0
        } else {
            let at = (z - FIRST_Z) * FINE as f64;
            let column = (at.max(0.0) as usize).min(COLUMNS - 2);
            let low = self.root(column);
            low + (at - column as f64) * (self.root(column + 1) - low)
        };
        let root = root.max(0.0);
        (root * root * root - 1.0) * 2.0 / g
    }

    /// The score of a value: the inverse of [`Self::value`]; minus infinity where nothing lies
    /// below.
    pub(super) fn score(&self, value: f64) -> f64 {
        let g = self.skew;
        if g == 0.0 {
            return value;
        }
        let root = cbrt((1.0 + 0.5 * g * value).max(0.0));
        if g <= MILD {
            return (root - 1.0 + g * g / 36.0) * 6.0 / g;
        }
        if root <= self.root(0) {
            return f64::NEG_INFINITY;
        }
        let (mut low, mut high) = (0, COLUMNS - 1);
        while high - low > 1 {
            let middle = low.midpoint(high);
            match self.root(middle) < root {
                true => low = middle,
                false => high = middle,
            }
        }
        let (below, above) = (self.root(low), self.root(high));
        FIRST_Z + (low as f64 + (root - below) / (above - below).max(1e-12)) / FINE as f64
    }
}

#[cfg(test)]
pub(super) mod tests;
