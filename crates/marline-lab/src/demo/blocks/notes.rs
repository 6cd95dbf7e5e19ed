//! What the two ends of a run note about the blocks.

use super::lock;
use super::tally::Tally;
use std::sync::Mutex;
use std::time::Instant;

/// Takes notes.
pub(super) trait Notes {
    /// The next block was written at this time. Before it could come, or is
    /// [refused](Self::refused).
    fn wrote(&self, written: Instant);
    /// The session did not take the newest block.
    fn refused(&self);
    /// A block is there whole; `None` if it is none that was sent.
    fn came(&self, number: Option<u64>, at: Instant);
    /// All blocks are known to have come that were taken.
    fn is_complete(&self) -> bool;
}

impl Notes for Mutex<Tally> {
    fn wrote(&self, written: Instant) {
        lock(self).wrote(written);
    }

    fn refused(&self) {
        lock(self).refused();
    }

    fn came(&self, number: Option<u64>, at: Instant) {
        lock(self).came(number, at);
    }

    fn is_complete(&self) -> bool {
        lock(self).is_complete()
    }
}
