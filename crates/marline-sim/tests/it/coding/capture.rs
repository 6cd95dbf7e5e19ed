//! A capture of what arrived decodes without a session, and gives the stream.

use std::collections::BTreeMap;

use bytes::Bytes;
use marline_fec::stream::{Decoder, Limits, Repair};
use marline_proto::path::PathParams;
use marline_proto::wire::{Content, Frame, PathId, decode};
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
        while let marline_proto::flow::Chunk::Data(data) = server.read(flow, 1 << 20) {
            read += data.len() as u64;
        }
        assert!(now < Instant::from_micros(20_000_000), "{read} bytes read");
    }
    let counters = server.flow_counters(flow).expect("the flow is open");
    (arrived, counters.recovered_symbols)
}

#[test]
fn a_capture_of_a_lossy_session_decodes_offline() {
    let (arrived, recovered_there) = capture(3);
    let mut decoder = Decoder::new(0, Limits::default());
    let mut stream: Vec<Option<u8>> = vec![None; BYTES as usize];
    let mut place = |content: &[u8]| match Content::decode(content) {
        Ok(Content::Stream { offset, data, .. }) => {
            for (at, byte) in (offset..).zip(data) {
                assert_eq!(*byte, pattern(0, at), "byte {at}");
                stream[at as usize] = Some(*byte);
            }
        }
        other => panic!("a stream's symbol holds {other:?}"),
    };
    let mut recovered = 0;
    for datagram in &arrived {
        let (_, frames) = decode(datagram).expect("a header");
        for frame in frames {
            match frame.expect("a frame") {
                Frame::Symbol(symbol) => {
                    decoder
                        .source(symbol.symbol, symbol.content)
                        .expect("no contradiction");
                    place(symbol.content);
                }
                Frame::Repair(symbol) => {
                    let repair = Repair {
                        start: symbol.first,
                        count: symbol.count,
                        key: symbol.key,
                    };
                    decoder
                        .repair(repair, symbol.payload)
                        .expect("no contradiction");
                }
                Frame::Stream(stream) => panic!("not coded: {stream:?}"),
                _ => {}
            }
            while let Some(number) = decoder.poll_recovered() {
                recovered += 1;
                place(decoder.symbol(number).expect("it came out just now"));
            }
        }
    }
    assert!(stream.iter().all(Option::is_some), "the stream has gaps");
    assert_eq!(recovered, recovered_there, "the session saw the same");
    assert!(recovered > 40, "{recovered} symbols came out");
}
