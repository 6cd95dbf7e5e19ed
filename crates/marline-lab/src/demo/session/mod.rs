//! The Marline under demonstration: a server and a client as the program runs them, each on a
//! thread of its own.

mod client;
mod counted;
mod server;

pub(super) use client::Client;
pub(super) use counted::redundancy;
pub(super) use server::Server;

use crate::demo::Scheduling;
use marline::endpoint::ConnectError;
use marline::endpoint::server::BindError;
use marline::identity::{Identity, NoRandomness};
use marline_proto::sched::Need;
use marline_proto::wire::FlowKind;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Time between two looks at a session's counters; what a flow counts after its last look is not
/// counted.
const LOOK: Duration = Duration::from_millis(100);

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub(in crate::demo) enum SessionError {
    #[error("cannot make keys: {0}")]
    Keys(#[from] NoRandomness),
    #[error("cannot start a thread or open a socket on loopback: {0}")]
    Io(#[from] io::Error),
    #[error("the server does not start: {0}")]
    Bind(#[from] BindError),
    #[error("the client does not start: {0}")]
    Config(#[from] marline_proto::ConfigError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the {0} ended before its time")]
    Ended(&'static str),
}

/// The programs behind the server.
#[derive(Debug, Clone, Copy)]
pub(in crate::demo) struct Targets {
    /// The web server.
    pub(in crate::demo) origin: SocketAddr,
    /// The live stream's receiver.
    pub(in crate::demo) live: SocketAddr,
}

/// Keys of both ends, made for one run.
#[derive(Debug)]
pub(in crate::demo) struct Keys {
    server: Identity,
    client: Identity,
}

impl Keys {
    pub(in crate::demo) fn new() -> Result<Self, SessionError> {
        Ok(Keys {
            server: Identity::generate()?,
            client: Identity::generate()?,
        })
    }
}

/// Everything by default but the schedulers.
fn config(scheduling: Scheduling) -> marline_proto::Config {
    marline_proto::Config {
        stream_scheduler: scheduling.of(Need::of(FlowKind::Stream)),
        packets_scheduler: scheduling.of(Need::of(FlowKind::Packets)),
        ordered_scheduler: scheduling.of(Need::ordered()),
        ..marline_proto::Config::default()
    }
}
