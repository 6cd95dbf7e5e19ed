//! The block code beside `reed-solomon-simd`, symbols of 1400 bytes:
//! `cargo bench -p marline-fec --bench block`.
//!
//! Encoding makes all m repair symbols. Decoding takes all symbols but m lost sources, until the
//! block is whole; both sides' decoders start from nothing, and so contain a copy of the symbols.

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]

mod common;

use std::hint::black_box;

use common::{bytes, paired};
use marline_fec::block::{Decoder, Encoder, Shape};
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

const LEN: usize = 1400;

fn compare(sources: usize, repairs: usize) {
    let shape = Shape::new(sources * LEN, LEN).expect("a shape");
    let block = bytes(shape.block(), 1);
    let encoder = Encoder::new(shape, &block).expect("the block's length");
    let mut ours = vec![Vec::new(); repairs];
    let mut reed_solomon = ReedSolomonEncoder::new(sources, repairs, LEN).expect("supported");
    let mut theirs: Vec<Vec<u8>> = Vec::new();
    let (a, b, ratio) = paired(
        &mut || {
            encoder.repairs(0, black_box(&mut ours));
        },
        &mut || {
            for source in block.chunks(LEN) {
                reed_solomon.add_original_shard(source).expect("fits");
            }
            let encoded = reed_solomon.encode().expect("all are there");
            theirs.clear();
            theirs.extend(encoded.recovery_iter().map(<[u8]>::to_vec));
        },
    );
    println!(
        "k = {sources}, m = {repairs}, encode: {:.1} µs, reed-solomon-simd {:.1} µs, time ratio {ratio:.2}",
        a / 1e3,
        b / 1e3
    );

    // The lost ones spread over the block.
    let lost = |number: usize| {
        number.is_multiple_of(sources / repairs) && number / (sources / repairs) < repairs
    };
    let mut decoder = ReedSolomonDecoder::new(sources, repairs, LEN).expect("supported");
    let extra = encoder_extra(&encoder, repairs);
    let (a, b, ratio) = paired(
        &mut || {
            let mut decoder = Decoder::new(shape);
            for (number, source) in block.chunks(LEN).enumerate() {
                if !lost(number) {
                    decoder.source(number, source).expect("fits");
                }
            }
            for (index, symbol) in (0..).zip(ours.iter().chain(&extra)) {
                if decoder.needed() == 0 {
                    break;
                }
                decoder.repair(index, symbol).expect("fits");
            }
            assert!(black_box(decoder.block()).is_some());
        },
        &mut || {
            for (number, source) in block.chunks(LEN).enumerate() {
                if !lost(number) {
                    decoder.add_original_shard(number, source).expect("fits");
                }
            }
            for (index, symbol) in theirs.iter().enumerate() {
                decoder.add_recovery_shard(index, symbol).expect("fits");
            }
            black_box(decoder.decode().expect("enough"));
        },
    );
    println!(
        "k = {sources}, m = {repairs}, decode {repairs} lost: {:.1} µs, reed-solomon-simd {:.1} µs, time ratio {ratio:.2}",
        a / 1e3,
        b / 1e3
    );
}

/// Two more repair symbols than `repairs`, in case that the random part needs them.
fn encoder_extra(encoder: &Encoder<'_>, repairs: usize) -> Vec<Vec<u8>> {
    (0..2)
        .map(|extra| {
            let mut symbol = Vec::new();
            encoder.repair((repairs + extra) as u16, &mut symbol);
            symbol
        })
        .collect()
}

fn main() {
    for (sources, repairs) in [(97, 5), (200, 40), (1000, 30), (1000, 150), (10_000, 300)] {
        compare(sources, repairs);
    }
}
