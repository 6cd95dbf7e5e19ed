use std::time::Duration;

use marline_base::Instant;

/// What the clock says when it is made: what a program has waited to send may have begun to wait
/// this long before.
const EPOCH: Duration = Duration::from_secs(64);

/// Real time, counted from [`EPOCH`] before the clock was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: tokio::time::Instant,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            start: tokio::time::Instant::now(),
        }
    }

    pub(super) fn now(&self) -> Instant {
        let elapsed = EPOCH + self.start.elapsed();
        Instant::from_nanos(elapsed.as_nanos() as u64)
    }

    pub(super) fn real(&self, at: Instant) -> tokio::time::Instant {
        self.start + Duration::from_nanos(at.as_nanos()).saturating_sub(EPOCH)
    }
}
