//! The repair symbols of one unit at its sender.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;
use marline_fec::block::{Encoder, Shape};

use crate::ranges::RangeSet;

/// Symbols that are encoded together, because the unit is read once for all of them.
const BATCH: u16 = 8;

/// Which repair symbols were emitted, and what became of them.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// They have the indices below.
    pub(super) emitted: u16,
    acked: RangeSet,
    /// Those that arrived, and those that are not counted on any more, some of which may still
    /// arrive.
    landed: RangeSet,
    /// Encoded and perhaps not sent yet, by index.
    encoded: VecDeque<(u16, Vec<u8>)>,
}

impl Repairs {
    pub(super) fn acked(&self) -> u32 {
        self.acked.total() as u32
    }

    pub(super) fn is_acked(&self, index: u16) -> bool {
        self.acked.contains(u64::from(index))
    }

    /// Whether that was new.
    pub(super) fn on_acked(&mut self, index: u16) -> bool {
        self.on_lost(index);
        let index = u64::from(index);
        self.acked.insert(index..index + 1) > 0
    }

    /// It is not counted on any more.
    pub(super) fn on_lost(&mut self, index: u16) {
        let index = u64::from(index);
        self.landed.insert(index..index + 1);
    }

    /// Emitted, and of which nothing is known yet.
    pub(super) fn open(&self) -> u32 {
        u32::from(self.emitted).saturating_sub(self.landed.total() as u32)
    }

    /// Encodes a symbol, and with it those that follow and were emitted, unless that was done.
    pub(super) fn encode(&mut self, shape: Shape, unit: &Bytes, index: u16) {
        if self.get(index).is_some() {
            return;
        }
        let Ok(encoder) = Encoder::new(shape, unit) else {
            debug_assert!(false, "the shape is the unit's");
            return;
        };
        // What was encoded before and is still here is of symbols that were dropped.
        self.encoded.clear();
        let count = self.emitted.saturating_sub(index).clamp(1, BATCH);
        let mut symbols = alloc::vec![Vec::new(); usize::from(count)];
        encoder.repairs(index, &mut symbols);
        self.encoded.extend((index..).zip(symbols));
    }

    /// The bytes of an encoded symbol.
    pub(super) fn get(&self, index: u16) -> Option<&[u8]> {
        let found = self.encoded.iter().find(|(i, _)| *i == index)?;
        Some(&found.1)
    }

    /// Frees what was encoded of the symbol that left.
    pub(super) fn on_left(&mut self, index: u16) {
        self.encoded.retain(|(i, _)| *i != index);
    }
}
