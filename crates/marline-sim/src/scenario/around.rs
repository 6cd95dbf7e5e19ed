//! What readers of sessions, workloads and events know of the rest of a scenario.

use marline_base::{Duration, Instant};

use super::links::{ReadFile, Written};

/// What readers of sessions know of the rest.
pub(super) struct Around<'a> {
    pub(super) links: &'a [Written],
    pub(super) duration: Duration,
    /// The duration was asked for on the command line: what the file has after it does not happen,
    /// and is no mistake.
    pub(super) cut: bool,
    pub(super) files: &'a ReadFile<'a>,
}

impl Around<'_> {
    /// Is it a mistake that this is to happen at `at`, because the run is over by then?
    pub(super) fn never(&self, at: Instant) -> bool {
        !self.cut && at >= Instant::ZERO + self.duration
    }
}
