use std::time::Duration;

use marline_base::Instant;

/// Real time, counted from when the clock was made.
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
        let elapsed = self.start.elapsed();
        Instant::from_nanos(elapsed.as_nanos() as u64)
    }

    pub(super) fn real(&self, at: Instant) -> tokio::time::Instant {
        self.start + Duration::from_nanos(at.as_nanos())
    }
}
