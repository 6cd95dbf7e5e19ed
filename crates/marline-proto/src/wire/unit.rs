//! Units of blocks and objects flows: UNIT, UNIT_REPAIR, UNIT_FATE, UNIT_CANCEL.

use alloc::vec::Vec;

use super::reader::Reader;
use super::{DecodeErrorKind, FlowId, frame_type, varint};

/// Most bytes of a unit.
pub const MAX_UNIT: u64 = 64 << 20;

/// Most source symbols of a unit with repair symbols.
pub const MAX_SOURCES: u64 = 65_535;

/// Up to this number of symbols in all the code is certain, and its symbols may be of any length.
pub const CERTAIN: u64 = 256;

/// The shortest symbol (bytes) of a unit with more than [`CERTAIN`] source symbols: rebuilding a
/// unit takes time in proportion to their number.
pub const LEAST_SYMBOL: u64 = 512;

/// UNIT: bytes of a unit.
///
/// ```text
/// 0x28 | flow (i) | unit (i) | size (i) | offset (i) | length (i) | data (..)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitData<'a> {
    /// The flow.
    pub flow: FlowId,
    /// Which unit, from 0.
    pub unit: u64,
    /// Bytes of the whole unit, 1 to [`MAX_UNIT`].
    pub size: u64,
    /// Where in the unit `data` belongs.
    pub offset: u64,
    /// At least one byte, and `offset` plus its length is at most `size`.
    pub data: &'a [u8],
}

impl<'a> UnitData<'a> {
    #[inline]
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeErrorKind> {
        let flow = FlowId(reader.varint("flow")?);
        let unit = reader.varint("unit")?;
        let size = reader.varint_up_to("size", MAX_UNIT)?;
        let offset = reader.varint("offset")?;
        let len = reader.varint("length")?;
        if len == 0 {
            return Err(DecodeErrorKind::EmptyPart);
        }
        let end = offset + len;
        if end > size {
            return Err(DecodeErrorKind::PartBeyondUnit { end, size });
        }
        Ok(Self {
            flow,
            unit,
            size,
            offset,
            data: reader.bytes(len, "data")?,
        })
    }

    fn fields(&self) -> [u64; 5] {
        [
            self.flow.0,
            self.unit,
            self.size,
            self.offset,
            self.data.len() as u64,
        ]
    }

    /// Appends the frame.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        debug_assert!(self.size <= MAX_UNIT, "unit too long");
        varint::encode_frame(frame_type::UNIT, self.fields(), out);
        out.extend_from_slice(self.data);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    #[inline]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields()) + self.data.len()
    }

    /// Most bytes of data that a frame of at most `room` bytes can carry; `None` if not even one
    /// fits.
    #[must_use]
    #[inline]
    pub fn data_room(
        flow: FlowId,
        unit: u64,
        size: u64,
        offset: u64,
        room: usize,
    ) -> Option<usize> {
        let room = room.checked_sub(varint::frame_len([flow.0, unit, size, offset]))?;
        varint::sized_room(room).filter(|room| *room > 0)
    }
}

/// UNIT_REPAIR: a repair symbol of a unit, by the block code of `marline-fec`.
///
/// ```text
/// 0x29 | flow (i) | unit (i) | size (i) | index (i) | length (i) | data (..)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitRepair<'a> {
    /// The flow.
    pub flow: FlowId,
    /// Which unit, from 0.
    pub unit: u64,
    /// Bytes of the whole unit, 1 to [`MAX_UNIT`].
    pub size: u64,
    /// Which repair symbol, from 0.
    pub index: u16,
    /// The symbol; its length is that of all symbols of the unit, and says with `size` how many
    /// source symbols there are: at most [`MAX_SOURCES`].
    pub data: &'a [u8],
}

impl<'a> UnitRepair<'a> {
    #[inline]
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeErrorKind> {
        let flow = FlowId(reader.varint("flow")?);
        let unit = reader.varint("unit")?;
        let size = reader.varint_up_to("size", MAX_UNIT)?;
        let index = reader.varint_up_to("index", u64::from(u16::MAX))? as u16;
        let len = reader.varint("length")?;
        if len == 0 || size == 0 {
            return Err(DecodeErrorKind::EmptyPart);
        }
        let symbols = size.div_ceil(len);
        if symbols > MAX_SOURCES {
            return Err(DecodeErrorKind::TooLarge {
                field: "number of symbols",
                value: symbols,
                max: MAX_SOURCES,
            });
        }
        if symbols > CERTAIN && len < LEAST_SYMBOL {
            return Err(DecodeErrorKind::ShortSymbol {
                len,
                least: LEAST_SYMBOL,
            });
        }
        Ok(Self {
            flow,
            unit,
            size,
            index,
            data: reader.bytes(len, "data")?,
        })
    }

    fn fields(&self) -> [u64; 5] {
        [
            self.flow.0,
            self.unit,
            self.size,
            self.index.into(),
            self.data.len() as u64,
        ]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::UNIT_REPAIR, self.fields(), out);
        out.extend_from_slice(self.data);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        Self::len_with(self.flow, self.unit, self.size, self.index, self.data.len())
    }

    /// Bytes of a frame with a symbol of `len` bytes.
    #[must_use]
    pub fn len_with(flow: FlowId, unit: u64, size: u64, index: u16, len: usize) -> usize {
        varint::frame_len([flow.0, unit, size, index.into(), len as u64]) + len
    }
}

/// What the receiver of a unit says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Whole by its deadline, or without one: when, by the clock of ACK (microseconds).
    OnTime(u64),
    /// Whole after its deadline: when, by the clock of ACK (microseconds).
    Late(u64),
    /// Not whole, and given up as UNIT_CANCEL asked.
    GivenUp,
    /// Not wanted by the receiver's application, with its code.
    Refused(u64),
    /// Not the end: as many symbols as the unit has came, and they do not suffice.
    Short,
}

/// UNIT_FATE: the receiver of a unit says what became of it.
///
/// ```text
/// 0x2a | flow (i) | unit (i) | fate (i) | value (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitFate {
    /// The flow.
    pub flow: FlowId,
    /// Which unit.
    pub unit: u64,
    /// What became of it.
    pub verdict: Verdict,
}

impl UnitFate {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        let flow = FlowId(reader.varint("flow")?);
        let unit = reader.varint("unit")?;
        let fate = reader.varint("fate")?;
        let value = reader.varint("value")?;
        let verdict = match (fate, value) {
            (0, at) => Verdict::OnTime(at),
            (1, at) => Verdict::Late(at),
            (2, 0) => Verdict::GivenUp,
            (3, code) => Verdict::Refused(code),
            (4, 0) => Verdict::Short,
            (2 | 4, value) => {
                let field = "value";
                return Err(DecodeErrorKind::UnknownValue { field, value });
            }
            (value, _) => {
                let field = "fate";
                return Err(DecodeErrorKind::UnknownValue { field, value });
            }
        };
        Ok(Self {
            flow,
            unit,
            verdict,
        })
    }

    fn fields(&self) -> [u64; 4] {
        let (fate, value) = match self.verdict {
            Verdict::OnTime(at) => (0, at),
            Verdict::Late(at) => (1, at),
            Verdict::GivenUp => (2, 0),
            Verdict::Refused(code) => (3, code),
            Verdict::Short => (4, 0),
        };
        [self.flow.0, self.unit, fate, value]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::UNIT_FATE, self.fields(), out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields())
    }
}

/// UNIT_CANCEL: the sender of a unit gives it up.
///
/// ```text
/// 0x2b | flow (i) | unit (i) | size (i) | reason (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitCancel {
    /// The flow.
    pub flow: FlowId,
    /// Which unit.
    pub unit: u64,
    /// Its size if any of it was sent, for it counts against the credit then; else 0.
    pub size: u64,
    /// The application's code; `None` if its deadline is over.
    pub code: Option<u64>,
}

impl UnitCancel {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        Ok(Self {
            flow: FlowId(reader.varint("flow")?),
            unit: reader.varint("unit")?,
            size: reader.varint_up_to("size", MAX_UNIT)?,
            code: reader.varint("reason")?.checked_sub(1),
        })
    }

    fn fields(&self) -> [u64; 4] {
        let reason = self.code.map_or(0, |code| code.saturating_add(1));
        [self.flow.0, self.unit, self.size, reason.min(varint::MAX)]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::UNIT_CANCEL, self.fields(), out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields())
    }
}
