//! A capture of what arrived decodes without a session, and gives the stream.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use cu_fec::{DensityThreshold, EncodingSymbolId, Field, RepairPayloadId, RlcConfig, RlcDecoder};
use marline_fec::stream::{Decoder, Limits, Repair};
use marline_proto::path::PathParams;
use marline_proto::wire::{Content, Frame, PathId, RepairSymbol, SourceSymbol, decode};
use marline_proto::{Config, Session, Side};
use marline_sim::{Instant, Rng};

use super::*;
use crate::kit::pattern;

const BYTES: u64 = 600_000;
const DELAY: Duration = ms(20);

/// Two sessions, a wire of 20 ms that loses every tenth datagram of the client, and all that
/// reached the server. Nothing of it is the simulator's.
fn capture(seed: u64) -> (Vec<Bytes>, u64) {
    let now = Instant::ZERO;
    let config = Config::default();
    let session = |side| Session::new(now, side, config.clone(), config.params(), seed);
    let mut client = session(Side::Client).expect("a good configuration");
    let mut server = session(Side::Server).expect("a good configuration");
    let (path, params) = (PathId(0), PathParams::default());
    client.add_path(now, path, &params).expect("a path");
    server.add_path(now, path, &params).expect("a path");
    let options = options(FlowKind::Stream, tau("tau-3"));
    let flow = client.open_flow(&options).expect("a flow");

    let mut rng = Rng::new(seed);
    let mut arrived = Vec::new();
    let mut wire: BTreeMap<(Instant, u64), (bool, Bytes)> = BTreeMap::new();
    let (mut written, mut read, mut sent, mut now) = (0, 0, 0, now);
    let (mut buf, mut steps) = (Vec::new(), 0);
    while read < BYTES {
        // One kilobyte each millisecond.
        if written < BYTES && written < now.as_micros() {
            let piece: Bytes = (written..BYTES.min(written + 1_000))
                .map(|offset| pattern(flow.0, offset))
                .collect();
            written += client.write(now, flow, &piece).unwrap_or(0) as u64;
        }
        for (to_server, session) in [(true, &mut client), (false, &mut server)] {
            while session.poll_transmit(now, &mut buf).is_some() {
                sent += 1;
                if !to_server || !rng.chance(0.1) {
                    let datagram = (to_server, Bytes::copy_from_slice(&buf));
                    wire.insert((now + DELAY, sent), datagram);
                }
            }
            while session.poll_event().is_some() {}
        }
        let timers = [&client, &server].map(|s| s.poll_timeout(now).map(|(at, _)| at));
        let next = wire.first_key_value().map(|((at, _), _)| *at);
        let write = Instant::from_micros(written + 1);
        // A write that found no room waits for whatever comes next.
        let write = (written < BYTES && write > now).then_some(write);
        let wakes = timers.into_iter().chain([next, write]).flatten();
        now = wakes.min().expect("something happens").max(now);
        steps += 1;
        assert!(steps < 100_000, "time stands still at {now:?}");
        while let Some(entry) = wire.first_entry()
            && entry.key().0 <= now
        {
            let (to_server, datagram) = entry.remove();
            if to_server {
                server.handle_datagram(now, path, &datagram);
                arrived.push(datagram);
            } else {
                client.handle_datagram(now, path, &datagram);
            }
        }
        client.handle_timeout(now);
        server.handle_timeout(now);
        while let marline_proto::flow::Chunk::Data(data) = server.read(now, flow, 1 << 20) {
            read += data.len() as u64;
        }
        assert!(now < Instant::from_micros(20_000_000), "{read} bytes read");
    }
    let counters = server.flow_counters(flow).expect("the flow is open");
    (arrived, counters.recovered_symbols)
}

/// The stream as far as it is known.
struct Gathered(Vec<Option<u8>>);

impl Gathered {
    fn new() -> Self {
        Self(vec![None; BYTES as usize])
    }

    /// Takes a symbol's content.
    fn place(&mut self, content: &[u8]) {
        match Content::decode(content) {
            Ok(Content::Stream { offset, data, .. }) => {
                for (at, byte) in (offset..).zip(data) {
                    assert_eq!(*byte, pattern(0, at), "byte {at}");
                    self.0[at as usize] = Some(*byte);
                }
            }
            other => panic!("a stream's symbol holds {other:?}"),
        }
    }

    fn is_whole(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }
}

/// What of a datagram concerns the code.
enum Coded<'a> {
    Source(SourceSymbol<'a>),
    Repair(RepairSymbol<'a>),
}

fn coded(datagram: &[u8]) -> Vec<Coded<'_>> {
    let (_, frames) = decode(datagram).expect("a header");
    let mut found = Vec::new();
    for frame in frames {
        match frame.expect("a frame") {
            Frame::Symbol(symbol) => found.push(Coded::Source(symbol)),
            Frame::Repair(symbol) => found.push(Coded::Repair(symbol)),
            Frame::Stream(stream) => panic!("not coded: {stream:?}"),
            _ => {}
        }
    }
    found
}

#[test]
fn a_capture_of_a_lossy_session_decodes_offline() {
    let (arrived, recovered_there) = capture(3);
    let mut decoder = Decoder::new(0, Limits::default());
    let mut stream = Gathered::new();
    let mut recovered = 0;
    for coded in arrived.iter().flat_map(|datagram| coded(datagram)) {
        match coded {
            Coded::Source(symbol) => {
                let taken = decoder.source(symbol.symbol, symbol.content);
                taken.expect("no contradiction");
                stream.place(symbol.content);
            }
            Coded::Repair(symbol) => {
                let repair = Repair {
                    start: symbol.first,
                    count: symbol.count,
                    key: symbol.key,
                };
                let taken = decoder.repair(repair, symbol.payload);
                taken.expect("no contradiction");
            }
        }
        while let Some(number) = decoder.poll_recovered() {
            recovered += 1;
            stream.place(decoder.symbol(number).expect("it came out just now"));
        }
    }
    assert!(stream.is_whole(), "the stream has gaps");
    assert_eq!(recovered, recovered_there, "the session saw the same");
    assert!(recovered > 40, "{recovered} symbols came out");
}

/// Longest symbol of the other implementation, which has them all of one length: ours with their
/// length before and zeros behind.
const SYMBOL: usize = 1_500;
/// Symbols that it looks back on, and equations that it keeps.
const WINDOW: usize = 256;
const EQUATIONS: usize = 64;

/// A whole symbol of the other implementation.
fn whole(bytes: &[u8]) -> [u8; SYMBOL] {
    let mut whole = [0; SYMBOL];
    whole[..bytes.len()].copy_from_slice(bytes);
    whole
}

/// Decodes with `cu-fec`, which has RFC 8681's code from another hand; how many symbols came out
/// that had not arrived.
fn decode_elsewhere(arrived: &[Bytes], stream: &mut Gathered) -> u64 {
    let config = RlcConfig::new(SYMBOL, WINDOW, Field::Gf256).expect("a configuration");
    let decoder = RlcDecoder::<SYMBOL, WINDOW, EQUATIONS>::new(config, EQUATIONS);
    let mut decoder = decoder.expect("a decoder");
    let first = EncodingSymbolId::new(0);
    decoder.discard_before(first).expect("it begins there");
    let (mut seen, mut recovered) = (BTreeSet::new(), 0);
    for coded in arrived.iter().flat_map(|datagram| coded(datagram)) {
        let news = match coded {
            Coded::Source(symbol) => {
                seen.insert(symbol.symbol as u32);
                let length = (symbol.content.len() as u16).to_be_bytes();
                let framed = whole(&[&length[..], symbol.content].concat());
                let taken =
                    decoder.receive_source(first.wrapping_add(symbol.symbol as u32), &framed);
                stream.place(symbol.content);
                taken.expect("no contradiction").recovered()
            }
            Coded::Repair(symbol) => {
                let id = RepairPayloadId::new(
                    symbol.key,
                    DensityThreshold::FULL,
                    symbol.count,
                    first.wrapping_add(symbol.first as u32),
                );
                let taken =
                    decoder.receive_repair(id.expect("an identifier"), &whole(symbol.payload));
                taken.expect("no contradiction").recovered()
            }
        };
        if news > 0 {
            for (id, symbol) in decoder.known_symbols() {
                if seen.insert(id.get()) {
                    recovered += 1;
                    let length = usize::from(u16::from_be_bytes([symbol[0], symbol[1]]));
                    stream.place(&symbol[2..2 + length]);
                    assert!(symbol[2 + length..].iter().all(|byte| *byte == 0));
                }
            }
        }
    }
    recovered
}

#[test]
fn a_capture_of_a_lossy_session_decodes_by_another_implementation() {
    let (arrived, recovered_there) = capture(3);
    let mut stream = Gathered::new();
    // Its decoder lies on the stack, all of it.
    let recovered = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(16 << 20);
        let thread = thread.spawn_scoped(scope, || decode_elsewhere(&arrived, &mut stream));
        thread.expect("a thread").join().expect("decoded")
    });
    assert!(stream.is_whole(), "the stream has gaps");
    assert_eq!(recovered, recovered_there, "the session saw the same");
}
