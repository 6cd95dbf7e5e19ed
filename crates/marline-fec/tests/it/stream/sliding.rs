//! Long streams: the window slides, memory stays, and nothing that was covered is lost.

use marline_fec::stream::{Decoder, Encoder, Limits, Refusal};

use super::{repair, symbols};
use crate::random::Random;

/// Sends `count` symbols with a repair symbol after each `every`, loses `loss` per cent of both,
/// and acknowledges what arrived in order with a delay of `lag` symbols. Returns how many source
/// symbols were lost, and how many of these stayed so.
fn stream(seed: u64, limits: Limits, count: u64, every: u64, loss: u64, lag: u64) -> (u64, u64) {
    let random = &mut Random::new(seed);
    let sources = symbols(random, count as usize, limits.symbol.into());
    let mut encoder = Encoder::new(0, limits);
    let mut decoder = Decoder::new(0, limits);
    let mut acknowledged = std::collections::VecDeque::from(vec![0; lag as usize]);
    let mut lost = vec![];
    let mut recovered = vec![];
    for (number, source) in (0..).zip(&sources) {
        encoder.push(source).expect("short enough");
        // What left the encoder's window is out of reach.
        decoder.forget_before(encoder.window().start);
        if random.chance(loss) {
            lost.push(number);
        } else {
            decoder.source(number, source).expect("taken");
        }
        if (number + 1) % every == 0 && !random.chance(loss) {
            let sent = repair(&mut encoder);
            decoder.repair(sent.repair, &sent.payload).expect("taken");
        }
        recovered.extend(std::iter::from_fn(|| decoder.poll_recovered()));
        acknowledged.push_back(decoder.status().first_missing);
        encoder.release_before(acknowledged.pop_front().expect("lag entries"));
        let window = encoder.window();
        assert!(window.end - window.start <= limits.window.into());
        for back in 0..window.end - window.start {
            let number = window.end - 1 - back;
            if let Some(symbol) = decoder.symbol(number) {
                assert_eq!(
                    symbol, sources[number as usize],
                    "symbol {number} of seed {seed}"
                );
            }
        }
    }
    recovered.sort_unstable();
    assert!(
        recovered.windows(2).all(|pair| pair[0] < pair[1]),
        "recovered once"
    );
    assert!(
        recovered
            .iter()
            .all(|number| lost.binary_search(number).is_ok())
    );
    (lost.len() as u64, (lost.len() - recovered.len()) as u64)
}

#[test]
fn enough_repair_symbols_bring_everything_back() {
    let limits = Limits {
        window: 64,
        symbol: 60,
    };
    // 5 % lost, 20 % sent on top: a window of 64 is never short of repair symbols for long.
    let (mut lost, mut stayed) = (0, 0);
    for seed in 0..20 {
        let (l, s) = stream(seed, limits, 3000, 5, 5, 20);
        (lost, stayed) = (lost + l, stayed + s);
    }
    assert!(lost > 2000, "{lost} of 60000 lost");
    // The last few of each stream have no repair symbol behind them yet.
    assert!(stayed <= 20, "{stayed} of {lost} stayed lost");
}

#[test]
fn too_few_repair_symbols_bring_some_back_and_hold_nothing_up() {
    let limits = Limits {
        window: 16,
        symbol: 20,
    };
    for seed in 0..20 {
        let (lost, stayed) = stream(seed, limits, 2000, 12, 15, 8);
        assert!(
            stayed > 0 && stayed < lost,
            "{stayed} of {lost}, seed {seed}"
        );
    }
}

#[test]
fn old_equations_survive_the_departure_of_known_symbols() {
    let limits = Limits {
        window: 4,
        symbol: 8,
    };
    let sources: Vec<Vec<u8>> = (0..40_u8).map(|i| vec![i; 5]).collect();
    let mut encoder = Encoder::new(0, limits);
    let mut decoder = Decoder::new(0, limits);
    for source in &sources[..4] {
        encoder.push(source).expect("short enough");
    }
    // 2 and 3 are missing and one equation is there.
    decoder.source(0, &sources[0]).expect("taken");
    decoder.source(1, &sources[1]).expect("taken");
    let sent = repair(&mut encoder);
    assert_eq!(decoder.repair(sent.repair, &sent.payload), Ok(true));
    for number in 4..8 {
        decoder
            .source(number, &sources[number as usize])
            .expect("taken");
    }
    // Eight are remembered: 8 and 9 push 0 and 1 out, which the equation contains.
    decoder.source(8, &sources[8]).expect("taken");
    decoder.source(9, &sources[9]).expect("taken");
    assert_eq!(decoder.symbol(0), None);
    // 10 would push a missing one out.
    let beyond = Refusal::Beyond {
        end: 11,
        missing: 2,
    };
    assert_eq!(decoder.source(10, &sources[10]), Err(beyond));
    decoder.source(3, &sources[3]).expect("taken");
    assert_eq!(decoder.poll_recovered(), Some(2));
    assert_eq!(decoder.symbol(2), Some(&sources[2][..]));
    decoder.source(10, &sources[10]).expect("taken");
}

#[test]
fn giving_up_a_missing_symbol_keeps_what_else_is_known_about_the_others() {
    let limits = Limits {
        window: 8,
        symbol: 8,
    };
    let sources: Vec<Vec<u8>> = (0..8_u8).map(|i| vec![i + 1; 5]).collect();
    let mut encoder = Encoder::new(0, limits);
    for source in &sources {
        encoder.push(source).expect("short enough");
    }
    let mut decoder = Decoder::new(0, limits);
    for number in 3..8 {
        decoder
            .source(number, &sources[number as usize])
            .expect("taken");
    }
    // Two equations in 0, 1 and 2; without 0 one is left, in 1 and 2.
    for _ in 0..2 {
        let sent = repair(&mut encoder);
        assert_eq!(decoder.repair(sent.repair, &sent.payload), Ok(true));
    }
    decoder.forget_before(1);
    assert_eq!(decoder.status().rank, 1);
    encoder.release_before(1);
    let sent = repair(&mut encoder);
    assert_eq!(decoder.repair(sent.repair, &sent.payload), Ok(true));
    assert_eq!(decoder.poll_recovered(), Some(1));
    assert_eq!(decoder.poll_recovered(), Some(2));
    assert_eq!(decoder.symbol(1), Some(&sources[1][..]));
    assert_eq!(decoder.symbol(2), Some(&sources[2][..]));
}
