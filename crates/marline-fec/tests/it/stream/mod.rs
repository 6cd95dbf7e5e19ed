//! The streaming code.

mod dense;
mod hostile;
mod interop;
mod rank;
mod sliding;

use marline_fec::stream::{Encoder, Limits, Repair};

use crate::random::Random;

/// Symbols of random lengths, the shortest and the longest among them.
fn symbols(random: &mut Random, count: usize, longest: usize) -> Vec<Vec<u8>> {
    let mut length = || match random.below(8) {
        0 => 0,
        1 => longest,
        _ => random.below(longest as u64 + 1) as usize,
    };
    let lengths: Vec<usize> = (0..count).map(|_| length()).collect();
    lengths.into_iter().map(|len| random.bytes(len)).collect()
}

/// A repair symbol and its bytes, as they travel.
#[derive(Clone, Debug)]
struct Sent {
    repair: Repair,
    payload: Vec<u8>,
}

fn repair(encoder: &mut Encoder) -> Sent {
    let mut payload = Vec::new();
    let repair = encoder
        .repair(&mut payload)
        .expect("the window is not empty");
    Sent { repair, payload }
}

/// An encoder that holds all `symbols`, numbered from `first`.
fn encoder(first: u64, symbols: &[Vec<u8>], limits: Limits) -> Encoder {
    let mut encoder = Encoder::new(first, limits);
    for symbol in symbols {
        encoder.push(symbol).expect("short enough");
    }
    encoder
}
