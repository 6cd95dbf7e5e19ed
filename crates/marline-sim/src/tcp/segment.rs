//! What travels between the two ends, as values and as bytes.

use std::fmt;
use std::ops::Range;

use marline_base::Instant;

/// SACK blocks that fit beside timestamps into TCP's options (RFC 2018 §3), a DSACK included.
pub const MAX_BLOCKS: usize = 3;

/// Segments of a connection start with this byte, acknowledgements with the next.
const SEGMENT: u8 = 0x51;
const ACK: u8 = 0x52;

/// A range of the stream on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Place of the first byte in the stream.
    pub seq: u64,
    /// Payload (bytes), more than zero.
    pub payload: u32,
    /// Bytes on the wire, headers included.
    pub size: u32,
    /// When it was sent (RFC 7323 §3, TSval).
    pub stamp: Instant,
}

impl Segment {
    /// Place of the first byte behind it.
    pub const fn end(&self) -> u64 {
        self.seq.saturating_add(self.payload as u64)
    }

    /// Appends exactly [`Segment::size`] bytes: a header of 21 bytes, then zeroes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(SEGMENT);
        out.extend_from_slice(&self.seq.to_be_bytes());
        out.extend_from_slice(&self.payload.to_be_bytes());
        out.extend_from_slice(&self.stamp.as_nanos().to_be_bytes());
        out.resize(start + self.size as usize, 0);
    }

    /// Reads what [`Segment::encode`] wrote; `bytes` is the whole message.
    ///
    /// # Errors
    ///
    /// When `bytes` is not such a message.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader(bytes);
        reader.tag(SEGMENT)?;
        let segment = Self {
            seq: reader.u64()?,
            payload: reader.u32()?,
            size: u32::try_from(bytes.len()).map_err(|_| DecodeError)?,
            stamp: Instant::from_nanos(reader.u64()?),
        };
        if segment.payload == 0 || segment.payload > segment.size || segment.end() > MAX_SEQ {
            return Err(DecodeError);
        }
        Ok(segment)
    }
}

/// Streams end before this place, so that sums stay within 64 bits.
const MAX_SEQ: u64 = 1 << 62;

/// What arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Everything before this place has arrived.
    pub next: u64,
    /// Bytes from there on that the receiver takes.
    pub window: u32,
    /// Stamp of the segment that this answers (RFC 7323 §4.3, TSecr).
    pub echo: Instant,
    /// Bytes on the wire.
    pub size: u32,
    /// The first block repeats what had arrived before (RFC 2883).
    pub duplicate: bool,
    count: u8,
    blocks: [(u64, u64); MAX_BLOCKS],
}

impl Ack {
    /// An acknowledgement without blocks, of `header` bytes.
    pub(super) const fn new(next: u64, window: u32, echo: Instant, header: u32) -> Self {
        Self {
            next,
            window,
            echo,
            size: header,
            duplicate: false,
            count: 0,
            blocks: [(0, 0); MAX_BLOCKS],
        }
    }

    /// Adds a block if there is room; the option grows by its 8 bytes, and by 4 for the first.
    pub(super) fn push(&mut self, block: Range<u64>) {
        let at = usize::from(self.count);
        if at < MAX_BLOCKS {
            self.blocks[at] = (block.start, block.end);
            self.size += if at == 0 { 12 } else { 8 };
            self.count += 1;
        }
    }

    pub(super) const fn is_full(&self) -> bool {
        self.count as usize == MAX_BLOCKS
    }

    /// The range that arrived twice.
    pub fn duplicate(&self) -> Option<Range<u64>> {
        self.all().next().filter(|_| self.duplicate)
    }

    /// Ranges that arrived out of order, the newest first.
    pub fn blocks(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.all().skip(usize::from(self.duplicate))
    }

    fn all(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let count = usize::from(self.count).min(MAX_BLOCKS);
        self.blocks[..count].iter().map(|&(start, end)| start..end)
    }

    /// Appends exactly [`Ack::size`] bytes: places of blocks relative to [`Ack::next`] in 32 bits,
    /// as TCP's own are, then zeroes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(ACK);
        out.push(self.count | u8::from(self.duplicate) << 7);
        out.extend_from_slice(&self.next.to_be_bytes());
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&self.echo.as_nanos().to_be_bytes());
        for block in self.all() {
            let offset = block.start.wrapping_sub(self.next) as u32;
            let length = (block.end - block.start) as u32;
            out.extend_from_slice(&offset.to_be_bytes());
            out.extend_from_slice(&length.to_be_bytes());
        }
        out.resize(start + self.size as usize, 0);
    }

    /// Reads what [`Ack::encode`] wrote; `bytes` is the whole message.
    ///
    /// # Errors
    ///
    /// When `bytes` is not such a message.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader(bytes);
        reader.tag(ACK)?;
        let count = reader.u8()?;
        let duplicate = count & 0x80 != 0;
        let count = count & 0x7f;
        if usize::from(count) > MAX_BLOCKS || (duplicate && count == 0) {
            return Err(DecodeError);
        }
        let next = reader.u64()?;
        if next > MAX_SEQ {
            return Err(DecodeError);
        }
        let window = reader.u32()?;
        let echo = Instant::from_nanos(reader.u64()?);
        let size = u32::try_from(bytes.len()).map_err(|_| DecodeError)?;
        let mut blocks = [(0, 0); MAX_BLOCKS];
        for block in &mut blocks[..usize::from(count)] {
            // Signed: a duplicate lies before `next`.
            let offset = reader.u32()? as i32;
            let length = u64::from(reader.u32()?);
            let start = next
                .checked_add_signed(i64::from(offset))
                .ok_or(DecodeError)?;
            if length == 0 {
                return Err(DecodeError);
            }
            *block = (start, start + length);
        }
        Ok(Self {
            next,
            window,
            echo,
            size,
            duplicate,
            count,
            blocks,
        })
    }
}

/// Bytes that are neither a segment nor an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError;

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a TCP segment or acknowledgement of this simulator")
    }
}

impl std::error::Error for DecodeError {}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(DecodeError)?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, DecodeError> {
        self.take().map(u8::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        self.take().map(u64::from_be_bytes)
    }

    fn tag(&mut self, expected: u8) -> Result<(), DecodeError> {
        (self.u8()? == expected).then_some(()).ok_or(DecodeError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_keep_everything(
            seq in 0..MAX_SEQ / 2,
            payload in 1_u32..9_000,
            stamp in any::<u64>(),
            window in any::<u32>(),
            duplicate in prop::option::of((1_u64..1 << 20, 1_u64..9_000)),
            gaps in prop::collection::vec((1_u64..1 << 20, 1_u64..1 << 20), 0..5),
        ) {
            let stamp = Instant::from_nanos(stamp);
            let segment = Segment { seq, payload, size: payload + 52, stamp };
            let mut bytes = Vec::new();
            segment.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), segment.size as usize);
            prop_assert_eq!(Segment::decode(&bytes), Ok(segment));
            prop_assert!(Ack::decode(&bytes).is_err());

            let next = seq + (1 << 21);
            let mut ack = Ack::new(next, window, stamp, 52);
            if let Some((back, length)) = duplicate {
                ack.duplicate = true;
                ack.push(next - back..next - back + length);
            }
            let mut at = next;
            for (gap, length) in gaps {
                ack.push(at + gap..at + gap + length);
                at += gap + length;
            }
            let mut bytes = Vec::new();
            ack.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), ack.size as usize);
            prop_assert_eq!(Ack::decode(&bytes), Ok(ack));
            prop_assert!(Segment::decode(&bytes).is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0_usize..3) {
            let mut bytes = bytes;
            if let (Some(first), 1..) = (bytes.first_mut(), kind) {
                *first = [SEGMENT, ACK][kind - 1];
            }
            let _ = Segment::decode(&bytes);
            if let Ok(ack) = Ack::decode(&bytes) {
                prop_assert!(ack.blocks().all(|block| block.start < block.end));
            }
        }
    }

    #[test]
    fn sizes_are_those_of_tcp() {
        let mut ack = Ack::new(0, 0, Instant::ZERO, 52);
        let sizes: Vec<u32> = (0..4)
            .map(|i| {
                ack.push(10 * i + 5..10 * i + 10);
                ack.size
            })
            .collect();
        // Twelve bytes of timestamps are in the 52; kind, length and padding take four.
        assert_eq!(sizes, [64, 72, 80, 80]);
    }
}
