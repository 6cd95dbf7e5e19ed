//! Flow-control credit: MAX_DATA, MAX_FLOW_DATA, MAX_FLOWS. Limits are totals since the session's
//! start and never shrink; a smaller one than before is an old frame and means nothing. Bytes are
//! those of streams: messages take no credit.

use alloc::vec::Vec;

use super::reader::Reader;
use super::{DecodeErrorKind, FlowId, frame_type, varint};

/// Most flows that one side can ever open: half of the 2^62 numbers.
pub const MAX_FLOW_COUNT: u64 = 1 << 61;

/// MAX_DATA: bytes that the peer may send on all streams together.
///
/// ```text
/// 0x10 | max (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxData {
    /// Bytes since the session's start.
    pub max: u64,
}

impl MaxData {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        Ok(Self {
            max: reader.varint("max")?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::MAX_DATA, [self.max], out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len([self.max])
    }
}

/// MAX_FLOW_DATA: bytes that the peer may send on one stream.
///
/// ```text
/// 0x11 | flow (i) | max (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxFlowData {
    /// The flow; a stream.
    pub flow: FlowId,
    /// Bytes since the stream's start.
    pub max: u64,
}

impl MaxFlowData {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        Ok(Self {
            flow: FlowId(reader.varint("flow")?),
            max: reader.varint("max")?,
        })
    }

    fn fields(&self) -> [u64; 2] {
        [self.flow.0, self.max]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::MAX_FLOW_DATA, self.fields(), out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields())
    }
}

/// MAX_FLOWS: flows that the peer may open.
///
/// ```text
/// 0x12 | max (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxFlows {
    /// Flows since the session's start, closed ones included; at most [`MAX_FLOW_COUNT`].
    pub max: u64,
}

impl MaxFlows {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        Ok(Self {
            max: reader.varint_up_to("max", MAX_FLOW_COUNT)?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        debug_assert!(self.max <= MAX_FLOW_COUNT, "{} flows", self.max);
        varint::encode_frame(frame_type::MAX_FLOWS, [self.max], out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len([self.max])
    }
}
