//! The live stream: timestamped messages at a constant rate through a live entry. Sender and
//! receiver share one clock, so the delays are exact.

mod message;
mod receiver;
mod sender;
mod stats;

pub(super) use receiver::{Seen, receive};
pub(super) use sender::{Sent, send};
pub(super) use stats::{Arrival, figures};
pub use stats::{Delays, LiveFigures};

use std::time::{Duration, Instant};

/// Bytes of a message: it fits into one datagram of any link in use.
pub(super) const MESSAGE_BYTES: usize = 1000;
/// Bits a second of messages.
pub(super) const BITS_PER_SECOND: u64 = 4_000_000;
/// Time between two messages.
pub(super) const INTERVAL: Duration =
    Duration::from_nanos(MESSAGE_BYTES as u64 * 8 * 1_000_000_000 / BITS_PER_SECOND);

/// Nanoseconds since a moment that sender and receiver agree on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Clock(Instant::now())
    }

    pub(super) fn now(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
