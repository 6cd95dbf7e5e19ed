//! A path on trial.

use std::sync::Arc;

use marline_proto::path::PathState;
use marline_proto::wire::PathId;

use super::session::Live;

/// A path that is removed again unless it is kept, also when whoever tries it is ended meanwhile.
pub(super) struct Trial(Option<(Arc<Live>, PathId)>);

impl Trial {
    pub(super) fn of(live: Arc<Live>, path: PathId) -> Self {
        Self(Some((live, path)))
    }

    /// Waits until something has gone over it both ways.
    pub(super) async fn carries(&self) {
        if let Some((live, path)) = &self.0 {
            live.handle.path_becomes(*path, carries).await;
        }
    }

    pub(super) fn keep(mut self) -> Option<(Arc<Live>, PathId)> {
        self.0.take()
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Some((live, path)) = self.0.take() {
            // Gone already if its carrier has ended.
            let _ = live.handle.remove_path(path);
        }
    }
}

/// Does a path in this state carry?
pub(super) fn carries(state: PathState) -> bool {
    matches!(state, PathState::Active | PathState::Standby)
}
