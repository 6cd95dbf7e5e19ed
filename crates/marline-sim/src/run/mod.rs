//! Runs of a scenario: one, or many at once.

mod build;
mod chosen;
mod handovers;
pub(crate) mod jobs;
mod pair;
mod report;

use std::sync::atomic::{AtomicBool, Ordering};

use marline_base::Instant;
use marline_proto::sched::Choice;
use marline_proto::{Event, Session};

use crate::cross::Source;
use crate::engine::{Alarm, End, Engine};
use crate::measure::{EVERY, Sampler};
use crate::results::Run;
use crate::scenario::{Change, Scenario, Setting};
use chosen::Chosen;
use pair::Pair;

pub use build::RunError;

/// One run of a scenario: a scheduler and a seed.
///
/// The result is a function of the arguments: the same bytes on every machine.
///
/// # Panics
/// If [`check`] finds fault with the scenario or the scheduler, if a session does not open a
/// workload's flow or take a path (it has limits for both), or if the sessions let no time pass.
pub fn run(scenario: &Scenario, scheduler: &str, seed: u64) -> Run {
    let never = AtomicBool::new(false);
    let run = run_unless(scenario, scheduler, seed, &never);
    run.unwrap_or_else(|| unreachable!("nobody stops it"))
}

/// As [`run`], but `None` if `stop` is set before the end. Models without a protocol, which take
/// little time, are not stopped once they have begun.
///
/// # Panics
/// As [`run`].
pub fn run_unless(
    scenario: &Scenario,
    scheduler: &str,
    seed: u64,
    stop: &AtomicBool,
) -> Option<Run> {
    if stop.load(Ordering::Relaxed) {
        return None;
    }
    if scenario.has_sessions() {
        let chosen = build::choose(scheduler).unwrap_or_else(|error| panic!("{error}"));
        return simulated(scenario, scheduler, chosen, seed, stop);
    }
    Some(modelled(scenario, scheduler, seed))
}

/// A run of a model without a protocol.
fn modelled(scenario: &Scenario, scheduler: &str, seed: u64) -> Run {
    if let Some(blocks) = &scenario.blocks {
        let run = build::variant(scheduler).and_then(|variant| {
            let run = blocks.results(&variant, seed);
            run.map_err(RunError::of_link)
        });
        return run.unwrap_or_else(|error| panic!("{error}"));
    }
    if let Some(objects) = &scenario.objects {
        let run = build::object_variant(scheduler).and_then(|variant| {
            let run = objects.results(variant, seed);
            run.map_err(RunError::of_link)
        });
        return run.unwrap_or_else(|error| panic!("{error}"));
    }
    if let Some(pages) = &scenario.pages {
        let run = build::page_variant(scheduler).and_then(|variant| {
            let run = pages.results(variant, seed);
            run.map_err(RunError::of_link)
        });
        return run.unwrap_or_else(|error| panic!("{error}"));
    }
    let Some(model) = &scenario.model else {
        unreachable!("a scenario without a model has sessions");
    };
    let choice = build::choose_one(scheduler);
    let choice = choice.unwrap_or_else(|error| panic!("{error}"));
    let run = model.results(&choice, seed);
    Run {
        scheduler: scheduler.to_owned(),
        ..run.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// As [`run`], with a scheduler that need not be in the registry: one that is being written.
///
/// # Panics
/// As [`run`].
pub fn run_choice(scenario: &Scenario, scheduler: Choice, seed: u64) -> Run {
    if let Some(model) = &scenario.model {
        let run = model.results(&scheduler, seed);
        return run.unwrap_or_else(|error| panic!("{error}"));
    }
    let name = scheduler.to_string();
    let never = AtomicBool::new(false);
    let run = simulated(scenario, &name, Chosen::One(scheduler), seed, &never);
    run.unwrap_or_else(|| unreachable!("nobody stops it"))
}

/// A run of sessions; `None` if it was stopped.
fn simulated(
    scenario: &Scenario,
    name: &str,
    chosen: Chosen,
    seed: u64,
    stop: &AtomicBool,
) -> Option<Run> {
    let simulation = Simulation::new(scenario, chosen, seed);
    let mut simulation = simulation.unwrap_or_else(|error| panic!("{error}"));
    simulation.observe(name);
    simulation.go(stop).then(|| Run {
        scheduler: name.to_owned(),
        ..simulation.report()
    })
}

/// Can the scenario be run with the scheduler?
///
/// # Errors
/// What cannot be, and why.
pub fn check(scenario: &Scenario, scheduler: &str) -> Result<(), RunError> {
    if let Some(blocks) = &scenario.blocks {
        build::variant(scheduler)?;
        return blocks.check().map_err(RunError::of_link);
    }
    if let Some(objects) = &scenario.objects {
        build::object_variant(scheduler)?;
        return objects.check().map_err(RunError::of_link);
    }
    if let Some(pages) = &scenario.pages {
        build::page_variant(scheduler)?;
        return pages.check().map_err(RunError::of_link);
    }
    if let Some(model) = &scenario.model {
        build::choose_one(scheduler)?;
        return model.check().map_err(RunError::from);
    }
    let chosen = build::choose(scheduler)?;
    Simulation::new(scenario, chosen, 0).map(drop)
}

/// What an alarm is for.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// The change at this index of the scenario.
    Change(usize),
    /// A path of a pair joins.
    Join { pair: usize, path: usize },
    /// A path of a pair is removed.
    Leave { pair: usize, path: usize },
    /// A workload begins.
    Start { pair: usize, workload: usize },
    /// A workload stops producing.
    Stop { pair: usize, workload: usize },
    /// A workload asked to be woken.
    Wake { pair: usize, workload: usize },
    /// The cross source at this index acts.
    Cross(usize),
    /// Time to look at queues.
    Sample,
    /// The warm-up is over.
    Warm,
}

/// A run at work.
#[derive(Debug)]
struct Simulation<'a> {
    scenario: &'a Scenario,
    /// Those of the scenario, and what random handovers come to.
    changes: Vec<Change>,
    scheduler: Chosen,
    seed: u64,
    engine: Engine,
    /// Client and server of each pair in turn.
    sessions: Vec<Session>,
    pairs: Vec<Pair>,
    cross: Vec<Source>,
    links: Vec<report::LinkWatch>,
    sampler: Sampler,
    /// What each alarm is for.
    moments: Vec<Moment>,
    /// Sessions that were flushed last.
    flushed: Vec<usize>,
}

impl Simulation<'_> {
    fn end(&self) -> Instant {
        Instant::ZERO + self.scenario.duration
    }

    /// Runs to the end, or until `stop` is set: then it answers false.
    fn go(&mut self, stop: &AtomicBool) -> bool {
        let end = self.end();
        let mut alarms = Vec::new();
        self.drain();
        while self.engine.advance(&mut self.sessions, end) {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            self.engine.take_alarms(&mut alarms);
            for alarm in &alarms {
                self.on_alarm(*alarm);
            }
            self.drain();
        }
        true
    }

    /// Hands events to workloads and datagrams to links until nothing is left to do now.
    fn drain(&mut self) {
        loop {
            // Workloads that receive an event may touch further sessions.
            let mut next = 0;
            while let Some(&index) = self.engine.touched().get(next) {
                self.drain_events(index);
                next += 1;
            }
            if !self.engine.is_due() {
                return;
            }
            let mut flushed = std::mem::take(&mut self.flushed);
            flushed.clear();
            flushed.extend_from_slice(self.engine.touched());
            self.engine.flush(&mut self.sessions);
            for index in &flushed {
                self.drain_events(*index);
            }
            self.flushed = flushed;
        }
    }

    fn drain_events(&mut self, index: usize) {
        let end = match index.is_multiple_of(2) {
            true => End::Client,
            false => End::Server,
        };
        while let Some(event) = self.sessions[index].poll_event() {
            let flow = match event {
                Event::FlowOpened(flow)
                | Event::FlowReadable(flow)
                | Event::FlowWritable(flow)
                | Event::FlowStopped(flow, _)
                | Event::UnitSettled { flow, .. }
                | Event::FlowClosed(flow) => flow,
                Event::BelowNeededRate { .. }
                | Event::MeetsNeededRate { .. }
                | Event::PathChanged { .. }
                | Event::PathAbandoned(_)
                | Event::Closed(_) => continue,
            };
            let pair = index / 2;
            if let Some(workload) = self.pairs[pair].owner(flow) {
                self.on_workload(pair, workload, |w, cx| w.on_event(cx, end, &event));
            }
        }
    }

    fn on_alarm(&mut self, alarm: Alarm) {
        match self.moments[alarm.0 as usize] {
            Moment::Change(index) => self.change(index),
            Moment::Join { pair, path } => self.join(pair, path),
            Moment::Leave { pair, path } => self.leave(pair, path),
            Moment::Start { pair, workload } => self.on_workload(pair, workload, |w, cx| {
                let begun = w.start(cx);
                begun.unwrap_or_else(|error| panic!("{} cannot begin: {error}", cx.meter.name()));
            }),
            Moment::Stop { pair, workload } => {
                self.on_workload(pair, workload, |w, cx| w.stop(cx));
            }
            Moment::Wake { pair, workload } => {
                if self.pairs[pair].is_due(workload, self.engine.now()) {
                    self.on_workload(pair, workload, |w, cx| w.wake(cx));
                }
            }
            Moment::Cross(index) => self.run_cross(index, alarm),
            Moment::Sample => self.sample(alarm),
            Moment::Warm => self.warm(),
        }
    }

    fn run_cross(&mut self, index: usize, alarm: Alarm) {
        let source = &mut self.cross[index];
        source.act(&mut self.engine);
        if let Some(at) = source.next_at() {
            self.engine.call_at(at, alarm);
        }
    }

    fn change(&mut self, index: usize) {
        let change = &self.changes[index];
        match &change.setting {
            Setting::Dark { up, down } => {
                let now = self.engine.now();
                self.engine.set_dark(change.link, *up, *down);
                for source in &mut self.cross {
                    source.on_dark(now, change.link, *up, *down);
                }
            }
            Setting::Link { up, down } => {
                let changed = self.engine.reconfigure(change.link, up, down);
                changed.unwrap_or_else(|error| panic!("change {}: {error}", index + 1));
            }
        }
    }

    fn sample(&mut self, alarm: Alarm) {
        let now = self.engine.now();
        let keep = self.sampler.tick();
        let step = self.sampler.step();
        for (pair, sessions) in self.pairs.iter_mut().zip(self.sessions.chunks(2)) {
            pair.sample(now, sessions, keep.then_some(step));
        }
        for (index, watch) in self.links.iter_mut().enumerate() {
            watch.sample(now, &mut self.engine, index, keep);
        }
        self.engine.call_at(now + EVERY, alarm);
    }

    fn warm(&mut self) {
        let now = self.engine.now();
        for (pair, sessions) in self.pairs.iter_mut().zip(self.sessions.chunks(2)) {
            pair.warm(sessions);
        }
        for (index, watch) in self.links.iter_mut().enumerate() {
            watch.warm(now, &mut self.engine, index);
        }
    }
}
