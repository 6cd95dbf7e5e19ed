//! The block code: the first bytes give a shape and a loss, the rest is the block. What arrives
//! brings it back; symbols that do not fit are refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_fec::block::{Decoder, Encoder, Shape};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[symbol, seed, wrong], block)) = bytes.split_first_chunk::<3>() else {
        return;
    };
    let Ok(shape) = Shape::new(block.len(), symbol.into()) else {
        assert!(symbol == 0 || block.is_empty());
        return;
    };
    let encoder = Encoder::new(shape, block).expect("the block's length");
    let mut decoder = Decoder::new(shape);
    let mut state = u32::from(seed);
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 16
    };
    for number in 0..shape.sources() {
        if draw() % 256 >= u32::from(seed) {
            decoder
                .source(number, encoder.source(number).expect("a number"))
                .expect("fits");
        }
    }
    decoder
        .source(wrong.into(), &vec![0; usize::from(symbol) + 1])
        .expect_err("too long");
    let mut payload = Vec::new();
    encoder.repair(draw() as u16, &mut payload);
    decoder.repair(0, &payload[1..]).expect_err("too short");
    let mut index = u16::from(seed);
    while decoder.needed() > 0 && index < 60_000 {
        encoder.repair(index, &mut payload);
        decoder.repair(index, &payload).expect("fits");
        index += 1;
    }
    assert_eq!(decoder.block(), Some(block));
});
