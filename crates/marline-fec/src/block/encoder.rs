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
}
