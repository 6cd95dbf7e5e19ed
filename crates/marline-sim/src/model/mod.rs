//! Schedulers without a protocol: packets of one size over paths that a sender knows exactly.
//!
//! Papers that prove something of a scheduler think in such a model. Here the schedulers are those
//! of `marline-proto`, unchanged, but their views hold the model's truth in the place of estimates:
//! rate, mean delay and loss of a path are given, and what is known of its queue is either exact or
//! as old as [`Feedback`] says. So an experiment can separate a scheduler's error from that of the
//! estimates that it was given. What a scheduler learns of single packets it learns from when they
//! arrived.
//!
//! There are no headers and no congestion control: a path's window holds what is on its way and
//! [`ModelPath::ahead`] packets that wait for the server. Lost packets are sent again as soon as
//! that is known and no repair symbol replaces them. Repair symbols are those of `marline-fec`, and
//! its decoder recovers what it can; a [`BlockCode`] is there for comparison.
//!
//! | module | what |
//! | --- | --- |
//! | `run` | the clock, the paths, the sender |
//! | `backlog` | what the scheduler takes symbols from |
//! | `code` | the streaming code between sender and receiver |
//! | `receiver` | order, and what is measured there |
//! | `periods` | decoding periods, as the analysis of the code counts them |
//! | `exhaustive` | the best of all assignments of a few packets |
//! | `report` | an outcome as a run's results |

mod backlog;
mod code;
mod exhaustive;
pub mod hop;
mod path;
mod periods;
mod receiver;
mod report;
mod run;
pub mod sos;

pub use path::{ModelError, ModelPath};
pub use periods::Periods;
pub(crate) use report::value_names;

use marline_base::{Duration, Instant, Rng};
use marline_proto::sched::Choice;

use crate::measure::Histogram;

/// What the sender knows of what became of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// The server's queue, at every moment, and arrivals at once.
    Perfect,
    /// The server's queue, because it paces; and what arrived, this long after it did.
    Paced(Duration),
    /// What arrived, this long after it did.
    Delayed(Duration),
}

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// Units of equal size.
    Units {
        /// Packets of each: 1, or the size of objects.
        packets: u32,
        /// Mean time between units; zero has all of them wait at the start.
        every: Duration,
        /// Exponential times between units, not constant ones.
        random: bool,
        /// How many units.
        units: u32,
    },
    /// Bursts of packets that are written at once.
    Bursts {
        /// Mean packets of a burst (geometric).
        packets: f64,
        /// Mean time between the starts of bursts (exponential).
        every: Duration,
        /// When the writing ends.
        until: Duration,
    },
    /// As much as the paths take. A packet counts as written when it first leaves.
    Saturated {
        /// When the sending ends.
        until: Duration,
    },
}

/// A block code, used in place of a scheduler's repair symbols: after `source` source packets
/// follow `coded` coded ones, and any `source` of them all give the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCode {
    /// Source packets of a block, at least 1.
    pub source: u32,
    /// Coded packets of a block.
    pub coded: u32,
}

/// An experiment.
#[derive(Clone, Debug)]
pub struct Model {
    /// The paths, one at least.
    pub paths: Vec<ModelPath>,
    /// Size of every packet (bytes).
    pub packet: u32,
    /// What the sender knows.
    pub feedback: Feedback,
    /// What is sent.
    pub demand: Demand,
    /// A code that the scheduler knows nothing of.
    pub block: Option<BlockCode>,
    /// What was written before counts nowhere.
    pub warmup: Duration,
    /// Try all assignments of a unit's packets to paths, too.
    pub exhaustive: bool,
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
    /// The same over all packets: nothing for those that did not wait. A packet that was recovered
    /// waits from then on.
    pub buffering: Histogram,
    /// Packets sent on each path, copies and coded ones included.
    pub sent: Vec<u64>,
    /// Source packets sent, each counted once.
    pub source: u64,
    /// Coded packets sent.
    pub coded: u64,
    /// Packets sent again.
    pub again: u64,
    /// Source packets that were recovered before they arrived, if they ever did.
    pub recovered: u64,
    /// Source packets delivered in order between warm-up and end of the writing.
    pub delivered: u64,
    /// Decoding periods, by what left in which order.
    pub periods: Periods,
    /// When the last packet arrived.
    pub end: Instant,
}

impl Model {
    /// Most packets of a unit whose assignments are all tried.
    pub const MOST_EXHAUSTIVE: u32 = 8;

    /// Can it be run?
    ///
    /// # Errors
    /// A path whose parameters lie out of their range, or that has no rate.
    pub fn check(&self) -> Result<(), ModelError> {
        self.paths
            .iter()
            .try_for_each(|path| path.check(self.packet))
    }

    /// Runs until everything has arrived, or to the end of a saturated demand.
    ///
    /// # Errors
    /// As [`Model::check`].
    ///
    /// # Panics
    /// If the scheduler leaves packets unsent although nothing is on its way.
    pub fn run(&self, scheduler: &Choice, seed: u64) -> Result<Outcome, ModelError> {
        self.check()?;
        let mut run = run::ModelRun::new(self, scheduler.make(), &Rng::new(seed))?;
        run.go();
        Ok(run.into_outcome())
    }

    /// When the writing ends, if it has an end in time.
    fn until(&self) -> Option<Instant> {
        match self.demand {
            Demand::Units { .. } => None,
            Demand::Bursts { until, .. } | Demand::Saturated { until } => {
                Some(Instant::ZERO + until)
            }
        }
    }
}
