//! Bytes that were written and may have to be sent again.

use alloc::borrow::Cow;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;

/// A sliding window of a byte stream, kept as the chunks in which it was written.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    /// Chunks with the offset of their first byte, ascending and without gaps.
    chunks: VecDeque<(u64, Bytes)>,
    end: u64,
}

impl SendBuffer {
    pub(crate) fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            let start = self.end;
            self.end += chunk.len() as u64;
            self.chunks.push_back((start, chunk));
        }
    }

    /// Offset after the last byte written.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The bytes of `range`, which must be in the window.
    pub(crate) fn get(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let begun = self
            .chunks
            .partition_point(|(start, _)| *start <= range.start);
        let first = begun.saturating_sub(1);
        let Some((start, chunk)) = self.chunks.get(first) else {
            debug_assert!(range.is_empty(), "the range is in the window");
            return Cow::Borrowed(&[]);
        };
        if range.end <= start + chunk.len() as u64 {
            let piece = (range.start - start) as usize..(range.end - start) as usize;
            return Cow::Borrowed(&chunk[piece]);
        }
        let mut out = Vec::with_capacity((range.end - range.start) as usize);
        for (start, chunk) in self.chunks.range(first..) {
            let at = range.start + out.len() as u64;
            if at >= range.end {
                break;
            }
            let to = ((range.end - start) as usize).min(chunk.len());
            out.extend_from_slice(&chunk[(at - start) as usize..to]);
        }
        Cow::Owned(out)
    }

    /// Frees whole chunks below `floor`.
    pub(crate) fn release(&mut self, floor: u64) {
        while let Some((start, chunk)) = self.chunks.front() {
            if start + chunk.len() as u64 > floor {
                break;
            }
            self.chunks.pop_front();
        }
    }

    /// Frees everything: nothing is sent again.
    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
    }
}

/// Pieces shorter than this (bytes) are copied: a piece that is kept as it came holds its whole
/// datagram in memory, more than twice as much. A choice, not tuned.
const COPY_BELOW: usize = 512;

/// A received piece that does not keep a whole datagram alive for a few bytes.
pub(crate) fn compact(piece: Bytes) -> Bytes {
    if piece.len() < COPY_BELOW {
        Bytes::copy_from_slice(&piece)
    } else {
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_across_chunks_and_after_release() {
        let mut buffer = SendBuffer::default();
        for chunk in ["abc", "", "defg", "h"] {
            buffer.push(Bytes::from_static(chunk.as_bytes()));
        }
        assert_eq!(*buffer.get(2..8), *b"cdefgh");
        assert!(matches!(buffer.get(3..7), Cow::Borrowed(b"defg")));
        buffer.release(5);
        assert_eq!(
            *buffer.get(3..5),
            *b"de",
            "a chunk stays until all of it is released"
        );
        assert_eq!(buffer.end(), 8);
        assert!(buffer.get(8..8).is_empty());
    }

    #[test]
    fn bytes_are_found_in_whatever_order_they_are_asked_for() {
        let bytes: Vec<u8> = (0..200).collect();
        let mut buffer = SendBuffer::default();
        for chunk in bytes.chunks(7) {
            buffer.push(Bytes::copy_from_slice(chunk));
        }
        for floor in [0, 60, 61, 140] {
            buffer.release(floor);
            for at in [199, 150, 151, 157, 158, 171, 150, 199, 143].map(|at: u64| at.max(floor)) {
                let range = at..(at + 9).min(200);
                let wanted = &bytes[range.start as usize..range.end as usize];
                assert_eq!(*buffer.get(range), *wanted, "from {at}, above {floor}");
            }
        }
    }
}
