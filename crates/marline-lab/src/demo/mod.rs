//! The main job in one go, without root or configuration: a server, a client and two emulated links
//! on loopback, and real traffic through real sockets over each link alone and over both, bonded by
//! each scheduler.
//!
//! ```text
//!  HTTP client ─▶ SOCKS5 ┐                ┌ link A ┐                ┌▶ HTTP server
//!                        ├ Marline client ┤        ├ Marline server ┤
//!  live sender ─▶ live ──┘                └ link B ┘                └▶ live receiver
//! ```
//!
//! Everything runs in one process with one clock; the client, the server, the programs that use
//! them and each link have a thread of their own.
//!
//! The traffic is a download and a live stream, pages of objects, or blocks. With `--processes` a
//! demo of blocks starts both ends and the relays as processes ([`process`](crate::process)), which
//! report on standard output what they sent and received when, by the machine's monotonic clock.

pub mod blocks;
mod body;
mod download;
mod live;
pub mod objects;
mod options;
mod origin;
mod plan;
pub mod report;
mod run;
mod session;
pub mod table;
mod verdict;
mod worker;

pub use body::Body;
pub use live::{Delays, LiveFigures};
pub use options::{DEFAULT_LINKS, DEFAULT_SCHEDULERS, Options, Scheduling, parse_link, schedulers};
pub use origin::serve;
pub use plan::{Plan, RunPlan};
pub use report::Report;
pub use run::run;

use marline_proto::observe::Observers;

/// Follows a demo while it runs.
pub trait Watch {
    /// A run begins.
    fn begin(&mut self, run: &RunPlan<Scheduling>);
    /// Its client has a session and a live entry, until the run has ended.
    fn client(&mut self, client: &marline::endpoint::Client, live: &marline_apps::live::Board) {
        let _ = (client, live);
    }
    /// Who listens to the session of the run's client.
    fn observers(&mut self, run: &RunPlan<Scheduling>) -> Observers {
        let _ = run;
        Observers::default()
    }
    /// The session is up, and the run's traffic begins.
    fn traffic(&mut self) {}
    /// A run goes on; called about ten times a second.
    fn progress(&mut self, now: &Progress);
    /// A run has ended.
    fn end(&mut self, run: &report::RunReport);
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Since the traffic began.
    pub elapsed: std::time::Duration,
    /// Bytes of bodies downloaded so far.
    pub downloaded: u64,
    /// Live messages sent so far.
    pub sent: u64,
    /// Delay of the live message that came last.
    pub delay: std::time::Duration,
    /// The better link is dark.
    pub dark: bool,
}
