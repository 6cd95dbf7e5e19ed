//! From a run that is over to its results.

use std::collections::BTreeMap;

use marline_base::{Duration, Instant, Rate};
use marline_link::Counters;
use marline_proto::Session;

use super::Simulation;
use super::pair::{PathWatch, Slot, counters};
use crate::engine::{End, Engine};
use crate::measure::{Measure, Meter, Timeline};
use crate::results::Run;

/// A link's queues over time.
#[derive(Debug)]
pub(super) struct LinkWatch {
    meter: Meter,
    /// At the end of the warm-up: up, down.
    before: [Counts; 2],
    queues: [Timeline; 2],
}

/// What a direction of a link has done so far.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    counters: Counters,
    /// Bytes that have left the queue, of those that arrive.
    carried: u64,
}

impl Counts {
    fn of(engine: &mut Engine, index: usize, from: End, now: Instant) -> Self {
        let link = engine.link(index, from);
        let counters = *link.counters();
        Self {
            counters,
            carried: counters
                .delivered_bytes
                .saturating_sub(link.queued_bytes(now)),
        }
    }
}

/// The measures of a direction.
struct Direction {
    from: End,
    queue: Measure,
    dropped: Measure,
    carried: Measure,
}

const DIRECTIONS: [Direction; 2] = [
    Direction {
        from: End::Client,
        queue: Measure::QueueUp,
        dropped: Measure::DroppedUp,
        carried: Measure::CarriedUp,
    },
    Direction {
        from: End::Server,
        queue: Measure::QueueDown,
        dropped: Measure::DroppedDown,
        carried: Measure::CarriedDown,
    },
];

impl LinkWatch {
    pub(super) fn new(name: &str, from: Instant) -> Self {
        Self {
            meter: Meter::new(format!("link.{name}"), from),
            before: [Counts::default(); 2],
            queues: [Timeline::default(), Timeline::default()],
        }
    }

    /// Looks at the queues; `keep` puts what is seen into series too.
    pub(super) fn sample(&mut self, now: Instant, engine: &mut Engine, index: usize, keep: bool) {
        for (direction, line) in DIRECTIONS.iter().zip(&mut self.queues) {
            let bytes = engine.link(index, direction.from).queued_bytes(now);
            self.meter.amount(direction.queue, now, bytes);
            if keep {
                line.push(bytes as f64 / 1e3);
            }
        }
    }

    pub(super) fn warm(&mut self, now: Instant, engine: &mut Engine, index: usize) {
        self.before = DIRECTIONS.map(|direction| Counts::of(engine, index, direction.from, now));
    }

    fn report(
        mut self,
        (warm, end, step): (Instant, Instant, Duration),
        engine: &mut Engine,
        index: usize,
        run: &mut Run,
    ) {
        let before = self.before.into_iter().zip(self.queues);
        for (direction, (before, line)) in DIRECTIONS.iter().zip(before) {
            let after = Counts::of(engine, index, direction.from, end);
            let lost = after.counters.dropped_total() - before.counters.dropped_total();
            let offered = after.counters.offered - before.counters.offered;
            self.meter.fraction(direction.dropped, lost, offered);
            let carried = after.carried.saturating_sub(before.carried);
            let mbps = Rate::from_bytes_over(carried, end.since(warm)).as_mbps_f64();
            self.meter.number(direction.carried, mbps);
            let entry = direction.queue.entry();
            let name = format!("{}.{}", self.meter.name(), entry.name);
            line.report(name, entry.unit, step, run);
        }
        self.meter.report(end, None, run);
    }
}

impl Simulation<'_> {
    /// The results.
    pub(super) fn report(mut self) -> Run {
        let mut run = Run {
            cell: BTreeMap::new(),
            scheduler: self.scheduler.to_string(),
            seed: self.seed,
            values: BTreeMap::new(),
            fractions: BTreeMap::new(),
            distributions: BTreeMap::new(),
            series: BTreeMap::new(),
        };
        let (end, step) = (self.end(), self.sampler.step());
        for pair in 0..self.pairs.len() {
            self.pairs[pair].collect_waits();
            for workload in 0..self.pairs[pair].slots.len() {
                self.on_workload(pair, workload, |w, cx| w.finish(cx));
            }
        }
        let warm = Instant::ZERO + self.scenario.warmup;
        let pairs = std::mem::take(&mut self.pairs);
        for (pair, sessions) in pairs.into_iter().zip(self.sessions.chunks(2)) {
            let received: Vec<u64> = (0..pair.slots.len()).map(|i| pair.received(i)).collect();
            for (mut slot, received) in pair.slots.into_iter().zip(received) {
                let bytes = received - slot.received_before;
                let mbps = Rate::from_bytes_over(bytes, end.since(warm)).as_mbps_f64();
                slot.meter.number(Measure::Received, mbps);
                report_workload(slot, sessions, (end, step), &mut run);
            }
            for mut path in pair.paths {
                path.count(sessions, pair.from);
                report_path(path, warm, end, step, &mut run);
            }
        }
        for (index, watch) in self.links.into_iter().enumerate() {
            watch.report((warm, end, step), &mut self.engine, index, &mut run);
        }
        for source in self.cross {
            source
                .meter
                .report(end, Some(Measure::CrossThroughput), &mut run);
        }
        run
    }
}

fn report_workload(
    mut slot: Slot,
    sessions: &[Session],
    (end, step): (Instant, Duration),
    run: &mut Run,
) {
    let (after, before) = (counters(&*slot.workload, sessions), slot.before);
    let source = after.source_bytes.saturating_sub(before.source_bytes);
    if source > 0 {
        let again = after
            .retransmitted_bytes
            .saturating_sub(before.retransmitted_bytes);
        let copies = after.copy_bytes.saturating_sub(before.copy_bytes);
        let repairs = after.repair_bytes.saturating_sub(before.repair_bytes);
        let per_source = |bytes: u64| bytes as f64 / source as f64;
        slot.meter
            .number(Measure::Redundancy, per_source(again + copies + repairs));
        slot.meter
            .number(Measure::Retransmissions, per_source(again));
        slot.meter.number(Measure::Repairs, per_source(repairs));
        let sent = after.repair_symbols.saturating_sub(before.repair_symbols);
        let used = after.repairs_used.saturating_sub(before.repairs_used);
        if sent > 0 {
            // Some were sent in the warm-up and used after it.
            slot.meter
                .fraction(Measure::RepairsUsed, used.min(sent), sent);
        }
    }
    for (line, measure) in [
        (slot.delivered, Measure::Goodput),
        (slot.received, Measure::Received),
        (slot.held, Measure::OutOfOrder),
    ] {
        let entry = measure.entry();
        let name = format!("{}.{}", slot.meter.name(), entry.name);
        line.report(name, entry.unit, step, run);
    }
    slot.meter.report(end, Some(Measure::Goodput), run);
}

fn report_path(path: PathWatch, from: Instant, end: Instant, step: Duration, run: &mut Run) {
    let PathWatch {
        name, before, last, ..
    } = path;
    let time = end.since(from);
    let mbps = |bytes: u64| Rate::from_bytes_over(bytes, time).as_mbps_f64();
    let mut meter = Meter::new(name.clone(), from);
    meter.number(Measure::Throughput, mbps(last.there - before.there));
    meter.number(Measure::ReturnThroughput, mbps(last.back - before.back));
    let lost = last.lost - before.lost;
    meter.fraction(Measure::Lost, lost, last.sent - before.sent);
    // A loss of the warm-up may turn out spurious after it.
    let spurious = (last.spurious - before.spurious).min(lost);
    meter.fraction(Measure::Spurious, spurious, lost);
    let tenths = last.law.deciles.iter().zip(before.law.deciles);
    let tenths: Vec<u64> = tenths.map(|(now, then)| now.saturating_sub(then)).collect();
    let late = tenths.last().copied().unwrap_or(0);
    meter.fraction(Measure::LawLate, late, tenths.iter().sum());
    meter.report(end, None, run);
    for (line, measure) in [
        (path.throughput, Measure::Throughput),
        (path.window, Measure::Window),
        (path.in_flight, Measure::InFlight),
        (path.srtt, Measure::RoundTrip),
    ] {
        let entry = measure.entry();
        line.report(format!("{name}.{}", entry.name), entry.unit, step, run);
    }
}
