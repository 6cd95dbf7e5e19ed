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

/// Until the first try: what was in the way when the path was dialled may be over by then.
const FIRST: Duration = Duration::from_secs(5);
/// The longest pause between two tries, which cost a network that never lets QUIC through four
/// packets each; as long as such a network is remembered.
const LONGEST: Duration = Duration::from_secs(600);
/// How long the new path may take to carry something both ways.
const PROOF: Duration = Duration::from_secs(3);

/// Waits until the path has another one beside it that is carried by QUIC; for ever if it is
/// carried so already, or need not be.
pub(super) async fn by_quic(
    shared: &Arc<Shared>,
    spec: impl Fn() -> Option<Path>,
    live: &Arc<Live>,
    path: PathId,
    remote: SocketAddr,
) -> (Arc<Live>, PathId) {
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
        let Ok((dialled, _)) = dial(Arc::clone(shared), spec.clone(), Some(remote)).await else {
            continue;
        };
        let Ok((live, new)) = shared.attach(dialled, &spec).await else {
            continue;
        };
        let carries = |state| matches!(state, PathState::Active | PathState::Standby);
        if timeout(PROOF, live.handle.path_becomes(new, carries))
            .await
            .is_ok()
        {
            tracing::info!("{}: QUIC gets through again", spec.name);
            return (live, new);
        }
        let _ = live.handle.remove_path(new);
    }
}
