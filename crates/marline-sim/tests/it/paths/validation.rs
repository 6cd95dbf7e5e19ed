//! A path that nobody has answered on yet.

use bytes::Bytes;
use marline_proto::path::PathParams;
use marline_proto::wire::{Ack, Arrival, Frame, Header, PathId, decode};
use marline_proto::{Config, Session, Side};
use marline_sim::Instant;

const PATH: PathId = PathId(0);

/// A datagram of the peer, written by hand.
fn hear(session: &mut Session, now: Instant, packet: u64, frame: &Frame<'_>) {
    let mut datagram = Vec::new();
    Header { packet }.encode(&mut datagram);
    frame.encode(&mut datagram);
    session.handle_datagram(now, PATH, &Bytes::from(datagram));
}

/// Of the datagrams that leave now: whether each is a question.
fn questions(session: &mut Session, now: Instant) -> Vec<bool> {
    let mut buf = Vec::new();
    let mut found = Vec::new();
    while session.poll_transmit(now, &mut buf).is_some() {
        let (_, frames) = decode(&buf).expect("its own datagram");
        let mut frames = frames.map(|frame| frame.expect("its own frame"));
        found.push(frames.any(|frame| matches!(frame, Frame::Ping)));
    }
    found
}

/// A session whose path was asked for the first time, at the beginning.
fn asking() -> Session {
    let (config, now) = (Config::default(), Instant::ZERO);
    let peer = config.params();
    let mut session = Session::new(now, Side::Client, config, peer, 1).expect("good");
    let added = session.add_path(now, PATH, &PathParams::default());
    added.expect("a path");
    assert_eq!(questions(&mut session, now), [true]);
    session
}

/// When it is asked again within two seconds (ms), if nothing more is heard from `now` on.
fn asked_again(session: &mut Session, mut now: Instant) -> Vec<u64> {
    let mut asked = Vec::new();
    while let Some((at, _)) = session.poll_timeout(now)
        && at <= Instant::from_millis(2_000)
    {
        now = now.max(at);
        session.handle_timeout(now);
        if questions(session, now).contains(&true) {
            asked.push(now.as_micros() / 1_000);
        }
    }
    asked
}

/// A peer may acknowledge any datagram. When the question is known to be lost by a later one that
/// asked for nothing, nothing is outstanding, and the path must be asked again nevertheless.
#[test]
fn it_is_asked_again_though_the_question_is_known_to_be_lost() {
    let mut session = asking();
    let now = Instant::from_millis(10);
    hear(&mut session, now, 0, &Frame::Ping);
    assert_eq!(questions(&mut session, now), [false], "an acknowledgement");
    let ack = Ack {
        path: PATH,
        delay_us: 0,
        ranges: vec![1..=1],
        arrivals: vec![Arrival {
            packet: 1,
            at_us: 15_000,
        }],
    };
    let now = Instant::from_millis(20);
    hear(&mut session, now, 1, &Frame::Ack(ack));
    let asked = asked_again(&mut session, now);
    assert!(!asked.is_empty(), "it is given up after 3 s");
}

/// All waits for the first answer, and each question may be lost.
#[test]
fn it_is_asked_again_soon_and_then_ever_more_seldom() {
    let asked = asked_again(&mut asking(), Instant::ZERO);
    assert_eq!(asked, [25, 75, 175, 375, 775, 1_575]);
}
