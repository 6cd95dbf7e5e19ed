//! STREAM: bytes of a stream flow.

use alloc::vec::Vec;

use super::reader::Reader;
use super::{DecodeErrorKind, FlowId, frame_type, varint};

/// Bytes of a stream and, perhaps, its end.
///
/// ```text
/// 0x08 (0x09: the stream ends after data) | flow (i) | offset (i) | length (i) | data (..)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream<'a> {
    /// The flow.
    pub flow: FlowId,
    /// Where in the stream `data` belongs; `offset` plus its length is at most
    /// [`varint::MAX`].
    pub offset: u64,
    /// The stream ends after `data`.
    pub fin: bool,
    /// The bytes; may be none.
    pub data: &'a [u8],
}

impl<'a> Stream<'a> {
    #[inline]
    pub(super) fn decode(reader: &mut Reader<'a>, fin: bool) -> Result<Self, DecodeErrorKind> {
        let flow = FlowId(reader.varint("flow")?);
        let offset = reader.varint("offset")?;
        let len = reader.varint("length")?;
        let data = reader.bytes(len, "data")?;
        if len > varint::MAX - offset {
            return Err(DecodeErrorKind::TooLarge {
                field: "offset plus length",
                value: offset + len,
                max: varint::MAX,
            });
        }
        Ok(Self {
            flow,
            offset,
            fin,
            data,
        })
    }

    /// Appends the frame.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let frame = if self.fin {
            frame_type::STREAM_FIN
        } else {
            frame_type::STREAM
        };
        varint::encode_frame(
            frame,
            [self.flow.0, self.offset, self.data.len() as u64],
            out,
        );
        out.extend_from_slice(self.data);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    #[inline]
    pub fn encoded_len(&self) -> usize {
        Self::overhead(self.flow, self.offset, self.data.len()) + self.data.len()
    }

    /// Bytes of the frame besides its data, for `len` bytes of data.
    #[must_use]
    #[inline]
    pub fn overhead(flow: FlowId, offset: u64, len: usize) -> usize {
        varint::frame_len([flow.0, offset, len as u64])
    }

    /// Most bytes of data that a frame of at most `room` bytes can carry; `None` if not even an
    /// empty one fits.
    #[must_use]
    #[inline]
    pub fn data_room(flow: FlowId, offset: u64, room: usize) -> Option<usize> {
        varint::sized_room(room.checked_sub(varint::frame_len([flow.0, offset]))?)
    }
}
