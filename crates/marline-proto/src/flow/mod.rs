//! Flows: application conversations, each with a kind, a scheduler and a delivery order.
//!
//! A flow has two halves. The sending half holds what the application wrote until the peer has it,
//! and cuts it into [`Symbol`]s; the receiving half puts symbols together again.

use core::ops::Range;

use bytes::Bytes;
use marline_base::Instant;

mod buffer;
mod code_budget;
mod code_recv;
mod code_send;
mod due;
pub(crate) mod emission;
mod given_up;
pub(crate) mod grant;
mod packets_recv;
mod packets_send;
mod pieces;
mod queues;
mod reassembly;
mod recv;
pub(crate) mod refusal;
mod send;
pub(crate) mod shown;
mod stream_recv;
mod stream_send;
mod units;
mod write_rate;

pub(crate) use code_budget::Advance;
pub(crate) use code_recv::CodeRecv;
pub(crate) use code_send::{CodeSend, Flying, Form};
pub(crate) use due::Due;
pub(crate) use packets_recv::{Contradiction, PacketsRecv};
pub(crate) use packets_send::PacketsSend;
pub(crate) use pieces::Pieces;
pub(crate) use queues::{Assigned, Queues, Stake};
pub(crate) use recv::RecvHalf;
pub(crate) use send::SendHalf;
pub(crate) use stream_recv::{RecvError, StreamRecv};
pub(crate) use stream_send::StreamSend;
pub(crate) use units::{Limits, Settlement, UnitError, UnitsRecv, UnitsSend};
pub(crate) use write_rate::WriteRate;

pub use given_up::GivenUp;
pub use packets_send::SendError;
pub use stream_recv::Chunk;
pub use units::{BlockTerms, Fate, ObjectOptions, Received, UnitPiece};

/// A piece of a unit that travels in one datagram.
///
/// A stream is one unit, so `unit` is 0 and `offset` counts from its first byte. In a packets
/// flow `unit` is the message's sequence number and `offset` counts within the message. So it is in
/// flows of blocks and objects, whose repair symbols lie beyond the unit's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The unit that it belongs to.
    pub unit: u64,
    /// First byte, counted from the unit's first.
    pub offset: u64,
    /// Length (bytes); zero only for the end of a stream or an empty message.
    pub len: u32,
}

/// What an application wrote and the peer is not known to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// Number of the message, block or object.
    pub number: u64,
    /// The message or block, or a piece of the object.
    pub data: Bytes,
    /// When a message's lifetime began; when anything else was written.
    pub since: Instant,
}

impl Symbol {
    pub(crate) fn range(&self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.len)
    }

    /// Does it bring all that `other` brings? Of an empty symbol only the like of it does: what
    /// ends at the end of a stream may have been sent before the end was known.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let within = self.offset <= other.offset && other.range().end <= self.range().end;
        self.unit == other.unit && (self == other || (within && other.len > 0))
    }

    /// Parts the symbol after `len` bytes, if it is longer.
    pub(crate) fn split(&self, len: u32) -> Option<(Self, Self)> {
        (len < self.len).then(|| {
            (
                Self { len, ..*self },
                Self {
                    offset: self.offset + u64::from(len),
                    len: self.len - len,
                    ..*self
                },
            )
        })
    }
}
