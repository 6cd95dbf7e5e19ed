//! A path on trial.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline_proto::path::PathState;
use marline_proto::wire::PathId;
use tokio::time::timeout;

use super::Shared;
use super::dial::dial;
use super::policing::Way;
use super::session::Live;
use crate::Path;
use crate::carrier::CarrierChoice;

/// How long a new path may take to carry something both ways: two losses of its first packet on a
/// path whose round trip is not known yet (RFC 9002 section 6.2.2 assumes 333 ms, and doubles).
const PROOF: Duration = Duration::from_secs(3);

/// A path that takes the place of another one, with its session and the server's address.
pub(super) type Successor = (Arc<Live>, PathId, SocketAddr);

/// A path that is removed again unless it is kept, also when whoever tries it is ended meanwhile.
pub(super) struct Trial(Option<(Arc<Live>, PathId)>);

impl Trial {
    /// Dials over this carrier beside a path and joins the session. Returns the server's address,
    /// too; `None` if that did not come about.
    pub(super) async fn begin(
        shared: &Arc<Shared>,
        spec: &Path,
        carrier: CarrierChoice,
        remote: SocketAddr,
    ) -> Option<(Self, SocketAddr)> {
        let spec = Path {
            carrier,
            ..spec.clone()
        };
        let dialled = dial(Arc::clone(shared), spec.clone(), Some(remote)).await;
        let (dialled, remote) = dialled.ok()?;
        let joined = shared.attach(dialled, &spec).await.ok()?;
        Some((Self(Some(joined)), remote))
    }

    /// Has something gone over it both ways, in reasonable time?
    pub(super) async fn is_proved(&self) -> bool {
        let Some((live, path)) = &self.0 else {
            return false;
        };
        let proof = live.handle.path_becomes(*path, carries);
        timeout(PROOF, proof).await.is_ok()
    }

    /// Bytes that have arrived over it this way; `None` when it has ended.
    pub(super) fn delivered(&self, way: Way) -> Option<u64> {
        let (live, path) = self.0.as_ref()?;
        let stats = live.handle.path_stats(*path)?;
        Some(way.delivered(&stats.counters))
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
