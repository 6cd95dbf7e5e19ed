//! What control and metrics see of a session and its live entries together.

use super::Board;
use crate::config::PathSpec;
use crate::control::{Manage, ManageError, Status};
use marline_base::Rate;
use std::sync::Arc;

/// A session with live entries.
#[derive(Debug)]
pub struct WithLive<M> {
    /// The session.
    pub session: Arc<M>,
    /// Its live entries.
    pub board: Board,
}

impl<M: Manage> Manage for WithLive<M> {
    async fn status(&self) -> Status {
        Status {
            live: self.board.status(),
            ..self.session.status().await
        }
    }

    async fn add_path(&self, path: PathSpec) -> Result<(), ManageError> {
        self.session.add_path(path).await
    }

    async fn remove_path(&self, name: &str) -> Result<(), ManageError> {
        self.session.remove_path(name).await
    }

    async fn set_standby(&self, name: &str, standby: bool) -> Result<(), ManageError> {
        self.session.set_standby(name, standby).await
    }

    async fn set_live_target(
        &self,
        live: Option<&str>,
        target: Option<Rate>,
    ) -> Result<(), ManageError> {
        self.board.set_target(live, target)
    }
}
