//! Are copies against jitter worth their bytes?

use marline_base::{Duration, Instant};

/// Weight of a packet in the share.
const GAIN: f64 = 1.0 / 64.0;
/// With a smaller share of copies, those are left off.
const NEARLY_ALL: f64 = 0.8;
/// How long, at first; twice as long each time that it was too early.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(16);
/// Copies that were kept up for so long forget earlier pauses.
const LASTS: Duration = Duration::from_secs(1);

/// Of the packets that may be late, the share that can be copied. A stream in order moves no
/// sooner than its last packet that was not: a part of the copies is nearly as useless as none, and
/// fills the other path. So they stop when that path or the surplus does not carry them, and are
/// tried again later.
#[derive(Debug)]
pub(super) struct Coverage {
    share: f64,
    /// Copies are off until then; then they are on.
    from: Instant,
    pause: Duration,
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            share: 1.0,
            from: Instant::ZERO,
            pause: PAUSE,
        }
    }
}

impl Coverage {
    /// A packet may be late, and could be copied if it `fits`. Should it be?
    pub(super) fn is_worth_it(&mut self, now: Instant, fits: bool) -> bool {
        if now < self.from {
            return false;
        }
        self.share += GAIN * (f64::from(u8::from(fits)) - self.share);
        if now.since(self.from) > LASTS {
            self.pause = PAUSE;
        }
        let worth = self.share >= NEARLY_ALL;
        if !worth {
            self.share = 1.0;
            self.from = now + self.pause;
            self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        }
        worth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offers a packet every millisecond, every `nth` of which does not fit; how many are copied.
    fn copied(coverage: &mut Coverage, ms: core::ops::Range<u64>, nth: u64) -> usize {
        ms.filter(|ms| {
            let fits = !ms.is_multiple_of(nth);
            coverage.is_worth_it(Instant::from_millis(*ms), fits) && fits
        })
        .count()
    }

    #[test]
    fn a_packet_now_and_then_may_be_left_out() {
        assert_eq!(copied(&mut Coverage::default(), 0..10_000, 10), 9_000);
    }

    #[test]
    fn what_covers_half_is_tried_ever_more_rarely() {
        let mut coverage = Coverage::default();
        let tries = [0..1_000, 1_000..31_000].map(|ms| copied(&mut coverage, ms, 2));
        // Each try lasts until the share of 64 packets shows it, some 30 packets.
        assert!((8..40).contains(&tries[0]), "{tries:?}");
        // After pauses of 1, 2, 4, 8 and 16 s.
        assert!(
            (4 * tries[0]..6 * tries[0]).contains(&tries[1]),
            "{tries:?}"
        );
    }

    #[test]
    fn what_fits_again_is_copied_again() {
        let mut coverage = Coverage::default();
        copied(&mut coverage, 0..500, 2);
        assert!(copied(&mut coverage, 500..4_000, u64::MAX) > 2_400);
    }
}
