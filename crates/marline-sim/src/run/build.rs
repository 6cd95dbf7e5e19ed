//! From a scenario to sessions, links and alarms.

use std::fmt;

use marline_base::{Instant, Rng};
use marline_link::{ConfigError, Link, LinkConfig};
use marline_proto::path::PathParams;
use marline_proto::sched::{Choice, ChoiceError};
use marline_proto::wire::FlowKind;
use marline_proto::{Session, Side};

use super::chosen::Chosen;
use super::handovers;
use super::pair::{Pair, PathWatch, Slot};
use super::report::LinkWatch;
use super::{Moment, Simulation};
use crate::cross::Source;
use crate::engine::{Alarm, Cable, End, Engine};
use crate::measure::{EVERY, Meter, Sampler, Waiting};
use crate::model::ModelError;
use crate::model::{hop, sos};
use crate::scenario::{CrossPlan, Scenario, SessionPlan, Setting, Watched, path_name};
use crate::workload;

/// Why a scenario cannot be run: what it is about, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    what: String,
    reason: String,
}

impl RunError {
    fn new(what: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self {
            what: what.into(),
            reason: reason.to_string(),
        }
    }

    pub(super) fn of_link(error: ConfigError) -> Self {
        Self::new("links", error)
    }
}

/// The variant of the model for blocks that is called so.
pub(super) fn variant(name: &str) -> Result<hop::Variant, RunError> {
    name.parse()
        .map_err(|reason: String| RunError::new("scheduler", reason))
}

/// The variant of the model for objects that is called so.
pub(super) fn object_variant(name: &str) -> Result<sos::Variant, RunError> {
    name.parse()
        .map_err(|reason: String| RunError::new("scheduler", reason))
}

/// The variant of the model for web pages that is called so.
pub(super) fn page_variant(name: &str) -> Result<sos::page::Variant, RunError> {
    name.parse()
        .map_err(|reason: String| RunError::new("scheduler", reason))
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.reason)
    }
}

impl std::error::Error for RunError {}

impl From<ModelError> for RunError {
    fn from(error: ModelError) -> Self {
        Self::new(format!("path {}", error.path), error.reason)
    }
}

/// Every session gets a seed, links and paths from the streams of the run's generator, named after
/// what uses them, so that schedulers are compared over the same draws.
impl<'a> Simulation<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        scheduler: Chosen,
        seed: u64,
    ) -> Result<Self, RunError> {
        let rng = Rng::new(seed);
        let mut simulation = Self {
            scenario,
            changes: handovers::changes(scenario, &rng),
            scheduler,
            seed,
            engine: Engine::new(scenario.sessions.len(), rng.stream("links")),
            sessions: Vec::new(),
            pairs: Vec::new(),
            cross: Vec::new(),
            links: Vec::new(),
            sampler: Sampler::new(scenario.duration),
            moments: Vec::new(),
            flushed: Vec::new(),
        };
        simulation.engine.set_turn(scenario.turn);
        // Changes come first, so that what joins at the same time sees them.
        for index in 0..simulation.changes.len() {
            let change = &simulation.changes[index];
            if let Setting::Link { up, down } = &change.setting {
                for config in [up, down] {
                    let link = Link::new(LinkConfig::clone(config), 0);
                    link.map_err(|e| RunError::new(format!("change {}", index + 1), e))?;
                }
            }
            simulation.at(change.at, Moment::Change(index));
        }
        for link in &scenario.links {
            let cable = Cable {
                up: link.up.clone(),
                down: link.down.clone(),
            };
            let added = simulation.engine.add_link(&cable, link.overhead);
            added.map_err(|e| RunError::new(format!("link {}", link.name), e))?;
            simulation
                .links
                .push(LinkWatch::new(&link.name, simulation.warm_at()));
        }
        for (pair, plan) in scenario.sessions.iter().enumerate() {
            simulation.add_pair(&rng, pair, plan)?;
        }
        for plan in &scenario.cross {
            simulation.add_cross(&rng, plan)?;
        }
        simulation.at(simulation.warm_at(), Moment::Warm);
        simulation.at(Instant::ZERO + EVERY, Moment::Sample);
        Ok(simulation)
    }

    /// Lets those listen whom the scenario names. A run that is only checked has none.
    pub(super) fn observe(&mut self, scheduler: &str) {
        for (pair, plan) in self.scenario.sessions.iter().enumerate() {
            for (offset, end) in [End::Client, End::Server].into_iter().enumerate() {
                let observer = self.scenario.watch.of(&Watched {
                    scheduler,
                    seed: self.seed,
                    session: &plan.name,
                    end,
                });
                if let Some(observer) = observer {
                    self.sessions[2 * pair + offset].add_observer(observer);
                }
            }
        }
    }

    fn warm_at(&self) -> Instant {
        Instant::ZERO + self.scenario.warmup
    }

    /// An alarm for a moment, not set.
    fn alarm(&mut self, moment: Moment) -> Alarm {
        self.moments.push(moment);
        Alarm((self.moments.len() - 1) as u32)
    }

    fn at(&mut self, at: Instant, moment: Moment) {
        let alarm = self.alarm(moment);
        self.engine.call_at(at, alarm);
    }

    fn add_pair(&mut self, rng: &Rng, pair: usize, plan: &SessionPlan) -> Result<(), RunError> {
        let name = || format!("session {}", plan.name);
        let chosen = match &plan.scheduler {
            Some(fixed) => parse(fixed).map_err(|e| RunError::new(name(), e))?,
            None => self.scheduler,
        };
        let config = chosen.configured(&plan.config);
        let waiting = [Waiting::default(), Waiting::default()];
        let sides = [(Side::Client, "client"), (Side::Server, "server")];
        for ((side, what), waiting) in sides.into_iter().zip(&waiting) {
            let seed = rng.stream(&format!("{} {what}", name())).next_u64();
            let session = Session::new(Instant::ZERO, side, config.clone(), config.params(), seed);
            let mut session = session.map_err(|e| RunError::new(name(), e))?;
            session.add_observer(waiting.observer());
            self.sessions.push(session);
            self.engine.touch(self.sessions.len() - 1);
        }
        let mut paths = Vec::new();
        for (path, one) in plan.paths.iter().enumerate() {
            let name = path_name(self.scenario, plan, path);
            paths.push(PathWatch::new(one.clone(), name));
            self.at(one.joins, Moment::Join { pair, path });
            if let Some(at) = one.leaves {
                self.at(at, Moment::Leave { pair, path });
            }
        }
        let mut slots = Vec::new();
        for (workload, one) in plan.workloads.iter().enumerate() {
            let what = || format!("workload {}", one.name);
            let own = match &one.flow.scheduler {
                Some(name) => check_scheduler(name, one.flow.kind),
                None => Ok(chosen),
            };
            let own = own.map_err(|e| RunError::new(what(), e))?;
            let mut planned = one.clone();
            if let Some(choice) = own.of_flow(plan, one) {
                planned.flow.scheduler = Some(choice.to_string());
            }
            let built = workload::build(&planned).map_err(|e| RunError::new(what(), e))?;
            let alarm = self.alarm(Moment::Wake { pair, workload });
            let (duration, step) = (self.scenario.duration, self.sampler.step());
            let meter = Meter::new(one.name.clone(), self.warm_at()).over_time(duration, step);
            let rng = rng.stream(&format!("{} {}", name(), what()));
            slots.push(Slot::new(built, meter, rng, alarm));
            self.at(one.starts, Moment::Start { pair, workload });
            if let Some(at) = one.stops {
                self.at(at, Moment::Stop { pair, workload });
            }
        }
        let from = plan.workloads.first().map_or(End::Client, |w| w.from);
        self.pairs.push(Pair::new(slots, paths, from, waiting));
        Ok(())
    }

    fn add_cross(&mut self, rng: &Rng, plan: &CrossPlan) -> Result<(), RunError> {
        let name = format!("cross.{}", plan.name);
        let (rng, meter) = (rng.stream(&name), Meter::new(name.clone(), self.warm_at()));
        let source = Source::new(plan, rng, meter).map_err(|e| RunError::new(name, e))?;
        let next = source.next_at();
        self.cross.push(source);
        let alarm = self.alarm(Moment::Cross(self.cross.len() - 1));
        if let Some(at) = next {
            self.engine.call_at(at, alarm);
        }
        Ok(())
    }

    pub(super) fn join(&mut self, pair: usize, path: usize) {
        let now = self.engine.now();
        let watch = &mut self.pairs[pair].paths[path];
        let link = &self.scenario.links[watch.plan.link];
        let params = PathParams {
            max_datagram: link.datagram as usize,
            cost: watch.plan.cost,
            standby: watch.plan.standby,
            rtt: link.handshake,
            ..PathParams::default()
        };
        let sessions = &mut self.sessions[2 * pair..2 * pair + 2];
        let id = sessions[0].next_path_id().max(sessions[1].next_path_id());
        for session in sessions {
            if let Err(error) = session.add_path(now, id, &params) {
                panic!("{} cannot join: {error}", watch.name);
            }
            session.name_path(now, id, &link.name);
        }
        watch.id = Some(id);
        self.engine.connect(pair, id, watch.plan.link);
        self.engine.touch(2 * pair);
        self.engine.touch(2 * pair + 1);
    }

    /// The client's host loses the path; the server learns of it.
    pub(super) fn leave(&mut self, pair: usize, path: usize) {
        let now = self.engine.now();
        let Pair { paths, from, .. } = &mut self.pairs[pair];
        let watch = &mut paths[path];
        let sessions = &mut self.sessions[2 * pair..2 * pair + 2];
        watch.count(sessions, *from);
        if let Some(id) = watch.id.take() {
            // The server may have removed it already.
            sessions[0].remove_path(now, id).ok();
            self.engine.disconnect(pair, id);
            self.engine.touch(2 * pair);
        }
    }
}

/// The scheduler of this name and options, or `auto`.
pub(super) fn choose(scheduler: &str) -> Result<Chosen, RunError> {
    parse(scheduler).map_err(|e| RunError::new("the scheduler", e))
}

/// The same where there are no flows for which `auto` could choose.
pub(super) fn choose_one(scheduler: &str) -> Result<Choice, RunError> {
    match choose(scheduler)? {
        Chosen::One(choice) => Ok(choice),
        Chosen::Auto => {
            let why =
                "`auto` chooses for flows of a session, and a model has none; name a scheduler";
            Err(RunError::new("the scheduler", why))
        }
    }
}

fn parse(scheduler: &str) -> Result<Chosen, String> {
    scheduler.parse().map_err(|e: ChoiceError| e.to_string())
}

/// Can a flow of this kind have the scheduler?
fn check_scheduler(name: &str, kind: FlowKind) -> Result<Chosen, String> {
    let chosen = parse(name)?;
    match chosen.serves(kind) {
        true => Ok(chosen),
        false => Err(format!("scheduler '{name}' does not serve {kind:?} flows")),
    }
}
