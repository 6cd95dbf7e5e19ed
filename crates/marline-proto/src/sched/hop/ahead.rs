//! What leaves before a block that is offered.

use alloc::collections::VecDeque;

/// Most blocks that are kept apart; those that are written then count as one with the last.
const MOST: usize = 64;

/// Blocks that were taken and have not begun, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    /// Number and packets.
    blocks: VecDeque<(u64, u32)>,
}

impl Ahead {
    /// A block of this number of packets was taken.
    pub(super) fn write(&mut self, id: u64, packets: u32) {
        let is_full = self.blocks.len() >= MOST;
        match self.blocks.back_mut() {
            Some(last) if is_full => *last = (id, last.1.saturating_add(packets)),
            _ => self.blocks.push_back((id, packets)),
        }
    }

    /// The block begins, and those before it have begun.
    pub(super) fn begin(&mut self, id: u64) {
        self.blocks.retain(|block| block.0 > id);
    }

    /// The block never begins.
    pub(super) fn forget(&mut self, id: u64) {
        self.blocks.retain(|block| block.0 != id);
    }

    /// Packets of them all.
    pub(super) fn packets(&self) -> u32 {
        let packets = self.blocks.iter().map(|block| block.1);
        packets.fold(0, u32::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_have_begun_or_never_will_are_not_ahead() {
        let mut ahead = Ahead::default();
        for id in 0..4 {
            ahead.write(id, 10);
        }
        assert_eq!(ahead.packets(), 40);
        ahead.begin(1);
        assert_eq!(ahead.packets(), 20);
        ahead.forget(2);
        assert_eq!(ahead.packets(), 10);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_nothing_is_lost_of_the_sum() {
        let mut ahead = Ahead::default();
        for id in 0..1_000 {
            ahead.write(id, 2);
        }
        assert_eq!((ahead.blocks.len(), ahead.packets()), (MOST, 2_000));
        ahead.begin(998);
        assert!(ahead.packets() > 0);
        ahead.begin(999);
        assert_eq!(ahead.packets(), 0);
    }
}
