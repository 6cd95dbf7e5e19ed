//! Messages of a packets flow: PACKET, PACKET_PART, FORWARD, FINISH.

use alloc::vec::Vec;

use super::reader::Reader;
use super::{DecodeErrorKind, FlowId, frame_type, varint};

/// Most bytes of a message.
pub const MAX_MESSAGE: usize = 65_535;

/// PACKET: a whole message.
///
/// ```text
/// 0x0a | flow (i) | sequence (i) | length (i) | data (..)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The flow.
    pub flow: FlowId,
    /// Which message, from 0.
    pub sequence: u64,
    /// The message: at most [`MAX_MESSAGE`] bytes, may be empty.
    pub data: &'a [u8],
}

impl<'a> Packet<'a> {
    #[inline]
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeErrorKind> {
        let flow = FlowId(reader.varint("flow")?);
        let sequence = reader.varint("sequence")?;
        let len = reader.varint_up_to("length", MAX_MESSAGE as u64)?;
        Ok(Self {
            flow,
            sequence,
            data: reader.bytes(len, "data")?,
        })
    }

    /// Appends the frame.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        debug_assert!(self.data.len() <= MAX_MESSAGE, "message too long");
        varint::encode_frame(
            frame_type::PACKET,
            [self.flow.0, self.sequence, self.data.len() as u64],
            out,
        );
        out.extend_from_slice(self.data);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    #[inline]
    pub fn encoded_len(&self) -> usize {
        Self::overhead(self.flow, self.sequence, self.data.len()) + self.data.len()
    }

    /// Bytes of the frame besides its data, for a message of `len` bytes.
    #[must_use]
    #[inline]
    pub fn overhead(flow: FlowId, sequence: u64, len: usize) -> usize {
        varint::frame_len([flow.0, sequence, len as u64])
    }

    /// Longest message that a frame of at most `room` bytes can carry; `None` if not even an
    /// empty one fits.
    #[must_use]
    #[inline]
    pub fn data_room(flow: FlowId, sequence: u64, room: usize) -> Option<usize> {
        let room = room.checked_sub(varint::frame_len([flow.0, sequence]))?;
        Some(varint::sized_room(room)?.min(MAX_MESSAGE))
    }
}

/// PACKET_PART: a part of a message that is too long for one datagram.
///
/// ```text
/// 0x0b | flow (i) | sequence (i) | offset (i) | total (i) | length (i) | data (..)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketPart<'a> {
    /// The flow.
    pub flow: FlowId,
    /// Which message, from 0.
    pub sequence: u64,
    /// Where in the message `data` belongs.
    pub offset: u64,
    /// Bytes of the whole message, at most [`MAX_MESSAGE`].
    pub total: u64,
    /// The part: at least one byte, and `offset` plus its length is at most `total`.
    pub data: &'a [u8],
}

impl<'a> PacketPart<'a> {
    #[inline]
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeErrorKind> {
        let flow = FlowId(reader.varint("flow")?);
        let sequence = reader.varint("sequence")?;
        let offset = reader.varint("offset")?;
        let total = reader.varint_up_to("total", MAX_MESSAGE as u64)?;
        let len = reader.varint("length")?;
        if len == 0 {
            return Err(DecodeErrorKind::EmptyPart);
        }
        let end = offset + len;
        if end > total {
            return Err(DecodeErrorKind::PartBeyondMessage { end, total });
        }
        Ok(Self {
            flow,
            sequence,
            offset,
            total,
            data: reader.bytes(len, "data")?,
        })
    }

    /// Appends the frame.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        debug_assert!(
            !self.data.is_empty()
                && self.offset + self.data.len() as u64 <= self.total
                && self.total <= MAX_MESSAGE as u64,
            "part {} + {} of {}",
            self.offset,
            self.data.len(),
            self.total
        );
        varint::encode_frame(
            frame_type::PACKET_PART,
            [
                self.flow.0,
                self.sequence,
                self.offset,
                self.total,
                self.data.len() as u64,
            ],
            out,
        );
        out.extend_from_slice(self.data);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    #[inline]
    pub fn encoded_len(&self) -> usize {
        let len = self.data.len();
        Self::overhead(self.flow, self.sequence, self.offset, self.total, len) + len
    }

    /// Bytes of the frame besides its data, for a part of `len` bytes.
    #[must_use]
    #[inline]
    pub fn overhead(flow: FlowId, sequence: u64, offset: u64, total: u64, len: usize) -> usize {
        varint::frame_len([flow.0, sequence, offset, total, len as u64])
    }

    /// Most bytes of the message, from `offset` on, that a frame of at most `room` bytes can
    /// carry; `None` if not even one byte fits or is left.
    #[must_use]
    #[inline]
    pub fn data_room(
        flow: FlowId,
        sequence: u64,
        offset: u64,
        total: u64,
        room: usize,
    ) -> Option<usize> {
        let room = room.checked_sub(varint::frame_len([flow.0, sequence, offset, total]))?;
        let left = usize::try_from(total.checked_sub(offset)?).ok()?;
        let len = varint::sized_room(room)?.min(left);
        (len > 0).then_some(len)
    }
}

/// FORWARD: messages below `sequence` that have not arrived will not come any more.
///
/// ```text
/// 0x0c | flow (i) | sequence (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The flow.
    pub flow: FlowId,
    /// The first message that may still come.
    pub sequence: u64,
}

impl Forward {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        Ok(Self {
            flow: FlowId(reader.varint("flow")?),
            sequence: reader.varint("sequence")?,
        })
    }

    fn fields(&self) -> [u64; 2] {
        [self.flow.0, self.sequence]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::FORWARD, self.fields(), out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields())
    }
}

/// FLOW_REPORT: how the messages of a packets flow fared at their receiver, all in all.
///
/// ```text
/// 0x0e | flow (i) | missed (i) | late (i) | duplicates (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// The flow.
    pub flow: FlowId,
    /// Messages that the receiver gave up, or dropped because they were not read.
    pub missed: u64,
    /// Of those, messages that came all the same, too late.
    pub late: u64,
    /// Arrivals of messages that had arrived.
    pub duplicates: u64,
}

impl FlowReport {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        Ok(Self {
            flow: FlowId(reader.varint("flow")?),
            missed: reader.varint("missed")?,
            late: reader.varint("late")?,
            duplicates: reader.varint("duplicates")?,
        })
    }

    fn fields(&self) -> [u64; 4] {
        [self.flow.0, self.missed, self.late, self.duplicates]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::FLOW_REPORT, self.fields(), out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields())
    }
}

/// FINISH: a packets flow ends.
///
/// ```text
/// 0x0d | flow (i) | sequence (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finish {
    /// The flow.
    pub flow: FlowId,
    /// Messages ever sent on it: one more than the last one's sequence.
    pub sequence: u64,
}

impl Finish {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        Ok(Self {
            flow: FlowId(reader.varint("flow")?),
            sequence: reader.varint("sequence")?,
        })
    }

    fn fields(&self) -> [u64; 2] {
        [self.flow.0, self.sequence]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::FINISH, self.fields(), out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields())
    }
}
