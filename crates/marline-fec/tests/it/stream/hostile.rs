//! Symbols that no honest sender makes.

use marline_fec::stream::{Decoder, Encoder, Limits, Refusal, Repair, TooLong};

use super::{encoder, repair};
use crate::random::Random;

const LIMITS: Limits = Limits {
    window: 8,
    symbol: 10,
};

fn decoder() -> Decoder {
    Decoder::new(100, LIMITS)
}

#[test]
fn windows_wider_than_agreed_are_refused() {
    for count in [0, 9, u16::MAX] {
        let repair = Repair {
            start: 100,
            count,
            key: 0,
        };
        let refusal = Refusal::Window { count, limit: 8 };
        assert_eq!(decoder().repair(repair, &[0; 12]), Err(refusal));
    }
}

#[test]
fn lengths_beyond_the_agreed_are_refused() {
    let repair = Repair {
        start: 100,
        count: 2,
        key: 0,
    };
    for len in [0, 1, 13, 70_000] {
        let refusal = Refusal::Length { len, limit: 12 };
        assert_eq!(decoder().repair(repair, &vec![0; len]), Err(refusal));
    }
    let refusal = Refusal::Length { len: 11, limit: 10 };
    assert_eq!(decoder().source(100, &[0; 11]), Err(refusal));
    let too_long = TooLong { len: 11, limit: 10 };
    assert_eq!(Encoder::new(0, LIMITS).push(&[0; 11]), Err(too_long));
}

#[test]
fn symbols_far_away_are_refused() {
    let mut decoder = decoder();
    let stale = Refusal::Stale {
        symbol: 99,
        oldest: 100,
    };
    assert_eq!(decoder.source(99, &[]), Err(stale));
    for start in [117, 1 << 50, u64::MAX - 3, u64::MAX] {
        let repair = Repair {
            start,
            count: 8,
            key: 0,
        };
        let refusal = decoder.repair(repair, &[0; 12]);
        assert!(
            matches!(refusal, Err(Refusal::Beyond { .. })),
            "{refusal:?}"
        );
        assert!(matches!(
            decoder.source(start, &[]),
            Err(Refusal::Beyond { .. })
        ));
    }
    assert_eq!(decoder.status().missing, 0);
    assert_eq!(decoder.status().end, 100);
}

#[test]
fn duplicates_say_nothing_new() {
    let sources = vec![vec![1; 3], vec![2; 4], vec![3; 5]];
    let mut encoder = encoder(100, &sources, LIMITS);
    let sent = repair(&mut encoder);
    let mut decoder = decoder();
    assert_eq!(decoder.source(100, &sources[0]), Ok(true));
    assert_eq!(decoder.source(100, &sources[0]), Ok(false));
    assert_eq!(decoder.repair(sent.repair, &sent.payload), Ok(true));
    for _ in 0..1000 {
        assert_eq!(decoder.repair(sent.repair, &sent.payload), Ok(false));
    }
    assert_eq!(decoder.status().rank, 1);
    decoder.source(102, &sources[2]).expect("taken");
    assert_eq!(decoder.poll_recovered(), Some(101));
    assert_eq!(decoder.repair(sent.repair, &sent.payload), Ok(false));
    assert_eq!(decoder.source(101, &sources[1]), Ok(false));
}

#[test]
fn one_seed_with_two_meanings_changes_nothing() {
    let sources = vec![vec![1; 3], vec![2; 4], vec![3; 5]];
    let mut encoder = encoder(100, &sources, LIMITS);
    let sent = repair(&mut encoder);
    let mut decoder = decoder();
    decoder.repair(sent.repair, &sent.payload).expect("taken");
    let other: Vec<u8> = sent.payload.iter().map(|byte| byte ^ 0x55).collect();
    assert_eq!(decoder.repair(sent.repair, &other), Ok(false));
    decoder.source(100, &sources[0]).expect("taken");
    decoder.source(102, &sources[2]).expect("taken");
    assert_eq!(decoder.symbol(101), Some(&sources[1][..]));
}

#[test]
fn symbols_without_a_meaning_drop_the_equations_only() {
    let sources = vec![vec![1; 3], vec![2; 4]];
    let mut encoder = encoder(100, &sources, LIMITS);
    let mut sent = repair(&mut encoder);
    let mut decoder = decoder();
    decoder.source(100, &sources[0]).expect("taken");
    sent.payload[0] ^= 1;
    let contradiction = Refusal::Contradiction { symbol: 101 };
    assert_eq!(
        decoder.repair(sent.repair, &sent.payload),
        Err(contradiction)
    );
    assert_eq!(decoder.status().rank, 0);
    assert_eq!(decoder.symbol(100), Some(&sources[0][..]));
    assert_eq!(decoder.symbol(101), None);
    let sent = repair(&mut encoder);
    assert_eq!(decoder.repair(sent.repair, &sent.payload), Ok(true));
    assert_eq!(decoder.symbol(101), Some(&sources[1][..]));
    let contradiction = Refusal::Contradiction { symbol: 101 };
    assert_eq!(decoder.source(101, b"other"), Err(contradiction));
    assert_eq!(decoder.symbol(101), Some(&sources[1][..]));
}

#[test]
fn equations_are_bounded() {
    // Windows of symbols that never come, from the oldest remembered to the newest.
    let mut decoder = decoder();
    let mut random = Random::new(1);
    let mut full = 0;
    for key in 0..1000 {
        let repair = Repair {
            start: 100 + random.below(9),
            count: 8,
            key,
        };
        match decoder.repair(repair, &[0; 12]) {
            Ok(_) => {}
            Err(Refusal::Full) => full += 1,
            Err(other) => panic!("{other}"),
        }
        let status = decoder.status();
        assert!(status.rank <= 8 && status.missing <= 16, "{status:?}");
    }
    assert!(full > 900);
}

#[test]
fn no_sequence_of_calls_panics_or_grows() {
    for seed in 0..300 {
        let random = &mut Random::new(seed);
        let mut decoder = decoder();
        let mut around = 100;
        for _ in 0..300 {
            let number = around + random.below(40) - 20;
            let len = random.below(14) as usize;
            let bytes = if random.chance(50) {
                vec![0; len]
            } else {
                random.bytes(len)
            };
            let outcome = match random.below(10) {
                0..4 => decoder.source(number, &bytes),
                4..9 => {
                    let repair = Repair {
                        start: number,
                        count: random.below(10) as u16,
                        key: random.below(20) as u16,
                    };
                    decoder.repair(repair, &bytes)
                }
                _ => {
                    around += random.below(6);
                    decoder.forget_before(around);
                    Ok(false)
                }
            };
            if let Err(refusal) = outcome {
                assert!(!refusal.to_string().is_empty());
            }
            let status = decoder.status();
            assert!(status.rank <= status.missing, "{status:?}, seed {seed}");
            assert!(
                status.rank <= 8 && status.missing <= 16,
                "{status:?}, seed {seed}"
            );
            while let Some(number) = decoder.poll_recovered() {
                assert!(decoder.symbol(number).is_some());
            }
        }
    }
}
