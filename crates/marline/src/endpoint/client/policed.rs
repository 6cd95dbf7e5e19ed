//! A path over QUIC that seems to be policed tries TCP beside it.
//!
//! Some networks let UDP through and hold it to a rate far below what the link carries, by dropping
//! the rest. So where much is lost at a steady rate, TLS over TCP is dialled beside the path, and
//! the session uses both: nothing is moved for the trial, and nothing waits for it. If TCP alone
//! brings clearly more than QUIC did before, and does beside it, second for second, it takes QUIC's
//! place. On a link that loses at random TCP brings less, or comes to a halt now and then, and QUIC
//! stays.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline_proto::wire::PathId;
use tokio::time::{Instant, sleep};

use super::Shared;
use super::dial::socket;
use super::policing::{Policing, Way, rate};
use super::session::Live;
use super::trial::{Successor, Trial};
use crate::Path;
use crate::carrier::{CarrierChoice, CarrierKind};

/// Time between two looks at a path: some round trips, nearly everywhere, and of a rate of 1 Mb/s
/// a hundred packets.
const LOOK: Duration = Duration::from_secs(1);
/// TCP has this time to find its rate before it is measured: with a round trip of 100 ms, twenty
/// of them.
const START: Duration = Duration::from_secs(2);
/// Then it is measured this often, a [`LOOK`] each: where TCP loses much, one of them falls into
/// a time-out (RFC 6298: a second and more; Linux: 200 ms, and twice as long each time).
const MEASURES: usize = 3;
/// TCP takes QUIC's place if it brings at least this part more than QUIC: less would not be worth
/// that a loss holds up all that comes after it.
const BETTER: (u64, u64) = (3, 2);
/// After a trial that TCP lost the path is left alone for this time, twice as long each time: such
/// a path just loses much, and a trial costs what TCP holds up meanwhile.
const PAUSE: Duration = Duration::from_secs(60);
/// The longest such time: a policer may come with the hour of the day.
const MAX_PAUSE: Duration = Duration::from_secs(3_600);

/// Waits until a path that is carried by QUIC, and need not be, seems to be policed and has another
/// one beside it that brings more over TCP; returns that and the server's address.
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
    let mut pause = PAUSE;
    loop {
        let (way, before) = seems_policed(live, path).await;
        let Some(spec) = spec().filter(|spec| spec.carrier == CarrierChoice::Auto) else {
            return std::future::pending().await;
        };
        tracing::debug!("{}: much is lost at {before} B/s; trying TCP", spec.name);
        let quic = Rival {
            live,
            path,
            way,
            before,
        };
        if let Some(found) = tried(shared, &spec, remote, &quic).await {
            return found;
        }
        sleep(pause).await;
        pause = (2 * pause).min(MAX_PAUSE);
    }
}

/// Waits until the path seems to be policed; returns which way, and what arrives (bytes a second).
async fn seems_policed(live: &Live, path: PathId) -> (Way, u64) {
    let mut policing = Policing::default();
    let mut last = Instant::now();
    loop {
        sleep(LOOK).await;
        let Some(stats) = live.handle.path_stats(path) else {
            // Whoever waits learns otherwise that it has ended.
            return std::future::pending().await;
        };
        let now = Instant::now();
        if let Some(found) = policing.look(&stats, now - last) {
            return found;
        }
        last = now;
    }
}

/// The path over QUIC, and what it brought before the trial (bytes a second).
struct Rival<'a> {
    live: &'a Live,
    path: PathId,
    way: Way,
    before: u64,
}

impl Rival<'_> {
    /// Bytes that have arrived over it.
    fn delivered(&self) -> Option<u64> {
        let stats = self.live.handle.path_stats(self.path)?;
        Some(self.way.delivered(&stats.counters))
    }
}

/// One try.
async fn tried(
    shared: &Arc<Shared>,
    spec: &Path,
    remote: SocketAddr,
    quic: &Rival<'_>,
) -> Option<Successor> {
    let (trial, remote) = Trial::begin(shared, spec, CarrierChoice::Tcp, remote).await?;
    if !trial.is_proved().await {
        return None;
    }
    sleep(START).await;
    for _ in 0..MEASURES {
        let (from, began) = (
            (trial.delivered(quic.way)?, quic.delivered()?),
            Instant::now(),
        );
        sleep(LOOK).await;
        let elapsed = began.elapsed();
        let rate = |to: u64, from: u64| rate(to.saturating_sub(from), elapsed);
        let tcp = rate(trial.delivered(quic.way)?, from.0);
        let now = rate(quic.delivered()?, from.1);
        if !is_better(tcp, quic.before.max(now)) {
            tracing::debug!("{}: TCP brings {tcp} B/s; QUIC stays, {now} B/s", spec.name);
            return None;
        }
    }
    let (live, new) = trial.keep()?;
    shared.outcomes.policed(&socket(spec), remote);
    tracing::info!(
        "{}: the network polices QUIC to {:.1} Mb/s; using TLS over TCP",
        spec.name,
        quic.before as f64 * 8e-6
    );
    Some((live, new, remote))
}

/// Is it worth it to change over to TCP, which brings `tcp` bytes a second where QUIC brought
/// `quic`?
fn is_better(tcp: u64, quic: u64) -> bool {
    tcp.saturating_mul(BETTER.1) >= quic.saturating_mul(BETTER.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_takes_over_only_if_it_brings_clearly_more() {
        assert!(is_better(2_000_000, 250_000));
        assert!(is_better(375_000, 250_000));
        assert!(!is_better(374_999, 250_000));
        assert!(!is_better(0, 250_000));
        assert!(is_better(u64::MAX, u64::MAX / 2));
    }
}
