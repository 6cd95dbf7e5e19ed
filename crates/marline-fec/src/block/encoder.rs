//! The sending side of the block code.

use alloc::vec;
use alloc::vec::Vec;

use super::{Error, Shape};
use crate::gf256::{self, Kernel};

/// Makes the symbols of one block.
#[derive(Clone, Copy, Debug)]
pub struct Encoder<'a> {
    kernel: &'static dyn Kernel,
    shape: Shape,
    block: &'a [u8],
}

impl<'a> Encoder<'a> {
    /// An encoder of `block`, which must be as long as `shape` says.
    pub fn new(shape: Shape, block: &'a [u8]) -> Result<Self, Error> {
        if block.len() != shape.block {
            return Err(Error::Length {
                len: block.len(),
                expected: shape.block,
            });
        }
        let kernel = gf256::best();
        Ok(Self {
            kernel,
            shape,
            block,
        })
    }

    /// Source symbol `number`; `None` if the block has fewer.
    pub fn source(&self, number: usize) -> Option<&'a [u8]> {
        self.shape.range(number).map(|range| &self.block[range])
    }

    /// Writes repair symbol `index` to `out`, in place of what is there.
    pub fn repair(&self, index: u16, out: &mut Vec<u8>) {
        let mut row = vec![0; self.shape.sources()];
        self.shape.row(index, &mut row);
        let sources = self.block.chunks(self.shape.symbol);
        let terms: Vec<(u8, &[u8])> = row.into_iter().zip(sources).collect();
        out.clear();
        out.resize(self.shape.symbol, 0);
        self.kernel.dot(out, &terms);
    }

    /// Writes the repair symbols from index `first` on to `out`, in place of what is there: in less
    /// time than one after the other, because the block is read fewer times.
    ///
    /// Indices go up to 65535; `out` beyond that becomes empty.
    pub fn repairs(&self, first: u16, out: &mut [Vec<u8>]) {
        let mut rows = Vec::with_capacity(out.len());
        for (index, symbol) in (first..=u16::MAX).zip(&mut *out) {
            let mut row = vec![0; self.shape.sources()];
            self.shape.row(index, &mut row);
            rows.push(row);
            symbol.clear();
            symbol.resize(self.shape.symbol, 0);
        }
        out[rows.len()..].iter_mut().for_each(Vec::clear);
        let sources: Vec<&[u8]> = self.block.chunks(self.shape.symbol).collect();
        let rows: Vec<&[u8]> = rows.iter().map(|row| &row[..]).collect();
        let mut dsts: Vec<&mut [u8]> = out.iter_mut().map(|symbol| &mut symbol[..]).collect();
        let made = rows.len();
        self.kernel.dots(&mut dsts[..made], &rows, &sources);
    }
}
