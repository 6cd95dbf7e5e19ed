//! Schedulers without a protocol: packets of one size over paths with a service time for each
//! packet, and a sender that knows the paths' parameters exactly.
//!
//! Papers that prove something of a scheduler think in such a model. Here the schedulers are those
//! of `marline-proto`, unchanged, but their views hold the model's truth in the place of estimates:
//! rate and delay of a path are given, and what is known of its queue is either exact or as old as
//! [`Feedback`] says. So an experiment can tell a scheduler's error from that of what it was told.
//!
//! Nothing is lost, there are no headers and no congestion control: a path's window holds what is
//! on its way and [`ModelPath::ahead`] packets that wait for the server.

mod backlog;
pub mod hop;
mod receiver;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use marline_base::{Duration, Instant, Rate, Rng};
use marline_link::{Capacity, ConfigError, Delay, Link, LinkConfig, ServiceTime, Verdict};
use marline_proto::congestion::{Phase, View};
use marline_proto::flow::Symbol;
use marline_proto::path::EmissionKind;
use marline_proto::sched::{self, Choice, PathView, Plan, Scheduler};
use marline_proto::wire::PathId;

use crate::measure::Histogram;
use backlog::{Backlog, Queued};
use receiver::Receiver;

/// Size of every packet (bytes); only times matter.
pub const PACKET: u32 = 1_000;

/// A path of the model.
#[derive(Clone, Copy, Debug)]
pub struct ModelPath {
    /// Time that the server spends on each packet.
    pub service: ServiceTime,
    /// From the server to the receiver; packets stay in order.
    pub delay: Duration,
    /// Packets that may wait for the server, the one in service included; at least 1.
    pub ahead: u32,
}

/// What the sender knows of what became of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// The server's queue, at every moment.
    Perfect,
    /// That a packet arrived, so long after it did.
    Delayed(Duration),
}

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Packets of each unit: 1, or the size of objects.
    pub packets: u32,
    /// Mean time between units; zero has all of them wait at the start.
    pub every: Duration,
    /// Exponential times between units, not constant ones.
    pub random: bool,
    /// How many units.
    pub units: u32,
}

/// An experiment.
#[derive(Clone, Debug)]
pub struct Model {
    /// The paths, one at least.
    pub paths: Vec<ModelPath>,
    /// What the sender knows.
    pub feedback: Feedback,
    /// What is sent.
    pub demand: Demand,
}

/// What came out, in microseconds.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// From the write of a packet to its delivery with all before it.
    pub in_order: Histogram,
    /// From the write of a unit to the arrival of its last packet.
    pub unit: Histogram,
    /// How long packets that arrived early waited for those before them.
    pub waits: Histogram,
    /// Packets sent on each path, copies included.
    pub sent: Vec<u64>,
    /// When the last packet arrived.
    pub end: Instant,
}

impl Model {
    /// Runs until everything has arrived.
    ///
    /// # Errors
    /// A path whose parameters lie out of their range.
    ///
    /// # Panics
    /// If the scheduler leaves packets unsent although nothing is on its way.
    pub fn run(&self, scheduler: &Choice, seed: u64) -> Result<Outcome, ConfigError> {
        let mut run = ModelRun::new(self, scheduler.make(), Rng::new(seed))?;
        run.go();
        let mut outcome = run.receiver.into_outcome();
        outcome.sent = run.paths.iter().map(|p| p.sent).collect();
        outcome.end = run.now;
        Ok(outcome)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The next unit is written.
    Write,
    /// The packet arrives.
    Arrival(Packet),
    /// The sender learns that the server of a path is done with a packet.
    Freed,
    /// The sender learns that the packet arrived.
    Acked(Packet),
    /// The scheduler asked for it.
    Wake,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    path: usize,
    unit: u64,
    offset: u64,
    copy: bool,
    sent: Instant,
    arrives: Instant,
}

#[derive(Debug)]
struct PathRun {
    link: Link,
    rate: Rate,
    min_rtt: Duration,
    window: u64,
    /// Symbols that wait for the window.
    queue: VecDeque<Queued>,
    /// Bytes sent of which the sender has not heard.
    unheard: u64,
    sent: u64,
}

#[derive(Debug)]
struct ModelRun<'a> {
    model: &'a Model,
    now: Instant,
    rng: Rng,
    paths: Vec<PathRun>,
    scheduler: Box<dyn Scheduler>,
    backlog: Backlog,
    receiver: Receiver,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    order: u64,
    woken: Option<Instant>,
}

impl<'a> ModelRun<'a> {
    fn new(model: &'a Model, scheduler: Box<dyn Scheduler>, rng: Rng) -> Result<Self, ConfigError> {
        let mut paths = Vec::new();
        for (i, path) in model.paths.iter().enumerate() {
            let config = LinkConfig {
                capacity: Capacity::Service(path.service),
                delay: Delay::Constant(path.delay),
                ..LinkConfig::default()
            };
            let link = Link::new(config, rng.stream(&format!("path {i}")).next_u64())?;
            let rate = Rate::from_bytes_over(u64::from(PACKET), path.service.mean());
            let min_rtt = 2 * path.delay;
            let ahead = u64::from(path.ahead.max(1)) * u64::from(PACKET);
            paths.push(PathRun {
                link,
                rate,
                min_rtt,
                window: rate.bytes_in(min_rtt) + ahead,
                queue: VecDeque::new(),
                unheard: 0,
                sent: 0,
            });
        }
        let mut run = Self {
            model,
            now: Instant::ZERO,
            rng: rng.stream("demand"),
            paths,
            scheduler,
            backlog: Backlog::new(model.paths.len(), model.demand.packets),
            receiver: Receiver::new(model.demand.packets),
            events: BinaryHeap::new(),
            order: 0,
            woken: None,
        };
        run.at(Instant::ZERO, Event::Write);
        Ok(run)
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    fn go(&mut self) {
        let all = u64::from(self.model.demand.units) * u64::from(self.model.demand.packets);
        while self.receiver.arrived() < all {
            let Some(&Reverse((at, ..))) = self.events.peek() else {
                panic!("the scheduler sends nothing: {:?}", self.scheduler);
            };
            self.now = at;
            while let Some(&Reverse((at, _, event))) = self.events.peek()
                && at <= self.now
            {
                self.events.pop();
                self.handle(event);
            }
            self.plan();
            self.send();
            self.plan_wake();
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Write => self.write(),
            Event::Arrival(p) => self.receiver.arrive(now, p.unit, p.offset),
            Event::Freed => {}
            Event::Acked(p) => {
                self.paths[p.path].unheard -= u64::from(PACKET);
                self.tell(p, sched::Outcome::Acked);
            }
            Event::Wake => self.woken = None,
        }
    }

    fn tell(&mut self, packet: Packet, outcome: sched::Outcome) {
        let symbol = Symbol {
            unit: packet.unit,
            offset: packet.offset,
            len: PACKET,
        };
        let path = PathId(packet.path as u64);
        let feedback = sched::Feedback {
            symbol,
            path,
            kind: match packet.copy {
                true => EmissionKind::Copy,
                false => EmissionKind::Source,
            },
            sent: packet.sent,
            outcome,
            arrived_us: (outcome == sched::Outcome::Acked).then(|| packet.arrives.as_micros()),
        };
        self.scheduler.on_feedback(self.now, &feedback);
    }

    fn write(&mut self) {
        let Demand {
            every,
            random,
            units,
            ..
        } = self.model.demand;
        loop {
            self.backlog.write();
            self.receiver.write(self.now);
            if self.backlog.written() >= u64::from(units) {
                return;
            }
            if every > Duration::ZERO {
                break;
            }
        }
        let gap = match random {
            true => every.mul_f64(self.rng.exponential()),
            false => every,
        };
        self.at(self.now + gap, Event::Write);
    }

    /// What the scheduler sees: the truth, as old as the feedback.
    fn views(&self) -> Vec<PathView> {
        let view = |(i, path): (usize, &PathRun)| {
            let queued = path.queue.len() as u64 * u64::from(PACKET);
            let in_flight = self.in_flight(path);
            let ahead = path.rate.time_for(in_flight).max(path.min_rtt);
            PathView {
                id: PathId(i as u64),
                window: path.window,
                in_flight,
                queued,
                queued_own: queued,
                srtt: ahead,
                rtt_var: self.model.paths[i].service.sd(),
                min_rtt: path.min_rtt,
                rate: path.rate,
                loss: 0.0,
                queueing: ahead - path.min_rtt,
                spacing: Some(self.model.paths[i].service.mean()),
                forecast: None,
                symbol: PACKET,
                cost: 0,
                congestion: View {
                    name: "model",
                    phase: Phase::Steady,
                    window_gain: 1.0,
                    pacing_gain: 1.0,
                    bandwidth: Some(path.rate),
                    min_rtt: Some(path.min_rtt),
                    ssthresh: None,
                },
            }
        };
        self.paths.iter().enumerate().map(view).collect()
    }

    /// Bytes that count against the window: what the path holds without a queue, and the queue; or
    /// what the sender has not heard of.
    fn in_flight(&self, path: &PathRun) -> u64 {
        match self.model.feedback {
            Feedback::Perfect => {
                path.rate.bytes_in(path.min_rtt) + path.link.queued_bytes(self.now)
            }
            Feedback::Delayed(_) => path.unheard,
        }
    }

    fn plan(&mut self) {
        let mut views = self.views();
        let queues = self.paths.iter_mut().map(|p| std::mem::take(&mut p.queue));
        self.backlog.lend(queues.collect());
        let mut plan = Plan::new(self.now, &mut views, &mut self.backlog);
        self.scheduler.plan(&mut plan);
        for (path, queue) in self.paths.iter_mut().zip(self.backlog.give_back()) {
            path.queue = queue;
        }
    }

    /// Lets go what the windows let go.
    fn send(&mut self) {
        for index in 0..self.paths.len() {
            loop {
                let in_flight = self.in_flight(&self.paths[index]);
                let path = &mut self.paths[index];
                if in_flight + u64::from(PACKET) > path.window {
                    break;
                }
                let Some(Queued { symbol, copy }) = path.queue.pop_front() else {
                    break;
                };
                let verdict = path.link.offer(self.now, PACKET);
                path.sent += 1;
                path.unheard += u64::from(PACKET);
                let Verdict::Delivered { at, departs, .. } = verdict else {
                    unreachable!("a link without loss, limit and outage delivers");
                };
                let packet = Packet {
                    path: index,
                    unit: symbol.unit,
                    offset: symbol.offset,
                    copy,
                    sent: self.now,
                    arrives: at,
                };
                self.at(at, Event::Arrival(packet));
                match self.model.feedback {
                    Feedback::Perfect => {
                        self.at(departs, Event::Freed);
                        self.at(at, Event::Acked(packet));
                    }
                    Feedback::Delayed(delay) => self.at(at + delay, Event::Acked(packet)),
                }
                self.tell(packet, sched::Outcome::Sent);
            }
        }
    }

    fn plan_wake(&mut self) {
        if let Some(at) = self.scheduler.wake_at()
            && at > self.now
            && self.woken.is_none_or(|woken| at < woken)
        {
            self.woken = Some(at);
            self.at(at, Event::Wake);
        }
    }
}
