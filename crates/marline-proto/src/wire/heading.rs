//! What stands at the beginning of every unit, before the application's bytes, and is protected by
//! the unit's code with them.

use alloc::vec::Vec;

use super::reader::Reader;
use super::{DecodeErrorKind, varint};

/// The beginning of a block.
///
/// ```text
/// deadline_us (i)
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockHeading {
    /// When the block is late, by the clock of its receiver as ACK reports it (microseconds); 0 if
    /// the sender does not know that clock yet, or if the block is never late.
    pub deadline_us: u64,
}

impl BlockHeading {
    /// Reads the heading; returns it with its length.
    ///
    /// # Errors
    /// The bytes end within it.
    pub fn decode(unit: &[u8]) -> Result<(Self, usize), DecodeErrorKind> {
        let mut reader = Reader { rest: unit };
        let deadline_us = reader.varint("deadline_us")?;
        Ok((Self { deadline_us }, unit.len() - reader.rest.len()))
    }

    /// Appends the heading.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode(self.deadline_us, out);
    }
}

/// What a unit of an objects flow is of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes, and more will follow.
    More,
    /// Bytes, and the object ends with them.
    Last,
    /// No bytes: the object is cancelled, with the application's code.
    Cancelled(u64),
}

/// The beginning of a unit of an objects flow.
///
/// ```text
/// object (i) | offset (i) | total (i) | piece (i) | [ code (i) ]
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectHeading {
    /// Which object, from 0.
    pub object: u64,
    /// Where in the object the unit's bytes belong.
    pub offset: u64,
    /// Bytes of the whole object, if that is known.
    pub total: Option<u64>,
    /// What the unit is of it.
    pub piece: Piece,
}

impl ObjectHeading {
    /// Most bytes that a heading takes.
    pub const LONGEST: usize = 33;

    /// Reads the heading; returns it with its length.
    ///
    /// # Errors
    /// The bytes end within it, or a field has no meaning.
    pub fn decode(unit: &[u8]) -> Result<(Self, usize), DecodeErrorKind> {
        let mut reader = Reader { rest: unit };
        let object = reader.varint("object")?;
        let offset = reader.varint("offset")?;
        let total = reader.varint("total")?.checked_sub(1);
        let piece = match reader.varint("piece")? {
            0 => Piece::More,
            1 => Piece::Last,
            2 => Piece::Cancelled(reader.varint("code")?),
            value => {
                let field = "piece";
                return Err(DecodeErrorKind::UnknownValue { field, value });
            }
        };
        let heading = Self {
            object,
            offset,
            total,
            piece,
        };
        Ok((heading, unit.len() - reader.rest.len()))
    }

    /// Appends the heading.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode(self.object, out);
        varint::encode(self.offset, out);
        varint::encode(self.total.map_or(0, |total| total + 1), out);
        match self.piece {
            Piece::More => varint::encode(0, out),
            Piece::Last => varint::encode(1, out),
            Piece::Cancelled(code) => {
                varint::encode(2, out);
                varint::encode(code.min(varint::MAX), out);
            }
        }
    }
}
