//! How fast an application writes: what it needs, where nothing holds it back.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use marline_base::{Duration, Instant};

/// Bytes written are counted in intervals of this length: three frames of video at 30 a second.
const BIN: Duration = Duration::from_millis(100);
/// Intervals over which a rate is taken: one second, the distance of key frames where they are
/// dense.
const BINS: usize = 10;
/// Rates that are remembered, one an interval: three seconds.
const RATES: usize = 30;

/// The 90th percentile of the rates, each over a second, at which an application wrote during the
/// last three seconds, but not before its last silence of a second.
#[derive(Debug, Default)]
pub(crate) struct WriteRate {
    /// Bytes that the application had written at the end of each interval, oldest first.
    written: VecDeque<u64>,
    /// Bytes written in the seconds that ended with the last intervals.
    rates: VecDeque<u64>,
    /// Bytes per second of a burst and the silence after it.
    rare: Option<f64>,
    next: Instant,
}

impl WriteRate {
    /// Of an application that begins to write now.
    pub(crate) fn begin(now: Instant) -> Self {
        Self {
            next: now,
            ..Self::default()
        }
    }

    /// Nothing is left of what was seen: the bytes of all the time until it is measured again would
    /// count as those of a second.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.written.clear();
        self.rates.clear();
        self.next = now;
    }

    /// The application has written so many bytes by now, and had written `before` of them at the
    /// end of a silence if there was one. Returns whether an interval has passed.
    pub(crate) fn observe(&mut self, now: Instant, before: u64, written: u64) -> bool {
        if now < self.next {
            return false;
        }
        let passed = now.since(self.next).as_nanos() / BIN.as_nanos() + 1;
        if self.written.is_empty() || passed > BINS as u128 {
            self.restart(now, before);
            return true;
        }
        // Intervals that passed in silence count as empty ones.
        for _ in 0..passed {
            if self.written.len() > BINS {
                self.written.pop_front();
            }
            self.written.push_back(written);
            if let Some(first) = self.written.front().filter(|_| self.written.len() > BINS) {
                if self.rates.len() == RATES {
                    self.rates.pop_front();
                }
                self.rates.push_back(written.saturating_sub(*first));
            }
        }
        self.next = now + BIN;
        true
    }

    /// A measurement begins, at first or after a second of silence: what is written from now on
    /// counts.
    fn restart(&mut self, now: Instant, before: u64) {
        let first = self.written.front().filter(|_| self.written.len() == 1);
        let seconds = (now.since(self.next) + BIN).as_secs_f64();
        self.rare = first.map(|first| before.saturating_sub(*first) as f64 / seconds);
        self.forget(now + BIN);
        self.written.push_back(before);
    }

    /// Bytes per second, as soon as anything is known of them.
    pub(crate) fn early(&self) -> Option<f64> {
        if let Some(rate) = self.upper() {
            return Some(rate);
        }
        if self.written.len() < 2 {
            return self.rare;
        }
        // Less than a second was seen: what was written, in the time that it took.
        let seen = (self.written.len() - 1) as f64 * BIN.as_secs_f64();
        let first = self.written.front().copied().unwrap_or(0);
        let last = self.written.back().copied().unwrap_or(0);
        // What expires unsent is not written any more, where that is not counted apart.
        Some(last.saturating_sub(first) as f64 / seen)
    }

    /// Bytes per second, once a whole second was seen: a stream may begin with a burst.
    pub(crate) fn upper(&self) -> Option<f64> {
        let seconds = BIN.as_secs_f64() * BINS as f64;
        let mut rates: Vec<u64> = self.rates.iter().copied().collect();
        rates.sort_unstable();
        let place = (rates.len() * 9).div_ceil(10).checked_sub(1)?;
        Some(rates[place] as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_sure_before_a_second_was_seen_nor_after_one_of_silence() {
        let start = Instant::from_millis(300);
        let mut rate = WriteRate::begin(start);
        let at = |ms| start + Duration::from_millis(ms);
        // 100 kB at once, then 1 kB a millisecond.
        let written = |ms: u64| 100_000 + 1_000 * ms;
        for ms in (0..1_000).step_by(50) {
            rate.observe(at(ms), written(ms), written(ms));
            assert_eq!(rate.upper(), None, "{ms}");
            assert_eq!(rate.early().is_some(), ms >= 100, "{ms}");
        }
        rate.observe(at(1_000), written(1_000), written(1_000));
        assert_eq!(rate.upper(), Some(1e6));
        rate.observe(at(2_150), written(1_000), written(1_000));
        assert_eq!(rate.upper(), None);
    }

    #[test]
    fn the_fast_seconds_count_but_not_the_fastest() {
        let mut rate = WriteRate::begin(Instant::ZERO);
        let mut written = 0;
        for tenth in 0..50_u64 {
            // Every second begins with a burst, and one of them with a much longer one.
            written += 100_000 + if tenth % 10 == 0 { 200_000 } else { 0 };
            written += if tenth == 20 { 300_000 } else { 0 };
            rate.observe(Instant::from_millis(tenth * 100), written, written);
        }
        // Ten of the thirty seconds that were seen had the long one.
        assert_eq!(rate.upper(), Some(1.5e6));
        for tenth in 50..70_u64 {
            written += 100_000 + if tenth % 10 == 0 { 200_000 } else { 0 };
            rate.observe(Instant::from_millis(tenth * 100), written, written);
        }
        assert_eq!(rate.upper(), Some(1.2e6));
    }
}
