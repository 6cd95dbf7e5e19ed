//! The block code: any k symbols of any shape.

use marline_fec::block::{Decoder, Encoder, Error, Shape};

use crate::random::Random;

/// Sends the source symbols that `lost` does not name and the repair symbols with `indices`, in
/// random order, and returns the decoder.
fn transfer(
    random: &mut Random,
    shape: Shape,
    block: &[u8],
    lost: &[usize],
    indices: &[u16],
) -> Decoder {
    let encoder = Encoder::new(shape, block).expect("the block's length");
    let mut decoder = Decoder::new(shape);
    let sources = (0..shape.sources())
        .filter(|number| !lost.contains(number))
        .map(Ok);
    let mut order: Vec<Result<usize, u16>> = sources
        .chain(indices.iter().map(|index| Err(*index)))
        .collect();
    random.shuffle(&mut order);
    let mut symbol = Vec::new();
    for one in order {
        let needed = decoder.needed();
        let news = match one {
            Ok(number) => decoder.source(number, encoder.source(number).expect("a number")),
            Err(index) => {
                encoder.repair(index, &mut symbol);
                assert_eq!(symbol.len(), shape.symbol());
                decoder.repair(index, &symbol)
            }
        };
        assert_eq!(news, Ok(needed > 0));
        assert!(decoder.needed() >= needed.saturating_sub(1));
    }
    decoder
}

/// `count` of the numbers below `bound`.
fn choose(random: &mut Random, bound: usize, count: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..bound).collect();
    random.shuffle(&mut all);
    all.truncate(count);
    all
}

fn shape(sources: usize, symbol: usize, short: usize) -> Shape {
    Shape::new(sources * symbol - short, symbol).expect("a shape")
}

/// Loses `lost` source symbols, and gets as many of the first `repairs` repair symbols.
fn any_k(random: &mut Random, sources: usize, repairs: usize, lost: usize) {
    let symbol = 1 + random.below(70) as usize;
    let shape = shape(sources, symbol, random.below(symbol as u64) as usize);
    let block = random.bytes(shape.block());
    let gone = choose(random, sources, lost);
    let came: Vec<u16> = choose(random, repairs, lost)
        .iter()
        .map(|i| *i as u16)
        .collect();
    let decoder = transfer(random, shape, &block, &gone, &came);
    assert_eq!(
        decoder.block(),
        Some(&block[..]),
        "k = {sources}, lost {gone:?}, got {came:?}"
    );
    assert_eq!(decoder.into_block().ok(), Some(block));
}

#[test]
fn any_k_of_up_to_256_symbols() {
    let random = &mut Random::new(1);
    // The corners: one source symbol, no repair symbol, none but repair symbols, all 256.
    for (sources, repairs, lost) in [
        (1, 0, 0),
        (1, 1, 1),
        (1, 255, 1),
        (2, 254, 2),
        (97, 5, 5),
        (97, 5, 0),
        (128, 128, 128),
        (128, 128, 64),
        (254, 2, 2),
        (255, 1, 1),
        (256, 0, 0),
    ] {
        for _ in 0..8 {
            any_k(random, sources, repairs, lost);
        }
    }
    for _ in 0..300 {
        let sources = 1 + random.below(255) as usize;
        let repairs = 1 + random.below(256 - sources as u64) as usize;
        let lost = random.below(1 + sources.min(repairs) as u64) as usize;
        any_k(random, sources, repairs, lost);
    }
}

/// Every choice of k among n symbols, not just a sample.
#[test]
fn every_choice_of_a_small_code() {
    let random = &mut Random::new(2);
    for (sources, repairs) in [(1, 4), (2, 4), (3, 4), (4, 4), (5, 3), (6, 2)] {
        let shape = shape(sources, 3, 1);
        let block = random.bytes(shape.block());
        for choice in 0_u32..1 << (sources + repairs) {
            if choice.count_ones() as usize != sources {
                continue;
            }
            let lost: Vec<usize> = (0..sources).filter(|i| choice >> i & 1 == 0).collect();
            let came: Vec<u16> = (0..repairs as u16)
                .filter(|i| choice >> (sources as u16 + i) & 1 == 1)
                .collect();
            let decoder = transfer(random, shape, &block, &lost, &came);
            assert_eq!(decoder.block(), Some(&block[..]), "choice {choice:b}");
        }
    }
}

/// Beyond 256 symbols the code is random: k symbols nearly always do, and two more always here.
#[test]
fn large_blocks() {
    let random = &mut Random::new(3);
    let (mut at_once, mut trials) = (0, 0);
    for (sources, lost, rounds) in [(256, 20, 100), (300, 300, 3), (1000, 30, 40), (5000, 60, 3)] {
        let shape = shape(sources, 8, 3);
        for _ in 0..rounds {
            let block = random.bytes(shape.block());
            let gone = choose(random, sources, lost);
            let came: Vec<u16> = (0..lost).map(|_| random.below(65_536) as u16).collect();
            let mut distinct = came.clone();
            distinct.sort_unstable();
            distinct.dedup();
            if distinct.len() < lost {
                continue;
            }
            let mut decoder = transfer(random, shape, &block, &gone, &came);
            trials += 1;
            at_once += u32::from(decoder.block().is_some());
            let encoder = Encoder::new(shape, &block).expect("the block's length");
            let mut symbol = Vec::new();
            let spare = (0..=u16::MAX).filter(|index| distinct.binary_search(index).is_err());
            for index in spare.take(2) {
                encoder.repair(index, &mut symbol);
                let _ = decoder.repair(index, &symbol).expect("taken");
            }
            assert_eq!(decoder.block(), Some(&block[..]), "k = {sources}");
        }
    }
    // 0.6 failures expected.
    assert!(
        trials > 130 && at_once + 5 > trials,
        "{at_once} of {trials}"
    );
}

/// Up to k + i = 255 from the certain part, then from the random part: both may mix.
#[test]
fn symbols_of_both_parts() {
    let random = &mut Random::new(4);
    let shape = shape(200, 5, 0);
    assert_eq!(shape.certain_repairs(), 56);
    for _ in 0..30 {
        let block = random.bytes(shape.block());
        let lost = choose(random, 200, 80);
        // One more than needed, for the random ones among them.
        let came: Vec<u16> = choose(random, 120, 82).iter().map(|i| *i as u16).collect();
        let mut decoder = Decoder::new(shape);
        let encoder = Encoder::new(shape, &block).expect("the block's length");
        for number in (0..200).filter(|number| !lost.contains(number)) {
            decoder
                .source(number, encoder.source(number).expect("a number"))
                .expect("taken");
        }
        let mut symbol = Vec::new();
        for index in came {
            encoder.repair(index, &mut symbol);
            let _ = decoder.repair(index, &symbol).expect("taken");
        }
        assert_eq!(decoder.block(), Some(&block[..]));
    }
}

#[test]
fn many_repair_symbols_at_once_are_those_one_by_one() {
    let random = &mut Random::new(5);
    for (sources, first, count) in [(97, 0, 5), (97, 150, 13), (300, 65_530, 9), (1, 7, 0)] {
        let shape = shape(sources, 70, 9);
        let block = random.bytes(shape.block());
        let encoder = Encoder::new(shape, &block).expect("the block's length");
        let mut together = vec![vec![1, 2, 3]; count];
        encoder.repairs(first, &mut together);
        for (index, symbol) in (usize::from(first)..).zip(together) {
            let mut alone = Vec::new();
            if let Ok(index) = u16::try_from(index) {
                encoder.repair(index, &mut alone);
            }
            assert_eq!(symbol, alone, "index {index}");
        }
    }
}

#[test]
fn duplicates_and_late_symbols_are_not_needed() {
    let shape = shape(3, 4, 0);
    let block = *b"aaaabbbbcccc";
    let encoder = Encoder::new(shape, &block).expect("the block's length");
    let mut decoder = Decoder::new(shape);
    let mut symbol = Vec::new();
    encoder.repair(9, &mut symbol);
    assert_eq!(
        (decoder.needed(), decoder.repair(9, &symbol)),
        (3, Ok(true))
    );
    assert_eq!(
        (decoder.needed(), decoder.repair(9, &symbol)),
        (2, Ok(false))
    );
    assert_eq!(
        (decoder.needed(), decoder.source(2, b"cccc")),
        (2, Ok(true))
    );
    assert_eq!(
        (decoder.needed(), decoder.source(2, b"cccc")),
        (1, Ok(false))
    );
    assert_eq!(decoder.block(), None);
    assert_eq!(
        (decoder.needed(), decoder.source(0, b"aaaa")),
        (1, Ok(true))
    );
    assert_eq!((decoder.needed(), decoder.block()), (0, Some(&block[..])));
    assert_eq!(decoder.source(1, b"bbbb"), Ok(false));
    assert_eq!(decoder.repair(10, &symbol), Ok(false));
}

#[test]
fn what_does_not_fit_is_refused_with_numbers() {
    assert_eq!(Shape::new(0, 10), Err(Error::Empty));
    assert_eq!(Shape::new(10, 0), Err(Error::Empty));
    assert_eq!(
        Shape::new(65_536, 1),
        Err(Error::TooMany { sources: 65_536 })
    );
    assert_eq!(
        Shape::new(usize::MAX, 1),
        Err(Error::TooMany {
            sources: usize::MAX
        })
    );
    assert!(Shape::new(65_535, 1).is_ok());
    let shape = Shape::new(25, 10).expect("a shape");
    let wrong = |len, expected| Error::Length { len, expected };
    assert_eq!(Encoder::new(shape, &[0; 24]).err(), Some(wrong(24, 25)));
    let mut decoder = Decoder::new(shape);
    assert_eq!(decoder.source(0, &[]), Err(wrong(0, 10)));
    assert_eq!(decoder.source(0, &[0; 11]), Err(wrong(11, 10)));
    // The last symbol is short.
    assert_eq!(decoder.source(2, &[0; 10]), Err(wrong(10, 5)));
    assert_eq!(decoder.repair(0, &[0; 5]), Err(wrong(5, 10)));
    let none = Error::NoSuchSource {
        number: 3,
        sources: 3,
    };
    assert_eq!(decoder.source(3, &[0; 10]), Err(none));
    assert_eq!(
        decoder.source(usize::MAX, &[]),
        Err(Error::NoSuchSource {
            number: usize::MAX,
            sources: 3,
        })
    );
    assert_eq!(none.to_string(), "source symbol 3 of a block that has 3");
    assert_eq!(decoder.source(2, &[0; 5]), Ok(true));
}
