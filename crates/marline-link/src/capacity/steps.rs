use crate::outage::Cursor;
use core::time::Duration;
use marline_base::{Instant, Rate};

/// A rate that changes in steps.
pub(super) trait Steps {
    /// The rate at `time`, and when it ends, which is after `time`.
    fn at(&mut self, time: Instant) -> (Rate, Instant);
}

/// When `size` bytes have left that begin at `start`, in the dark not at all.
pub(super) fn carry(
    steps: &mut impl Steps,
    start: Instant,
    size: u32,
    dark: &mut Cursor,
) -> Instant {
    // Work is counted in bit·ns, in which all quantities are whole.
    let mut left = u128::from(size) * 8_000_000_000;
    let mut time = start;
    while left > 0 && time != Instant::FAR_FUTURE {
        time = dark.lit_from(time);
        let (rate, end) = steps.at(time);
        let until = end.min(dark.at_or_after(time).0);
        let bps = u128::from(rate.as_bps());
        let work = bps * until.since(time).as_nanos();
        if work >= left {
            return time + Duration::from_nanos(left.div_ceil(bps) as u64);
        }
        left -= work;
        time = until;
    }
    time
}
