//! The task that keeps one path up: dial, attach, wait until it is lost, dial again.
//!
//! Where its packets leave this host is watched beside what the session thinks of it. A socket
//! bound to a device that is gone never works again, though a device of that name comes back; so
//! its path is removed at once, and what was in flight goes again on others. An address or a route
//! may come back as it was: the path is suspect, and another is dialled in its place.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline_proto::wire::PathId;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::backoff::Backoff;
use super::dial::socket;
use super::error::PathFailure;
use super::reach::reach;
use super::session::Live;
use super::{fallback, policed, upgrade};
use crate::carrier::{Egress, is_local};

/// A path that is dead for this time is dialled again beside it: the network may be back with other
/// addresses, which the old carrier cannot learn of.
const DEAD: Duration = Duration::from_secs(4);
/// Time between two probes of a path after changes that need not concern it. It doubles while the
/// changes go on, as on a host that starts containers all day.
const PROBE_GAP: Duration = Duration::from_millis(500);
/// The longest such time.
const MAX_PROBE_GAP: Duration = Duration::from_secs(60);

/// Keeps the path of this number up until `gone`.
pub(super) async fn keep(shared: Arc<Shared>, number: u64, gone: CancellationToken) {
    let keeper = Keeper { shared, number };
    let mut backoff = Backoff::new(crate::endpoint::seed());
    let forever = async {
        loop {
            let up = keeper.attached(&mut backoff, |it| keeper.failed(it)).await;
            keeper.came_up(&up);
            let since = Instant::now();
            match keeper.stay(up).await {
                // There is a reason, and waiting does not help.
                Lost::Device => backoff.reset(),
                Lost::Session => {
                    backoff.lived(since.elapsed());
                    sleep(backoff.next()).await;
                }
            }
        }
    };
    tokio::select! {
        () = forever => {}
        () = gone.cancelled() => {}
    }
}

struct Keeper {
    shared: Arc<Shared>,
    number: u64,
}

/// A path that is part of a session.
struct Up {
    live: Arc<Live>,
    path: PathId,
    remote: SocketAddr,
    /// Where its packets left this host when it was dialled.
    egress: Option<Egress>,
}

/// Why a path is not up any more.
enum Lost {
    /// The session or its carrier gave it up.
    Session,
    /// Its device is gone.
    Device,
}

/// How a path's egress has changed.
enum Change {
    /// The device is gone, for ever.
    NoDevice,
    /// The address or the route is gone, for now.
    NoRoute,
    /// Nothing is gone, but a path that is dialled now has another address.
    Moved,
}

/// When a path is probed for changes that need not concern it.
#[derive(Default)]
struct Probes {
    /// When the last one went, and the time until the next.
    last: Option<(Instant, Duration)>,
    is_wanted: bool,
}

impl Probes {
    /// There was a change.
    fn ask(&mut self, now: Instant) {
        self.is_wanted = true;
        // After a quiet time the next change is asked about at once, as the first was.
        self.last = self.last.filter(|(at, gap)| now < *at + 2 * *gap);
    }

    /// When the next one goes, if one is wanted.
    fn due(&self) -> Option<Instant> {
        let (at, gap) = self.last.filter(|_| self.is_wanted)?;
        Some(at + gap)
    }

    /// Is one to go now?
    fn take(&mut self, now: Instant) -> bool {
        if !self.is_wanted || self.due().is_some_and(|due| now < due) {
            return false;
        }
        let gap = self
            .last
            .map_or(PROBE_GAP, |(_, gap)| (2 * gap).min(MAX_PROBE_GAP));
        *self = Self {
            last: Some((now, gap)),
            is_wanted: false,
        };
        true
    }
}

impl Keeper {
    /// Dials until a connection is part of the session. Failures are handed to `failed`.
    async fn attached(&self, backoff: &mut Backoff, mut failed: impl FnMut(PathFailure)) -> Up {
        let session = || {
            let live = self.shared.current.borrow().live();
            live.map(|live| live.number)
        };
        let path = || {
            let mut slots = self.shared.slots();
            let slot = slots.get(self.number)?;
            Some((slot.resolved(), slot.favourite))
        };
        loop {
            let (dialled, remote) = reach(&self.shared, path, backoff, &mut failed).await;
            let Some((spec, _)) = path() else {
                return std::future::pending().await;
            };
            let egress = self.egress(remote);
            let before = session();
            match self.shared.attach(dialled, &spec).await {
                Ok((live, path)) => {
                    if let Some(slot) = self.shared.slots().get(self.number) {
                        slot.favourite = Some(remote);
                    }
                    return Up {
                        live,
                        path,
                        remote,
                        egress,
                    };
                }
                Err(failure) => failed(failure),
            }
            // The server answered that it does not know the session any more: it would open one.
            let is_over = before.is_some() && session() != before;
            if !is_over {
                sleep(backoff.next()).await;
            }
        }
    }

    /// Where the packets of a new socket of this path to `remote` would leave.
    fn egress(&self, remote: SocketAddr) -> Option<Egress> {
        let spec = self.shared.slots().get(self.number)?.resolved();
        socket(&spec).egress(remote).ok()
    }

    /// Returns when the path is lost. While it is dead for long, or its way to the server is, a new
    /// one is dialled in its place.
    async fn stay(&self, mut up: Up) -> Lost {
        loop {
            let replaced = tokio::select! {
                _ = up.live.handle.path_ended(up.path) => None,
                new = self.replacement(&up) => Some(new),
                new = self.over_other(&up) => Some(new),
                change = self.egress_change(&up) => match change {
                    Change::NoDevice => {
                        // The next dial says what there is instead.
                        self.gone("its interface is gone".into());
                        // Gone already if its carrier ended meanwhile.
                        let _ = up.live.handle.remove_path(up.path);
                        return Lost::Device;
                    }
                    Change::NoRoute => {
                        let reason = "its address or its route is gone";
                        let _ = up.live.handle.suspect_path(up.path, reason);
                        self.beside(&up).await
                    }
                    Change::Moved => self.beside(&up).await,
                }
            };
            let Some(new) = replaced else {
                break;
            };
            let _ = up.live.handle.remove_path(up.path);
            up = new;
            self.came_up(&up);
        }
        self.gone(up.live.handle.path_ended(up.path).await);
        Lost::Session
    }

    /// A connection in the place of one that may still work; `None` when that ended first.
    async fn beside(&self, up: &Up) -> Option<Up> {
        let mut backoff = Backoff::new(crate::endpoint::seed());
        tokio::select! {
            _ = up.live.handle.path_ended(up.path) => None,
            new = self.attached(&mut backoff, |it| self.failed(it)) => Some(new),
        }
    }

    /// Waits until the path's egress is another one than when it was dialled.
    async fn egress_change(&self, up: &Up) -> Change {
        let Some(before) = up.egress else {
            // It was not known, so nothing is known of its loss.
            return std::future::pending().await;
        };
        let mut changes = self.shared.notifier.changes();
        // It may have been lost while it was dialled. That it has moved is believed only after a
        // change: of several routes alike the system may show another one each time.
        let mut changed = false;
        let mut probes = Probes::default();
        loop {
            let now = self.egress(up.remote);
            match now {
                // A socket that is bound to a device is sent from it without a route, too, and may
                // reach nobody so.
                Some(now) if now == before => {
                    if probes.take(Instant::now()) {
                        let _ = up.live.handle.probe_path(up.path);
                    }
                }
                Some(now) if now.device != before.device => return Change::NoDevice,
                Some(_) if is_local(before.source) => {
                    if changed {
                        return Change::Moved;
                    }
                }
                None if before.device.is_some() && self.device(up.remote) != before.device => {
                    return Change::NoDevice;
                }
                _ => return Change::NoRoute,
            }
            let due = probes.due();
            tokio::select! {
                announced = changes.next() => if announced {
                    changed = true;
                    probes.ask(Instant::now());
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
    }

    /// The number of the interface that a socket of this path would be bound to now.
    fn device(&self, remote: SocketAddr) -> Option<u32> {
        let spec = self.shared.slots().get(self.number)?.resolved();
        socket(&spec).device(remote)
    }

    /// Waits until a path over TCP has one over QUIC beside it, or one over QUIC that is silent or
    /// policed one over TCP.
    async fn over_other(&self, up: &Up) -> Up {
        let spec = || Some(self.shared.slots().get(self.number)?.resolved());
        let Up {
            live, path, remote, ..
        } = up;
        let (live, path, remote) = tokio::select! {
            new = upgrade::by_quic(&self.shared, spec, live, *path, *remote) => new,
            new = fallback::by_tcp(&self.shared, spec, live, *path, *remote) => new,
            new = policed::by_tcp(&self.shared, spec, live, *path, *remote) => new,
        };
        Up {
            live,
            path,
            remote,
            egress: self.egress(remote),
        }
    }

    /// Waits until the path has been dead for long and a new connection has come up.
    async fn replacement(&self, up: &Up) -> Up {
        loop {
            up.live.handle.path_dead(up.path, true).await;
            let dialling = async {
                sleep(DEAD).await;
                let mut backoff = Backoff::new(crate::endpoint::seed());
                let note = |failure: PathFailure| {
                    tracing::debug!(number = self.number, "{}", failure.message);
                };
                self.attached(&mut backoff, note).await
            };
            tokio::select! {
                attached = dialling => return attached,
                () = up.live.handle.path_dead(up.path, false) => {}
            }
        }
    }

    fn came_up(&self, up: &Up) {
        // What was asked while it was dialled; errors say that the session no longer has the path.
        let _ = match self.shared.slots().get(self.number) {
            Some(slot) => {
                slot.path = Some(up.path);
                slot.failure = None;
                slot.logged = None;
                up.live.handle.set_standby(up.path, slot.spec.standby)
            }
            None => up.live.handle.remove_path(up.path),
        };
    }

    /// The path is no part of the session any more.
    fn gone(&self, reason: String) {
        if let Some(slot) = self.shared.slots().get(self.number) {
            slot.path = None;
            slot.down = Instant::now();
            slot.failure = Some(PathFailure::passing(reason));
        }
    }

    /// Notes a failure, and logs it when it is one of another kind than before.
    fn failed(&self, failure: PathFailure) {
        if let Some(slot) = self.shared.slots().get(self.number) {
            // What does not heal is reported with the end of a program that waits for its first
            // session, for all paths at once.
            let is_logged = failure.kind.may_heal() || self.shared.current.borrow().was_up();
            slot.failure = Some(failure);
            if is_logged {
                slot.complain();
            }
        }
        // Tasks that wait for a session learn that this path has failed.
        self.shared.current.send_modify(|_| ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probes in `time` with a change every `every`.
    fn count(every: Duration, time: Duration) -> usize {
        let mut probes = Probes::default();
        let begin = Instant::now();
        let turns = time.as_millis() / every.as_millis();
        let probed = |turn: u32| {
            let now = begin + every * turn;
            probes.ask(now);
            probes.take(now)
        };
        (0..turns as u32)
            .map(probed)
            .filter(|probed| *probed)
            .count()
    }

    #[test]
    fn a_busy_host_has_its_paths_probed_ever_more_rarely() {
        let hour = Duration::from_secs(3600);
        assert_eq!(count(Duration::from_secs(600), hour), 6);
        // 0.5, 1, 2, ... 32 s, and then every minute.
        let busy = count(Duration::from_millis(100), hour);
        assert!((60..70).contains(&busy), "{busy}");
    }

    #[test]
    fn a_change_is_asked_about_even_if_it_is_the_last_for_long() {
        let mut probes = Probes::default();
        let now = Instant::now();
        probes.ask(now);
        assert!(probes.take(now) && !probes.take(now));
        probes.ask(now + PROBE_GAP / 2);
        assert!(!probes.take(now + PROBE_GAP / 2));
        assert_eq!(probes.due(), Some(now + PROBE_GAP));
        assert!(probes.take(now + PROBE_GAP));
    }
}
