//! What control and metrics see of a session, its live entries and its tunnel together.

use super::{Manage, Problem, Status};
use marline::Path;
use marline_apps::live::Board;
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
    /// Its tunnel, if it has one that reports something.
    pub tunnel: Option<View>,
}

impl<M: Manage> Manage for Managed<M> {
    async fn status(&self) -> Status {
        Status {
            live: self.board.status(),
            tunnel: self.tunnel.as_ref().map(View::status),
            ..self.session.status().await
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
}
