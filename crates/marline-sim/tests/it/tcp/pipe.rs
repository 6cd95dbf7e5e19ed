//! Test bench: connections that share one link there and one link back, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use marline_link::{Link, LinkConfig, Verdict};
use marline_sim::tcp::{Ack, Segment, TcpConfig, TcpReceiver, TcpSender};
use marline_sim::{Duration, Instant, Rate};

pub(super) fn secs(seconds: u64) -> Instant {
    Instant::from_millis(1_000 * seconds)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cargo {
    Data(Segment),
    Ack(Ack),
}

/// Something on its way; in the order of arrival, then of departure.
#[derive(Debug, PartialEq, Eq)]
struct Flying {
    at: Instant,
    order: u64,
    flow: usize,
    cargo: Cargo,
}

impl Ord for Flying {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A sender's state after an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) now: Instant,
    pub(super) window: u64,
    pub(super) queue: u64,
    pub(super) view: marline_proto::congestion::View,
}

pub(super) struct Flow {
    pub(super) sender: TcpSender,
    pub(super) receiver: TcpReceiver,
    /// Bytes released to the application so far, and when; in order.
    pub(super) released: Vec<(Instant, u64)>,
    pub(super) trace: Vec<Point>,
}

pub(super) struct Pipe {
    now: Instant,
    forth: Link,
    back: Link,
    pub(super) flows: Vec<Flow>,
    flying: BinaryHeap<Reverse<Flying>>,
    order: u64,
    tracing: bool,
}

impl Pipe {
    pub(super) fn new(forth: LinkConfig, back: LinkConfig, seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            forth: Link::new(forth, seed).unwrap(),
            back: Link::new(back, seed ^ 0x5a5a).unwrap(),
            flows: Vec::new(),
            flying: BinaryHeap::new(),
            order: 0,
            tracing: false,
        }
    }

    /// A constant link there with a queue of `bdps` bandwidth-delay products, and back a link that
    /// is never full; half of the round-trip time each.
    pub(super) fn constant(rate: Rate, rtt: Duration, bdps: f64, seed: u64) -> Self {
        let queue = rate.bytes_in(rtt.mul_f64(bdps));
        let delay = rtt.as_micros() / 2;
        let forth = format!("rate={}bit,delay={delay}us,queue={queue}B", rate.as_bps());
        let back = format!("delay={delay}us");
        Self::new(link(&forth), link(&back), seed)
    }

    pub(super) fn with_trace(mut self) -> Self {
        self.tracing = true;
        self
    }

    pub(super) fn open(&mut self, config: &TcpConfig, seed: u64) -> usize {
        self.flows.push(Flow {
            sender: TcpSender::new(config, self.now, seed).unwrap(),
            receiver: TcpReceiver::new(config).unwrap(),
            released: Vec::new(),
            trace: Vec::new(),
        });
        let flow = self.flows.len() - 1;
        self.drain(flow);
        flow
    }

    /// Runs until `end`.
    pub(super) fn run(&mut self, end: Instant) {
        self.run_while(end, |_| true);
    }

    /// Runs until `end`, or until `go_on` says no; true in the latter case.
    pub(super) fn run_while(&mut self, end: Instant, go_on: impl Fn(&Self) -> bool) -> bool {
        while go_on(self) {
            let arrival = self.flying.peek().map(|Reverse(flying)| flying.at);
            let timer = (0..self.flows.len())
                .filter_map(|i| Some((self.timer(i)?, i)))
                .min();
            let next = arrival.into_iter().chain(timer.map(|(at, _)| at)).min();
            let Some(next) = next.filter(|&at| at < end) else {
                self.now = end;
                return false;
            };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let Reverse(flying) = self.flying.pop().unwrap();
                self.arrive(flying.flow, flying.cargo);
            } else if let Some((_, flow)) = timer {
                self.flows[flow].sender.handle_timeout(self.now);
                self.flows[flow].receiver.handle_timeout(self.now);
                self.drain(flow);
            }
        }
        true
    }

    fn timer(&self, flow: usize) -> Option<Instant> {
        let Flow {
            sender, receiver, ..
        } = &self.flows[flow];
        let timers = [sender.poll_timeout(), receiver.poll_timeout()];
        timers.into_iter().flatten().min()
    }

    fn arrive(&mut self, flow: usize, cargo: Cargo) {
        let now = self.now;
        let ends = &mut self.flows[flow];
        match cargo {
            Cargo::Data(segment) => {
                let released = ends.receiver.handle_segment(now, &segment);
                let so_far = ends.released.last().map_or(0, |&(_, bytes)| bytes);
                assert_eq!(released.start, so_far, "released twice or with a gap");
                if !released.is_empty() {
                    ends.released.push((now, released.end));
                }
            }
            Cargo::Ack(ack) => {
                ends.sender.handle_ack(now, &ack);
                if self.tracing {
                    ends.trace.push(Point {
                        now,
                        window: ends.sender.window(),
                        queue: self.forth.queued_bytes(now),
                        view: ends.sender.view(),
                    });
                }
            }
        }
        self.drain(flow);
    }

    fn drain(&mut self, flow: usize) {
        while let Some(segment) = self.flows[flow].sender.poll_transmit(self.now) {
            let verdict = self.forth.offer(self.now, segment.size);
            self.launch(flow, verdict, Cargo::Data(segment));
        }
        while let Some(ack) = self.flows[flow].receiver.poll_ack(self.now) {
            let verdict = self.back.offer(self.now, ack.size);
            self.launch(flow, verdict, Cargo::Ack(ack));
        }
    }

    fn launch(&mut self, flow: usize, verdict: Verdict, cargo: Cargo) {
        let Verdict::Delivered { at, copy, .. } = verdict else {
            return;
        };
        for at in [Some(at), copy].into_iter().flatten() {
            self.order += 1;
            self.flying.push(Reverse(Flying {
                at,
                order: self.order,
                flow,
                cargo,
            }));
        }
    }

    /// Bytes released to a flow's application from `from` to `to`.
    pub(super) fn released(&self, flow: usize, from: Instant, to: Instant) -> u64 {
        let by = |time| {
            let released = &self.flows[flow].released;
            let after = released.partition_point(|&(at, _)| at <= time);
            after.checked_sub(1).map_or(0, |i| released[i].1)
        };
        by(to) - by(from)
    }
}

pub(super) fn link(text: &str) -> LinkConfig {
    text.parse().unwrap()
}
