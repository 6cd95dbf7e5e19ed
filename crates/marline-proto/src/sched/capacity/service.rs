//! Capacity from arrivals.

use alloc::collections::VecDeque;

/// Pieces shorter than this (seconds) are joined with their successor.
const PIECE: f64 = 250e-6;
/// Pieces that are kept: at least a second at full load.
const MOST: usize = 4_096;

/// What the bottleneck did in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Bits that it served.
    pub bits: f64,
    /// Seconds in which it was at work on them.
    pub busy: f64,
}

impl Sample {
    /// Capacity (bit/s), if it was seen at work for at least `least` seconds.
    pub fn capacity(&self, least: f64) -> Option<f64> {
        (self.busy > 0.0 && self.busy >= least).then(|| self.bits / self.busy)
    }
}

/// A stretch in which the bottleneck worked without a pause.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: f64,
    to: f64,
    bits: f64,
}

/// Measures the capacity of a path from the departures of its packets from the bottleneck: a packet
/// is served from when it came, or from its predecessor's departure if that was later, to its own
/// departure. This is what HOP's regression over a burst (eq. 15, 16) approaches, without a
/// regression and without the sending rate.
///
/// Departures are arrivals less the propagation time; as only differences count, a clock of the
/// peer may stand in, if both times are given on one scale. Bounded memory: the oldest pieces go.
#[derive(Clone, Debug, Default)]
pub struct ServiceMeter {
    pieces: VecDeque<Piece>,
    last: f64,
}

impl ServiceMeter {
    /// A meter that saw nothing.
    pub fn new() -> Self {
        Self {
            pieces: VecDeque::new(),
            last: f64::NEG_INFINITY,
        }
    }

    /// A packet of `bits` came to the bottleneck at `came` and had left it at `left` (seconds), in
    /// the order of departure. One that seems to leave before its predecessor is left out.
    pub fn on_departure(&mut self, came: f64, left: f64, bits: f64) {
        // Seen together with its predecessor, which it followed through the bottleneck: it was
        // served in the same time, as far as can be known.
        if left == self.last && came < left && bits > 0.0 {
            if let Some(piece) = self.pieces.back_mut().filter(|piece| piece.to == left) {
                piece.bits += bits;
            }
            return;
        }
        let from = came.max(self.last);
        // Written so that it also holds for NaN.
        if !(left > self.last && left > from && bits > 0.0 && from.is_finite()) {
            if left > self.last {
                self.last = left;
            }
            return;
        }
        match self.pieces.back_mut() {
            Some(piece) if piece.to == from && left - piece.from <= PIECE => {
                piece.to = left;
                piece.bits += bits;
            }
            _ => {
                if self.pieces.len() == MOST {
                    self.pieces.pop_front();
                }
                self.pieces.push_back(Piece {
                    from,
                    to: left,
                    bits,
                });
            }
        }
        self.last = left;
    }

    /// A packet that left at `left` cannot be measured, because it is not known when its service
    /// began: its predecessor was lost, or its own waiting time is uncertain.
    pub fn skip(&mut self, left: f64) {
        if left > self.last {
            self.last = left;
        }
    }

    /// When the last packet left, if any did.
    pub fn last(&self) -> Option<f64> {
        self.last.is_finite().then_some(self.last)
    }

    /// What was served in [`from`, `to`), parts of packets included.
    pub fn over(&self, from: f64, to: f64) -> Sample {
        let mut sum = Sample::default();
        for piece in self.pieces.iter().rev() {
            if piece.to <= from {
                break;
            }
            let part = piece.to.min(to) - piece.from.max(from);
            if part > 0.0 {
                sum.busy += part;
                sum.bits += piece.bits * part / (piece.to - piece.from);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_are_seen_together_all_count() {
        // 12 000 bit a millisecond, but what jitter held up arrives at once.
        let mut meter = ServiceMeter::new();
        for left in [1e-3, 3e-3, 3e-3, 4e-3, 6e-3, 6e-3] {
            meter.on_departure(0.0, left, 12_000.0);
        }
        let capacity = meter.over(0.0, 6e-3).capacity(1e-3).unwrap();
        assert!((capacity - 12e6).abs() < 1.0, "{capacity}");
        // One that came when its predecessor had left took a time that is not known.
        meter.on_departure(6e-3, 6e-3, 12_000.0);
        let capacity = meter.over(0.0, 6e-3).capacity(1e-3).unwrap();
        assert!((capacity - 12e6).abs() < 1.0, "{capacity}");
    }

    #[test]
    fn idle_times_do_not_count_and_partial_packets_do() {
        let mut meter = ServiceMeter::new();
        assert_eq!(meter.last(), None);
        // 12 000 bit a millisecond: three at once, a pause, then two of twice the time.
        for left in [1e-3, 2e-3, 3e-3] {
            meter.on_departure(0.0, left, 12_000.0);
        }
        meter.on_departure(10e-3, 12e-3, 12_000.0);
        meter.on_departure(10e-3, 14e-3, 12_000.0);
        let all = meter.over(0.0, 1.0);
        assert!((all.busy - 7e-3).abs() < 1e-12 && (all.bits - 60_000.0).abs() < 1e-6);
        // The second half of the third packet, the first quarter of the fourth.
        let some = meter.over(2.5e-3, 10.5e-3);
        assert!((some.busy - 1e-3).abs() < 1e-12, "{some:?}");
        assert!((some.bits - 9_000.0).abs() < 1e-6, "{some:?}");
        assert_eq!(some.capacity(2e-3), None);
        assert_eq!(meter.over(4e-3, 9e-3).capacity(0.0), None);
        assert_eq!(meter.last(), Some(14e-3));
    }

    #[test]
    fn nonsense_is_left_out_and_memory_is_bounded() {
        let mut meter = ServiceMeter::new();
        meter.on_departure(0.0, 1.0, 1_000.0);
        meter.on_departure(0.0, 0.5, 1_000.0);
        meter.on_departure(f64::NAN, 2.0, 1_000.0);
        meter.on_departure(0.0, f64::NAN, 1_000.0);
        meter.on_departure(3.0, 3.0, 1_000.0);
        meter.skip(2.5);
        meter.on_departure(0.0, 4.0, 0.0);
        let all = meter.over(0.0, 10.0);
        assert!(all.busy.is_finite() && all.bits <= 2_000.0, "{all:?}");
        for i in 0..20_000 {
            meter.on_departure(f64::from(i), f64::from(i) + 5.0, 1.0);
        }
        assert!(meter.pieces.len() <= MOST);
    }
}
