//! The streaming code with symbols of 1400 bytes: `cargo bench -p marline-fec --bench stream`.
//!
//! Encoding: one repair symbol over a window. Recovering: what the repair symbols of a window cost
//! that bring back what was lost in it, beyond the cost of taking the source symbols. A stream: all
//! that the receiving side does.

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]

mod common;

use std::collections::VecDeque;
use std::hint::black_box;

use common::{alone, bytes, paired};
use marline_fec::coefficients;
use marline_fec::stream::{Decoder, Encoder, Limits, Repair};

const LEN: usize = 1400;

fn limits(window: u16) -> Limits {
    Limits {
        window,
        symbol: LEN as u16,
    }
}

fn full(window: u16) -> (Encoder, Vec<Vec<u8>>) {
    let sources: Vec<Vec<u8>> = (0..window).map(|i| bytes(LEN, i.into())).collect();
    let mut encoder = Encoder::new(0, limits(window));
    for source in &sources {
        encoder.push(source).expect("short enough");
    }
    (encoder, sources)
}

/// Nanoseconds for a repair symbol over `window`.
fn encode(window: u16) -> f64 {
    let (mut encoder, _) = full(window);
    let mut out = Vec::new();
    let whole = alone(&mut || {
        black_box(encoder.repair(black_box(&mut out)));
    });
    let mut drawn = vec![0; window.into()];
    let mut key = 0_u16;
    let drawing = alone(&mut || {
        key = key.wrapping_add(1);
        coefficients(key, black_box(&mut drawn));
    });
    println!(
        "encode over {window}: {whole:.0} ns; {:.2} GB/s; coefficients of one key alone: {drawing:.0} ns",
        LEN as f64 / whole
    );
    whole
}

/// Recovers every `nth` symbol of a window, all repair symbols behind it.
fn recover(window: u16, nth: u16, encode: f64) {
    let (mut encoder, sources) = full(window);
    let lost = (0..window).step_by(nth.into()).count();
    let repairs: Vec<(Repair, Vec<u8>)> = (0..lost + 2)
        .map(|_| {
            let mut payload = Vec::new();
            let repair = encoder.repair(&mut payload).expect("a window");
            (repair, payload)
        })
        .collect();
    let mut decoder = Decoder::new(0, limits(window));
    let mut pass = |repair: bool| {
        // The same decoder, made empty: its buffers stay as in a long stream.
        let first = decoder.status().end;
        decoder.forget_before(first.next_multiple_of(window.into()));
        let first = decoder.status().end;
        for (number, source) in (0..).zip(&sources) {
            if number % nth != 0 {
                decoder
                    .source(first + u64::from(number), source)
                    .expect("taken");
            }
        }
        if repair {
            for (repair, payload) in &repairs {
                let repair = Repair {
                    start: first,
                    ..*repair
                };
                decoder.repair(repair, payload).expect("taken");
                if decoder.status().missing == 0 {
                    break;
                }
            }
            assert_eq!(decoder.status().missing, 0, "two repair symbols to spare");
        }
    };
    let with = &mut |on: bool| pass(on);
    let with = std::cell::RefCell::new(with);
    let (both, sources_only, _) = paired(&mut || with.borrow_mut()(true), &mut || {
        with.borrow_mut()(false)
    });
    let each = (both - sources_only) / lost as f64;
    println!(
        "recover {lost} of {window}: {each:.0} ns each, {:.2} of encoding; taking a source symbol: {:.0} ns",
        each / encode,
        sources_only / f64::from(window)
    );
}

/// What arrives of a stream with `loss` per cent lost and a repair symbol after every `every`
/// source symbols, over a window of `window`.
fn stream(window: u16, loss: u64, every: u64) {
    enum Arrival {
        Source(u64, Vec<u8>),
        Repair(Repair, Vec<u8>),
    }
    const COUNT: u64 = 4000;
    let mut encoder = Encoder::new(0, limits(window));
    let lost =
        |n: u64| bytes(1, n.wrapping_mul(0x1234_5678_9abc_def1))[0] < (loss * 256 / 100) as u8;
    let mut arrivals = VecDeque::new();
    for number in 0..COUNT {
        let source = bytes(LEN, number);
        encoder.push(&source).expect("short enough");
        if !lost(number) {
            arrivals.push_back(Arrival::Source(number, source));
        }
        if number % every == 0 && !lost(COUNT + number) {
            let mut payload = Vec::new();
            let repair = encoder.repair(&mut payload).expect("a window");
            arrivals.push_back(Arrival::Repair(repair, payload));
        }
    }
    let mut left = 0;
    let whole = alone(&mut || {
        let mut decoder = Decoder::new(0, limits(window));
        for arrival in &arrivals {
            match arrival {
                Arrival::Source(number, source) => {
                    decoder.forget_before(number.saturating_sub(window.into()));
                    decoder.source(*number, source).expect("taken");
                }
                Arrival::Repair(repair, payload) => {
                    decoder.repair(*repair, payload).expect("taken");
                }
            }
            while let Some(number) = decoder.poll_recovered() {
                black_box(decoder.symbol(number));
            }
        }
        left = decoder.status().missing;
    });
    println!(
        "stream over {window}, {loss} % lost, a repair symbol every {every}: {:.2} GB/s received, {left} missing at the end",
        (COUNT as usize * LEN) as f64 / whole
    );
}

fn main() {
    for window in [64, 256] {
        let encode = encode(window);
        for nth in [20, 10, 4] {
            recover(window, nth, encode);
        }
        stream(window, 5, 10);
    }
}
