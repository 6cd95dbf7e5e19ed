//! What one call of the kernel has brought.

use std::io::IoSliceMut;
use std::time::Instant;

use bytes::BytesMut;
use quinn_udp::{BATCH_SIZE, RecvMeta};

/// Longest message (bytes) that a call brings: several packets of one peer that the kernel has put
/// together (GRO) have no more.
const LONGEST: usize = 64 << 10;

/// Messages asked for where few have come lately: a call that asks for fewer costs less. A choice.
const FEW: usize = 4;

/// Packets that came by one call of the kernel, taken out one by one. Memory that no packet was
/// ever put into is never touched, so most of the 2 MiB that 32 messages may need are only
/// addresses.
pub(super) struct Batch {
    buffer: Box<[u8]>,
    /// Bytes for each message.
    slot: usize,
    metas: [RecvMeta; BATCH_SIZE],
    /// Messages that came, and the one that is next.
    count: usize,
    next: usize,
    /// Messages that are asked for.
    wanted: usize,
    /// What is left of the message before that.
    rest: BytesMut,
    /// When they came.
    at: Instant,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("count", &self.count)
            .field("next", &self.next)
            .field("rest", &self.rest.len())
            .finish_non_exhaustive()
    }
}

/// One packet, with where it came from and when.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) meta: RecvMeta,
    pub(super) at: Instant,
    pub(super) data: BytesMut,
}

impl Batch {
    /// For packets of at most `longest` bytes, up to `segments` in a message.
    pub(super) fn new(longest: usize, segments: usize) -> Self {
        let slot = (longest * segments.max(1)).min(LONGEST);
        Self {
            buffer: vec![0; slot * BATCH_SIZE].into(),
            slot,
            metas: [RecvMeta::default(); BATCH_SIZE],
            count: 0,
            next: 0,
            wanted: FEW.min(BATCH_SIZE),
            rest: BytesMut::new(),
            at: Instant::now(),
        }
    }

    /// Has `receive` fill it, which returns how many messages came. To be called when all packets
    /// have been taken out. True if more than asked for may wait.
    pub(super) fn fill<E>(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> Result<usize, E>,
    ) -> Result<bool, E> {
        let mut slots = self.buffer.chunks_mut(self.slot);
        let mut slots: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(slots.next().unwrap_or_default()));
        let wanted = self.wanted;
        self.count = 0;
        self.next = 0;
        self.count = receive(&mut slots[..wanted], &mut self.metas[..wanted])?;
        self.at = tokio::time::Instant::now().into_std();
        let full = self.count == wanted;
        self.wanted = match full {
            true => BATCH_SIZE,
            false => (2 * self.count).clamp(FEW.min(BATCH_SIZE), BATCH_SIZE),
        };
        Ok(full)
    }

    /// The messages that came last.
    pub(super) fn metas(&self) -> &[RecvMeta] {
        &self.metas[..self.count]
    }

    /// The next packet that came.
    pub(super) fn pop(&mut self) -> Option<Packet> {
        while self.rest.is_empty() {
            if self.next == self.count {
                return None;
            }
            let start = self.next * self.slot;
            let len = self.metas[self.next].len.min(self.slot);
            self.rest = BytesMut::from(&self.buffer[start..start + len]);
            self.next += 1;
        }
        let meta = self.metas[self.next - 1];
        // The last one takes the memory with it, which is cheaper than to share it.
        let data = match meta.stride {
            stride if stride > 0 && stride < self.rest.len() => self.rest.split_to(stride),
            _ => std::mem::take(&mut self.rest),
        };
        let at = self.at;
        Some(Packet { meta, at, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn filled(messages: &[(&[u8], usize)]) -> Batch {
        let mut batch = Batch::new(100, 4);
        let fill = |slots: &mut [IoSliceMut<'_>], metas: &mut [RecvMeta]| {
            for (index, (bytes, stride)) in messages.iter().enumerate() {
                slots[index][..bytes.len()].copy_from_slice(bytes);
                (metas[index].len, metas[index].stride) = (bytes.len(), *stride);
            }
            Ok::<_, Infallible>(messages.len())
        };
        batch.fill(fill).unwrap();
        batch
    }

    #[test]
    fn messages_are_cut_into_their_packets_in_order() {
        let mut batch = filled(&[(b"aabbc", 2), (b"", 0), (b"ddd", 3), (b"e", 0)]);
        let mut got = Vec::new();
        while let Some(packet) = batch.pop() {
            got.push(packet.data);
        }
        assert_eq!(got, ["aa", "bb", "c", "ddd", "e"]);
        assert!(filled(&[]).pop().is_none());
    }
}
