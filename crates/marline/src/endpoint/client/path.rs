//! The task that keeps one path up: dial, attach, wait until it is lost, dial again.

use std::sync::Arc;
use std::time::Duration;

use marline_proto::wire::PathId;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::backoff::Backoff;
use super::dial::dial;
use super::error::PathFailure;
use super::session::Live;

/// A path that is dead for this time is dialled again beside it: the network may be back with other
/// addresses, which the old carrier cannot learn of.
const DEAD: Duration = Duration::from_secs(4);

/// Keeps the path of this number up until `gone`.
pub(super) async fn keep(shared: Arc<Shared>, number: u64, gone: CancellationToken) {
    let keeper = Keeper { shared, number };
    let mut backoff = Backoff::new(crate::endpoint::seed());
    let forever = async {
        loop {
            let (live, path) = keeper.connect(&mut backoff).await;
            let up = Instant::now();
            keeper.stay(live, path).await;
            backoff.lived(up.elapsed());
            sleep(backoff.next()).await;
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

impl Keeper {
    /// Dials until the path is part of the session.
    async fn connect(&self, backoff: &mut Backoff) -> (Arc<Live>, PathId) {
        let session = || {
            let live = self.shared.current.borrow().live();
            live.map(|live| live.number)
        };
        loop {
            let before = session();
            match self.attempt().await {
                Ok((live, path)) => {
                    self.came_up(&live, path);
                    return (live, path);
                }
                Err(failure) => self.failed(failure),
            }
            // The server answered that it does not know the session any more: it would open one.
            let is_news = before.is_some() && session() != before;
            if !is_news {
                sleep(backoff.next()).await;
            }
        }
    }

    async fn attempt(&self) -> Result<(Arc<Live>, PathId), PathFailure> {
        let Some((spec, favourite)) = self
            .shared
            .slots()
            .get(self.number)
            .map(|slot| (slot.spec.clone(), slot.favourite))
        else {
            return Err(PathFailure::passing("the path was removed".into()));
        };
        let (dialled, address) = dial(&self.shared, &spec, favourite).await?;
        let attached = self.shared.attach(dialled, &spec).await?;
        if let Some(slot) = self.shared.slots().get(self.number) {
            slot.favourite = Some(address);
        }
        Ok(attached)
    }

    /// Returns when the path is lost. While it is dead for long, a new one is dialled in its
    /// place.
    async fn stay(&self, mut live: Arc<Live>, mut path: PathId) {
        loop {
            let replaced = tokio::select! {
                _ = live.handle.path_ended(path) => None,
                new = self.replacement(&live, path) => Some(new),
            };
            let Some((new_live, new_path)) = replaced else {
                break;
            };
            // Gone already if its carrier ended meanwhile.
            let _ = live.handle.remove_path(path);
            (live, path) = (new_live, new_path);
            self.came_up(&live, path);
        }
        let reason = live.handle.path_ended(path).await;
        if let Some(slot) = self.shared.slots().get(self.number) {
            slot.path = None;
            slot.down = Instant::now();
            slot.failure = Some(PathFailure::passing(reason));
        }
    }

    /// Waits until the path has been dead for long and a new connection has come up.
    async fn replacement(&self, live: &Arc<Live>, path: PathId) -> (Arc<Live>, PathId) {
        loop {
            live.handle.path_dead(path, true).await;
            let dialling = async {
                sleep(DEAD).await;
                let mut backoff = Backoff::new(crate::endpoint::seed());
                loop {
                    match self.attempt().await {
                        Ok(attached) => return attached,
                        Err(failure) => {
                            tracing::debug!(number = self.number, "{}", failure.message);
                        }
                    }
                    sleep(backoff.next()).await;
                }
            };
            tokio::select! {
                attached = dialling => return attached,
                () = live.handle.path_dead(path, false) => {}
            }
        }
    }

    fn came_up(&self, live: &Live, path: PathId) {
        // What was asked while it was dialled; errors say that the session no longer has the path.
        let _ = match self.shared.slots().get(self.number) {
            Some(slot) => {
                slot.path = Some(path);
                slot.failure = None;
                live.handle.set_standby(path, slot.spec.standby)
            }
            None => live.handle.remove_path(path),
        };
    }

    /// Notes a failure, and logs it when it is a new one.
    fn failed(&self, failure: PathFailure) {
        if let Some(slot) = self.shared.slots().get(self.number) {
            let news = slot.failure.as_ref().map(|old| &old.message) != Some(&failure.message);
            slot.failure = Some(failure);
            // Before the first session `ready` reports failures, all at once.
            if news && self.shared.current.borrow().was_up() {
                slot.complain();
            }
        }
        // Tasks that wait for a session learn that this path has failed.
        self.shared.current.send_modify(|_| ());
    }
}
