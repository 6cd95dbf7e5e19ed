//! The clock, the paths and the sender of a model run.

mod again;
mod demand;
mod packet;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use marline_base::{Duration, Instant, Rate, Rng};
use marline_fec::stream::Repair;
use marline_link::{Link, Verdict};
use marline_proto::congestion::{Phase, View};
use marline_proto::flow::Symbol;
use marline_proto::path::EmissionKind;
use marline_proto::sched::{self, Coding, PathView, Plan, Scheduler};
use marline_proto::wire::PathId;

use super::backlog::{Backlog, Queued};
use super::code::Code;
use super::receiver::Receiver;
use super::{Demand, Feedback, Model, ModelError, Outcome};
use packet::{Event, Kind, Packet};

/// A lost packet after which none follows on its path is missed this long after its round trip.
const TAIL: Duration = Duration::from_millis(200);

#[derive(Debug)]
struct PathRun {
    link: Link,
    rate: Rate,
    delay: Duration,
    sd: Duration,
    loss: f64,
    window: u64,
    /// Symbols that wait for the window.
    queue: VecDeque<Queued>,
    /// Bytes sent whose fate the sender does not know.
    unheard: u64,
    /// Repair symbols among that.
    repairs: u32,
    sent: u64,
    /// Lost packets after which none has left yet.
    dropped: Vec<Packet>,
}

#[derive(Debug)]
pub(super) struct ModelRun<'a> {
    model: &'a Model,
    now: Instant,
    rng: Rng,
    paths: Vec<PathRun>,
    scheduler: Box<dyn Scheduler>,
    backlog: Backlog,
    receiver: Receiver,
    code: Option<Code>,
    /// Equations that the receiver held, as far as the sender knows.
    rank: u32,
    /// Lost packets that the sender does not know to be known, nor has sent again.
    missed: BTreeSet<u64>,
    /// Packets of each block that were lost.
    blocks: BTreeMap<u64, u32>,
    /// Lost packets, by sequence, whose loss the sender does not know.
    unnoticed: BTreeSet<u64>,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    order: u64,
    sequence: u64,
    woken: Option<Instant>,
}

impl<'a> ModelRun<'a> {
    pub(super) fn new(
        model: &'a Model,
        scheduler: Box<dyn Scheduler>,
        rng: &Rng,
    ) -> Result<Self, ModelError> {
        let packet = u64::from(model.packet);
        let mut paths = Vec::new();
        for (i, path) in model.paths.iter().enumerate() {
            let rate = path.rate(model.packet)?;
            let (delay, sd) = path.delay();
            paths.push(PathRun {
                link: path.link(rng.stream(&format!("path {i}")).next_u64())?,
                rate,
                delay,
                sd,
                loss: path.link.loss.mean(),
                window: rate.bytes_in(2 * delay) + u64::from(path.ahead.max(1)) * packet,
                queue: VecDeque::new(),
                unheard: 0,
                repairs: 0,
                sent: 0,
                dropped: Vec::new(),
            });
        }
        let (packets, endless) = match model.demand {
            Demand::Units { packets, .. } => (packets, false),
            Demand::Bursts { .. } => (1, false),
            Demand::Saturated { .. } => (1, true),
        };
        let mut run = Self {
            model,
            now: Instant::ZERO,
            rng: rng.stream("demand"),
            code: scheduler.codes().then(Code::new),
            paths,
            scheduler,
            backlog: Backlog::new(model.paths.len(), model.packet, packets, endless),
            receiver: Receiver::new(model, packets),
            rank: 0,
            missed: BTreeSet::new(),
            blocks: BTreeMap::new(),
            unnoticed: BTreeSet::new(),
            events: BinaryHeap::new(),
            order: 0,
            sequence: 0,
            woken: None,
        };
        run.at(Instant::ZERO, Event::Write);
        Ok(run)
    }

    pub(super) fn into_outcome(self) -> Outcome {
        let mut outcome = self.receiver.into_outcome();
        outcome.sent = self.paths.iter().map(|p| p.sent).collect();
        outcome.end = self.now;
        outcome
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    fn is_over(&self) -> bool {
        match self.model.demand {
            Demand::Saturated { until } => self.now >= Instant::ZERO + until,
            Demand::Bursts { until, .. } => {
                self.now >= Instant::ZERO + until && self.receiver.known() >= self.backlog.all()
            }
            Demand::Units { units, packets, .. } => {
                self.receiver.known() >= u64::from(units) * u64::from(packets.max(1))
            }
        }
    }

    pub(super) fn go(&mut self) {
        while !self.is_over() {
            let Some(&Reverse((at, ..))) = self.events.peek() else {
                panic!("the scheduler sends nothing: {:?}", self.scheduler);
            };
            self.now = at;
            while self
                .events
                .peek()
                .is_some_and(|event| event.0.0 <= self.now)
            {
                if let Some(Reverse((_, _, event))) = self.events.pop() {
                    self.handle(event);
                }
            }
            self.resend();
            self.plan();
            self.send();
            self.plan_wake();
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Write => self.write(),
            Event::Arrival(packet) => self.arrive(packet),
            Event::Freed => {}
            Event::Acked(packet, known, rank) => self.hear(&packet, &known, rank),
            Event::Lost(packet) => self.miss(&packet),
            Event::Wake => self.woken = None,
        }
    }

    fn arrive(&mut self, packet: Packet) {
        let mut known = Vec::new();
        let number = self.number(&packet);
        match (&mut self.code, packet.kind) {
            (Some(code), Kind::Repair) => {
                let (start, count, key) = packet.coded;
                let repair = Repair { start, count, key };
                code.on_repair(repair, &packet.payload, &mut known);
            }
            (Some(code), _) => code.on_source(number, packet.coded.0, &mut known),
            (None, _) if self.model.block.is_some() => self.receiver.on_block(number, &mut known),
            (None, _) => known.push(number),
        }
        for &one in &known {
            if one != number || packet.kind == Kind::Repair {
                self.receiver.outcome().recovered += u64::from(!self.receiver.knows(one));
            }
            self.receiver.on_known(self.now, one);
        }
        let rank = self.code.as_ref().map_or(0, Code::rank);
        let heard = match self.model.feedback {
            Feedback::Perfect => self.now,
            Feedback::Paced(delay) | Feedback::Delayed(delay) => self.now + delay,
        };
        self.at(heard, Event::Acked(packet, known, rank));
    }

    fn number(&self, packet: &Packet) -> u64 {
        self.backlog.number(&Symbol {
            unit: packet.unit,
            offset: packet.offset,
            len: self.model.packet,
        })
    }

    /// The sender learns of an arrival.
    fn hear(&mut self, packet: &Packet, known: &[u64], rank: u32) {
        self.paths[packet.path].unheard -= u64::from(self.model.packet);
        self.paths[packet.path].repairs -= u32::from(packet.kind == Kind::Repair);
        self.rank = rank;
        for number in known {
            self.missed.remove(number);
            if let Some(code) = &mut self.code {
                code.on_known(*number);
            }
        }
        self.tell(packet, sched::Outcome::Acked);
    }

    /// The sender learns of a loss.
    fn miss(&mut self, packet: &Packet) {
        if !self.unnoticed.remove(&packet.sequence) {
            return;
        }
        self.paths[packet.path].unheard -= u64::from(self.model.packet);
        if packet.kind == Kind::Repair {
            self.paths[packet.path].repairs -= 1;
        } else {
            let number = self.number(packet);
            if !self.is_replaced(number) {
                self.missed.insert(number);
            }
        }
        self.tell(packet, sched::Outcome::Lost);
    }

    fn tell(&mut self, packet: &Packet, outcome: sched::Outcome) {
        let symbol = Symbol {
            unit: packet.unit,
            offset: packet.offset,
            len: self.model.packet,
        };
        let feedback = sched::Feedback {
            symbol,
            kind: packet.kind.into(),
            path: PathId(packet.path as u64),
            sent: packet.sent,
            outcome,
            arrived_us: (outcome == sched::Outcome::Acked).then(|| packet.arrives.as_micros()),
            own_way: true,
        };
        self.scheduler.on_feedback(self.now, &feedback);
    }

    /// What the scheduler sees: the truth, as old as the feedback.
    fn views(&self) -> Vec<PathView> {
        let packet = u64::from(self.model.packet);
        let view = |(i, path): (usize, &PathRun)| {
            let queued = path.queue.len() as u64 * packet;
            let in_flight = self.in_flight(path);
            let min_rtt = 2 * path.delay;
            let ahead = path.rate.time_for(in_flight).max(min_rtt);
            PathView {
                id: PathId(i as u64),
                window: path.window,
                in_flight,
                queued,
                queued_own: queued,
                srtt: ahead,
                rtt_var: path.sd,
                min_rtt,
                rate: path.rate,
                loss: path.loss,
                flaps: false,
                queueing: ahead - min_rtt,
                back_queueing: Duration::ZERO,
                spacing: Some(path.rate.time_for(packet)),
                forecast: None,
                symbol: self.model.packet,
                cost: 0,
                congestion: View {
                    name: "model",
                    phase: Phase::Steady,
                    window_gain: 1.0,
                    pacing_gain: 1.0,
                    bandwidth: Some(path.rate),
                    min_rtt: Some(min_rtt),
                    ssthresh: None,
                },
            }
        };
        self.paths.iter().enumerate().map(view).collect()
    }

    /// Bytes that count against the window: what the path holds without a queue, and the queue; or
    /// what the sender does not know of.
    fn in_flight(&self, path: &PathRun) -> u64 {
        match self.model.feedback {
            Feedback::Perfect | Feedback::Paced(_) => {
                path.rate.bytes_in(2 * path.delay) + path.link.queued_bytes(self.now)
            }
            Feedback::Delayed(_) => path.unheard,
        }
    }

    fn coding(&self) -> Option<Coding> {
        let (unknown, window) = self.code.as_ref()?.unknown();
        let queued = self.paths.iter().flat_map(|path| &path.queue);
        let queued = queued.filter(|q| q.kind == EmissionKind::Repair);
        Some(Coding {
            window,
            unknown,
            lost: self.missed.len() as u32,
            missing: self.missing(),
            repairs_in_flight: self.paths.iter().map(|path| path.repairs).sum(),
            repairs_queued: queued.count() as u32,
            budget: u64::MAX,
        })
    }

    fn plan(&mut self) {
        let mut views = self.views();
        let coding = self.coding();
        let queues = self.paths.iter_mut().map(|p| std::mem::take(&mut p.queue));
        self.backlog.lend(queues.collect(), coding);
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
                if in_flight + u64::from(self.model.packet) > path.window {
                    break;
                }
                let Some(queued) = path.queue.pop_front() else {
                    break;
                };
                self.depart(index, queued);
            }
        }
    }

    fn depart(&mut self, index: usize, queued: Queued) {
        let mut coded = (0, 0, 0);
        let mut payload = Vec::new();
        let number = self.backlog.number(&queued.symbol);
        let endless = matches!(self.model.demand, Demand::Saturated { .. });
        let outcome = self.receiver.outcome();
        match queued.kind {
            EmissionKind::Repair => {
                let Some((repair, bytes)) = self.code.as_mut().and_then(Code::repair) else {
                    return;
                };
                coded = (repair.start, repair.count, repair.key);
                payload = bytes;
                outcome.coded += 1;
                self.paths[index].repairs += 1;
            }
            EmissionKind::Source => {
                outcome.source += 1;
                if endless {
                    self.receiver.write(self.now, number);
                }
                if let Some(code) = &mut self.code {
                    coded.0 = code.on_departure(number);
                }
            }
            EmissionKind::Copy | EmissionKind::Retransmission => {
                outcome.again += 1;
                match self.code.as_ref().map(|code| code.number(number)) {
                    // It became known while it waited.
                    Some(None) => return,
                    Some(Some(own)) => coded.0 = own,
                    None => {}
                }
            }
        }
        let path = &mut self.paths[index];
        let verdict = path.link.offer(self.now, self.model.packet);
        path.sent += 1;
        path.unheard += u64::from(self.model.packet);
        self.sequence += 1;
        let mut packet = Packet {
            sequence: self.sequence,
            path: index,
            unit: queued.symbol.unit,
            offset: queued.symbol.offset,
            kind: queued.kind.into(),
            sent: self.now,
            arrives: self.now,
            coded,
            payload,
        };
        let is_repair = queued.kind == EmissionKind::Repair;
        if is_repair || queued.kind == EmissionKind::Source {
            let lost = verdict.arrival().is_none();
            self.receiver.outcome().periods.on_packet(is_repair, lost);
        }
        self.tell(&packet, sched::Outcome::Sent);
        let back = match self.model.feedback {
            Feedback::Perfect => Duration::ZERO,
            Feedback::Paced(delay) | Feedback::Delayed(delay) => delay,
        };
        let path = &mut self.paths[index];
        match verdict {
            Verdict::Delivered { at, departs, .. } => {
                packet.arrives = at;
                // What follows shows what is lost.
                let dropped = std::mem::take(&mut path.dropped);
                for lost in dropped {
                    self.at(at + back, Event::Lost(lost));
                }
                self.at(departs, Event::Freed);
                self.at(at, Event::Arrival(packet));
            }
            Verdict::Dropped(_) => {
                let service = path.rate.time_for(u64::from(self.model.packet));
                let late = self.now + service + path.delay + 4 * path.sd + back + TAIL;
                path.dropped.push(packet.clone());
                let free = path.rate.time_for(path.link.queued_bytes(self.now));
                self.unnoticed.insert(packet.sequence);
                self.at(self.now + free, Event::Freed);
                self.at(late, Event::Lost(packet));
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
