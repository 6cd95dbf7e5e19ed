//! A TCP connection of others over one link.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use marline_base::Instant;
use marline_link::{Link, Verdict};

use crate::engine::{End, Engine, Slots};
use crate::measure::{Measure, Meter};
use crate::tcp::{Ack, Segment, TcpConfig, TcpConfigError, TcpReceiver, TcpSender};

/// What is on its way, with when it leaves the link's queue.
#[derive(Debug)]
struct Parcel {
    departs: Instant,
    cargo: Cargo,
}

#[derive(Clone, Copy, Debug)]
enum Cargo {
    Segment(Segment),
    Ack(Ack),
}

/// Both ends of a connection, and what is between them.
#[derive(Debug)]
pub(super) struct Connection {
    sender: TcpSender,
    receiver: TcpReceiver,
    starts: Instant,
    stops: Instant,
    /// By arrival, then by the order of sending; the place in `parcels`.
    arrivals: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    parcels: Slots<Parcel>,
    sent: u64,
}

impl Connection {
    pub(super) fn new(
        congestion: &str,
        bytes: Option<u64>,
        (starts, stops): (Instant, Instant),
        seed: u64,
    ) -> Result<Self, TcpConfigError> {
        let config = TcpConfig {
            limit: bytes,
            ..TcpConfig::new(congestion)
        };
        Ok(Self {
            sender: TcpSender::new(&config, starts, seed)?,
            receiver: TcpReceiver::new(&config)?,
            starts,
            stops,
            arrivals: BinaryHeap::new(),
            parcels: Slots::default(),
            sent: 0,
        })
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        if self.sent == 0 {
            return Some(self.starts);
        }
        let arrival = self.arrivals.peek().map(|Reverse((at, ..))| *at);
        let timers = [
            self.sender.poll_timeout(),
            self.receiver.poll_timeout(),
            arrival,
        ];
        let next = timers.into_iter().flatten().min();
        next.filter(|at| *at < self.stops)
    }

    /// Handles what is due and sends what that lets go.
    pub(super) fn act(&mut self, engine: &mut Engine, place: (usize, End), meter: &mut Meter) {
        let now = engine.now();
        let (link, from) = place;
        while let Some(&Reverse((at, _, slot))) = self.arrivals.peek()
            && at <= now
        {
            self.arrivals.pop();
            match self.parcels.land(slot).map(|p| p.cargo) {
                Some(Cargo::Segment(segment)) => {
                    self.receiver.handle_segment(now, &segment);
                    self.acknowledge(now, engine.link(link, from.other()));
                }
                Some(Cargo::Ack(ack)) => self.sender.handle_ack(now, &ack),
                None => {}
            }
        }
        self.sender.handle_timeout(now);
        self.receiver.handle_timeout(now);
        self.acknowledge(now, engine.link(link, from.other()));
        let forth = engine.link(link, from);
        while let Some(segment) = self.sender.poll_transmit(now) {
            let verdict = forth.offer(now, segment.size);
            let arrival = verdict.arrival();
            meter.trial(Measure::CrossLost, now, arrival.is_none());
            if let Some(at) = arrival {
                meter.delay(Measure::CrossDelay, now, at);
                meter.delivered(now, u64::from(segment.size));
            }
            self.travel(verdict, Cargo::Segment(segment));
        }
    }

    fn acknowledge(&mut self, now: Instant, back: &mut Link) {
        while let Some(ack) = self.receiver.poll_ack(now) {
            let verdict = back.offer(now, ack.size);
            self.travel(verdict, Cargo::Ack(ack));
        }
    }

    fn travel(&mut self, verdict: Verdict, cargo: Cargo) {
        self.sent += 1;
        if let Verdict::Delivered { at, departs, copy } = verdict {
            for at in std::iter::once(at).chain(copy) {
                let slot = self.parcels.insert(Parcel { departs, cargo });
                self.sent += 1;
                self.arrivals.push(Reverse((at, self.sent, slot)));
            }
        }
    }

    /// A direction of the link was cut: what had not left its queue never arrives.
    pub(super) fn lose(&mut self, now: Instant, forth: bool, back: bool) {
        self.parcels.lose(|parcel| {
            let cut = match parcel.cargo {
                Cargo::Segment(_) => forth,
                Cargo::Ack(_) => back,
            };
            cut && parcel.departs > now
        });
    }
}
