//! A path over TCP tries QUIC beside it.
//!
//! A network that let only TCP through may let UDP through again, and one whose first packets of
//! UDP were lost always did. Over TCP a loss holds up all that comes after it, so the path changes
//! over as soon as QUIC is up; the old connection is kept until the new one carries.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline_proto::path::PathState;
use marline_proto::wire::PathId;
use tokio::time::{sleep, timeout};

use super::Shared;
use super::dial::dial;
use super::session::Live;
use crate::Path;
use crate::carrier::{CarrierChoice, CarrierKind};

/// Until the first try: QUIC's own handshake asks again after 1, 3 and 7 s (RFC 9002 section 6.2), so
/// the path over TCP came up in a network that lost two of its packets or more.
const FIRST: Duration = Duration::from_secs(5);
/// The longest pause between two tries, which cost a network that never lets QUIC through four
/// packets each; as long as such a network is remembered.
const LONGEST: Duration = Duration::from_secs(600);
/// How long the new path may take to carry something both ways: two losses of its first packet on a
/// path whose round trip is not known yet (RFC 9002 section 6.2.2 assumes 333 ms, and doubles).
const PROOF: Duration = Duration::from_secs(3);

/// A path on trial: removed again unless it is kept, also when whoever tries it is ended meanwhile.
struct Trial(Option<(Arc<Live>, PathId)>);

impl Trial {
    fn keep(mut self) -> Option<(Arc<Live>, PathId)> {
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

/// Waits until the path has another one beside it that is carried by QUIC, and returns it with the
/// server's address; for ever if it is carried so already, or need not be.
pub(super) async fn by_quic(
    shared: &Arc<Shared>,
    spec: impl Fn() -> Option<Path>,
    live: &Arc<Live>,
    path: PathId,
    remote: SocketAddr,
) -> (Arc<Live>, PathId, SocketAddr) {
    let over_tcp = live.handle.path_carriers().get(&path) == Some(&CarrierKind::Tcp);
    let mut pause = FIRST;
    loop {
        let spec = spec().filter(|spec| over_tcp && spec.carrier == CarrierChoice::Auto);
        let Some(spec) = spec else {
            return std::future::pending().await;
        };
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
        let spec = Path {
            carrier: CarrierChoice::Quic,
            ..spec
        };
        let dialled = dial(Arc::clone(shared), spec.clone(), Some(remote)).await;
        let Ok((dialled, remote)) = dialled else {
            continue;
        };
        let Ok((live, new)) = shared.attach(dialled, &spec).await else {
            continue;
        };
        let trial = Trial(Some((Arc::clone(&live), new)));
        let carries = |state| matches!(state, PathState::Active | PathState::Standby);
        let proved = timeout(PROOF, live.handle.path_becomes(new, carries)).await;
        if proved.is_ok()
            && let Some((live, new)) = trial.keep()
        {
            tracing::info!("{}: QUIC gets through again", spec.name);
            return (live, new, remote);
        }
    }
}
