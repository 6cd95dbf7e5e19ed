//! What waits ahead of a path's window is taken back from time to time and placed again.
//!
//! A symbol is queued on a path whose window is full if it still arrives earlier there than over
//! one that has room. That is a forecast, and the longer it waits the less is it worth.

use marline_base::{Duration, Instant};

use super::Plan;

/// How often, of schedulers that have no option for it: a few packets' time on a link of some Mb/s,
/// and less than any round trip over a wide area. A choice, not tuned.
pub(super) const REVISE: Duration = Duration::from_millis(10);

/// When something was queued ahead, and when it is placed again.
#[derive(Debug)]
pub(super) struct Revision {
    every: Duration,
    last: Instant,
    ahead: bool,
}

impl Revision {
    pub(super) const fn new(every: Duration) -> Self {
        Self {
            every,
            last: Instant::ZERO,
            ahead: false,
        }
    }

    /// Something was queued beyond a window.
    pub(super) const fn queued_ahead(&mut self) {
        self.ahead = true;
    }

    /// Is it time to place again what was queued ahead?
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.ahead && now.since(self.last) >= self.every
    }

    /// Nothing is queued ahead now.
    pub(super) const fn begin(&mut self, now: Instant) {
        self.last = now;
        self.ahead = false;
    }

    /// Takes back what waits, if it is time; returns its bytes.
    pub(super) fn take_back(&mut self, plan: &mut Plan<'_>) -> Option<u64> {
        let now = plan.now();
        self.is_due(now).then(|| {
            self.begin(now);
            plan.take_back()
        })
    }

    /// When it is time.
    pub(super) fn at(&self) -> Option<Instant> {
        self.ahead.then(|| self.last + self.every)
    }
}
