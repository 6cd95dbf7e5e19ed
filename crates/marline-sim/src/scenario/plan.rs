use std::any::Any;
use std::fmt;
use std::sync::Arc;

use marline_base::{Duration, Instant, Rate};
use marline_link::LinkConfig;
use marline_proto::Config;
use marline_proto::observe::Observer;
use marline_proto::wire::FlowKind;

use crate::engine::End;
use crate::model::Model;
use crate::model::{hop, sos};

/// A checked experiment with every axis set: what one run needs besides its scheduler and seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// A few words for tables and plots.
    pub title: String,
    /// What it shows, in sentences.
    pub about: String,
    /// Virtual time that a run lasts.
    pub duration: Duration,
    /// Left out of the measures at the start of each run.
    pub warmup: Duration,
    /// From what happens at an end to what that makes it send.
    pub turn: Duration,
    /// Schedulers to compare, as the registry writes them (`name` or `name:key=value`).
    pub schedulers: Vec<String>,
    /// Seeds of the repeats.
    pub seeds: Vec<u64>,
    /// The links; plans refer to them by index.
    pub links: Vec<LinkPlan>,
    /// The sessions that use them.
    pub sessions: Vec<SessionPlan>,
    /// Traffic on the links that belongs to no session.
    pub cross: Vec<CrossPlan>,
    /// What happens to links and paths on the way, ascending by time.
    pub changes: Vec<Change>,
    /// Links that move from cell to cell at random times, at most one entry a link.
    pub handovers: Vec<HandoverPlan>,
    /// Instead of sessions: blocks by their deadline, without a protocol.
    pub blocks: Option<hop::Experiment>,
    /// Instead of sessions: objects, without a protocol.
    pub objects: Option<sos::Experiment>,
    /// Instead of sessions: web pages, without a protocol.
    pub pages: Option<sos::page::Experiment>,
    /// Instead of all that: a scheduler over the links without a protocol.
    pub model: Option<Model>,
    /// Bounds that the results are held against.
    pub expectations: Vec<Expectation>,
    /// Who else listens to its sessions.
    pub watch: Watch,
}

impl Scenario {
    /// Do sessions run in it, not one of the models without a protocol?
    pub fn has_sessions(&self) -> bool {
        let Self {
            blocks,
            objects,
            pages,
            model,
            ..
        } = self;
        blocks.is_none() && objects.is_none() && pages.is_none() && model.is_none()
    }
}

/// A session of a run.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// The scheduler that the run compares.
    pub scheduler: &'a str,
    /// The run's seed.
    pub seed: u64,
    /// The session's name.
    pub session: &'a str,
    /// Which end.
    pub end: End,
}

type Watcher = dyn Fn(&Watched<'_>) -> Option<Box<dyn Observer>> + Send + Sync;

/// Makes observers of the sessions of runs; none by default. What they do changes no result.
#[derive(Clone, Default)]
pub struct Watch(Option<Arc<Watcher>>);

impl Watch {
    /// `make` is called for each session of each run.
    pub fn new(
        make: impl Fn(&Watched<'_>) -> Option<Box<dyn Observer>> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(make)))
    }

    pub(crate) fn of(&self, session: &Watched<'_>) -> Option<Box<dyn Observer>> {
        self.0.as_ref().and_then(|make| make(session))
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.0.is_some()).finish()
    }
}

/// A link in both directions.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Its name in the scenario, in tables and in plots.
    pub name: String,
    /// From clients to servers.
    pub up: LinkConfig,
    /// From servers to clients.
    pub down: LinkConfig,
    /// Bytes that the network adds to each datagram of a session (IP, UDP, carrier).
    pub overhead: u32,
    /// Largest datagram of a session that the carrier takes (bytes).
    pub datagram: u32,
    /// Round-trip time that the carrier's handshake measured before the path joined, if it is
    /// known.
    pub handshake: Option<Duration>,
}

/// One client, one server, their paths and what they carry.
#[derive(Clone, Debug)]
pub struct SessionPlan {
    /// Its name; `main` if the scenario has only one.
    pub name: String,
    /// Configuration of both ends, without the scheduler that a run compares.
    pub config: Config,
    /// Its paths.
    pub paths: Vec<PathPlan>,
    /// What it carries.
    pub workloads: Vec<WorkloadPlan>,
    /// Use this scheduler whatever the run compares.
    pub scheduler: Option<String>,
}

/// One path of a session.
#[derive(Clone, Debug)]
pub struct PathPlan {
    /// Index of its link in [`Scenario::links`].
    pub link: usize,
    /// Cost rank; lower is cheaper.
    pub cost: u32,
    /// Kept in reserve.
    pub standby: bool,
    /// When it joins.
    pub joins: Instant,
    /// When it is removed, if ever.
    pub leaves: Option<Instant>,
}

/// An application.
#[derive(Clone, Debug)]
pub struct WorkloadPlan {
    /// Its name in the measures.
    pub name: String,
    /// When it begins.
    pub starts: Instant,
    /// When it stops producing, if before the end.
    pub stops: Option<Instant>,
    /// Which end sends (the requests, for those that ask and answer).
    pub from: End,
    /// Which flow carries it.
    pub flow: FlowPlan,
    /// What it sends.
    pub load: Load,
}

/// The flow of a workload.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Stream, packets, blocks or objects.
    pub kind: FlowKind,
    /// Deliver in order.
    pub ordered: bool,
    /// 0 (first) to 7.
    pub priority: u8,
    /// How long a message is worth sending; the deadline of a block.
    pub lifetime: Option<Duration>,
    /// Most bytes of messages that may wait for a path; what comes then is refused.
    pub queue: Option<u64>,
    /// Use this scheduler whatever the run compares.
    pub scheduler: Option<String>,
}

/// A distribution of sizes (bytes).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizeLaw {
    /// Always the same.
    Constant(u64),
    /// Uniform in the range, ends included.
    Uniform(u64, u64),
    /// Log-normal with this mean and standard deviation.
    LogNormal(f64, f64),
    /// Exponential with this mean.
    Exponential(f64),
}

/// What a workload sends.
#[derive(Clone, Debug)]
pub enum Load {
    /// Units of one size at a constant rate.
    Constant {
        /// Rate of the payload.
        rate: Rate,
        /// Size of a unit (bytes).
        size: u32,
    },
    /// As much as the session takes.
    Backlogged {
        /// Size of a write (bytes).
        size: u32,
        /// Ends after this number of bytes.
        bytes: Option<u64>,
    },
    /// Something for long, then batches one by one.
    Batches {
        /// Bytes of a batch.
        size: u64,
        /// Rate of what is carried before, and of the messages of batches; `None` is as fast as it
        /// goes.
        rate: Option<Rate>,
        /// How long it is carried.
        before: Duration,
        /// From its end, or that of a batch, to the next batch.
        pause: Duration,
        /// Each batch has a flow of its own, not the one that carried.
        reopen: bool,
    },
    /// Bursts of requests, each answered: an offload.
    Bursts {
        /// Size of a request.
        request: SizeLaw,
        /// Size of a reply.
        reply: SizeLaw,
        /// Mean requests in a burst (geometric).
        burst: f64,
        /// From the start of a request to the next within a burst.
        every: Duration,
        /// Mean silence between bursts (exponential).
        pause: Duration,
    },
    /// Blocks of one size at fixed intervals, each with a deadline.
    Blocks {
        /// Size of a block (bytes).
        size: u64,
        /// Interval.
        every: Duration,
        /// Worth nothing when delivered later than this after it was written.
        deadline: Duration,
        /// Offset of the first block from the workload's start; `None` draws it in a run.
        phase: Option<Duration>,
    },
    /// Objects at fixed or random intervals.
    Objects {
        /// Size.
        size: SizeLaw,
        /// Mean interval.
        every: Duration,
        /// Exponential intervals, not fixed ones.
        random: bool,
    },
    /// Video frames of these sizes (bytes), repeated from the start when they end.
    Video {
        /// Time of each frame from the first, and its size (bytes).
        frames: Arc<[(Duration, u32)]>,
        /// Period after which the frames repeat.
        period: Duration,
        /// A frame that is delivered later than this after it was captured is discarded.
        playout: Duration,
    },
    /// A closed loop: the next request waits for the reply.
    Offload {
        /// Request and reply sizes (bytes) and think time before each request.
        steps: Arc<[(u64, u64, Duration)]>,
    },
    /// A web page, loaded again some time after it was complete.
    Web {
        /// Its objects; each comes after the one that asks for it.
        page: Arc<[WebObject]>,
        /// From a page's completion to the next load.
        pause: Duration,
        /// Each load opens its connections again.
        reopen: bool,
    },
    /// End-to-end TCP flows inside the session.
    Tcp {
        /// Name of the congestion controller of the endpoints.
        congestion: String,
        /// Each stops after this number of bytes; `None` is greedy.
        bytes: Option<u64>,
        /// From the sender to its end of the tunnel, and back.
        beyond: Duration,
    },
    /// What an application from outside of this crate sends.
    Outside(Outside),
}

/// Makes an application that does not come with this crate, one for each run. What an application
/// is stands in [`crate::workload`], above this folder.
#[derive(Clone)]
pub struct Outside {
    pub(crate) name: Arc<str>,
    pub(crate) maker: Arc<dyn Any + Send + Sync>,
}

impl Outside {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Outside").field(&self.name).finish()
    }
}

/// An object of a web page.
#[derive(Clone, Debug, PartialEq)]
pub struct WebObject {
    /// Its size (bytes).
    pub size: u64,
    /// Index of the object whose arrival makes the browser ask for this one; `None` for the
    /// first.
    pub after: Option<usize>,
    /// Time that the server thinks before it answers.
    pub think: Duration,
    /// Number of the connection, and so of the flow, that it uses.
    pub connection: u32,
    /// 0 (first) to 7, as of flows.
    pub priority: u8,
    /// The page cannot be shown without it.
    pub blocking: bool,
}

/// Traffic of others on one link.
#[derive(Clone, Debug)]
pub struct CrossPlan {
    /// Its name in the measures.
    pub name: String,
    /// Index of the link in [`Scenario::links`].
    pub link: usize,
    /// Which end of the link sends.
    pub from: End,
    /// When it begins.
    pub starts: Instant,
    /// When it stops, if before the end.
    pub stops: Option<Instant>,
    /// What it is.
    pub source: CrossSource,
}

/// Kinds of cross traffic.
#[derive(Clone, Debug)]
pub enum CrossSource {
    /// Packets of one size at fixed intervals.
    Constant {
        /// Rate on the link.
        rate: Rate,
        /// Size (bytes).
        size: u32,
    },
    /// Packets of one size at exponential intervals.
    Poisson {
        /// Mean rate on the link.
        rate: Rate,
        /// Size (bytes).
        size: u32,
    },
    /// Constant rate during exponential on-times, silence in between.
    OnOff {
        /// Rate while on.
        rate: Rate,
        /// Size (bytes).
        size: u32,
        /// Mean time on.
        on: Duration,
        /// Mean time off.
        off: Duration,
    },
    /// A TCP flow.
    Tcp {
        /// Name of its congestion controller.
        congestion: String,
        /// Stops after this number of bytes; `None` is greedy.
        bytes: Option<u64>,
    },
}

/// Something that happens at a time.
#[derive(Clone, Debug)]
pub struct Change {
    /// When.
    pub at: Instant,
    /// Index of the link in [`Scenario::links`].
    pub link: usize,
    /// What becomes of it.
    pub setting: Setting,
}

/// A link that moves from cell to cell at random times, which the seed of a run decides.
#[derive(Clone, Debug)]
pub struct HandoverPlan {
    /// Index of the link in [`Scenario::links`].
    pub link: usize,
    /// Mean of the exponential time from one handover to the next (above zero).
    pub every: Duration,
    /// How long nothing gets through at each.
    pub dark: Duration,
    /// Cells besides the link as it is written, which it begins in. Each handover leads to another
    /// one, all equally likely.
    pub cells: Vec<CellPlan>,
}

/// What a link is like in one cell.
#[derive(Clone, Debug)]
pub struct CellPlan {
    /// From clients to servers.
    pub up: LinkConfig,
    /// From servers to clients.
    pub down: LinkConfig,
}

/// What a [`Change`] does to a link.
#[derive(Clone, Debug)]
pub enum Setting {
    /// Cuts it (true) or restores it, upwards and downwards.
    Dark {
        /// Upwards.
        up: bool,
        /// Downwards.
        down: bool,
    },
    /// Gives it other parameters; what waits in its queues stays.
    Link {
        /// Upwards.
        up: Box<LinkConfig>,
        /// Downwards.
        down: Box<LinkConfig>,
    },
}

/// A bound that a scenario sets to its own results, beside what was published.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The figure or table of the publication, or a few words.
    pub figure: String,
    /// Holds for this scheduler.
    pub scheduler: String,
    /// Holds for the cells whose axes have these values (as written); empty for all.
    pub cell: Vec<(String, String)>,
    /// Holds for the mean over these cells, not in each.
    pub mean: bool,
    /// The measure, as in [`crate::results::Run::values`].
    pub measure: String,
    /// What the publication reports, if it does.
    pub published: Option<f64>,
    /// Another scheduler whose mean the value is divided by before it is compared.
    pub relative_to: Option<String>,
    /// An axis and some of its values: the value is divided by the best that the cells with these
    /// values, else alike, have.
    pub best_of: Option<(String, Vec<String>)>,
    /// Smallest mean that passes.
    pub least: Option<f64>,
    /// Largest mean that passes.
    pub most: Option<f64>,
    /// Where the bound comes from; shown beside the verdict.
    pub note: Option<String>,
    /// Why the bound is missed, where it is.
    pub missed: Option<String>,
}
