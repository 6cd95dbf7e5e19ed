//! What blocks are made of: their number, and bytes that follow from it.

use bytes::{BufMut, Bytes, BytesMut};
use marline_base::Rng;

/// Bytes of a block's number.
pub(super) const HEAD: usize = 8;

/// Makes blocks and knows them again.
#[derive(Debug, Clone)]
pub(super) struct Content {
    size: usize,
    /// Blocks are windows of this that begin at different places.
    bytes: Bytes,
}

impl Content {
    /// Blocks of `size` bytes, at least [`HEAD`].
    pub(super) fn new(seed: u64, size: usize) -> Self {
        let mut rng = Rng::new(seed).stream("blocks");
        let mut bytes = BytesMut::with_capacity(2 * size + 8);
        while bytes.len() < 2 * size {
            bytes.put_u64(rng.next_u64());
        }
        Content {
            size: size.max(HEAD),
            bytes: bytes.freeze(),
        }
    }

    fn body(&self, number: u64) -> &[u8] {
        let length = self.size - HEAD;
        let room = (self.bytes.len() - length).max(1) as u64;
        // Blocks that follow each other begin far apart.
        let start = (number.wrapping_mul(7_919) % room) as usize;
        &self.bytes[start..start + length]
    }

    /// The block of this number.
    pub(super) fn block(&self, number: u64) -> Bytes {
        let mut block = BytesMut::with_capacity(self.size);
        block.put_u64(number);
        block.put_slice(self.body(number));
        block.freeze()
    }

    /// The number of a block; `None` if it is none of ours.
    pub(super) fn number(&self, block: &[u8]) -> Option<u64> {
        let (head, body) = block.split_first_chunk::<HEAD>()?;
        let number = u64::from_be_bytes(*head);
        (body == self.body(number)).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_known_again_and_a_changed_one_is_not() {
        for size in [8, 9, 1_000, 110_000] {
            let content = Content::new(1, size);
            for number in [0, 1, 2, 100_000, u64::MAX] {
                let block = content.block(number);
                assert_eq!(block.len(), size);
                assert_eq!(content.number(&block), Some(number));
                let mut wrong = block.to_vec();
                wrong[size - 1] ^= 1;
                if size > HEAD {
                    assert_eq!(content.number(&wrong), None);
                }
                assert_eq!(content.number(&block[..size - 1]), None);
            }
            assert!(
                size <= HEAD || content.block(1)[HEAD..] != content.block(2)[HEAD..] || size == 9
            );
        }
    }
}
