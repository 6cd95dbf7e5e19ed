//! How packets lie about what was expected of them: the shape of the law.
//!
//! [`Wander`](super::wander) says where the next packet is expected and how wide errors are. What
//! is left, errors in units of that width, has a shape that differs from link to link: even where
//! delay is drawn evenly, two humps where it is held and stepped, a long end where a radio link
//! repeats. The shape is a histogram of the errors of packets as they were expected when they
//! *left*, newer ones with more weight, so its quantiles are calibrated whatever the link does, as
//! long as it goes on doing it.

use super::shape::{KNOTS, NORMAL, SHARES};

/// Bins of each sign: four an octave up to sixty-four widths.
const SIDE: usize = 48;
const BINS: usize = 2 * SIDE;
/// Added to errors before they are put into bins of equal ratio, so that those about zero fall into
/// the same one (widths). A quarter of it is the finest difference that counts: widths are means
/// over quieter and busier times.
const CENTRE: f32 = 1.0 / 64.0;
/// No spread is less or more (widths): on a path without any scatter the shape is that of clocks,
/// and when such a path changes it is that of errors beside which the width was nothing.
const SPREAD: (f64, f64) = (0.5, 1.0);
/// The bin of an error is its exponent and two bits of its mantissa.
const DROPPED: u32 = 21;
/// Packets in the shape: a thousand for a 99th percentile that ten of them make.
const MEMORY: f64 = 1_000.0;
/// The shape begins as a normal one with a long end, which counts as this number of packets.
const PRIOR: f64 = 12.0;
/// Weights are made small again when a packet counts for this.
const HEAVY: f64 = 1e6;
/// The quantiles are read again when this share of the packets is new, and at the latest after this
/// number of them: to read them costs as much as to take in ten packets.
const READ: (f64, u32) = (0.1, 32);

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Scatter {
    bins: [f32; BINS],
    /// What the next packet counts.
    weight: f64,
    sum: f64,
    unread: u32,
    knots: [f64; KNOTS],
}

impl Default for Scatter {
    fn default() -> Self {
        let mut scatter = Self {
            bins: [0.0; BINS],
            weight: 1.0,
            sum: 0.0,
            unread: 0,
            knots: [0.0; KNOTS],
        };
        for (n, bin) in scatter.bins.iter_mut().enumerate() {
            // A Cauchy law's third power: 1 % is beyond 2.6 widths, a thousandth beyond 4.
            let (low, high) = edges(n);
            let middle = (low + high) / 2.0;
            let density = 1.0 + 0.4 * middle * middle;
            *bin = ((high - low) / (density * density * density)) as f32;
            scatter.sum += f64::from(*bin);
        }
        let scale = PRIOR / scatter.sum;
        scatter.bins.iter_mut().for_each(|bin| *bin *= scale as f32);
        scatter.sum = PRIOR;
        scatter.read();
        scatter
    }
}

/// The bin of an error (widths).
fn bin(error: f64) -> usize {
    let from = CENTRE.to_bits() >> DROPPED;
    let far = (error.abs() as f32 + CENTRE).to_bits() >> DROPPED;
    let place = ((far - from) as usize).min(SIDE - 1);
    match error < 0.0 {
        true => SIDE - 1 - place,
        false => SIDE + place,
    }
}

/// From where to where the bin reaches (widths).
fn edges(bin: usize) -> (f64, f64) {
    let from = CENTRE.to_bits() >> DROPPED;
    let edge = |place: usize| f64::from(f32::from_bits((from + place as u32) << DROPPED) - CENTRE);
    match bin.checked_sub(SIDE) {
        Some(place) => (edge(place), edge(place + 1)),
        None => (-edge(SIDE - bin), -edge(SIDE - 1 - bin)),
    }
}

impl Scatter {
    /// A packet came this much later than expected (widths).
    pub(super) fn on_error(&mut self, error: f64) {
        if error.is_nan() {
            return;
        }
        self.weight *= 1.0 + 1.0 / MEMORY;
        if self.weight > HEAVY {
            let scale = 1.0 / self.weight;
            self.bins.iter_mut().for_each(|bin| *bin *= scale as f32);
            self.sum *= scale;
            self.weight = 1.0;
        }
        self.bins[bin(error)] += self.weight as f32;
        self.sum += self.weight;
        self.unread += 1;
    }

    /// Reads the quantiles again, if enough has changed.
    pub(super) fn refresh(&mut self) {
        let new = f64::from(self.unread) * self.weight;
        if self.unread >= READ.1 || new > READ.0 * self.sum {
            self.read();
        }
    }

    fn read(&mut self) {
        self.unread = 0;
        // Sums of weights that grew are not exact.
        let sum: f64 = self.bins.iter().map(|bin| f64::from(*bin)).sum();
        self.sum = sum;
        let (mut below, mut next) = (0.0, 0);
        for (n, bin) in self.bins.iter().enumerate() {
            let above = below + f64::from(*bin) / sum;
            while next < KNOTS && (SHARES[next] <= above || n == BINS - 1) {
                let (low, high) = edges(n);
                let part = (SHARES[next] - below) / (above - below).max(1e-12);
                self.knots[next] = low + part.clamp(0.0, 1.0) * (high - low);
                next += 1;
            }
            below = above;
        }
    }

    /// Deviation of a normal law that is as wide in the middle (widths).
    pub(super) fn spread(&self) -> f64 {
        let middle = (self.knots[12] - self.knots[6]) / (NORMAL[12] - NORMAL[6]);
        middle.clamp(SPREAD.0, SPREAD.1)
    }

    /// The quantiles of errors (widths).
    pub(super) fn knots(&self) -> &[f64; KNOTS] {
        &self.knots
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Rng;

    #[test]
    fn bins_follow_one_another_and_hold_what_falls_into_them() {
        let mut last = f64::NEG_INFINITY;
        for n in 0..BINS {
            let (low, high) = edges(n);
            assert!(low < high && (n == 0 || (low - last).abs() < 1e-6), "{n}");
            last = high;
            assert_eq!(bin((low + high) / 2.0), n);
        }
        assert_eq!(edges(SIDE), (0.0, 1.0 / 256.0));
        assert_eq!((bin(1e30), bin(-1e30)), (BINS - 1, 0));
        assert_eq!(bin(f64::INFINITY), BINS - 1);
    }

    #[test]
    fn its_quantiles_are_those_of_what_was_drawn_lately() {
        let mut rng = Rng::new(6).stream("scatter");
        let mut scatter = Scatter::default();
        (0..5_000).for_each(|_| scatter.on_error(8.0 * rng.normal()));
        // Even between −1 and 3.
        (0..8_000).for_each(|_| scatter.on_error(4.0 * rng.uniform() - 1.0));
        scatter.refresh();
        for (share, knot) in SHARES.iter().zip(scatter.knots()) {
            let wanted = 4.0 * share - 1.0;
            // A thousand packets are in it, and the bins at 3 widths are half a width wide.
            assert!((knot - wanted).abs() < 0.45, "{share}: {knot} {wanted}");
        }
    }

    #[test]
    fn it_begins_as_a_normal_one_with_longer_ends() {
        let scatter = Scatter::default();
        let knots = scatter.knots();
        assert!(knots[9].abs() < 1e-3);
        assert!((0.5..1.0).contains(&knots[12]), "80 %: {}", knots[12]);
        assert!((3.5..6.0).contains(&knots[18]), "99.9 %: {}", knots[18]);
        let mut scatter = Scatter::default();
        scatter.on_error(f64::NAN);
        assert_eq!(scatter.knots(), Scatter::default().knots());
    }
}
