//! One unit at its receiver, until it is whole.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use marline_fec::block::{Decoder, Shape};

use super::error::UnitError;
use crate::flow::reassembly::Reassembly;

/// More repair symbols than a unit has source symbols are of no use; a few, because a random code
/// may be unlucky.
const SPARE: usize = 8;

#[derive(Debug)]
pub(super) struct Arriving {
    bytes: Reassembly,
    /// Length of its symbols, once a repair symbol showed it.
    shape: Option<Shape>,
    repairs: BTreeMap<u16, Vec<u8>>,
    /// Source symbols that repair symbols brought back, once it is whole.
    pub(super) repaired: u32,
}

/// What a symbol made of the unit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More is needed.
    Incomplete,
    /// As many symbols as it has arrived, and they do not suffice.
    Short,
    /// Here it is.
    Whole(Vec<u8>),
}

impl Arriving {
    /// A unit of `size` bytes of which nothing arrived.
    pub(super) fn new(size: u64) -> Self {
        Self {
            bytes: Reassembly::new(size),
            shape: None,
            repairs: BTreeMap::new(),
            repaired: 0,
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.bytes.size()
    }

    /// Bytes that arrived, those of repair symbols included.
    pub(super) fn arrived(&self) -> u64 {
        let repairs: usize = self.repairs.values().map(Vec::len).sum();
        self.bytes.arrived() + repairs as u64
    }

    /// The first bytes, as far as they are here without a gap.
    pub(super) fn beginning(&self) -> &[u8] {
        self.bytes.beginning()
    }

    /// Takes bytes of the unit, which lie within it.
    pub(super) fn take_data(&mut self, offset: u64, data: &[u8]) -> Result<Progress, UnitError> {
        let new = self.bytes.take(offset, data);
        match new.map_err(|_| UnitError::Fragments)? {
            0 => Ok(Progress::Incomplete),
            _ => Ok(self.solve()),
        }
    }

    /// Takes a repair symbol of a length that the code allows.
    pub(super) fn take_repair(&mut self, index: u16, data: &[u8]) -> Result<Progress, UnitError> {
        let shape = match self.shape {
            Some(shape) => shape,
            None => Shape::new(self.bytes.data().len(), data.len())
                .map_err(|_| UnitError::Contradiction)?,
        };
        if shape.symbol() != data.len() {
            return Err(UnitError::Contradiction);
        }
        self.shape = Some(shape);
        let enough = shape.sources() + SPARE;
        if self.repairs.contains_key(&index) || self.repairs.len() >= enough {
            return Ok(Progress::Incomplete);
        }
        self.repairs.insert(index, data.to_vec());
        Ok(self.solve())
    }

    /// Numbers of the source symbols that are here whole.
    fn sources(&self, shape: Shape) -> impl Iterator<Item = usize> + '_ {
        let (symbol, size) = (shape.symbol() as u64, self.size());
        self.bytes.have().iter_descending().flat_map(move |range| {
            let end = match range.end == size {
                true => size.div_ceil(symbol),
                false => range.end / symbol,
            };
            (range.start.div_ceil(symbol)..end).map(|number| number as usize)
        })
    }

    fn solve(&mut self) -> Progress {
        if let Some(unit) = self.bytes.whole() {
            return Progress::Whole(unit);
        }
        let Some(shape) = self.shape.filter(|_| !self.repairs.is_empty()) else {
            return Progress::Incomplete;
        };
        let sources = self.sources(shape).count();
        if sources + self.repairs.len() < shape.sources() {
            return Progress::Incomplete;
        }
        let mut decoder = Decoder::new(shape);
        let (symbol, data) = (shape.symbol(), self.bytes.data());
        for number in self.sources(shape) {
            let end = ((number + 1) * symbol).min(data.len());
            // Of that number and length, because `sources` counts by the same shape.
            let _ = decoder.source(number, &data[number * symbol..end]);
        }
        for (index, repair) in &self.repairs {
            let _ = decoder.repair(*index, repair);
        }
        match decoder.into_block() {
            Ok(unit) => {
                self.repaired = (shape.sources() - sources) as u32;
                Progress::Whole(unit)
            }
            Err(_) => Progress::Short,
        }
    }
}
