//! Status of a server, and its list of clients read again.

use marline_proto::wire::close_code;

use super::{Server, admit};
use crate::config::PathSpec;
use crate::control::status::{Role, SessionStatus};
use crate::control::{Manage, ManageError, Status};
use crate::endpoint::status;
use crate::identity::{AllowList, AllowListChange, AllowListError};

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
        for entry in self.shared.registry().iter() {
            if !self.shared.allow.contains(&entry.peer) {
                tracing::info!(
                    "session {}: {} is no longer allowed",
                    entry.number,
                    admit::name(&self.shared, entry.peer)
                );
                let reason = "this client's key was removed from the server's list";
                entry.handle.close(close_code::NONE, reason);
            }
        }
    }
}

impl Manage for Server {
    async fn status(&self) -> Status {
        let registry = self.shared.registry();
        let mut sessions: Vec<SessionStatus> = registry
            .iter()
            .map(|entry| {
                let (stats, names) = (entry.handle.stats(), entry.handle.path_names());
                let carriers = entry.handle.path_carriers();
                let paths = stats.paths.iter();
                let paths = paths
                    .map(|path| {
                        let name = names.get(&path.id).map_or("", String::as_str);
                        let carrier = carriers.get(&path.id).copied();
                        let forecast = status::forecast(&stats, path.id);
                        status::path(path.id.0, name, path, carrier, forecast)
                    })
                    .collect();
                let peer = entry.peer.to_string();
                status::session(entry.number, peer, &entry.handle, &stats, paths)
            })
            .collect();
        sessions.sort_by_key(|session| session.id);
        Status {
            role: Role::Server,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.shared.started.elapsed().as_secs_f64(),
            sessions,
            live: Vec::new(),
            tunnel: None,
        }
    }

    async fn add_path(&self, _: PathSpec) -> Result<(), ManageError> {
        Err(refused())
    }

    async fn remove_path(&self, _: &str) -> Result<(), ManageError> {
        Err(refused())
    }

    async fn set_standby(&self, _: &str, _: bool) -> Result<(), ManageError> {
        Err(refused())
    }
}

fn refused() -> ManageError {
    ManageError {
        message: "this is a server; a session's paths are its client's matter".into(),
        hint: Some("run `marline paths` where the client runs, or name its `--control`".into()),
    }
}
