//! A peer that sends whatever the bytes of a tape say: valid frames in any order, numbers at the
//! edges, broken datagrams; and an application at this end that does whatever the tape says too.
//!
//! The session under test must neither panic, nor hold more than its configuration allows, nor
//! ask for the same instant for ever. Fuzzing and tests share this driver.

use bytes::Bytes;
use marline_base::{Duration, Instant};
use marline_proto::flow::{BlockTerms, ObjectOptions};
use marline_proto::path::PathParams;
use marline_proto::wire::{self, FlowId, FlowKind, Header, PathId, frame_type as ty, varint};
use marline_proto::{Config, Event, FlowOptions, Session, Side};

mod coded;

const FLOW_WINDOW: u64 = 16 << 10;
const SESSION_WINDOW: u64 = 40 << 10;
const SEND_BUFFER: u64 = 20 << 10;
const MAX_FLOWS: u64 = 8;
const MAX_UNITS: u64 = 40;
const MAX_REPAIRS: u64 = 20;
/// What a message that is not whole may exceed the window by.
const LARGEST_MESSAGE: u64 = 66_000;
/// Most datagrams that one instant may bring forth.
const MOST_AT_ONCE: usize = 2_000;

/// What happened to a session that was fed a tape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Datagrams that the peer sent.
    pub fed: u64,
    /// Datagrams that the session sent.
    pub sent: u64,
    /// Flows that the peer opened.
    pub opened: u64,
    /// The session ended.
    pub ended: bool,
}

struct Tape<'a> {
    bytes: &'a [u8],
    /// Most of the tape keeps to the rules, so that the session lives to see more of it.
    tame: bool,
    /// Parity of the flows that the peer opens.
    parity: u64,
}

impl Tape<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        *first
    }

    /// Break a rule now?
    fn misbehaves(&mut self) -> bool {
        !self.tame || self.byte() == 255
    }

    /// Mostly small, now and then near a limit that something could overflow at.
    fn number(&mut self, near: u64) -> u64 {
        if !self.misbehaves() {
            return u64::from(self.byte());
        }
        match self.byte() {
            n @ 0..=127 => u64::from(n),
            128..=191 => (near + u64::from(self.byte()))
                .saturating_sub(8)
                .min(varint::MAX),
            192..=207 => u64::from(self.byte()) << 8 | u64::from(self.byte()),
            208..=223 => u64::from(self.byte()) << 24,
            224..=239 => varint::MAX - u64::from(self.byte()),
            240..=247 => 1 << (self.byte() % 62),
            _ => 65_536 - u64::from(self.byte() & 3),
        }
    }

    /// A flow; tame peers open one kind of flow under the indices of each residue.
    fn flow(&mut self, kind: Option<u64>) -> u64 {
        if self.misbehaves() {
            return self.number(2 * MAX_FLOWS).min(varint::MAX);
        }
        let index = u64::from(self.byte()) % MAX_FLOWS;
        match kind {
            Some(kind) => (index & !3 | kind) << 1 | self.parity,
            None => index << 1 | self.parity,
        }
    }
}

impl Tape<'_> {
    /// A flow of blocks or of objects.
    fn flow_of_units(&mut self) -> u64 {
        let kind = 2 + u64::from(self.byte() & 1);
        self.flow(Some(kind))
    }

    /// Sizes of units: tame peers always give the same.
    fn unit_size(&mut self) -> u64 {
        match self.misbehaves() {
            true => self.number(FLOW_WINDOW).clamp(1, wire::MAX_UNIT),
            false => 640,
        }
    }

    /// Bytes of a unit that a tame peer could send: its heading is one.
    fn unit_bytes(&mut self, offset: u64, len: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + len as usize, 0);
        if offset == 0 && len >= 4 {
            let object = self.byte() % 8;
            out[start..start + 4].copy_from_slice(&[object, 0, 0, 1]);
        }
    }
}

struct Trial<'a> {
    tape: Tape<'a>,
    now: Instant,
    session: Session,
    /// Packet number that the peer sends next, by path.
    next: [u64; 2],
    /// Newest packet number that the session sent, by path.
    sent: [u64; 2],
    outcome: Outcome,
    buf: Vec<u8>,
}

/// Feeds a session the tape.
///
/// # Panics
/// If the session does, or if it breaks a bound that it states.
pub fn feed(tape: &[u8]) -> Outcome {
    let mut tape = Tape {
        bytes: tape,
        tame: false,
        parity: 1,
    };
    let coding = "s-edpf:tau=4".parse();
    let config = Config {
        code_window: 16,
        stream_scheduler: match tape.byte() & 1 {
            0 => Config::default().stream_scheduler,
            _ => coding.unwrap_or_else(|error| panic!("{error:?}")),
        },
        flow_window: FLOW_WINDOW,
        session_window: SESSION_WINDOW,
        send_buffer: SEND_BUFFER,
        max_flows: MAX_FLOWS,
        max_units: MAX_UNITS,
        max_repairs: MAX_REPAIRS,
        ..Config::default()
    };
    let side = match tape.byte() & 1 {
        0 => Side::Client,
        _ => Side::Server,
    };
    tape.parity = u64::from(side == Side::Client);
    tape.tame = tape.byte() < 200;
    let peer = wire::Params {
        max_data: tape.number(SESSION_WINDOW),
        max_flow_data: tape.number(FLOW_WINDOW),
        max_flows: tape.number(MAX_FLOWS).min(wire::MAX_FLOW_COUNT),
        ..config.params()
    };
    let now = Instant::from_millis(1);
    let session = Session::new(now, side, config, peer, 1)
        .unwrap_or_else(|error| panic!("the configuration is sound: {error}"));
    let mut trial = Trial {
        tape,
        now,
        session,
        next: [0; 2],
        sent: [0; 2],
        outcome: Outcome::default(),
        buf: Vec::new(),
    };
    for id in 0..2 {
        let params = PathParams::default();
        let added = trial.session.add_path(now, PathId(id), &params);
        added.unwrap_or_else(|error| panic!("a fresh session takes a path: {error}"));
    }
    while !trial.tape.bytes.is_empty() {
        trial.step();
        trial.settle();
    }
    trial.outcome
}

impl Trial<'_> {
    fn step(&mut self) {
        match self.tape.byte() {
            0..=159 => self.datagram(),
            160..=167 if !self.tape.tame => self.garbage(),
            160..=199 => self.wait(),
            200..=255 => self.application(),
        }
    }

    /// The session says all that it has to say; its bounds hold.
    fn settle(&mut self) {
        for n in 0.. {
            assert!(n < MOST_AT_ONCE, "{n} datagrams at one instant");
            let Some(transmit) = self.session.poll_transmit(self.now, &mut self.buf) else {
                break;
            };
            self.outcome.sent += 1;
            let decoded = wire::decode(&self.buf);
            let (header, frames) = decoded.unwrap_or_else(|error| panic!("sent {error}"));
            frames.for_each(|frame| drop(frame.unwrap_or_else(|error| panic!("sent {error}"))));
            if let Some(sent) = self.sent.get_mut(transmit.path.0 as usize) {
                *sent = header.packet;
            }
        }
        for n in 0.. {
            assert!(n < MOST_AT_ONCE, "{n} events at one instant");
            match self.session.poll_event() {
                None => break,
                Some(Event::FlowOpened(_)) => self.outcome.opened += 1,
                Some(Event::Closed(_)) => self.outcome.ended = true,
                Some(_) => {}
            }
        }
        if self.session.is_closing() {
            return;
        }
        let stats = self.session.stats();
        let mut unread = 0;
        for flow in &stats.flows {
            let limit = match flow.kind {
                FlowKind::Packets => FLOW_WINDOW + LARGEST_MESSAGE,
                _ => FLOW_WINDOW,
            };
            assert!(flow.unread <= limit, "holds too much: {flow:?}");
            assert!(flow.unacked <= SEND_BUFFER, "{flow:?}");
            unread += u64::from(flow.kind != FlowKind::Packets) * flow.unread;
        }
        assert!(unread <= SESSION_WINDOW, "{unread} bytes unread");
        assert!(
            stats.flows.len() as u64 <= 3 * MAX_FLOWS + 64,
            "too many flows"
        );
        for path in &stats.paths {
            assert!(path.tracked <= 70_000, "{path:?}");
        }
    }

    /// Lets time pass, timer by timer.
    fn wait(&mut self) {
        let limit = self.now + Duration::from_millis(1 << (self.tape.byte() % 13));
        for n in 0.. {
            assert!(
                n < 100_000,
                "timers run wild: {:?}",
                self.session.poll_timeout(self.now)
            );
            match self.session.poll_timeout(self.now) {
                Some((at, _)) if at <= limit => self.now = self.now.max(at),
                _ => break,
            }
            self.session.handle_timeout(self.now);
            self.settle();
        }
        self.now = limit;
        self.session.handle_timeout(self.now);
    }

    fn path(&mut self) -> usize {
        usize::from(self.tape.byte() & 1)
    }

    fn garbage(&mut self) {
        let len = usize::from(self.tape.byte()).min(self.tape.bytes.len());
        let (bytes, rest) = self.tape.bytes.split_at(len);
        let datagram = Bytes::copy_from_slice(bytes);
        self.tape.bytes = rest;
        let path = PathId(self.path() as u64);
        self.outcome.fed += 1;
        self.session.handle_datagram(self.now, path, &datagram);
    }

    fn datagram(&mut self) {
        let path = self.path();
        let packet = match self.tape.byte() {
            0..=229 => self.next[path],
            _ => self.tape.number(self.next[path]).min(varint::MAX - 1),
        };
        self.next[path] = self.next[path].max(packet + 1).min(varint::MAX - 1);
        let mut out = Vec::new();
        Header { packet }.encode(&mut out);
        for _ in 0..1 + self.tape.byte() % 6 {
            self.frame(path, &mut out);
        }
        self.outcome.fed += 1;
        let path = PathId(path as u64);
        self.session
            .handle_datagram(self.now, path, &Bytes::from(out));
    }

    /// One frame, nearly always well-formed.
    fn frame(&mut self, path: usize, out: &mut Vec<u8>) {
        let mut put = |fields: &[u64]| fields.iter().for_each(|f| varint::encode(*f, out));
        let tape = &mut self.tape;
        match tape.byte() % 40 {
            0 => put(&[ty::PING]),
            1..=4 => {
                let largest = tape.number(self.sent[path]).min(self.sent[path]);
                let first = u64::from(tape.byte()).min(largest);
                put(&[
                    ty::ACK,
                    path as u64,
                    largest,
                    tape.number(100),
                    tape.number(1_000),
                ]);
                let mut gaps = Vec::new();
                let mut smallest = largest - first;
                for _ in 0..tape.byte() % 8 {
                    let (gap, range) = (u64::from(tape.byte() % 4), u64::from(tape.byte() % 4));
                    if smallest < gap + range + 2 {
                        break;
                    }
                    smallest -= gap + range + 2;
                    gaps.extend([gap, range]);
                }
                put(&[gaps.len() as u64 / 2, first]);
                put(&gaps);
                put(&[0]);
            }
            5 if tape.misbehaves() => {
                put(&[ty::ACK, tape.number(1), tape.number(9), 0, 0, 0, 0, 0]);
            }
            5 => {
                let flow = tape.flow(Some(1)) ^ 1;
                let [missed, late, twice] = [(); 3].map(|()| tape.number(20));
                put(&[ty::FLOW_REPORT, flow, missed, late, twice]);
            }
            6..=8 => {
                let kind = u64::from(tape.byte() & 3);
                let order = match kind {
                    0 => 0,
                    1 => u64::from(tape.byte() & 1),
                    _ => 1,
                };
                let priority = u64::from(tape.byte() % 8);
                put(&[ty::OPEN_FLOW, tape.flow(Some(kind)), kind, order, priority]);
                put(&[tape.number(5_000), 0]);
            }
            9 => {
                let size = tape.number(FLOW_WINDOW) + 60 * u64::from(tape.byte());
                put(&[ty::RESET_FLOW, tape.flow(None), 7, size.min(varint::MAX)]);
            }
            10 => put(&[ty::STOP_SENDING, tape.flow(None), 7]),
            11..=13 => {
                let fin = u64::from(tape.byte() < 16);
                let (offset, len) = (tape.number(FLOW_WINDOW), u64::from(tape.byte()));
                let (mut offset, flow) = (offset.min(varint::MAX - len), tape.flow(Some(0)));
                if tape.tame && offset < 256 {
                    // Ends of a stream agree with each other, and pieces are far apart.
                    offset = if fin == 1 { 16_000 - len } else { offset * 60 };
                }
                put(&[ty::STREAM + fin, flow, offset, len]);
                out.resize(out.len() + len as usize, 0xaa);
            }
            14 | 15 => {
                let len = u64::from(tape.byte());
                put(&[ty::PACKET, tape.flow(Some(1)), tape.number(20), len]);
                out.resize(out.len() + len as usize, 0xbb);
            }
            16 | 17 => {
                let total = match tape.misbehaves() {
                    true => tape.number(65_535).clamp(2, 65_535),
                    false => 30_000,
                };
                let len = 1;
                let offset = tape.number(total - 1).min(total - 1);
                let flow = tape.flow(Some(1));
                put(&[ty::PACKET_PART, flow, tape.number(20), offset, total, len]);
                out.push(0xcc);
            }
            18 => put(&[ty::FORWARD, tape.flow(Some(1)), tape.number(20)]),
            19 if tape.misbehaves() => put(&[ty::FINISH, tape.flow(Some(1)), tape.number(20)]),
            19 => put(&[ty::FINISH, tape.flow(Some(1)), 40]),
            20 => put(&[ty::MAX_DATA, tape.number(SESSION_WINDOW)]),
            21 => put(&[ty::MAX_FLOW_DATA, tape.flow(None), tape.number(FLOW_WINDOW)]),
            22 => {
                put(&[
                    ty::MAX_FLOWS,
                    tape.number(MAX_FLOWS).min(wire::MAX_FLOW_COUNT),
                ]);
            }
            23..=26 => {
                let flow = tape.flow_of_units();
                let size = tape.unit_size();
                let len = u64::from(tape.byte()).clamp(1, size);
                let offset = match tape.misbehaves() {
                    true => tape.number(size - len).min(varint::MAX - len),
                    false => (size - len).min(u64::from(tape.byte()) * 16),
                };
                put(&[ty::UNIT, flow, tape.number(MAX_UNITS), size, offset, len]);
                tape.unit_bytes(offset, len, out);
            }
            27..=29 => {
                let flow = tape.flow_of_units();
                let (size, unit) = (tape.unit_size(), tape.number(MAX_UNITS));
                let len = 64;
                put(&[
                    ty::UNIT_REPAIR,
                    flow,
                    unit,
                    size,
                    tape.number(MAX_REPAIRS),
                    len,
                ]);
                out.resize(out.len() + len as usize, tape.byte());
            }
            30 | 31 => {
                let flow = tape.flow_of_units();
                let fate = u64::from(tape.byte() % 5);
                let value = tape.number(1_000) * u64::from(![2, 4].contains(&fate));
                put(&[ty::UNIT_FATE, flow ^ 1, tape.number(4), fate, value]);
            }
            32 => {
                let flow = tape.flow_of_units();
                let size = match tape.byte() & 1 {
                    0 => 0,
                    _ => tape.unit_size(),
                };
                put(&[
                    ty::UNIT_CANCEL,
                    flow,
                    tape.number(MAX_UNITS),
                    size,
                    tape.number(3),
                ]);
            }
            33..=36 => tape.coded_frame(out),
            _ => {
                let status = u64::from(tape.byte());
                match status {
                    4..=9 => put(&[ty::PATH_COST, tape.number(1), tape.number(3), status]),
                    10..=15 => put(&[ty::PATH_QUIET, tape.number(1), tape.number(3), status << 9]),
                    0..=3 if !tape.tame => put(&[ty::PATH_ABANDON, tape.number(1), status]),
                    _ => put(&[ty::PATH_STATUS, tape.number(1), tape.number(3), status & 1]),
                }
            }
        }
    }

    fn application(&mut self) {
        let now = self.now;
        let flow = FlowId(self.tape.flow(None) ^ u64::from(self.tape.byte() & 1));
        match self.tape.byte() % 18 {
            0 | 1 => {
                let options = FlowOptions {
                    ordered: self.tape.byte() & 1 == 0,
                    priority: self.tape.byte() % 8,
                    lifetime: (self.tape.byte() & 1 == 0)
                        .then(|| Duration::from_millis(u64::from(self.tape.byte()))),
                    ..FlowOptions::new(FlowKind::ALL[usize::from(self.tape.byte() & 3)])
                };
                if self.session.stats().flows.len() < 64 {
                    self.session.open_flow(&options).ok();
                }
            }
            2 | 3 => {
                let data = Bytes::from(vec![1; usize::from(self.tape.byte()) * 64]);
                self.session.write(now, flow, &data).ok();
            }
            4 | 5 => {
                let data = Bytes::from(vec![2; usize::from(self.tape.byte()) * 64]);
                self.session.send(now, flow, data).ok();
            }
            6 => {
                self.session
                    .read(now, flow, usize::from(self.tape.byte()) + 1);
            }
            7 => {
                self.session.receive(now, flow);
            }
            8 => self.session.finish(flow),
            9 => self.session.reset(flow, 3),
            10 => self.session.stop(flow, 4),
            11 | 12 => {
                let block = Bytes::from(vec![3; usize::from(self.tape.byte()) * 64]);
                let terms = BlockTerms {
                    deadline: Some(Duration::from_millis(u64::from(self.tape.byte()))),
                    reliability: None,
                };
                let session = &mut self.session;
                session.write_block(now, flow, &block, terms).ok();
            }
            13 | 14 => {
                let object = Bytes::from(vec![4; usize::from(self.tape.byte()) * 64]);
                let options = ObjectOptions {
                    urgency: self.tape.byte() % 8,
                    incremental: self.tape.byte() & 1 == 0,
                    size: None,
                    after: vec![u64::from(self.tape.byte() % 4)],
                };
                let session = &mut self.session;
                if session.send_object(now, flow, &object, &options).is_err() {
                    session
                        .open_object(now, flow, &ObjectOptions::default())
                        .ok();
                }
            }
            15 => {
                let (number, code) = (u64::from(self.tape.byte() % 8), 5);
                match self.tape.byte() & 3 {
                    0 => self.session.cancel_block(now, flow, number, code),
                    1 => self.session.cancel_object(now, flow, number, code),
                    2 => self.session.refuse_object(now, flow, number, code),
                    _ => drop(self.session.reprioritise(flow, number, 1, true)),
                }
            }
            16 => drop(self.session.receive_unit(now, flow)),
            _ => {
                let path = PathId(self.path() as u64);
                match self.tape.byte() {
                    0 => drop(self.session.remove_path(now, path)),
                    n => drop(self.session.set_standby(now, path, n & 1 == 0)),
                }
            }
        }
    }
}
