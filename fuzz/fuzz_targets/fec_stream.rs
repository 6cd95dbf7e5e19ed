//! The streaming code's decoder: the bytes are a tape of source and repair symbols, honest, lost
//! or made up, and of symbols given up. It must not panic and keeps its bounds; as long as nothing
//! was made up, what it recovers is right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_fec::stream::{Decoder, Encoder, Limits, Repair};

const LIMITS: Limits = Limits {
    window: 16,
    symbol: 32,
};

/// The symbol with this number.
fn source(number: u64) -> Vec<u8> {
    (0..number * 7 % 33)
        .map(|i| (number * 31 + i) as u8)
        .collect()
}

fuzz_target!(|tape: &[u8]| {
    let mut encoder = Encoder::new(0, LIMITS);
    let mut decoder = Decoder::new(0, LIMITS);
    let mut honest = true;
    let mut tape = tape.iter().copied();
    while let Some(act) = tape.next() {
        match act % 16 {
            0..6 => {
                let symbol = source(encoder.window().end);
                let number = encoder.push(&symbol).expect("short enough");
                if act >= 80 {
                    // Refused if too far ahead of what is missing.
                    let _ = decoder.source(number, &symbol);
                }
            }
            6..11 => {
                let mut payload = Vec::new();
                if let Some(repair) = encoder.repair(&mut payload) {
                    if act >= 40 {
                        let _ = decoder.repair(repair, &payload);
                    }
                }
            }
            11 => {
                let window = encoder.window();
                encoder.release_before(window.start + u64::from(act / 64));
            }
            12 => decoder.forget_before(encoder.window().start),
            made_up => {
                honest = false;
                let mut byte = || u64::from(tape.next().unwrap_or(0));
                let number = encoder.window().start.wrapping_add(byte()).wrapping_sub(64);
                let len = byte() as usize % 40;
                let bytes: Vec<u8> = (0..len).map(|_| byte() as u8).collect();
                if made_up == 13 {
                    let _ = decoder.source(number, &bytes);
                } else {
                    let repair = Repair {
                        start: number,
                        count: byte() as u16 % 20,
                        key: byte() as u16,
                    };
                    let _ = decoder.repair(repair, &bytes);
                }
            }
        }
        let status = decoder.status();
        assert!(status.rank <= status.missing && status.rank <= 16);
        assert!(status.missing <= 32);
        while let Some(number) = decoder.poll_recovered() {
            let symbol = decoder.symbol(number).expect("recovered just now");
            assert!(symbol.len() <= 32);
            if honest {
                assert_eq!(symbol, source(number));
            }
        }
    }
});
