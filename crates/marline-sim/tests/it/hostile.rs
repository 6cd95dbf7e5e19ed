//! Random tapes for the hostile peer; the fuzz target `session` finds better ones.

use bytes::Bytes;
use marline_proto::path::PathParams;
use marline_proto::wire::{
    Availability, FlowId, FlowKind, FlowReport, Frame, Header, PathAbandon, PathId, PathStatus,
    varint,
};
use marline_proto::{Config, FlowOptions, Session, Side};
use marline_sim::{Instant, Rng, hostile};

#[test]
fn no_peer_breaks_a_session() {
    let tapes = if cfg!(debug_assertions) {
        3_000
    } else {
        30_000
    };
    let (mut ended, mut opened) = (0_u64, 0);
    for seed in 0..tapes {
        let mut rng = Rng::new(seed).stream("hostile");
        let len = 1 + rng.below(4_000);
        let tape: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
        let outcome = std::panic::catch_unwind(|| hostile::feed(&tape));
        let outcome = outcome.unwrap_or_else(|_| panic!("tape of seed {seed}"));
        ended += u64::from(outcome.ended);
        opened += outcome.opened;
    }
    assert!(
        ended > tapes / 2,
        "{ended} sessions ended, the peer is too tame"
    );
    assert!(
        opened > tapes,
        "{opened} flows were opened, the peer is too wild"
    );
}

/// A session with one path, and a peer that writes its own datagrams.
fn lonely() -> Session {
    let config = Config::default();
    let peer = config.params();
    let mut session = Session::new(Instant::ZERO, Side::Server, config, peer, 1).unwrap();
    let params = PathParams::default();
    session.add_path(Instant::ZERO, PathId(0), &params).unwrap();
    session
}

fn datagram(packet: u64, frames: &[Frame<'_>]) -> Bytes {
    let mut out = Vec::new();
    Header { packet }.encode(&mut out);
    frames.iter().for_each(|frame| frame.encode(&mut out));
    out.into()
}

#[test]
fn a_peer_that_acknowledges_nothing_is_not_remembered_for_ever() {
    let mut session = lonely();
    let mut buf = Vec::new();
    for packet in 0..400_000 {
        // A gap before each, so that each is acknowledged at once.
        let now = Instant::from_micros(packet * 50);
        let ping = datagram(packet * 2, &[Frame::Ping]);
        session.handle_datagram(now, PathId(0), &ping);
        session.handle_timeout(now);
        while session.poll_transmit(now, &mut buf).is_some() {}
        while session.poll_event().is_some() {}
    }
    let tracked = session.stats().paths[0].tracked;
    assert!(!session.is_closing());
    assert!(tracked <= 100_000, "{tracked} packets are remembered");
}

/// No peer makes what is shown of a flow larger than what was sent, nor smaller than it said
/// before.
#[test]
fn what_a_peer_reports_of_a_flow_is_no_more_than_was_sent() {
    let mut session = lonely();
    let now = Instant::ZERO;
    let options = FlowOptions::new(FlowKind::Packets);
    let flow = session.open_flow(&options).expect("room");
    for _ in 0..3 {
        let message = Bytes::from_static(b"one");
        session.send(now, flow, message).expect("room");
    }
    let report = |flow, missed, late| {
        Frame::FlowReport(FlowReport {
            flow,
            missed,
            late,
            duplicates: varint::MAX,
        })
    };
    let others = report(FlowId(77), 5, 5);
    let stale = report(flow, 0, 0);
    let frames = [others, report(flow, varint::MAX, 1), stale];
    session.handle_datagram(now, PathId(0), &datagram(0, &frames));
    assert!(!session.is_closing());
    let counters = session.flow_counters(flow).expect("open");
    assert_eq!((counters.peer_missed, counters.peer_late), (3, 1));
}

#[test]
fn a_flood_of_path_status_and_abandon_is_taken_calmly() {
    let mut session = lonely();
    let flood: Vec<Frame<'_>> = (0..200)
        .map(|sequence| {
            Frame::PathStatus(PathStatus {
                path: PathId(sequence & 1),
                sequence: varint::MAX - 1_000 + sequence,
                status: match sequence & 2 {
                    0 => Availability::Standby,
                    _ => Availability::Available,
                },
            })
        })
        .collect();
    session.handle_datagram(Instant::ZERO, PathId(0), &datagram(0, &flood));
    let abandon = [0, 0, 1, 2, varint::MAX].map(|path| {
        Frame::PathAbandon(PathAbandon {
            path: PathId(path),
            code: 0,
        })
    });
    session.handle_datagram(Instant::ZERO, PathId(0), &datagram(1, &abandon));
    let events = std::iter::from_fn(|| session.poll_event()).count();
    assert!(events <= 202, "{events} events");
    assert!(!session.is_closing());
    assert!(session.stats().paths.is_empty());
    let mut buf = Vec::new();
    assert_eq!(session.poll_transmit(Instant::ZERO, &mut buf), None);
    assert!(
        session.poll_timeout(Instant::ZERO).is_some(),
        "it waits for the idle limit"
    );
}
