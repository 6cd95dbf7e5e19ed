//! Two sessions over two links in virtual time. Each end has its turn in a function of its own, and
//! another one while it counts, so that callgrind can distinguish them.

use super::Failure;
use super::load::{Flows, Load};
use bytes::Bytes;
use marline_link::{Link, LinkConfig, Verdict};
use marline_proto::path::PathParams;
use marline_proto::wire::PathId;
use marline_proto::{Config, Session, Side};
use marline_sim::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

const LINK: &str = "rate=200mbit,delay=10ms,queue=20ms";
/// What a datagram may have where the path MTU is 1500 bytes: less IPv4, UDP and QUIC.
const DATAGRAM: usize = 1_440;
/// What IPv4, UDP and QUIC add to a datagram on a link (bytes).
const OVERHEAD: u32 = 60;

/// What an end has in its turn.
struct End {
    session: Session,
    /// Datagrams that arrive now.
    arrived: Vec<(PathId, Bytes)>,
    /// Datagrams that it sends.
    sent: Vec<(PathId, Vec<u8>)>,
    wake: Instant,
    read: u64,
}

/// Both ends and what lies between them.
pub(super) struct Wires<'a> {
    load: &'a Load,
    flows: Flows,
    ends: [End; 2],
    /// By path, towards the receiver and back.
    links: Vec<[Link; 2]>,
    /// When, in which order, and which of those on their way.
    queue: BinaryHeap<Reverse<(Instant, u64)>>,
    flights: BTreeMap<u64, (usize, PathId, Bytes)>,
    flown: u64,
    now: Instant,
}

/// One turn of the sending end.
#[inline(always)]
fn sender(end: &mut End, load: &Load, flows: &mut Flows, now: Instant) {
    take(end, now);
    load.write(&mut end.session, flows, now);
    while let Some(event) = end.session.poll_event() {
        load.on_sender_event(&mut end.session, &event, now);
    }
    give(end, now);
}

/// One turn of the receiving end.
#[inline(always)]
fn receiver(end: &mut End, load: &Load, now: Instant) {
    take(end, now);
    while let Some(event) = end.session.poll_event() {
        end.read += load.on_receiver_event(&mut end.session, &event, now);
    }
    give(end, now);
}

#[inline(never)]
fn counted_sender(end: &mut End, load: &Load, flows: &mut Flows, now: Instant) {
    sender(end, load, flows, now);
}

#[inline(never)]
fn counted_receiver(end: &mut End, load: &Load, now: Instant) {
    receiver(end, load, now);
}

fn take(end: &mut End, now: Instant) {
    for (path, datagram) in end.arrived.drain(..) {
        end.session.handle_datagram(now, path, &datagram);
    }
    if end.wake <= now {
        end.session.handle_timeout(now);
    }
}

fn give(end: &mut End, now: Instant) {
    let mut buffer = Vec::with_capacity(DATAGRAM);
    while let Some(transmit) = end.session.poll_transmit(now, &mut buffer) {
        let sent = std::mem::replace(&mut buffer, Vec::with_capacity(DATAGRAM));
        end.sent.push((transmit.path, sent));
    }
    let wake = end.session.poll_timeout(now);
    end.wake = wake.map_or(Instant::FAR_FUTURE, |(at, _)| at);
}

impl<'a> Wires<'a> {
    pub(super) fn new(load: &'a Load) -> Result<Self, Failure> {
        let config = Config {
            max_flows: 4_096,
            ..Config::default()
        };
        let start = Instant::ZERO;
        let make = |side, seed| Session::new(start, side, config.clone(), config.params(), seed);
        let mut sessions = [make(Side::Client, 1)?, make(Side::Server, 2)?];
        let mut link: LinkConfig = LINK.parse()?;
        if load.lossy {
            link = format!("{LINK},loss=2%").parse()?;
        }
        let mut links = Vec::new();
        let params = PathParams {
            max_datagram: DATAGRAM,
            ..PathParams::default()
        };
        for path in 0..2 {
            for session in &mut sessions {
                session.add_path(start, PathId(path), &params)?;
            }
            let seed = 10 * path;
            links.push([
                Link::new(link.clone(), seed)?,
                Link::new(link.clone(), seed + 1)?,
            ]);
        }
        let flows = load.begin(&mut sessions[0])?;
        let ends = sessions.map(|session| End {
            session,
            arrived: Vec::new(),
            sent: Vec::new(),
            wake: start,
            read: 0,
        });
        Ok(Wires {
            load,
            flows,
            ends,
            links,
            queue: BinaryHeap::new(),
            flights: BTreeMap::new(),
            flown: 0,
            now: start,
        })
    }

    /// Packets that have arrived at the receiver, and bytes that its application has read.
    pub(super) fn delivered(&self) -> (u64, u64) {
        let paths = self.ends[1].session.stats().paths;
        let packets = paths
            .iter()
            .map(|path| path.counters.received_packets)
            .sum();
        (packets, self.ends[1].read)
    }

    /// Runs until then, in the functions that are counted or the others.
    pub(super) fn run(&mut self, until: Instant, counted: bool) {
        while self.now < until {
            let (load, now) = (self.load, self.now);
            while let Some(Reverse((at, number))) = self.queue.peek().copied() {
                if at > now {
                    break;
                }
                self.queue.pop();
                if let Some((to, path, datagram)) = self.flights.remove(&number) {
                    self.ends[to].arrived.push((path, datagram));
                }
            }
            let [from, to] = &mut self.ends;
            match counted {
                true => {
                    counted_sender(from, load, &mut self.flows, now);
                    counted_receiver(to, load, now);
                }
                false => {
                    sender(from, load, &mut self.flows, now);
                    receiver(to, load, now);
                }
            }
            self.fly();
            let next = self.queue.peek().map(|Reverse((at, _))| *at);
            let wakes = self.ends.iter().map(|end| end.wake);
            let next = wakes.chain(next).chain(self.flows.due).min();
            // A timer that is past is asked again, not for ever at one instant.
            let soonest = now + Duration::from_nanos(1);
            self.now = next.map_or(until, |at| at.max(soonest).min(until));
        }
    }

    /// Puts what both ends have sent on the links.
    fn fly(&mut self) {
        for from in 0..2 {
            for (path, datagram) in std::mem::take(&mut self.ends[from].sent) {
                let size = datagram.len() as u32 + OVERHEAD;
                let link = &mut self.links[path.0 as usize][from];
                if let Verdict::Delivered { at, .. } = link.offer(self.now, size) {
                    self.flown += 1;
                    self.queue.push(Reverse((at, self.flown)));
                    let flight = (1 - from, path, Bytes::from(datagram));
                    self.flights.insert(self.flown, flight);
                }
            }
        }
    }
}
