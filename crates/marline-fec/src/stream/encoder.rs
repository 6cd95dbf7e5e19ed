//! The sending side: the window of what is not acknowledged yet, and combinations of it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::framed::{Framed, HEADER};
use super::{Limits, Repair};
use crate::coefficients::Successive;
use crate::gf256::{self, Kernel};

/// Makes repair symbols.
///
/// It keeps a copy of at most [`Limits::window`] source symbols, the latest of those that were not
/// released, and the buffers of those that left.
#[derive(Debug)]
pub struct Encoder {
    kernel: &'static dyn Kernel,
    limits: Limits,
    /// Number of the oldest symbol in the window.
    start: u64,
    window: VecDeque<Framed>,
    spare: Vec<Framed>,
    coefficients: Successive,
    key: u16,
}

/// A symbol exceeds what was agreed on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooLong {
    /// Its length in bytes.
    pub len: usize,
    /// The longest that may be.
    pub limit: u16,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { len, limit } = self;
        write!(f, "a symbol of {len} bytes exceeds the agreed {limit}")
    }
}

impl core::error::Error for TooLong {}

impl Encoder {
    /// An encoder whose first symbol will have the number `first`.
    pub fn new(first: u64, limits: Limits) -> Self {
        Self {
            kernel: gf256::best(),
            limits,
            start: first,
            window: VecDeque::new(),
            spare: Vec::new(),
            coefficients: Successive::default(),
            key: 0,
        }
    }

    /// Takes the next source symbol and returns its number.
    ///
    /// If the window is full its oldest symbol leaves: further repair symbols cannot bring it back.
    pub fn push(&mut self, symbol: &[u8]) -> Result<u64, TooLong> {
        if symbol.len() > self.limits.symbol.into() {
            return Err(TooLong {
                len: symbol.len(),
                limit: self.limits.symbol,
            });
        }
        if self.window.len() >= self.limits.clamped_window() {
            self.release_before(self.start + 1);
        }
        let mut framed = self.spare.pop().unwrap_or_default();
        framed.set(symbol);
        self.window.push_back(framed);
        Ok(self.window().end - 1)
    }

    /// Lets go of the symbols before `number`: they were acknowledged, or given up.
    pub fn release_before(&mut self, number: u64) {
        let gone = number
            .saturating_sub(self.start)
            .min(self.window.len() as u64);
        self.start += gone;
        for _ in 0..gone {
            self.spare.extend(self.window.pop_front());
        }
    }

    /// The numbers of the symbols that a repair symbol would combine now.
    pub fn window(&self) -> Range<u64> {
        self.start..self.start + self.window.len() as u64
    }

    /// Makes `key` the next repair symbol's key. Keys count upwards, from 0.
    pub fn set_key(&mut self, key: u16) {
        self.key = key;
    }

    /// Writes a repair symbol over the whole window to `out`, in place of what is there, and says
    /// which it is; `None` if the window is empty.
    pub fn repair(&mut self, out: &mut Vec<u8>) -> Option<Repair> {
        self.repair_of(self.window(), out)
    }

    /// The same over that part of the window which lies in `range`: what the receiver has already,
    /// or can decode without help, need not be in it.
    pub fn repair_of(&mut self, range: Range<u64>, out: &mut Vec<u8>) -> Option<Repair> {
        let window = self.window();
        let start = range.start.max(window.start);
        let end = range.end.min(window.end);
        if start >= end {
            return None;
        }
        let inside = (start - window.start) as usize..(end - window.start) as usize;
        let repair = Repair {
            start,
            count: inside.len() as u16,
            key: self.key,
        };
        let drawn = self.coefficients.get(repair.key, inside.len());
        let symbols = self.window.range(inside).map(Framed::frame);
        let terms: Vec<(u8, &[u8])> = drawn.iter().copied().zip(symbols).collect();
        let len = terms.iter().map(|(_, frame)| frame.len()).max();
        out.clear();
        out.resize(len.unwrap_or(HEADER), 0);
        self.kernel.dot(out, &terms);
        self.key = self.key.wrapping_add(1);
        Some(repair)
    }
}
