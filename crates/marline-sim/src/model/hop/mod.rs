//! The experiment of the HOP paper without a protocol: blocks over links whose capacity is drawn
//! again at intervals, queues that carry over, and a sender that learns of departures a round trip
//! later.
//!
//! What plans is the [`Sender`] of `marline-proto`, which the schedulers use, too. Here it meets
//! the paper's conditions and nothing else: packets of one size, no headers, no congestion control,
//! no windows, acknowledgements that wait for nothing and return over the quickest path. So what is
//! late is late because of the capacity or the plan.

mod path;
mod report;
mod stability;
mod variant;

pub(crate) use report::value_names;
pub use variant::Variant;

use marline_base::{Duration, Instant, Rng};
use marline_link::{ConfigError, LinkConfig};
use marline_proto::sched::capacity::Calibration;
use marline_proto::sched::hop::{Block, Sender, SenderPath};

use crate::results::Fraction;
use path::Path;

/// The largest block (packets) that an application offers LEAP.
const MOST_PACKETS: u32 = 400;
/// What an application sends that LEAP has refused (packets): enough to go on measuring.
const FALLBACK: u32 = 20;

/// An experiment with blocks.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The links, forward; their propagation must be constant.
    pub links: Vec<LinkConfig>,
    /// Size of every packet (bytes).
    pub packet: u32,
    /// Size of a block (bytes); a number of packets, rounded up.
    pub block: u64,
    /// Time between blocks.
    pub every: Duration,
    /// When the first block is written; drawn from 0 to `every` if not given.
    pub phase: Option<Duration>,
    /// Time within which a block must arrive, T.
    pub deadline: Duration,
    /// Probability with which it should, P_thr.
    pub reliability: f64,
    /// Time that blocks are written.
    pub duration: Duration,
    /// Blocks that are written before do not count.
    pub warmup: Duration,
    /// Instead of a run: how likely redundancy does not grow from this queue on every path.
    pub queue: Option<Duration>,
}

/// What came of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Blocks that were not decodable in time.
    pub late: Fraction,
    /// Packets sent.
    pub sent: u64,
    /// Packets that blocks had.
    pub needed: u64,
    /// Packets of each block.
    pub sizes: Vec<u32>,
    /// Promised probabilities against what happened.
    pub calibration: Calibration,
    /// How far each capacity was from its forecast, in deviations of the forecast.
    pub errors: Vec<f64>,
    /// Sum over blocks and paths of forecast mean and deviation (bit/s), and how many.
    pub forecasts: (f64, f64, u64),
}

impl Experiment {
    /// Runs it.
    ///
    /// # Errors
    /// A link whose parameters lie out of their range.
    pub fn run(&self, variant: &Variant, seed: u64) -> Result<Outcome, ConfigError> {
        let rng = Rng::new(seed);
        let phase = self.phase.unwrap_or_else(|| {
            let part = rng.stream("phase").uniform();
            self.every.mul_f64(part)
        });
        let fastest = self.links.iter().map(path::propagation).min();
        let mut paths = Vec::new();
        for (i, link) in self.links.iter().enumerate() {
            let back = fastest.unwrap_or_default();
            let seed = rng.stream(&format!("path {i}")).next_u64();
            let window = self.deadline.saturating_sub(path::propagation(link));
            let memory = variant.memory(link, phase, window);
            paths.push(Path::new(link.clone(), seed, back, memory)?);
        }
        let mut run = BlockRun {
            experiment: self,
            variant,
            sender: Sender::new(variant.settings()),
            paths,
            outcome: Outcome::default(),
        };
        let mut at = Instant::ZERO + phase;
        while at < Instant::ZERO + self.duration {
            run.block(at);
            at += self.every;
        }
        Ok(run.outcome)
    }
}

struct BlockRun<'a> {
    experiment: &'a Experiment,
    variant: &'a Variant,
    sender: Sender,
    paths: Vec<Path>,
    outcome: Outcome,
}

impl BlockRun<'_> {
    fn block(&mut self, at: Instant) {
        let Experiment {
            packet,
            block,
            deadline,
            reliability,
            ..
        } = *self.experiment;
        let mut block = Block {
            at: seconds(at),
            within: deadline.as_secs_f64(),
            reliability,
            packets: block.div_ceil(u64::from(packet)) as u32,
            packet: f64::from(packet) * 8.0,
        };
        let mut arrived = 0;
        if matches!(self.variant, Variant::Bound) {
            for path in &mut self.paths {
                path.empty(at);
                arrived += path.send(at, block.packets, packet, at + deadline);
            }
            self.count(at, &block, arrived, 0, None);
            return;
        }
        self.hear(at);
        let every = self.sender.on_block(&block);
        for path in &mut self.paths {
            path.skip.on_block(block.at, every);
        }
        if self.variant.leaps() {
            let asked = Block {
                packets: MOST_PACKETS,
                ..block
            };
            let fits = self.on_paths(|sender, paths| sender.capacity(&asked, paths));
            block.packets = fits.map_or(FALLBACK, |(packets, _)| packets);
        }
        for path in &mut self.paths {
            path.note_forecast(at, every, deadline, at >= self.experiment.warm());
        }
        let stage = self.variant.settings().stage;
        let mut failure = None;
        let mut sent = Vec::new();
        if stage > 0.0 {
            sent = self.on_paths(|sender, paths| sender.head(&block, paths));
            for (path, packets) in self.paths.iter_mut().zip(&sent) {
                arrived += path.send(at, *packets, packet, at + deadline);
            }
        }
        let now = at + Duration::from_secs_f64(stage);
        self.hear(now);
        let schedule =
            self.on_paths(|sender, paths| sender.plan(seconds(now), &block, &sent, paths));
        for path in &mut self.paths {
            path.skip.expect(block.at, seconds(now), every);
        }
        if self
            .paths
            .iter()
            .all(|path| path.skip.forecast(every).is_some())
        {
            failure = Some(schedule.failure);
        }
        let mut total = 0;
        for (i, (path, packets)) in self.paths.iter_mut().zip(&schedule.packets).enumerate() {
            let before = sent.get(i).copied().unwrap_or(0);
            let more = packets.saturating_sub(before);
            arrived += path.send(now, more, packet, at + deadline);
            total += before + more;
        }
        self.count(at, &block, arrived, total, failure);
    }

    fn count(&mut self, at: Instant, block: &Block, arrived: u32, sent: u32, failure: Option<f64>) {
        if at < self.experiment.warm() {
            return;
        }
        let outcome = &mut self.outcome;
        let late = arrived < block.packets;
        outcome.late.trials += 1;
        outcome.late.hits += u64::from(late);
        outcome.sent += u64::from(sent);
        outcome.needed += u64::from(block.packets);
        outcome.sizes.push(block.packets);
        if let Some(failure) = failure {
            outcome.calibration.record(1.0 - failure, !late);
        }
        for path in &mut self.paths {
            for (error, forecast) in path.take_errors() {
                outcome.errors.push(error);
                outcome.forecasts.0 += forecast.mean;
                outcome.forecasts.1 += forecast.sd;
                outcome.forecasts.2 += 1;
            }
        }
    }

    fn hear(&mut self, now: Instant) {
        for path in &mut self.paths {
            path.hear(now);
        }
    }

    fn on_paths<T>(&self, act: impl FnOnce(&Sender, &[SenderPath<'_>]) -> T) -> T {
        let paths: Vec<SenderPath<'_>> = self.paths.iter().map(Path::seen).collect();
        act(&self.sender, &paths)
    }
}

impl Experiment {
    /// Can it be run?
    ///
    /// # Errors
    /// A link whose parameters lie out of their range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut links = self.links.iter().cloned();
        links.try_for_each(|link| marline_link::Link::new(link, 0).map(drop))
    }

    fn warm(&self) -> Instant {
        Instant::ZERO + self.warmup
    }
}

fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 * 1e-9
}

#[cfg(test)]
mod tests;
