//! The task that keeps one path up: dial, attach, wait until it is lost, dial again.
//!
//! What a path stands on at this host is watched beside what the session thinks of it. A socket
//! bound to a device that is gone never works again, though a device of that name comes back; so
//! its path is removed at once, and what was in flight goes again on others. An address or a route
//! may come back as it was: the path is doubted, and another is dialled in its place.

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
use super::upgrade;
use crate::carrier::{Standing, is_local};

/// A path that is dead for this time is dialled again beside it: the network may be back with other
/// addresses, which the old carrier cannot learn of.
const DEAD: Duration = Duration::from_secs(4);
/// At most so often a path is asked whether it still works, for changes that need not concern it:
/// on a busy host they come all the time.
const ASK: Duration = Duration::from_millis(500);

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
                Lost::Device => backoff.begin_again(),
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
    /// What it stood on when it was dialled.
    root: Option<Standing>,
}

/// Why a path is not up any more.
enum Lost {
    /// The session or its carrier gave it up.
    Session,
    /// Its device is gone.
    Device,
}

/// What became of what a path stands on.
enum Uprooted {
    /// The device, for ever.
    Device,
    /// The address or the route, for now.
    Way,
    /// Nothing is lost, but a path that is dialled now has another address.
    Moved,
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
            let root = self.standing(remote);
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
                        root,
                    };
                }
                Err(failure) => failed(failure),
            }
            // The server answered that it does not know the session any more: it would open one.
            let is_news = before.is_some() && session() != before;
            if !is_news {
                sleep(backoff.next()).await;
            }
        }
    }

    /// What a socket of this path to `remote` would stand on now.
    fn standing(&self, remote: SocketAddr) -> Option<Standing> {
        let spec = self.shared.slots().get(self.number)?.resolved();
        socket(&spec).standing(remote).ok()
    }

    /// Returns when the path is lost. While it is dead for long, or its way to the server is, a new
    /// one is dialled in its place.
    async fn stay(&self, mut up: Up) -> Lost {
        loop {
            let replaced = tokio::select! {
                _ = up.live.handle.path_ended(up.path) => None,
                new = self.replacement(&up) => Some(new),
                new = self.upgrade(&up) => Some(new),
                uprooted = self.uprooted(&up) => match uprooted {
                    Uprooted::Device => {
                        // The next dial says what there is instead.
                        self.gone("its interface is gone".into());
                        // Gone already if its carrier ended meanwhile.
                        let _ = up.live.handle.remove_path(up.path);
                        return Lost::Device;
                    }
                    Uprooted::Way => {
                        let reason = "its address or its route is gone";
                        let _ = up.live.handle.suspect_path(up.path, reason);
                        self.beside(&up).await
                    }
                    Uprooted::Moved => self.beside(&up).await,
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

    /// Waits until the path no longer stands on what it stood on.
    async fn uprooted(&self, up: &Up) -> Uprooted {
        let Some(root) = up.root else {
            // It was not known, so nothing is known of its loss.
            return std::future::pending().await;
        };
        let mut changes = self.shared.teller.changes();
        // It may have been lost while it was dialled. That it has moved is believed only after a
        // change: of several routes alike the system may show another one each time.
        let mut changed = false;
        let (mut asked, mut is_to_be_asked) = (None, false);
        loop {
            let now = self.standing(up.remote);
            match now {
                // A socket that is bound to a device is sent from it without a route, too, and may
                // reach nobody so.
                Some(now) if now == root => {
                    let is_due = asked.is_none_or(|at: Instant| at.elapsed() >= ASK);
                    if is_to_be_asked && is_due {
                        (asked, is_to_be_asked) = (Some(Instant::now()), false);
                        let _ = up.live.handle.probe_path(up.path);
                    }
                }
                Some(now) if now.device != root.device => return Uprooted::Device,
                Some(_) if is_local(root.source) => {
                    if changed {
                        return Uprooted::Moved;
                    }
                }
                None if root.device.is_some() && self.device() != root.device => {
                    return Uprooted::Device;
                }
                _ => return Uprooted::Way,
            }
            let due = asked.filter(|_| is_to_be_asked).map(|at| at + ASK);
            tokio::select! {
                () = changes.next() => (changed, is_to_be_asked) = (true, true),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
    }

    /// The number of the interface that a socket of this path would be bound to now.
    fn device(&self) -> Option<u32> {
        let spec = self.shared.slots().get(self.number)?.resolved();
        socket(&spec).device()
    }

    /// Waits until a path over TCP has one over QUIC beside it.
    async fn upgrade(&self, up: &Up) -> Up {
        let spec = || Some(self.shared.slots().get(self.number)?.resolved());
        let root = self.standing(up.remote);
        let new = upgrade::by_quic(&self.shared, spec, &up.live, up.path, up.remote).await;
        let (live, path) = new;
        let remote = up.remote;
        Up {
            live,
            path,
            remote,
            root,
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
                slot.told = None;
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
            let is_told = failure.kind.may_heal() || self.shared.current.borrow().was_up();
            slot.failure = Some(failure);
            if is_told {
                slot.complain();
            }
        }
        // Tasks that wait for a session learn that this path has failed.
        self.shared.current.send_modify(|_| ());
    }
}
