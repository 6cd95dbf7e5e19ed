//! How a server stands; its list of clients read again.

use std::time::Duration;

use marline_proto::wire::close_code;

use super::Server;
use super::registry::Entry;
use crate::endpoint::info::{self, SessionInfo};
use crate::identity::{AllowList, AllowListChange, AllowListError};
use crate::support::lock;

impl Server {
    /// Reads the list of allowed clients again, and ends the sessions of those that are no longer
    /// on it.
    ///
    /// # Errors
    /// The list cannot be read; the old one stays in force.
    pub fn reload(&self) -> Result<AllowListChange, AllowListError> {
        let change = self.shared.allow.reload()?;
        self.end_removed();
        Ok(change)
    }

    /// Lets in those that are on `allow` now and no others, and ends the sessions of those that are
    /// not.
    pub fn allow_only(&self, allow: &AllowList) -> AllowListChange {
        let change = self.shared.allow.replace(allow);
        self.end_removed();
        change
    }

    fn end_removed(&self) {
        lock(&self.shared.clients).retain(&self.shared.allow);
        for entry in self.shared.registry().iter() {
            if !self.shared.allow.contains(&entry.peer) {
                tracing::info!(
                    "session {}: {} is no longer allowed",
                    entry.number,
                    self.shared.name(entry.peer)
                );
                let reason = "this client's key was removed from the server's list";
                entry.handle.close(close_code::NONE, reason);
            }
        }
    }
}

impl Server {
    /// How long it has been running.
    pub fn uptime(&self) -> Duration {
        self.shared.started.elapsed()
    }

    /// How every session stands, in the order in which they came.
    pub fn sessions(&self) -> Vec<SessionInfo> {
        let registry = self.shared.registry();
        let mut sessions: Vec<SessionInfo> = registry.iter().map(session).collect();
        sessions.sort_by_key(|session| session.number);
        sessions
    }
}

fn session(entry: &Entry) -> SessionInfo {
    let (stats, names) = (entry.handle.stats(), entry.handle.path_names());
    let carriers = entry.handle.path_carriers();
    let now = entry.handle.now();
    let paths = stats.paths.iter();
    let paths = paths
        .map(|path| {
            let name = names.get(&path.id).cloned().unwrap_or_default();
            let carrier = carriers.get(&path.id).copied();
            info::path(path.id.0, name, path, carrier, now)
        })
        .collect();
    SessionInfo {
        number: entry.number,
        peer: entry.peer,
        state: entry.handle.session_state(),
        paths,
        stats: Some(stats),
    }
}
