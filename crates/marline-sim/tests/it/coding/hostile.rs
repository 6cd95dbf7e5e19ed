//! A peer that sends symbols which cannot be: it is ignored or sent away, and costs little.

use bytes::Bytes;
use marline_fec::stream::{Encoder, Limits};
use marline_proto::path::PathParams;
use marline_proto::wire::{
    CodeStatus, Content, DeliveryOrder, Frame, Header, OpenFlow, PathId, RepairSymbol,
    SourceSymbol, varint,
};
use marline_proto::{CloseReason, Config, Event, Session, Side};
use marline_sim::{Instant, Rng};

use super::*;

/// A server with one path and a peer that writes its own datagrams, on stream 0.
struct Victim {
    session: Session,
    packets: u64,
}

const FLOW: FlowId = FlowId(0);

impl Victim {
    fn new() -> Self {
        let config = Config::default();
        let peer = config.params();
        let now = Instant::ZERO;
        let mut session = Session::new(now, Side::Server, config, peer, 1).expect("good");
        let params = PathParams::default();
        session.add_path(now, PathId(0), &params).expect("a path");
        let mut victim = Self {
            session,
            packets: 0,
        };
        victim.hear(&Frame::OpenFlow(OpenFlow {
            flow: FLOW,
            kind: FlowKind::Stream,
            order: DeliveryOrder::InOrder,
            priority: 3,
            lifetime_us: 0,
            target: b"",
        }));
        victim
    }

    fn hear(&mut self, frame: &Frame<'_>) {
        let mut out = Vec::new();
        let packet = self.packets;
        Header { packet }.encode(&mut out);
        frame.encode(&mut out);
        self.packets += 1;
        let now = Instant::from_micros(packet);
        self.session
            .handle_datagram(now, PathId(0), &Bytes::from(out));
        let mut buf = Vec::new();
        while self.session.poll_transmit(now, &mut buf).is_some() {}
    }

    fn source(&mut self, symbol: u64, offset: u64, data: &[u8]) {
        let fin = false;
        let content = content(offset, fin, data);
        self.hear(&Frame::Symbol(SourceSymbol {
            flow: FLOW,
            symbol,
            content: &content,
        }));
    }

    fn repair(&mut self, first: u64, count: u16, key: u16, payload: &[u8]) {
        self.hear(&Frame::Repair(RepairSymbol {
            flow: FLOW,
            first,
            count,
            key,
            payload,
        }));
    }

    /// What the session said when it ended, if it did.
    fn verdict(&mut self) -> Option<String> {
        let events = std::iter::from_fn(|| self.session.poll_event());
        let ends = events.filter_map(|event| match event {
            Event::Closed(CloseReason::Protocol { reason, .. }) => Some(reason),
            Event::Closed(other) => Some(format!("{other:?}")),
            _ => None,
        });
        ends.last()
    }

    fn unread(&self) -> u64 {
        self.session.stats().flows.first().map_or(0, |f| f.unread)
    }
}

fn content(offset: u64, fin: bool, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Content::Stream { offset, fin, data }.encode(&mut out);
    out
}

/// Payload and key of a combination of these contents, the first of which is symbol 0.
fn combined(contents: &[Vec<u8>]) -> (u16, Vec<u8>) {
    let mut encoder = Encoder::new(0, Limits::default());
    for content in contents {
        encoder.push(content).expect("short");
    }
    let mut payload = Vec::new();
    let repair = encoder.repair(&mut payload).expect("a window");
    (repair.key, payload)
}

#[test]
fn a_combination_wider_than_agreed_ends_the_session() {
    let mut victim = Victim::new();
    victim.repair(0, 257, 0, &[0; 100]);
    let verdict = victim.verdict().expect("it ended");
    assert!(verdict.contains("257 symbols"), "{verdict}");
}

#[test]
fn a_symbol_longer_than_agreed_ends_the_session() {
    let mut victim = Victim::new();
    victim.source(0, 0, &[7; 1_501]);
    let verdict = victim.verdict().expect("it ended");
    assert!(verdict.contains("not agreed"), "{verdict}");
}

#[test]
fn contents_that_contradict_each_other_end_the_session() {
    let mut victim = Victim::new();
    victim.source(5, 0, b"one thing");
    victim.source(5, 0, b"one thing");
    assert_eq!(victim.verdict(), None, "twice the same is no contradiction");
    victim.source(5, 0, b"a lie");
    let verdict = victim.verdict().expect("it ended");
    assert!(verdict.contains("contradict"), "{verdict}");
}

#[test]
fn a_symbol_that_comes_out_as_nonsense_ends_the_session() {
    // A combination of one symbol says what it is: a content of a type that there is not.
    for nonsense in [&b"\xff\xff"[..], b""] {
        let (key, payload) = combined(&[nonsense.to_vec()]);
        let mut victim = Victim::new();
        victim.repair(0, 1, key, &payload);
        let verdict = victim.verdict().expect("it ended");
        assert!(verdict.contains("nonsense"), "{verdict}");
    }
}

#[test]
fn what_comes_out_is_held_to_the_rules_of_what_arrives() {
    // Bytes beyond the credit of the stream, in a combination.
    let far = Config::default().flow_window + 1;
    let (key, payload) = combined(&[content(far, false, b"too far")]);
    let mut victim = Victim::new();
    victim.repair(0, 1, key, &payload);
    let verdict = victim.verdict().expect("it ended");
    assert!(verdict.contains("credit"), "{verdict}");
}

#[test]
fn duplicates_and_stale_combinations_change_nothing() {
    let contents: Vec<Vec<u8>> = (0..4)
        .map(|i| content(100 * i, false, &[i as u8; 100]))
        .collect();
    let (key, payload) = combined(&contents);
    let mut victim = Victim::new();
    for (number, _) in contents.iter().enumerate().skip(1) {
        let i = number as u64;
        victim.source(i, 100 * i, &[i as u8; 100]);
    }
    assert_eq!(victim.unread(), 400, "out of order, but counted");
    for _ in 0..50 {
        victim.repair(0, 4, key, &payload);
    }
    assert_eq!(victim.verdict(), None);
    let mut read = Vec::new();
    let now = Instant::ZERO;
    while let marline_proto::flow::Chunk::Data(data) = victim.session.read(now, FLOW, 1_000) {
        read.extend_from_slice(&data);
    }
    assert_eq!(read.len(), 400);
    let counters = victim.session.flow_counters(FLOW).expect("open");
    assert_eq!(
        (counters.received_repairs, counters.recovered_symbols),
        (50, 1)
    );
}

#[test]
fn numbers_that_leap_ahead_are_taken_calmly() {
    let mut victim = Victim::new();
    let mut rng = Rng::new(1);
    let mut number = 0_u64;
    for i in 0..20_000_u64 {
        number = match i % 4 {
            0 => number + 1,
            1 => number.saturating_add(rng.below(1_000)),
            2 => number.saturating_add(rng.below(1 << 40)),
            _ => rng.below(number + 1),
        }
        .min(varint::MAX - 2_000);
        if rng.chance(0.5) {
            // Nothing new for the stream itself.
            victim.source(number, 0, b"");
        } else {
            let count = 1 + rng.below(256) as u16;
            let payload = [0; 40];
            victim.repair(number, count, rng.below(1 << 16) as u16, &payload);
        }
        // Combinations of nothing but zeros make symbols that are no content.
        if let Some(verdict) = victim.verdict() {
            assert!(verdict.contains("nonsense") || verdict.contains("contradict"));
            victim = Victim::new();
            number = 0;
        }
    }
}

#[test]
fn a_status_of_what_never_left_ends_the_session() {
    for (next, repairs) in [(1_000_000, 0), (0, 1_000_000)] {
        let now = Instant::ZERO;
        let config = Config::default();
        let peer = config.params();
        let mut session = Session::new(now, Side::Client, config, peer, 1).expect("good");
        let params = PathParams::default();
        session.add_path(now, PathId(0), &params).expect("a path");
        let options = options(FlowKind::Stream, tau("tau-3"));
        let flow = session.open_flow(&options).expect("a flow");
        session
            .write(now, flow, &Bytes::from_static(&[7; 9_000]))
            .expect("room");
        let mut victim = Victim {
            session,
            packets: 0,
        };
        victim.hear(&Frame::CodeStatus(CodeStatus {
            flow,
            ..CodeStatus::default()
        }));
        assert_eq!(victim.verdict(), None, "an honest one");
        victim.hear(&Frame::CodeStatus(CodeStatus {
            flow,
            next,
            repairs,
            ..CodeStatus::default()
        }));
        let verdict = victim.verdict().expect("it ended");
        assert!(verdict.contains("never sent"), "{verdict}");
    }
}
