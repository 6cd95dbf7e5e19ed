//! A path over TCP tries QUIC beside it.
//!
//! A network that let only TCP through may let UDP through again, and one whose first packets of
//! UDP were lost always did. Over TCP a loss holds up all that comes after it, so the path changes
//! over as soon as QUIC is up; the old connection is kept until the new one carries.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline_proto::wire::PathId;
use tokio::time::sleep;

use super::Shared;
use super::dial::socket;
use super::session::Live;
use super::trial::{Successor, Trial};
use crate::Path;
use crate::carrier::{CarrierChoice, CarrierKind};

/// Until the first try: QUIC's own handshake asks again after 1, 3 and 7 s (RFC 9002 section 6.2),
/// so the path over TCP came up in a network that lost two of its packets or more.
const FIRST: Duration = Duration::from_secs(5);
/// The longest pause between two tries, which cost a network that never lets QUIC through four
/// packets each; as long as such a network is remembered.
const LONGEST: Duration = Duration::from_secs(600);

/// Waits until the path has another one beside it that is carried by QUIC, and returns it with the
/// server's address; for ever if it is carried so already, or need not be.
pub(super) async fn by_quic(
    shared: &Arc<Shared>,
    spec: impl Fn() -> Option<Path>,
    live: &Arc<Live>,
    path: PathId,
    remote: SocketAddr,
) -> Successor {
    let over_tcp = live.handle.path_carriers().get(&path) == Some(&CarrierKind::Tcp);
    let mut pause = FIRST;
    loop {
        let spec = spec().filter(|spec| over_tcp && spec.carrier == CarrierChoice::Auto);
        let Some(spec) = spec else {
            return std::future::pending().await;
        };
        // Where the network lets a handshake pass and no more, or little more, the trial would show
        // nothing.
        let cut_off = shared.outcomes.cut_off_for(&socket(&spec), remote);
        sleep(pause.max(cut_off.unwrap_or_default())).await;
        pause = (pause * 2).min(LONGEST);
        let begun = Trial::begin(shared, &spec, CarrierChoice::Quic, remote).await;
        let Some((trial, remote)) = begun else {
            continue;
        };
        if trial.is_proved().await
            && let Some((live, new)) = trial.keep()
        {
            tracing::info!("{}: QUIC gets through again", spec.name);
            return (live, new, remote);
        }
    }
}
