//! Variable-length integers (RFC 9000 §16): the two top bits of the first byte say whether it
//! takes 1, 2, 4 or 8 bytes, the rest is the value, most significant byte first.

use alloc::vec::Vec;

/// Largest value that fits: 2^62 - 1.
pub const MAX: u64 = (1 << 62) - 1;

/// Bytes that [`encode`] writes for `value`: 1, 2, 4 or 8.
#[must_use]
#[inline]
pub const fn len(value: u64) -> usize {
    if value < 1 << 6 {
        1
    } else if value < 1 << 14 {
        2
    } else if value < 1 << 30 {
        4
    } else {
        8
    }
}

/// Appends `value` in its shortest form. Values above [`MAX`] are the caller's mistake: debug
/// builds panic, others write [`MAX`].
#[inline]
pub fn encode(value: u64, out: &mut Vec<u8>) {
    debug_assert!(value <= MAX, "{value} does not fit a varint");
    if value < 1 << 6 {
        out.push(value as u8);
    } else {
        encode_long(value, out);
    }
}

fn encode_long(value: u64, out: &mut Vec<u8>) {
    match len(value) {
        2 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        4 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value.min(MAX) | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Reads the integer at the start of `bytes`, in any of its forms, with the number of bytes that
/// it took. `None` if `bytes` ends within it.
#[must_use]
#[inline]
pub fn decode(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    Some(match first >> 6 {
        0 => (u64::from(first), 1),
        1 => {
            let raw = u16::from_be_bytes(*bytes.first_chunk()?);
            (u64::from(raw & 0x3fff), 2)
        }
        2 => {
            let raw = u32::from_be_bytes(*bytes.first_chunk()?);
            (u64::from(raw & 0x3fff_ffff), 4)
        }
        _ => {
            let raw = u64::from_be_bytes(*bytes.first_chunk()?);
            (raw & MAX, 8)
        }
    })
}

/// Signed to unsigned so that small magnitudes stay small: 0, -1, 1, -2 become 0, 1, 2, 3.
#[must_use]
#[inline]
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Inverse of [`zigzag`].
#[must_use]
#[inline]
pub const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Bytes that a frame of a one-byte type and these integers takes.
#[inline]
pub(super) fn frame_len<const N: usize>(fields: [u64; N]) -> usize {
    1 + fields.into_iter().map(len).sum::<usize>()
}

/// Appends a frame type and integers.
#[inline]
pub(super) fn encode_frame<const N: usize>(frame: u64, fields: [u64; N], out: &mut Vec<u8>) {
    encode(frame, out);
    for field in fields {
        encode(field, out);
    }
}

/// Most bytes that fit into `room` together with their length in front; `None` if the length
/// alone does not.
#[inline]
pub(super) fn sized_room(room: usize) -> Option<usize> {
    // A longer length is worth its bytes only once the shorter one cannot count all of the room.
    let with = |len: usize, max: usize| room.checked_sub(len).map(|left| left.min(max));
    with(1, (1 << 6) - 1)
        .max(with(2, (1 << 14) - 1))
        .max(with(4, (1 << 30) - 1))
}
