use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Site;
use crate::support::lock;

/// How many connections of one kind there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// In all, at least one.
    pub(super) all: usize,
    /// For one site, at least one.
    pub(super) per_site: usize,
    /// How many of all are for known sites only, at most a quarter.
    pub(super) reserved: usize,
    /// One that is as old may have to give way to a new one.
    pub(super) gives_way: Duration,
    /// What gives way takes time to be gone, and counts until then. An eighth of all places
    /// is kept for those.
    pub(super) lingers: bool,
}

/// Places for connections of one kind. When all are taken, or all of a site, the oldest of the site
/// that has most gives way, so that a client which only sits there keeps no others out.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    taken: Arc<Mutex<Taken>>,
    bounds: Bounds,
}

/// One place, until it is dropped or released.
#[derive(Debug)]
pub(in super::super) struct Slot {
    taken: Arc<Mutex<Taken>>,
    number: u64,
    gives_way: CancellationToken,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    /// In the order of their age.
    held: BTreeMap<u64, Held>,
    by_owner: BTreeMap<Owner, usize>,
}

#[derive(Debug)]
struct Held {
    owner: Owner,
    known: bool,
    since: Instant,
    gives_way: CancellationToken,
}

/// A site, and whether it has proved to be there: what others take in its name does not count
/// against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    site: Site,
    proved: bool,
}

/// Who asks for a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guest {
    pub(super) site: Site,
    /// It receives what is sent to it.
    pub(super) proved: bool,
    /// A client with a listed key came from there lately.
    pub(super) known: bool,
}

impl Slots {
    pub(super) fn new(bounds: Bounds) -> Self {
        let (all, per_site) = (bounds.all.max(1), bounds.per_site.max(1));
        Self {
            taken: Arc::default(),
            bounds: Bounds {
                all,
                per_site,
                reserved: bounds.reserved.min(all / 4),
                ..bounds
            },
        }
    }

    /// Places taken.
    pub(super) fn len(&self) -> usize {
        lock(&self.taken).held.len()
    }

    /// A place for a connection of this guest, if there is one.
    pub(super) fn take(&self, guest: Guest) -> Option<Slot> {
        let Bounds {
            all,
            per_site,
            reserved,
            gives_way,
            lingers,
        } = self.bounds;
        let kept = |places: usize| if lingers { places / 8 } else { 0 };
        let latest = Instant::now().checked_sub(gives_way);
        let owner = Owner {
            site: guest.site,
            proved: guest.proved,
        };
        let mut taken = lock(&self.taken);
        let old = |held: &Held| latest.is_some_and(|latest| held.since <= latest);
        // Who has not proved to be there must not end what has.
        let ours = |held: &Held| held.owner.site == guest.site && guest.proved >= held.owner.proved;
        let theirs = |held: &Held| guest.known || !held.known;
        if taken.of(guest) >= per_site - kept(per_site) {
            taken.give_way(lingers, |held, _| (old(held) && ours(held)).then_some(()));
        } else if taken.left(guest, all, reserved) <= kept(all) {
            taken.give_way(lingers, |held, count| {
                let count = count + usize::from(held.owner == owner);
                (old(held) && theirs(held)).then_some((!held.known, count))
            });
        }
        if taken.left(guest, all, reserved) == 0 || taken.of(guest) >= per_site {
            return None;
        }
        let (number, gives_way) = (taken.next, CancellationToken::new());
        taken.next += 1;
        *taken.by_owner.entry(owner).or_default() += 1;
        taken.held.insert(
            number,
            Held {
                owner,
                known: guest.known,
                since: Instant::now(),
                gives_way: gives_way.clone(),
            },
        );
        Some(Slot {
            taken: Arc::clone(&self.taken),
            number,
            gives_way,
        })
    }
}

impl Taken {
    /// Places that are left for this guest.
    fn left(&self, guest: Guest, all: usize, reserved: usize) -> usize {
        let left = all.saturating_sub(self.held.len());
        if guest.known {
            return left;
        }
        let strangers = self.held.values().filter(|held| !held.known).count();
        left.min((all - reserved).saturating_sub(strangers))
    }

    /// Places that its site has.
    fn of(&self, guest: Guest) -> usize {
        let with = |proved| {
            let site = guest.site;
            self.by_owner
                .get(&Owner { site, proved })
                .copied()
                .unwrap_or(0)
        };
        with(true) + if guest.proved { 0 } else { with(false) }
    }

    /// Has the one of the highest rank give way, the oldest of several; those without a rank stay.
    /// The rank may depend on how many places its owner has.
    fn give_way<R: Ord>(&mut self, lingers: bool, rank: impl Fn(&Held, usize) -> Option<R>) {
        let count = |owner| self.by_owner.get(owner).copied().unwrap_or(0);
        let staying = self
            .held
            .iter()
            .filter(|(_, held)| !held.gives_way.is_cancelled());
        let ranked = staying
            .filter_map(|(&number, held)| Some((rank(held, count(&held.owner))?, Reverse(number))));
        let Some((_, Reverse(number))) = ranked.max() else {
            return;
        };
        if let Some(held) = self.held.get(&number) {
            held.gives_way.cancel();
        }
        if !lingers {
            self.remove(number);
        }
    }

    fn remove(&mut self, number: u64) {
        if let Some(held) = self.held.remove(&number) {
            self.forget(held.owner);
        }
    }

    fn forget(&mut self, owner: Owner) {
        if let Some(count) = self.by_owner.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.by_owner.remove(&owner);
            }
        }
    }
}

impl Slot {
    /// Completes when the connection has to give way to another.
    pub(in super::super) async fn gives_way(&self) {
        self.gives_way.cancelled().await;
    }

    /// The site has proved to be there.
    pub(super) fn proved(&self) {
        let mut taken = lock(&self.taken);
        let Some(held) = taken.held.get_mut(&self.number) else {
            return;
        };
        let before = held.owner;
        held.owner.proved = true;
        let now = held.owner;
        taken.forget(before);
        *taken.by_owner.entry(now).or_default() += 1;
    }

    /// Gives the place to others.
    pub(in super::super) fn release(&self) {
        lock(&self.taken).remove(self.number);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests;
