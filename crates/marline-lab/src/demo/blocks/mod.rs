//! A demo of blocks: one of a given size every few milliseconds, worth nothing after its deadline,
//! from a client to a server. How many are late, by each scheduler over both links, over plain TCP
//! connections through the same relays, and in the simulator under the same conditions.

mod content;
mod notes;
mod options;
mod processes;
mod report;
mod session;
mod simulated;
mod tally;
mod tcp;

pub use options::{DEFAULT_LINKS, DEFAULT_SCHEDULERS, Load, Options, schedulers};
pub use processes::part;
pub use report::{Delays, Figures, Lateness, Report, RunReport};

use super::plan::{NAMES, link_reports};
use crate::emulate::{EmulateError, Emulator, EmulatorConfig};
use crate::process::ProcessError;
use marline::endpoint::ConnectError;
use marline::endpoint::server::BindError;
use marline::identity::NoRandomness;
use marline_base::Rng;
use marline_proto::sched::Choice;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tally::Tally;
use tokio::time::{MissedTickBehavior, interval};

/// Follows a demo of blocks while it runs.
pub trait Watch {
    /// A run begins.
    fn begin(&mut self, name: &str);
    /// A run goes on; called about ten times a second. Blocks that are late so far, and those whose
    /// fate is known.
    fn progress(&mut self, elapsed: Duration, late: u64, blocks: u64);
    /// A run has ended.
    fn end(&mut self, run: &RunReport);
}

/// Time between two calls of [`Watch::progress`].
const PROGRESS: Duration = Duration::from_millis(100);
/// Runs that the simulator makes of each scheduler, with seeds of their own.
pub const SIMULATED: u64 = 5;

#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("cannot start a thread or open a socket on loopback: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Keys(#[from] NoRandomness),
    #[error(transparent)]
    Link(#[from] EmulateError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Config(#[from] marline_proto::ConfigError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("TCP: {0}")]
    Tcp(#[from] marline_sim::tcp::TcpConfigError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("{0}")]
    Failed(String),
}

/// What carries the blocks of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// A session over both links.
    Session(Choice),
    /// A TCP connection over each of these links, blocks striped over them by the links' rates.
    Tcp(Vec<usize>),
}

impl Way {
    /// The schedulers, then TCP striped over both links, then over the better one.
    fn all(options: &Options) -> Vec<Self> {
        let sessions = options.schedulers.iter().copied().map(Way::Session);
        let tcp = [(0..NAMES.len()).collect(), vec![options.better_link()]];
        sessions.chain(tcp.map(Way::Tcp)).collect()
    }

    fn name(&self) -> String {
        match self {
            Way::Session(scheduler) => scheduler.to_string(),
            Way::Tcp(links) if links.len() > 1 => "TCP on each, striped".to_owned(),
            Way::Tcp(links) => format!("TCP on {}", NAMES[links[0]]),
        }
    }

    fn links(&self) -> Vec<usize> {
        match self {
            Way::Session(_) => (0..NAMES.len()).collect(),
            Way::Tcp(links) => links.clone(),
        }
    }
}

/// Runs all of it. A run that fails is reported as such, and the next begins.
///
/// Dropping the future stops all threads and closes all sockets.
pub async fn run(options: &Options, watch: &mut impl Watch) -> Report {
    let mut runs = Vec::new();
    for way in Way::all(options) {
        watch.begin(&way.name());
        let result = one(options, &way, watch).await;
        let (error, figures) = match result {
            Ok(figures) => (None, Some(figures)),
            Err(error) => (Some(error.to_string()), None),
        };
        let simulated = match &way {
            Way::Session(scheduler) => simulated::lateness_of(options, *scheduler).await,
            Way::Tcp(_) => None,
        };
        let report = RunReport {
            name: way.name(),
            links: way.links().into_iter().map(|link| NAMES[link]).collect(),
            scheduler: match &way {
                Way::Session(scheduler) => Some(scheduler.to_string()),
                Way::Tcp(_) => None,
            },
            congestion: match &way {
                Way::Session(scheduler) => options::congestion(*scheduler).name(),
                Way::Tcp(_) => tcp::CONGESTION,
            },
            error,
            figures,
            simulated,
        };
        watch.end(&report);
        runs.push(report);
    }
    Report {
        version: 1,
        seed: options.seed,
        seconds: options.time.as_secs_f64(),
        warmup_s: options.warmup().as_secs_f64(),
        processes: options.processes,
        load: options.load,
        links: link_reports(&options.links),
        runs,
    }
}

/// One run by real sockets.
async fn one(options: &Options, way: &Way, watch: &mut impl Watch) -> Result<Figures, RunError> {
    let tally = Arc::new(Mutex::new(Tally::new(options.load.deadline)));
    let run = async {
        match way {
            way if options.processes => processes::run(options, way, &tally).await,
            Way::Session(scheduler) => session::run(options, *scheduler, &tally).await,
            Way::Tcp(links) => tcp::run(options, links, &tally).await,
        }
    };
    let progress = async {
        let mut ticks = interval(PROGRESS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            let (elapsed, late, blocks) = lock(&tally).so_far(options.warmup());
            watch.progress(elapsed, late, blocks);
        }
    };
    let ended: Ended = tokio::select! {
        ended = run => ended?,
        () = progress => return Err(RunError::Failed("the progress display ended".into())),
    };
    let figures = lock(&tally).figures(options.warmup(), &ended);
    figures.ok_or_else(|| RunError::Failed("no block counts: the run is too short".into()))
}

/// What a run says besides its blocks.
#[derive(Debug, Clone, Copy, Default)]
struct Ended {
    /// (bytes sent − source bytes) / source bytes.
    redundancy: f64,
    /// How late the relays sent datagrams, the worst of them: 99th percentile.
    relays_late: Duration,
}

impl Ended {
    fn new(redundancy: f64, relays: &[Emulator]) -> Self {
        let late = relays.iter().map(|relay| relay.stats().lateness.p99);
        Ended {
            redundancy,
            relays_late: late.max().unwrap_or_default(),
        }
    }
}

fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    // A thread that panicked has left the tally whole.
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A relay over this link, with the draws of the demo's seed, so that every run meets the same
/// links.
fn relay(options: &Options, link: usize, target: SocketAddr) -> Result<Emulator, EmulateError> {
    let mut config = EmulatorConfig::new(target, options.links[link].clone());
    config.seed = link_seed(options, link);
    Emulator::start(config)
}

fn link_seed(options: &Options, link: usize) -> u64 {
    let rng = Rng::new(options.seed);
    rng.stream(&format!("link {link}")).next_u64()
}
