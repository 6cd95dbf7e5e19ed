//! A client, a server, and what they carry.

use std::collections::BTreeMap;
use std::fmt;

use marline_base::{Duration, Instant, Rng};
use marline_proto::Session;
use marline_proto::law::Calibration;
use marline_proto::stats::{FlowCounters, PathStats};
use marline_proto::wire::{FlowId, PathId};

use super::Simulation;
use crate::engine::{Alarm, End};
use crate::measure::{Measure, Meter, Timeline, Waiting};
use crate::scenario::PathPlan;
use crate::workload::{Context, Workload};

/// A workload with what belongs to it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) workload: Box<dyn Workload>,
    pub(super) meter: Meter,
    pub(super) rng: Rng,
    pub(super) alarm: Alarm,
    /// When it wants to be woken.
    wake: Option<Instant>,
    /// Counters of its flows at the end of the warm-up.
    pub(super) before: FlowCounters,
    pub(super) delivered: Timeline,
    pub(super) received: Timeline,
    /// Bytes received by the end of the warm-up.
    pub(super) received_before: u64,
    /// Bytes that wait for earlier ones.
    pub(super) held: Timeline,
}

impl Slot {
    pub(super) fn new(workload: Box<dyn Workload>, meter: Meter, rng: Rng, alarm: Alarm) -> Self {
        Self {
            workload,
            meter,
            rng,
            alarm,
            wake: None,
            before: FlowCounters::default(),
            delivered: Timeline::default(),
            received: Timeline::default(),
            received_before: 0,
            held: Timeline::default(),
        }
    }
}

/// What a path counts, seen from the end that sends the first workload.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathCount {
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) spurious: u64,
    /// What came of the path's law.
    pub(super) law: Calibration,
    /// Bytes that arrived at the other end, and at this one.
    pub(super) there: u64,
    pub(super) back: u64,
}

/// A path and its history.
#[derive(Debug)]
pub(super) struct PathWatch {
    pub(super) plan: PathPlan,
    pub(super) name: String,
    pub(super) id: Option<PathId>,
    pub(super) before: PathCount,
    pub(super) last: PathCount,
    pub(super) throughput: Timeline,
    pub(super) window: Timeline,
    pub(super) in_flight: Timeline,
    pub(super) srtt: Timeline,
}

/// See the [module](self).
pub(super) struct Pair {
    pub(super) slots: Vec<Slot>,
    pub(super) paths: Vec<PathWatch>,
    /// The end that sends the first workload.
    pub(super) from: End,
    /// What the client's and the server's receivers wait for.
    waiting: [Waiting; 2],
    owners: BTreeMap<FlowId, usize>,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair")
            .field("slots", &self.slots)
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

impl Pair {
    pub(super) fn new(
        slots: Vec<Slot>,
        paths: Vec<PathWatch>,
        from: End,
        waiting: [Waiting; 2],
    ) -> Self {
        Self {
            slots,
            paths,
            from,
            waiting,
            owners: BTreeMap::new(),
        }
    }

    /// The workload that opened a flow.
    pub(super) fn owner(&self, flow: FlowId) -> Option<usize> {
        self.owners.get(&flow).copied()
    }

    /// Is this the time that the workload asked for last?
    pub(super) fn is_due(&mut self, workload: usize, now: Instant) -> bool {
        self.slots[workload].wake.take_if(|at| *at <= now).is_some()
    }

    /// Collects waits that are over, so that they do not pile up.
    pub(super) fn collect_waits(&mut self) {
        for waiting in &self.waiting {
            waiting.take(|wait| {
                if let Some(owner) = self.owners.get(&wait.flow) {
                    let meter = &mut self.slots[*owner].meter;
                    meter.delay(Measure::OutOfOrderWait, wait.from, wait.until);
                }
            });
        }
    }

    /// Bytes of a workload's data that arrived so far, copies and repetitions among them.
    pub(super) fn received(&self, workload: usize) -> u64 {
        let flows = self.slots[workload].workload.flows().into_iter();
        let bytes = flows.map(|(flow, from)| self.waiting[from.other() as usize].received(flow));
        bytes.sum()
    }

    /// Looks at queues; `step` is given when the sample goes into series too.
    pub(super) fn sample(&mut self, now: Instant, sessions: &[Session], step: Option<Duration>) {
        self.collect_waits();
        for slot in &mut self.slots {
            let flows = slot.workload.flows().into_iter();
            let held = flows.map(|(flow, from)| {
                let to = &sessions[from.other() as usize];
                to.out_of_order(flow)
            });
            let held = held.sum();
            slot.meter.amount(Measure::OutOfOrder, now, held);
            if step.is_some() {
                slot.held.push(held as f64 / 1e3);
            }
        }
        let from = self.from;
        if let Some(step) = step {
            self.paths
                .iter_mut()
                .for_each(|p| p.sample(sessions, from, step));
            for index in 0..self.slots.len() {
                let received = self.received(index);
                let slot = &mut self.slots[index];
                slot.delivered.push_rate(slot.meter.all_bytes(), step);
                slot.received.push_rate(received, step);
            }
        }
    }
}

impl Pair {
    /// The warm-up is over: remembers what was counted in it.
    pub(super) fn warm(&mut self, sessions: &[Session]) {
        for index in 0..self.slots.len() {
            let received = self.received(index);
            let slot = &mut self.slots[index];
            slot.received_before = received;
            slot.before = counters(&*slot.workload, sessions);
        }
        let from = self.from;
        for path in &mut self.paths {
            path.count(sessions, from);
            path.before = path.last;
        }
    }
}

impl PathWatch {
    pub(super) fn new(plan: PathPlan, name: String) -> Self {
        Self {
            plan,
            name,
            id: None,
            before: PathCount::default(),
            last: PathCount::default(),
            throughput: Timeline::default(),
            window: Timeline::default(),
            in_flight: Timeline::default(),
            srtt: Timeline::default(),
        }
    }

    /// Brings the counts up to date, for as long as the path exists.
    pub(super) fn count(&mut self, sessions: &[Session], from: End) {
        let Some(id) = self.id else { return };
        if let Some(here) = sessions[from as usize].path(id) {
            self.last.sent = here.counters.sent_packets;
            self.last.lost = here.counters.lost_packets;
            self.last.spurious = here.counters.spurious_losses;
            self.last.law = here.law;
            self.last.back = here.counters.received_bytes;
        }
        if let Some(there) = sessions[from.other() as usize].path(id) {
            self.last.there = there.counters.received_bytes;
        }
    }

    /// Adds a sample to the series; zero while the path does not exist.
    fn sample(&mut self, sessions: &[Session], from: End, step: Duration) {
        self.count(sessions, from);
        self.throughput.push_rate(self.last.there, step);
        let here = self.id.and_then(|id| sessions[from as usize].path(id));
        let of = |value: fn(&PathStats) -> f64| here.as_ref().map_or(0.0, value);
        self.window.push(of(|p| p.cwnd as f64 / 1e3));
        self.in_flight.push(of(|p| p.in_flight as f64 / 1e3));
        self.srtt.push(of(|p| p.srtt.as_secs_f64() * 1e3));
    }
}

/// What the flows of a workload have counted at the ends that send on them.
pub(super) fn counters(workload: &dyn Workload, sessions: &[Session]) -> FlowCounters {
    let mut sum = FlowCounters::default();
    for (flow, from) in workload.flows() {
        if let Some(one) = sessions[from as usize].flow_counters(flow) {
            sum.source_bytes += one.source_bytes;
            sum.copy_bytes += one.copy_bytes;
            sum.retransmitted_bytes += one.retransmitted_bytes;
            sum.repair_bytes += one.repair_bytes;
            sum.repair_symbols += one.repair_symbols;
            sum.repairs_used += one.repairs_used;
        }
    }
    sum
}

impl Simulation<'_> {
    /// Lets a workload act, and does what follows from it.
    pub(super) fn on_workload(
        &mut self,
        pair: usize,
        workload: usize,
        act: impl FnOnce(&mut dyn Workload, &mut Context<'_>),
    ) {
        let now = self.engine.now();
        let sessions = &mut self.sessions[2 * pair..2 * pair + 2];
        let Pair { owners, slots, .. } = &mut self.pairs[pair];
        let slot = &mut slots[workload];
        let mut opened = Vec::new();
        let mut cx = Context::new(now, sessions, &mut slot.rng, &mut slot.meter, &mut opened);
        act(&mut *slot.workload, &mut cx);
        let (touched, wake) = cx.outcome();
        if let Some(at) = wake
            && slot.wake.is_none_or(|before| at < before)
        {
            slot.wake = Some(at);
            self.engine.call_at(at, slot.alarm);
        }
        owners.extend(opened.into_iter().map(|flow| (flow, workload)));
        for (end, touched) in touched.into_iter().enumerate() {
            if touched {
                self.engine.touch(2 * pair + end);
            }
        }
    }
}
