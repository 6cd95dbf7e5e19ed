//! What a session does when a path shrinks, in virtual time.

use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use marline_base::{Duration, Instant};

use super::{FlowOptions, Session, Side};
use crate::config::Config;
use crate::flow::Chunk;
use crate::path::PathParams;
use crate::wire::{FlowKind, PathId};

const LEAST: usize = 1_162;
const WIDE: usize = 1_434;

/// What is under way on the wire: when it arrives, at which end, and the datagram.
type Wire = Vec<(Instant, usize, PathId, Bytes)>;

/// Streams 4 MB/s over a path that takes datagrams of `after` bytes only from 1 s on, `trip` there
/// and back; the longest time in which nothing arrived after that, and what datagrams are sent of
/// at the end.
fn stream(trip: Duration, after: usize, carrier_learns: Option<Duration>) -> (Duration, usize) {
    let (mut now, config) = (Instant::ZERO, Config::default());
    let mut ends = [Side::Client, Side::Server]
        .map(|side| Session::new(now, side, config.clone(), config.params(), 7).unwrap());
    let path = PathId(0);
    for end in &mut ends {
        let params = PathParams {
            max_datagram: LEAST,
            rtt: Some(trip),
            ..PathParams::default()
        };
        end.add_path(now, path, &params).unwrap();
        end.path_max_datagram(now, path, WIDE).unwrap();
    }
    let flow = ends[0]
        .open_flow(&FlowOptions::new(FlowKind::Stream))
        .unwrap();
    let chunk = Bytes::from(vec![7; 4_000]);
    let shrinks = Instant::from_millis(1_000);
    let mut wire: Wire = Vec::new();
    let mut datagram = Vec::new();
    let (mut written, mut read) = (0, 0);
    let (mut last, mut longest) = (shrinks, Duration::ZERO);
    let step = Duration::from_micros(200);
    while now < Instant::from_millis(4_000) {
        now += step;
        while written < now.as_micros() as usize * 4 && now < Instant::from_millis(3_000) {
            match ends[0].write(now, flow, &chunk) {
                Ok(taken) => written += taken,
                Err(_) => break,
            }
        }
        if let Some(after_all) = carrier_learns
            && now.since(shrinks + after_all) < step
            && now >= shrinks + after_all
        {
            ends[0].path_max_datagram(now, path, after).unwrap();
        }
        for from in [0, 1] {
            ends[from].handle_timeout(now);
            while let Some(sent) = ends[from].poll_transmit(now, &mut datagram) {
                if now < shrinks || from == 1 || sent.size <= after {
                    let copy = Bytes::copy_from_slice(&datagram);
                    wire.push((now + trip / 2, 1 - from, sent.path, copy));
                }
            }
        }
        let (arrived, rest) = wire.into_iter().partition(|(at, ..)| *at <= now);
        wire = rest;
        for (_, to, path, datagram) in arrived {
            ends[to].handle_datagram(now, path, &datagram);
        }
        while let Chunk::Data(bytes) = ends[1].read(now, flow, usize::MAX) {
            read += bytes.len();
            if now > shrinks {
                longest = longest.max(now.since(last));
                last = now;
            }
        }
    }
    assert_eq!(read, written, "not all came");
    (longest, ends[0].stats().paths[0].max_datagram)
}

#[test]
fn long_datagrams_that_vanish_stop_a_stream_for_some_round_trips() {
    let found = [1, 10, 40, 100].map(|ms| {
        let (longest, size) = stream(Duration::from_millis(ms), 1_234, None);
        assert_eq!(size, LEAST);
        (longest.as_millis() as u64, 5 * ms + 100)
    });
    assert!(found.iter().all(|(is, most)| is <= most), "{found:?} ms");
}

#[test]
fn what_the_carrier_takes_is_heeded_and_a_wide_path_stays_so() {
    let trip = Duration::from_millis(20);
    let (_, size) = stream(trip, 1_234, Some(Duration::from_millis(700)));
    assert_eq!(size, 1_234);
    let (longest, size) = stream(trip, WIDE, None);
    assert_eq!(size, WIDE);
    assert!(longest < Duration::from_millis(20), "{longest:?}");
}
