//! An address translator at the client's end of a link.

use marline_base::{Duration, Instant};

/// Remembers a link for so long after the client has sent over it; what comes after that from the
/// server is lost. What the server sends renews nothing (RFC 4787 §4.3 leaves that open).
#[derive(Clone, Copy, Debug)]
pub(super) struct Nat {
    remembers: Duration,
    /// When the client sent last.
    renewed: Option<Instant>,
}

impl Nat {
    pub(super) fn new(remembers: Duration) -> Self {
        Self {
            remembers,
            renewed: None,
        }
    }

    /// Does what leaves now pass?
    pub(super) fn passes(&mut self, now: Instant, up: bool) -> bool {
        if up {
            self.renewed = Some(now);
        }
        let remembers = |at: Instant| now.since(at) <= self.remembers;
        self.renewed.is_some_and(remembers)
    }
}
