//! A path over QUIC that falls silent tries TCP beside it.
//!
//! Some networks let a QUIC handshake pass and drop what comes after it, or cut UDP off later. A
//! redial by QUIC passes there, too, and is cut off again. So TLS over TCP is dialled beside a path
//! that is silent, and takes its place if QUIC is silent still while TCP carries. Where the link
//! was dark for both, or the server away, QUIC answers as soon as TCP does, and stays.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline_proto::path::PathState;
use marline_proto::wire::PathId;
use tokio::time::sleep;

use super::Shared;
use super::dial::socket;
use super::session::Live;
use super::trial::{Successor, Trial, carries};
use crate::Path;
use crate::carrier::{CarrierChoice, CarrierKind};

/// A silence is looked into after this time: most are over by then, and most networks that cut UDP
/// off do so for good.
const SILENCE: Duration = Duration::from_secs(1);
/// From when TCP carries, QUIC has this time to answer a probe: more than a round trip, with one
/// loss, on most paths.
const LAST_CHANCE: Duration = Duration::from_secs(1);
/// From one failed try to the next, twice as long each time: a link that is dark for hours must not
/// cost the five packets of a try every few seconds,
const PAUSE: Duration = Duration::from_secs(1);
/// and at most this long: less than half a megabyte a day.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Waits until a path that is carried by QUIC, and need not be, has been silent for a while and has
/// another one beside it that TCP carries; returns that and the server's address.
pub(super) async fn by_tcp(
    shared: &Arc<Shared>,
    spec: impl Fn() -> Option<Path>,
    live: &Arc<Live>,
    path: PathId,
    remote: SocketAddr,
) -> Successor {
    if live.handle.path_carriers().get(&path) != Some(&CarrierKind::Quic) {
        return std::future::pending().await;
    }
    let is_silent = |state: PathState| !carries(state);
    loop {
        live.handle.path_becomes(path, is_silent).await;
        let trial = async {
            sleep(SILENCE).await;
            let mut pause = PAUSE;
            loop {
                let Some(spec) = spec().filter(|spec| spec.carrier == CarrierChoice::Auto) else {
                    return std::future::pending().await;
                };
                if let Some(found) = tried(shared, spec, (live, path), remote).await {
                    return found;
                }
                sleep(pause).await;
                pause = (2 * pause).min(MAX_PAUSE);
            }
        };
        tokio::select! {
            found = trial => return found,
            () = live.handle.path_becomes(path, carries) => {}
        }
    }
}

/// One try. What QUIC does meanwhile ends it from outside.
async fn tried(
    shared: &Arc<Shared>,
    spec: Path,
    (quic, path): (&Arc<Live>, PathId),
    remote: SocketAddr,
) -> Option<Successor> {
    let (trial, remote) = Trial::begin(shared, &spec, CarrierChoice::Tcp, remote).await?;
    if !trial.is_proved().await {
        return None;
    }
    let _ = quic.handle.probe_path(path);
    sleep(LAST_CHANCE).await;
    let (live, new) = trial.keep()?;
    shared.outcomes.cut_off(&socket(&spec), remote);
    tracing::info!(
        "{}: QUIC gets through no more; using TLS over TCP",
        spec.name
    );
    Some((live, new, remote))
}
