//! Framed symbols: the length in two bytes, then the bytes.

use alloc::vec;
use alloc::vec::Vec;

/// Bytes of the length.
pub(super) const HEADER: usize = 2;
/// What vector loads like best; also a cache line.
const ALIGNMENT: usize = 64;

/// A framed symbol in a buffer of its own that starts on a cache line: sums over symbols that do
/// not are a third slower, which is more than the copy costs.
#[derive(Clone, Debug, Default)]
pub(super) struct Framed {
    buffer: Vec<u8>,
    start: usize,
    len: usize,
}

impl Framed {
    /// Room for `len` bytes of frame, all zero. The old contents are gone.
    pub(super) fn reset(&mut self, len: usize) -> &mut [u8] {
        let frame = self.room(len);
        frame.fill(0);
        frame
    }

    /// Has it no buffer?
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Bytes of a buffer for the frames of symbols of at most `symbol` bytes.
    pub(super) fn most(symbol: usize) -> usize {
        Self::aligned(HEADER + symbol)
    }

    /// Bytes in which a frame of `len` bytes can start on a cache line.
    fn aligned(len: usize) -> usize {
        len.next_multiple_of(ALIGNMENT) + ALIGNMENT - 1
    }

    /// Room for `len` bytes of frame that hold anything.
    fn room(&mut self, len: usize) -> &mut [u8] {
        if self.buffer.len() < self.start + len {
            self.buffer = vec![0; Self::aligned(len)];
            // An address that cannot be aligned costs speed alone.
            self.start = self
                .buffer
                .as_ptr()
                .align_offset(ALIGNMENT)
                .min(ALIGNMENT - 1);
        }
        self.len = len;
        &mut self.buffer[self.start..self.start + len]
    }

    /// Becomes the frame of `symbol`, of at most 65535 bytes.
    pub(super) fn set(&mut self, symbol: &[u8]) {
        let frame = self.room(HEADER + symbol.len());
        frame[..HEADER].copy_from_slice(&(symbol.len() as u16).to_be_bytes());
        frame[HEADER..].copy_from_slice(symbol);
    }

    /// Takes what was computed into the room for a frame, if that is a frame of at most `limit`
    /// bytes of symbol, followed by zeros; if not, becomes empty.
    pub(super) fn accept(&mut self, limit: usize) -> bool {
        let valid = |frame: &[u8]| {
            let (header, symbol) = frame.split_first_chunk::<HEADER>()?;
            let length = usize::from(u16::from_be_bytes(*header));
            let rest = symbol.get(length..)?;
            (length <= limit && rest.iter().all(|byte| *byte == 0)).then_some(length)
        };
        let length = valid(self.frame());
        self.len = length.map_or(0, |length| HEADER + length);
        length.is_some()
    }

    /// Length and bytes.
    pub(super) fn frame(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.len]
    }

    /// The bytes.
    pub(super) fn symbol(&self) -> &[u8] {
        self.frame().get(HEADER..).unwrap_or(&[])
    }
}
