//! Service from packets whose arrivals scatter.

/// A stretch is measured when it has this number of packets and lasts this number of deviations of
/// the scatter,
const PACKETS: f64 = 64.0;
const DEVIATIONS: f64 = 5.0;
/// or when it has this number of packets.
const MOST: f64 = 1_024.0;
/// Fewer packets show nothing.
const FEWEST: f64 = 4.0;

/// When the first and the last packet of a stretch arrived except for the scatter, and what was
/// served in between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    pub(super) first: f64,
    pub(super) last: f64,
    pub(super) bits: f64,
}

/// The line of least squares through the arrivals of packets in the order of sending, which a
/// bottleneck serves at even distances: the paper's regression (16), over arrivals. Its slope does
/// not take scatter for service, as the time from the first to the last arrival does.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// The first arrival, for the precision of the sums.
    origin: f64,
    sent: f64,
    seen: f64,
    bits: f64,
    /// Sums over the packets seen of index i and time t: i, i², t, i·t.
    sums: [f64; 4],
}

impl Line {
    /// The next packet: when it arrived (seconds), if it did, and its bits.
    pub(super) fn push(&mut self, arrived: Option<f64>, bits: f64) {
        if let Some(at) = arrived {
            if self.seen == 0.0 {
                self.origin = at;
            }
            let (i, t) = (self.sent, at - self.origin);
            let terms = [i, i * i, t, i * t];
            for (sum, term) in self.sums.iter_mut().zip(terms) {
                *sum += term;
            }
            self.seen += 1.0;
        }
        self.bits += bits;
        self.sent += 1.0;
    }

    /// Is it long enough where arrivals scatter by `deviation` about departures that are `gap`
    /// apart (seconds)?
    pub(super) fn is_long(&self, deviation: f64, gap: f64) -> bool {
        let lasts = self.sent * gap >= DEVIATIONS * deviation;
        (self.sent >= PACKETS && lasts) || self.sent >= MOST
    }

    /// What it shows; `None` if that is nothing.
    pub(super) fn stretch(&self) -> Option<Stretch> {
        let [i, ii, t, it] = self.sums.map(|sum| sum / self.seen);
        let slope = (it - i * t) / (ii - i * i);
        // Written so that it also holds for NaN.
        if !(self.seen >= FEWEST && slope > 0.0) {
            return None;
        }
        let first = self.origin + t - slope * i;
        Some(Stretch {
            first,
            last: first + slope * (self.sent - 1.0),
            bits: self.bits * (self.sent - 1.0) / self.sent,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Rng;

    #[test]
    fn a_line_is_that_of_the_service() {
        let mut line = Line::default();
        assert_eq!(line.stretch(), None);
        for packet in 0..10 {
            // The third was lost: its time passed all the same.
            let at = 7.0 + 0.5 * f64::from(packet);
            line.push((packet != 2).then_some(at), 1_000.0);
        }
        let stretch = line.stretch().unwrap();
        assert!((stretch.first - 7.0).abs() < 1e-9, "{stretch:?}");
        assert!((stretch.last - 11.5).abs() < 1e-9, "{stretch:?}");
        assert!((stretch.bits - 9_000.0).abs() < 1e-6, "{stretch:?}");
    }

    #[test]
    fn scatter_is_not_taken_for_service() {
        // 50 packets take 15 ms; from the first to the last arrival it is half as long again.
        let mut rng = Rng::new(3);
        let (mut fitted, mut seen) = (0.0, 0.0);
        for _ in 0..400 {
            let mut line = Line::default();
            let (mut first, mut last) = (f64::INFINITY, 0.0_f64);
            for packet in 0..50 {
                let at = 1.0 + 0.3e-3 * f64::from(packet) + 3e-3 * rng.normal();
                (first, last) = (first.min(at), last.max(at));
                line.push(Some(at), 12_000.0);
            }
            let stretch = line.stretch().unwrap();
            fitted += (stretch.last - stretch.first) / 400.0;
            seen += (last - first) / 400.0;
        }
        assert!((fitted / 14.7e-3 - 1.0).abs() < 0.02, "{fitted}");
        assert!(seen > 1.4 * 14.7e-3, "{seen}");
    }

    #[test]
    fn nonsense_tells_nothing_and_long_bursts_are_cut() {
        let mut line = Line::default();
        for packet in 0..9 {
            line.push(Some(f64::from(9 - packet)), 1.0);
        }
        assert_eq!(line.stretch(), None);
        let mut line = Line::default();
        for _ in 0..64 {
            assert!(!line.is_long(1e-3, 0.1e-3));
            line.push(None, 1.0);
        }
        assert!(line.is_long(1e-3, 0.1e-3) && !line.is_long(3e-3, 0.1e-3));
        assert_eq!(line.stretch(), None);
    }
}
