//! Objects out of units, at the receiver.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::Bytes;

use super::error::UnitError;
use crate::ranges::RangeSet;
use crate::wire::{ObjectHeading, Piece};

/// A whole block, or a piece of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitPiece {
    /// Number of the block or object.
    pub number: u64,
    /// Where in the object the bytes belong; pieces of one object come in order, without gaps.
    pub offset: u64,
    /// The bytes.
    pub data: Bytes,
    /// The object's length, if its sender said so; a block is whole.
    pub total: Option<u64>,
    /// The object ends with this piece.
    pub last: bool,
    /// The block came after its deadline.
    pub late: bool,
}

/// A piece's bytes, and those of its unit.
type Held = (Bytes, u64);

#[derive(Debug, Default)]
struct Object {
    /// Where the next piece for the application begins.
    next: u64,
    /// Later pieces, by where they begin.
    held: BTreeMap<u64, Held>,
    total: Option<u64>,
    /// Where the object ends, once its last piece came.
    end: Option<u64>,
    /// The application does not want it, with its code.
    refused: Option<u64>,
}

/// What became of a unit that was whole.
#[derive(Debug)]
pub(super) enum Placed {
    /// It waits for earlier pieces.
    Held,
    /// These can be read, in order, with the bytes of their units.
    Pieces(Vec<(UnitPiece, u64)>),
    /// Nobody wants it, with the code for its sender.
    Unwanted(u64),
    /// The object is over; `is_new`: the application does not know that yet.
    Cancelled {
        code: u64,
        /// Bytes of the units that waited.
        dropped: Vec<u64>,
        is_new: bool,
    },
}

#[derive(Debug, Default)]
pub(super) struct Assembly {
    objects: BTreeMap<u64, Object>,
    /// Objects that are over.
    done: RangeSet,
}

impl Assembly {
    /// Takes a whole unit of `size` bytes with these bytes of the application's. At most `most`
    /// objects may be on their way at once.
    pub(super) fn place(
        &mut self,
        heading: &ObjectHeading,
        data: Bytes,
        size: u64,
        most: u64,
    ) -> Result<Placed, UnitError> {
        let id = heading.object;
        if self.done.contains(id) {
            return Ok(match heading.piece {
                Piece::Cancelled(code) => Placed::Cancelled {
                    code,
                    dropped: Vec::new(),
                    is_new: false,
                },
                _ => Placed::Unwanted(0),
            });
        }
        if let Piece::Cancelled(code) = heading.piece {
            let object = self.objects.remove(&id).unwrap_or_default();
            self.finish(id, most)?;
            return Ok(Placed::Cancelled {
                code,
                dropped: object.held.values().map(|(_, size)| *size).collect(),
                is_new: object.refused.is_none(),
            });
        }
        let object = self.objects.entry(id).or_default();
        if let Some(code) = object.refused {
            return Ok(Placed::Unwanted(code));
        }
        object.check(heading, data.len() as u64)?;
        object.total = object.total.or(heading.total);
        let end = heading.offset + data.len() as u64;
        if heading.piece == Piece::Last {
            object.end = Some(end);
        }
        object.held.insert(heading.offset, (data, size));
        let pieces = object.take_ready(id);
        let (is_over, waits) = (object.end == Some(object.next), pieces.is_empty());
        if is_over && !waits {
            self.objects.remove(&id);
            self.finish(id, most)?;
        } else if self.objects.len() as u64 > most {
            return Err(UnitError::Span);
        }
        Ok(if waits {
            Placed::Held
        } else {
            Placed::Pieces(pieces)
        })
    }

    fn finish(&mut self, id: u64, most: u64) -> Result<(), UnitError> {
        self.done.insert(id..id + 1);
        if self.done.len() as u64 > most {
            return Err(UnitError::Span);
        }
        Ok(())
    }

    /// The code with which the application refused the object, if it did and the object is not
    /// over.
    pub(super) fn refused(&self, id: u64) -> Option<u64> {
        self.objects.get(&id)?.refused
    }

    /// The application does not want the object. Returns the bytes of units that waited.
    pub(super) fn refuse(&mut self, id: u64, code: u64) -> Vec<u64> {
        if self.done.contains(id) {
            return Vec::new();
        }
        let object = self.objects.entry(id).or_default();
        object.refused.get_or_insert(code);
        let held = core::mem::take(&mut object.held);
        held.into_values().map(|(_, size)| size).collect()
    }

    /// Bytes of pieces that wait for earlier ones.
    pub(super) fn waiting(&self) -> u64 {
        let held = self.objects.values().flat_map(|o| o.held.values());
        held.map(|(data, _)| data.len() as u64).sum()
    }

    /// Forgets everything. Returns the bytes of units that waited.
    pub(super) fn clear(&mut self) -> Vec<u64> {
        let objects = core::mem::take(&mut self.objects);
        let held = objects.into_values().flat_map(|o| o.held.into_values());
        held.map(|(_, size)| size).collect()
    }
}

impl Object {
    /// Does a piece of `len` bytes fit the others?
    fn check(&self, heading: &ObjectHeading, len: u64) -> Result<(), UnitError> {
        let (start, end) = (heading.offset, heading.offset.saturating_add(len));
        let before = self.held.range(..=start).next_back();
        let after = self.held.range(start..).next();
        let overlaps = start < self.next
            || before.is_some_and(|(at, (data, _))| at + data.len() as u64 > start || *at == start)
            || after.is_some_and(|(at, _)| *at < end);
        let last = heading.piece == Piece::Last;
        let total = self.total.or(heading.total);
        let wrong_total = self
            .total
            .is_some_and(|t| heading.total.is_some_and(|h| h != t))
            || total.is_some_and(|t| end > t || (last && end != t));
        // Only the last piece may be empty.
        let wrong_end = (len == 0 && !last)
            || (last && (self.end.is_some() || after.is_some()))
            || self.end.is_some_and(|e| end > e);
        if overlaps || wrong_total || wrong_end {
            return Err(UnitError::Contradiction);
        }
        Ok(())
    }

    fn take_ready(&mut self, id: u64) -> Vec<(UnitPiece, u64)> {
        let mut pieces = Vec::new();
        while let Some((data, size)) = self.held.remove(&self.next) {
            let offset = self.next;
            self.next += data.len() as u64;
            let last = self.end == Some(self.next) && self.held.is_empty();
            let piece = UnitPiece {
                number: id,
                offset,
                data,
                total: self.total,
                last,
                late: false,
            };
            pieces.push((piece, size));
            if last {
                break;
            }
        }
        pieces
    }
}
