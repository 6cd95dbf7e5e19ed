//! Tests of the wire format: worked examples, round trips, hostile bytes, limits.

extern crate std;

mod document;
mod fit;
mod hostile;
mod limits;
mod messages;
mod round_trip;
mod strategy;

use alloc::vec::Vec;

use super::{DecodeError, Frame, Frames};

/// The frames of a payload, or the first error.
fn frames(payload: &[u8]) -> Result<Vec<Frame<'_>>, DecodeError> {
    Frames::new(payload).collect()
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frame.encode(&mut out);
    out
}

/// Bytes of varints in a row.
fn varints(values: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for &value in values {
        super::varint::encode(value, &mut out);
    }
    out
}
