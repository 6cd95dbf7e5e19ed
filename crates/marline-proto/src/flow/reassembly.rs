//! A message or a unit at its receiver, until it is whole.

use alloc::vec;
use alloc::vec::Vec;

use crate::ranges::RangeSet;

/// Bytes of its size for each range that may have arrived, and ranges that always may: no sender
/// cuts smaller pieces (a datagram has 1200 bytes, RFC 9000 §14), and a range takes memory of its
/// own.
const BYTES_PER_PIECE: u64 = 256;
const FEW_PIECES: u64 = 64;

/// It came in more pieces than an honest sender makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragments;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Reassembly {
    data: Vec<u8>,
    have: RangeSet,
}

impl Reassembly {
    /// Of `size` bytes; none have arrived.
    pub(super) fn new(size: u64) -> Self {
        Self {
            data: vec![0; size as usize],
            have: RangeSet::default(),
        }
    }

    /// Bytes that it has when it is whole.
    pub(super) fn size(&self) -> u64 {
        self.data.len() as u64
    }

    /// Bytes that arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.have.total()
    }

    /// Ranges that arrived.
    pub(super) fn have(&self) -> &RangeSet {
        &self.have
    }

    /// All bytes; what has not arrived is 0.
    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// The first bytes, as far as they are here without a gap.
    pub(super) fn beginning(&self) -> &[u8] {
        let end = self.have.end_of(0).unwrap_or(0);
        &self.data[..end as usize]
    }

    /// Takes bytes that lie within it. Returns how many are new.
    pub(super) fn take(&mut self, offset: u64, data: &[u8]) -> Result<u64, Fragments> {
        let range = offset..offset + data.len() as u64;
        self.data[range.start as usize..range.end as usize].copy_from_slice(data);
        let new = self.have.insert(range);
        if self.have.len() as u64 > self.size() / BYTES_PER_PIECE + FEW_PIECES {
            return Err(Fragments);
        }
        Ok(new)
    }

    /// Everything, if it is whole; nothing is left here then.
    pub(super) fn whole(&mut self) -> Option<Vec<u8>> {
        let whole = self.have.covers(&(0..self.size()));
        whole.then(|| core::mem::take(&mut self.data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_any_order_make_it_whole_once() {
        let mut unit = Reassembly::new(6);
        assert_eq!(unit.take(3, b"def"), Ok(3));
        assert!(unit.beginning().is_empty() && unit.whole().is_none());
        assert_eq!(unit.take(2, b"cde"), Ok(1));
        assert_eq!(unit.take(0, b"ab"), Ok(2));
        assert_eq!((unit.beginning(), unit.arrived()), (&b"abcdef"[..], 6));
        assert_eq!(unit.whole(), Some(b"abcdef".to_vec()));
        // An empty one is whole as it is.
        assert_eq!(Reassembly::new(0).whole(), Some(Vec::new()));
    }

    #[test]
    fn crumbs_are_refused() {
        let mut unit = Reassembly::new(1_000);
        let taken = (0..100).map(|n| unit.take(2 * n, b"x"));
        // One for each 256 bytes, and 64.
        assert_eq!(taken.take_while(Result::is_ok).count(), 67);
    }
}
