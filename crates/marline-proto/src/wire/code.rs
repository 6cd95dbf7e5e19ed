//! A coded flow: SYMBOL, REPAIR, CODE_STATUS.

use alloc::vec::Vec;

use super::reader::Reader;
use super::{DecodeErrorKind, FlowId, MAX_MESSAGE, frame_type, varint};

/// Most source symbols that a repair symbol combines.
pub const MAX_CODE_WINDOW: u64 = 1024;
/// Most bytes of a source symbol.
pub const MAX_CODE_SYMBOL: u64 = 65_535;
/// Bytes of a source symbol's length, which is coded with it.
pub const CODED_LENGTH: usize = 2;

/// SYMBOL: a source symbol of a coded flow.
///
/// ```text
/// 0x20 | flow (i) | symbol (i) | length (i) | content (..)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceSymbol<'a> {
    /// The flow.
    pub flow: FlowId,
    /// Its number in the flow, from 0 in the order in which symbols first leave.
    pub symbol: u64,
    /// What the code works on: the bytes of a [`Content`], at most [`MAX_CODE_SYMBOL`].
    pub content: &'a [u8],
}

impl<'a> SourceSymbol<'a> {
    #[inline]
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeErrorKind> {
        let flow = FlowId(reader.varint("flow")?);
        let symbol = reader.varint("symbol")?;
        let len = reader.varint_up_to("length", MAX_CODE_SYMBOL)?;
        let content = reader.bytes(len, "content")?;
        Content::decode(content)?;
        Ok(Self {
            flow,
            symbol,
            content,
        })
    }

    /// Appends the frame.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(
            frame_type::SYMBOL,
            [self.flow.0, self.symbol, self.content.len() as u64],
            out,
        );
        out.extend_from_slice(self.content);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    #[inline]
    pub fn encoded_len(&self) -> usize {
        let len = self.content.len();
        varint::frame_len([self.flow.0, self.symbol, len as u64]) + len
    }

    /// Appends the frame with this content, which is the last thing in it.
    #[inline]
    pub fn encode_content(flow: FlowId, symbol: u64, content: &Content<'_>, out: &mut Vec<u8>) {
        let len = content.encoded_len() as u64;
        debug_assert!(len <= MAX_CODE_SYMBOL, "too long");
        varint::encode_frame(frame_type::SYMBOL, [flow.0, symbol, len], out);
        content.encode(out);
    }

    /// Longest content that a frame of at most `room` bytes can carry; `None` if not even an empty
    /// one fits.
    #[must_use]
    #[inline]
    pub fn content_room(flow: FlowId, symbol: u64, room: usize) -> Option<usize> {
        let room = room.checked_sub(varint::frame_len([flow.0, symbol]))?;
        Some(varint::sized_room(room)?.min(MAX_CODE_SYMBOL as usize))
    }
}

/// What a source symbol brings of its flow: a STREAM, PACKET or PACKET_PART frame without the flow
/// and the length, which the symbol knows.
///
/// ```text
/// 0x08 (0x09) | offset (i) | data (..)
/// 0x0a | sequence (i) | data (..)
/// 0x0b | sequence (i) | offset (i) | total (i) | data (..)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// Bytes of a stream.
    Stream {
        /// Where in the stream `data` belongs.
        offset: u64,
        /// The stream ends after `data`.
        fin: bool,
        /// The bytes; may be none.
        data: &'a [u8],
    },
    /// A whole message.
    Packet {
        /// Which message.
        sequence: u64,
        /// The message.
        data: &'a [u8],
    },
    /// A part of a message.
    Part {
        /// Which message.
        sequence: u64,
        /// Where in the message `data` belongs.
        offset: u64,
        /// Bytes of the whole message.
        total: u64,
        /// The part.
        data: &'a [u8],
    },
}

impl<'a> Content<'a> {
    /// Reads a symbol's content.
    ///
    /// # Errors
    /// What would be wrong with the frame of which it is the rest.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeErrorKind> {
        let mut reader = Reader { rest: bytes };
        Ok(match reader.varint("content type")? {
            kind @ (frame_type::STREAM | frame_type::STREAM_FIN) => {
                let offset = reader.varint("offset")?;
                let (data, max) = (reader.rest, varint::MAX);
                if data.len() as u64 > max - offset {
                    return Err(DecodeErrorKind::TooLarge {
                        field: "offset plus length",
                        value: offset + data.len() as u64,
                        max,
                    });
                }
                let fin = kind == frame_type::STREAM_FIN;
                Self::Stream { offset, fin, data }
            }
            frame_type::PACKET => {
                let sequence = reader.varint("sequence")?;
                let data = reader.rest;
                Self::Packet { sequence, data }
            }
            frame_type::PACKET_PART => {
                let sequence = reader.varint("sequence")?;
                let offset = reader.varint("offset")?;
                let total = reader.varint_up_to("total", MAX_MESSAGE as u64)?;
                let data = reader.rest;
                if data.is_empty() {
                    return Err(DecodeErrorKind::EmptyPart);
                }
                let end = offset + data.len() as u64;
                if end > total {
                    return Err(DecodeErrorKind::PartBeyondMessage { end, total });
                }
                Self::Part {
                    sequence,
                    offset,
                    total,
                    data,
                }
            }
            value => {
                return Err(DecodeErrorKind::UnknownValue {
                    field: "content type",
                    value,
                });
            }
        })
    }

    /// The bytes that it carries of the stream or the message.
    #[must_use]
    pub const fn data(&self) -> &'a [u8] {
        match self {
            Self::Stream { data, .. } | Self::Packet { data, .. } | Self::Part { data, .. } => data,
        }
    }

    /// Appends the content.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Stream { offset, fin, .. } => {
                let frame = if fin {
                    frame_type::STREAM_FIN
                } else {
                    frame_type::STREAM
                };
                varint::encode_frame(frame, [offset], out);
            }
            Self::Packet { sequence, .. } => {
                varint::encode_frame(frame_type::PACKET, [sequence], out);
            }
            Self::Part {
                sequence,
                offset,
                total,
                ..
            } => varint::encode_frame(frame_type::PACKET_PART, [sequence, offset, total], out),
        }
        out.extend_from_slice(self.data());
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    #[inline]
    pub fn encoded_len(&self) -> usize {
        let fields = match *self {
            Self::Stream { offset, .. } => varint::frame_len([offset]),
            Self::Packet { sequence, .. } => varint::frame_len([sequence]),
            Self::Part {
                sequence,
                offset,
                total,
                ..
            } => varint::frame_len([sequence, offset, total]),
        };
        fields + self.data().len()
    }
}

/// REPAIR: a combination of consecutive source symbols of a coded flow.
///
/// ```text
/// 0x21 | flow (i) | first (i) | count (i) | key (i) | length (i) | payload (..)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairSymbol<'a> {
    /// The flow.
    pub flow: FlowId,
    /// Number of the oldest source symbol in it; `first` plus `count` is at most [`varint::MAX`].
    pub first: u64,
    /// How many consecutive source symbols are in it, 1 to [`MAX_CODE_WINDOW`].
    pub count: u16,
    /// What their coefficients follow from.
    pub key: u16,
    /// The combination: at least [`CODED_LENGTH`] bytes.
    pub payload: &'a [u8],
}

impl<'a> RepairSymbol<'a> {
    #[inline]
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeErrorKind> {
        let flow = FlowId(reader.varint("flow")?);
        let first = reader.varint("first")?;
        let count = reader.varint_up_to("count", MAX_CODE_WINDOW)?;
        let key = reader.varint_up_to("key", u64::from(u16::MAX))?;
        let len = reader.varint_up_to("length", MAX_CODE_SYMBOL + CODED_LENGTH as u64)?;
        let payload = reader.bytes(len, "payload")?;
        if count == 0 || payload.len() < CODED_LENGTH {
            return Err(DecodeErrorKind::EmptyRepair);
        }
        if count > varint::MAX - first {
            return Err(DecodeErrorKind::TooLarge {
                field: "first plus count",
                value: first + count,
                max: varint::MAX,
            });
        }
        Ok(Self {
            flow,
            first,
            count: count as u16,
            key: key as u16,
            payload,
        })
    }

    /// Bytes that such a frame with this much payload has at most, whatever its count and key.
    #[must_use]
    pub fn most_len(flow: FlowId, first: u64, payload: usize) -> usize {
        let key = u16::MAX.into();
        varint::frame_len([flow.0, first, MAX_CODE_WINDOW, key, payload as u64]) + payload
    }

    fn fields(&self) -> [u64; 5] {
        let len = self.payload.len() as u64;
        [
            self.flow.0,
            self.first,
            self.count.into(),
            self.key.into(),
            len,
        ]
    }

    /// Appends the frame.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::REPAIR, self.fields(), out);
        out.extend_from_slice(self.payload);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    #[inline]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields()) + self.payload.len()
    }
}

/// CODE_STATUS: what the receiver of a coded flow has and needs.
///
/// ```text
/// 0x22 | flow (i) | next (i) | equations (i) | repairs (i) | recovered (i)
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeStatus {
    /// The flow.
    pub flow: FlowId,
    /// The oldest source symbol that is missing, or the next that may come: all before it arrived,
    /// were recovered or were given up by the sender.
    pub next: u64,
    /// Independent equations about missing symbols that the receiver holds, at most
    /// [`MAX_CODE_WINDOW`].
    pub equations: u64,
    /// Repair symbols that ever arrived.
    pub repairs: u64,
    /// Source symbols that were recovered before they arrived.
    pub recovered: u64,
}

impl CodeStatus {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        Ok(Self {
            flow: FlowId(reader.varint("flow")?),
            next: reader.varint("next")?,
            equations: reader.varint_up_to("equations", MAX_CODE_WINDOW)?,
            repairs: reader.varint("repairs")?,
            recovered: reader.varint("recovered")?,
        })
    }

    fn fields(&self) -> [u64; 5] {
        [
            self.flow.0,
            self.next,
            self.equations,
            self.repairs,
            self.recovered,
        ]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::CODE_STATUS, self.fields(), out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields())
    }
}
