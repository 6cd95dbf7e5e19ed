//! The test kit: a world whose applications write patterns and check what they read.

mod inbox;
mod lab;
mod outbox;
mod tau;
mod trace;

pub(crate) use inbox::Inbox;
pub(crate) use lab::{Lab, ms, secs};
pub(crate) use outbox::{Messages, Outbox};
pub(crate) use tau::tau;

pub(crate) use trace::{Logged, Trace};

/// Byte `offset` of a stream, or of message number `tag`.
pub(crate) fn pattern(tag: u64, offset: u64) -> u8 {
    (offset ^ (offset >> 8) ^ (offset >> 16) ^ tag.wrapping_mul(0x9d)) as u8
}
