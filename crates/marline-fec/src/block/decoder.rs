//! The receiving side of the block code.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::{Error, Shape};
use crate::equations::Equations;
use crate::gf256::{self, Kernel};

/// Brings one block back.
///
/// It holds the block and at most as many repair symbols as source symbols are missing, and does
/// nothing but copying until there are k symbols. Then what is known is taken out of the repair
/// symbols, and a matrix of the lost symbols alone is inverted.
#[derive(Debug)]
pub struct Decoder {
    kernel: &'static dyn Kernel,
    shape: Shape,
    /// As far as source symbols came; what is missing before their end is zero.
    block: Vec<u8>,
    known: Vec<bool>,
    /// How many source symbols are not known.
    missing: usize,
    repairs: BTreeMap<u16, Vec<u8>>,
}

impl Decoder {
    /// A decoder that knows nothing of its block yet.
    pub fn new(shape: Shape) -> Self {
        Self {
            kernel: gf256::best(),
            shape,
            block: Vec::with_capacity(shape.block),
            known: vec![false; shape.sources()],
            missing: shape.sources(),
            repairs: BTreeMap::new(),
        }
    }

    /// Source symbol `number` arrived. Whether it was needed.
    pub fn source(&mut self, number: usize, symbol: &[u8]) -> Result<bool, Error> {
        let sources = self.shape.sources();
        let Some(range) = self.shape.range(number) else {
            return Err(Error::NoSuchSource { number, sources });
        };
        check_length(symbol, range.len())?;
        if self.known[number] {
            return Ok(false);
        }
        // Mostly they come in order, and need no zeros first.
        if self.block.len() <= range.start {
            self.block.resize(range.start, 0);
            self.block.extend_from_slice(symbol);
        } else {
            self.block[range].copy_from_slice(symbol);
        }
        self.known[number] = true;
        self.missing -= 1;
        self.solve();
        Ok(true)
    }

    /// Repair symbol `index` arrived. Whether it was needed.
    pub fn repair(&mut self, index: u16, symbol: &[u8]) -> Result<bool, Error> {
        check_length(symbol, self.shape.symbol)?;
        if self.missing == 0 || self.repairs.contains_key(&index) {
            return Ok(false);
        }
        self.repairs.insert(index, symbol.to_vec());
        self.solve();
        Ok(true)
    }

    /// How many symbols are needed still, at least: after this number of different ones the block
    /// is there, or, beyond 256 symbols in all, it is there most likely.
    pub fn needed(&self) -> usize {
        let lacking = self.missing.saturating_sub(self.repairs.len());
        if self.missing == 0 { 0 } else { lacking.max(1) }
    }

    /// The block, once it is whole.
    pub fn block(&self) -> Option<&[u8]> {
        (self.missing == 0).then_some(&self.block)
    }

    /// The block, if it is whole, or the decoder.
    pub fn into_block(self) -> Result<Vec<u8>, Self> {
        if self.missing == 0 {
            Ok(self.block)
        } else {
            Err(self)
        }
    }

    /// Recovers what is lost, if there are enough symbols.
    fn solve(&mut self) {
        if self.missing > self.repairs.len() {
            return;
        }
        self.block.resize(self.shape.block, 0);
        let lost: Vec<usize> = (0..self.known.len()).filter(|n| !self.known[*n]).collect();
        let mut equations = Equations::new(self.kernel);
        // The repair symbols that are used, less what is known.
        let mut used: Vec<(u16, Vec<u8>)> = Vec::with_capacity(lost.len());
        for index in self.repairs.keys() {
            let mut row = vec![0; self.known.len()];
            self.shape.row(*index, &mut row);
            let unknowns = lost.iter().map(|number| row[*number]).collect();
            if equations.insert(unknowns, used.len()) {
                used.push((*index, row));
            }
            if used.len() == lost.len() {
                break;
            }
        }
        if used.len() < lost.len() {
            // The random part of the code was unlucky: one more symbol.
            return;
        }
        // Those that are lost are all zero.
        let sources: Vec<&[u8]> = self.block.chunks(self.shape.symbol).collect();
        let (indices, rows): (Vec<u16>, Vec<Vec<u8>>) = used.into_iter().unzip();
        let taken = indices
            .iter()
            .filter_map(|index| self.repairs.remove(index));
        let mut rest: Vec<Vec<u8>> = taken.collect();
        let rows: Vec<&[u8]> = rows.iter().map(|row| &row[..]).collect();
        let mut dsts: Vec<&mut [u8]> = rest.iter_mut().map(|rest| &mut rest[..]).collect();
        self.kernel.dots(&mut dsts, &rows, &sources);
        for row in equations.rows() {
            let terms: Vec<(u8, &[u8])> = row
                .mixture()
                .map(|(slot, c)| (c, &rest[slot][..]))
                .collect();
            // Its place in the block is all zero, and so is what a short last symbol lacks.
            if let Some(range) = self.shape.range(lost[row.pivot]) {
                self.kernel.dot(&mut self.block[range], &terms);
            }
        }
        self.known.fill(true);
        self.missing = 0;
        self.repairs.clear();
    }
}

fn check_length(symbol: &[u8], expected: usize) -> Result<(), Error> {
    if symbol.len() == expected {
        Ok(())
    } else {
        Err(Error::Length {
            len: symbol.len(),
            expected,
        })
    }
}
