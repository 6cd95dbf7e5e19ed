//! How a session and its paths stand.

use std::time::Duration;

use marline_base::Instant;
use marline_proto::path::PathState;
use marline_proto::stats::{PathStats, SessionStats};

use super::Session;
use crate::carrier::CarrierKind;
use crate::identity::PublicKey;

/// How a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// There is none yet, or none any more.
    Connecting,
    /// A path works.
    Established,
    /// No path works.
    Stalled,
    /// It is over.
    Closing,
}

/// A session, or a client's session to come.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its number in this process, counted from 0.
    pub number: u64,
    /// The key of the other end.
    pub peer: PublicKey,
    /// How it stands.
    pub state: SessionState,
    /// Every path, dead ones included, and at a client those that are being dialled.
    pub paths: Vec<PathInfo>,
    /// What it has counted; `None` while a client is connecting.
    pub stats: Option<SessionStats>,
}

/// One path of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PathInfo {
    /// At a client its number among the configured paths, which stays the same when it is dialled
    /// again; at a server the session's own.
    pub number: u64,
    /// Its name from the configuration; at a server, the client's address when the path came up.
    pub name: String,
    /// What the session thinks of it.
    pub state: PathState,
    /// Why it is in that state, in words.
    pub reason: String,
    /// How long it has been in that state; in doubt or dead, how long it has been in doubt; while
    /// it is not up, how long it has not been.
    pub for_time: Duration,
    /// How long the other end has answered nothing on it; `None` while it is not up.
    pub silent: Option<Duration>,
    /// Cost rank, 0 is cheapest.
    pub cost: u32,
    /// What carries it; `None` while it is not up.
    pub carrier: Option<CarrierKind>,
    /// What the session has counted of it; `None` while it is not up.
    pub stats: Option<PathStats>,
}

/// A path that is up, `now` by the session's clock.
pub(super) fn path(
    number: u64,
    name: String,
    stats: &PathStats,
    carrier: Option<CarrierKind>,
    now: Instant,
) -> PathInfo {
    PathInfo {
        number,
        name,
        state: stats.state,
        reason: stats.reason.clone(),
        for_time: now.since(stats.since),
        silent: Some(now.since(stats.heard)),
        cost: stats.cost,
        carrier,
        stats: Some(stats.clone()),
    }
}

impl Session {
    pub(super) fn session_state(&self) -> SessionState {
        match (self.is_closed(), self.has_working_path()) {
            (Some(_), _) => SessionState::Closing,
            (None, true) => SessionState::Established,
            (None, false) => SessionState::Stalled,
        }
    }
}
