//! What control and metrics see of a session, and of what runs over it, together.

use super::{Manage, Problem, Seen, Status};
use crate::recording::{Part, Recorder};
use marline::Path;
use marline_apps::live::Board;
use marline_apps::publish;
use marline_apps::tun::View;
use marline_base::Rate;
use std::sync::Arc;

/// A session with what runs over it.
#[derive(Debug)]
pub struct Managed<M> {
    /// The session.
    pub session: Arc<M>,
    /// Its live entries.
    pub board: Board,
    /// Its published ports.
    pub published: publish::Board,
    /// Its tunnel, if it has one that reports something.
    pub tunnel: Option<View>,
    /// When a server's clients were seen last.
    pub seen: Option<Arc<Seen>>,
    /// What records a client's paths.
    pub recorder: Option<Recorder>,
}

impl<M: Manage> Manage for Managed<M> {
    async fn status(&self) -> Status {
        let status = self.session.status().await;
        if let Some(seen) = &self.seen {
            seen.note(&status.clients);
        }
        Status {
            clients: match &self.seen {
                Some(seen) => seen.fill(status.clients.clone()),
                None => Vec::new(),
            },
            published: self.published.status(),
            live: self.board.status(),
            tunnel: self.tunnel.as_ref().map(View::status),
            ..status
        }
    }

    async fn add_path(&self, path: Path) -> Result<(), Problem> {
        self.session.add_path(path).await
    }

    async fn remove_path(&self, name: &str) -> Result<(), Problem> {
        self.session.remove_path(name).await
    }

    async fn set_standby(&self, name: &str, standby: bool) -> Result<(), Problem> {
        self.session.set_standby(name, standby).await
    }

    async fn set_live_target(
        &self,
        live: Option<&str>,
        target: Option<Rate>,
    ) -> Result<(), Problem> {
        self.board.set_needed_rate(live, target)
    }

    fn record(&self, since_ms: Option<u64>, all: bool) -> Result<Part, Problem> {
        match &self.recorder {
            Some(recorder) => recorder.ask(since_ms, all).ok_or_else(|| {
                Problem::new("what was recorded is gone").hint(
                    "the client was started again, or was not asked for ten seconds: record again",
                )
            }),
            None => self.session.record(since_ms, all),
        }
    }
}
