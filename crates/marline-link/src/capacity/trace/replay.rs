use super::Trace;
use crate::outage::Cursor;
use core::time::Duration;
use marline_base::Instant;

/// Plays a [`Trace`] as `mm-link` does.
///
/// An opportunity carries 1500 bytes for packets that were there before its time: a larger packet
/// takes several, smaller ones share one, what no packet uses is lost, and a packet that comes at
/// the very millisecond is too late for it.
#[derive(Clone, Debug)]
pub(in crate::capacity) struct Replay {
    trace: Trace,
    /// Number of the opportunity in use.
    number: u64,
    /// Its time.
    time: Instant,
    /// Bytes that it can still carry.
    left: u32,
}

impl Replay {
    /// Begins with the first opportunity after `free`.
    pub(in crate::capacity) fn new(trace: Trace, free: Instant) -> Self {
        let number = trace.first_after(free);
        let time = trace.time(number);
        Self {
            trace,
            number,
            time,
            left: Trace::OPPORTUNITY,
        }
    }

    /// Time of the opportunity that takes the first byte of a packet offered at `now`.
    pub(in crate::capacity) fn start(&mut self, now: Instant, dark: &mut Cursor) -> Instant {
        if self.time <= now {
            self.go_to(self.trace.first_after(now), dark);
        } else if self.left == 0 {
            self.go_to(self.number + 1, dark);
        } else {
            // The first opportunity of all may lie in the dark.
            self.leave_the_dark(dark);
        }
        self.time
    }

    /// Carries `size` bytes that were offered at `now`; answers when the last one has left.
    pub(in crate::capacity) fn take(
        &mut self,
        now: Instant,
        size: u32,
        dark: &mut Cursor,
    ) -> Instant {
        self.start(now, dark);
        let mut size = size;
        loop {
            let carried = size.min(self.left);
            size -= carried;
            self.left -= carried;
            if size == 0 {
                return self.time;
            }
            self.go_to(self.number + 1, dark);
        }
    }

    /// Frees every opportunity after `at`.
    pub(in crate::capacity) fn flush(&mut self, at: Instant) {
        if self.time > at {
            self.number = self.trace.first_after(at);
            self.time = self.trace.time(self.number);
            self.left = Trace::OPPORTUNITY;
        }
    }

    fn go_to(&mut self, number: u64, dark: &mut Cursor) {
        self.number = number;
        self.time = self.trace.time(number);
        self.left = Trace::OPPORTUNITY;
        self.leave_the_dark(dark);
    }

    fn leave_the_dark(&mut self, dark: &mut Cursor) {
        loop {
            let lit = dark.lit_from(self.time);
            if lit == self.time {
                return;
            }
            // One nanosecond less, so that an opportunity at the very end of an outage counts.
            self.number = self.trace.first_after(lit - Duration::from_nanos(1));
            self.time = self.trace.time(self.number);
            self.left = Trace::OPPORTUNITY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outage::{Outage, Outages};
    use alloc::vec;
    use alloc::vec::Vec;
    use marline_base::Rng;

    fn replay() -> Replay {
        Replay::new(Trace::parse("t", "2\n5\n5\n10").unwrap(), Instant::ZERO)
    }

    fn take(replay: &mut Replay, now_us: u64, size: u32) -> u64 {
        let mut dark = Cursor::never();
        replay
            .take(Instant::from_micros(now_us), size, &mut dark)
            .as_micros()
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let mut replay = replay();
        assert_eq!(take(&mut replay, 0, 500), 2_000);
        assert_eq!(take(&mut replay, 0, 1_000), 2_000);
        // 4000 bytes: both opportunities at 5 ms and 1000 bytes of the one at 10 ms.
        assert_eq!(take(&mut replay, 0, 4_000), 10_000);
        assert_eq!(take(&mut replay, 9_999, 500), 10_000);
        assert_eq!(take(&mut replay, 9_999, 1), 12_000);
    }

    #[test]
    fn what_comes_at_the_time_itself_is_too_late() {
        let mut replay = replay();
        assert_eq!(take(&mut replay, 2_000, 1_500), 5_000);
        // The rest of a used opportunity does not wait for latecomers.
        assert_eq!(take(&mut replay, 4_999, 100), 5_000);
        assert_eq!(take(&mut replay, 5_000, 100), 10_000);
    }

    #[test]
    fn a_loop_carries_exactly_its_opportunities() {
        let mut replay = replay();
        let mut last = 0;
        // 4 opportunities of 1500 bytes a loop; packets of 750 bytes; 1000 loops.
        for _ in 0..8_000 {
            last = take(&mut replay, 0, 750);
        }
        assert_eq!(last, 10_000 * 1_000);
    }

    #[test]
    fn after_a_flush_nothing_is_taken() {
        let mut used = replay();
        for _ in 0..100 {
            take(&mut used, 0, 1_500);
        }
        used.flush(Instant::from_millis(3));
        let times: Vec<u64> = (0..3).map(|_| take(&mut used, 3_000, 1_500)).collect();
        assert_eq!(times, [5_000, 5_000, 10_000]);
    }

    #[test]
    fn opportunities_in_the_dark_are_lost() {
        let outages = Outages::Scheduled(vec![Outage {
            start: Instant::from_millis(4),
            length: Duration::from_millis(8),
        }]);
        let mut dark = Cursor::new(&outages, Rng::new(1));
        let mut replay = replay();
        let mut take = |now| replay.take(Instant::from_millis(now), 1_500, &mut dark);
        assert_eq!(take(0), Instant::from_millis(2));
        // 5, 5 and 10 ms are dark; the outage ends at 12 ms, when the next one comes.
        assert_eq!(take(0), Instant::from_millis(12));
    }
}
