//! The block code: a block of bytes is cut into *k* source symbols, and any *k* different symbols,
//! source or repair, bring it back.
//!
//! # The code
//!
//! The block is cut every [`Shape::symbol`] bytes; the last source symbol may be shorter and counts
//! as followed by zeros. Repair symbol i is the combination Σ cᵢⱼ · xⱼ of the source symbols
//! x₀ … x_{k−1}, with
//!
//! ```text
//!     cᵢⱼ = 1 / ((255 − i) + j)                  if k + i ≤ 255,
//!     cᵢⱼ = the j-th coefficient of the key i    otherwise,
//! ```
//!
//! where + is the field's, so exclusive or. The first kind is a Cauchy matrix: every square part of
//! it is invertible, so up to 256 symbols in all, *any k are enough*, always. Beyond, the code is a
//! dense random one with RFC 8681's [`coefficients`](crate::coefficients()): k are enough except
//! for a probability of about 0.4 %, k + 1 except for 0.002 %. A repair symbol does not depend on
//! how many others there are, so that a sender may go on making them.
//!
//! A dense random code takes k multiplications for each repair symbol, where a transform-based code
//! such as `reed-solomon-simd` takes log k. With few repair symbols the former is faster at both
//! ends together; see the benchmark `block`.
//!
//! ```
//! use marline_fec::block::{Decoder, Encoder, Shape};
//!
//! let block = b"any four of these symbols are enough";
//! let shape = Shape::new(block.len(), 10)?; // four source symbols, the last of six bytes
//! let encoder = Encoder::new(shape, block)?;
//! let mut decoder = Decoder::new(shape);
//! decoder.source(0, encoder.source(0).unwrap())?;
//! decoder.source(3, encoder.source(3).unwrap())?;
//! let mut symbol = Vec::new();
//! for index in [7, 2] {
//!     encoder.repair(index, &mut symbol);
//!     decoder.repair(index, &symbol)?;
//! }
//! assert_eq!(decoder.block(), Some(&block[..]));
//! # Ok::<(), marline_fec::block::Error>(())
//! ```

mod decoder;
mod encoder;

pub use decoder::Decoder;
pub use encoder::Encoder;

use core::fmt;
use core::ops::Range;

use crate::coefficients;
use crate::gf256::inv;

/// How a block is cut. Both ends must agree on it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shape {
    block: usize,
    symbol: usize,
}

/// A shape that no code has, or a symbol that does not fit its block's shape.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Error {
    /// A block or a symbol of no bytes.
    Empty,
    /// More source symbols than [`Shape::MAX_SOURCES`].
    TooMany {
        /// How many there would be.
        sources: usize,
    },
    /// There is no source symbol with this number.
    NoSuchSource {
        /// The number.
        number: usize,
        /// How many there are.
        sources: usize,
    },
    /// A symbol, or the block, has another length than the shape says.
    Length {
        /// Its length in bytes.
        len: usize,
        /// What it should be.
        expected: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "blocks and symbols have at least one byte"),
            Self::TooMany { sources } => {
                let limit = Shape::MAX_SOURCES;
                write!(f, "{sources} source symbols; at most {limit} are possible")
            }
            Self::NoSuchSource { number, sources } => {
                write!(f, "source symbol {number} of a block that has {sources}")
            }
            Self::Length { len, expected } => {
                write!(f, "{len} bytes where the block's shape has {expected}")
            }
        }
    }
}

impl core::error::Error for Error {}

impl Shape {
    /// The most source symbols of a block.
    pub const MAX_SOURCES: usize = 65_535;

    /// A block of `block` bytes in symbols of `symbol` bytes.
    pub fn new(block: usize, symbol: usize) -> Result<Self, Error> {
        if block == 0 || symbol == 0 {
            return Err(Error::Empty);
        }
        let shape = Self { block, symbol };
        match shape.sources() {
            0..=Self::MAX_SOURCES => Ok(shape),
            sources => Err(Error::TooMany { sources }),
        }
    }

    /// Bytes of the block.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Bytes of every symbol but the last source symbol, which may have fewer.
    pub fn symbol(&self) -> usize {
        self.symbol
    }

    /// How many source symbols there are: *k*, at least 1.
    pub fn sources(&self) -> usize {
        self.block.div_ceil(self.symbol)
    }

    /// How many repair symbols, from index 0 on, belong to the part of the code that never needs
    /// more than k symbols.
    pub fn certain_repairs(&self) -> usize {
        256_usize.saturating_sub(self.sources())
    }

    /// Which bytes of the block are source symbol `number`; `None` if there is none.
    fn range(&self, number: usize) -> Option<Range<usize>> {
        let start = number.checked_mul(self.symbol)?;
        let end = start.saturating_add(self.symbol).min(self.block);
        (start < self.block).then_some(start..end)
    }

    /// The coefficients of repair symbol `index`, as many as `row` is long.
    fn row(&self, index: u16, row: &mut [u8]) {
        if usize::from(index) < self.certain_repairs() {
            let x = 255 - index as u8;
            for (c, y) in row.iter_mut().zip(0..=255) {
                // Never 0: x is at least k, and y less.
                *c = inv(x ^ y);
            }
        } else {
            coefficients(index, row);
        }
    }
}
