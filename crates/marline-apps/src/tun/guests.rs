//! Who is in a server's tunnel: the sessions that have a lease, by their keys and their addresses.
//!
//! All sessions of one key have the same addresses. Packets go to the newest of them; the others
//! are set aside, and the next older one has the addresses again as soon as the newest has gone.
//! Usually the older one is what a crash or a lost link has left of the same machine, and ends by
//! itself. If it shows that it lives, two machines use one key, which both and the server's
//! operator are informed.

use super::fit::Mtu;
use super::gate::Gate;
use super::hello::Standing;
use super::key::Key;
use super::prefixes::Prefixes;
use super::queue::Queue;
use marline::identity::PublicKey;
use marline::support::lock;
use marline::support::seldom::Seldom;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Packets that come from a session for this time after it was set aside may have been under way
/// when its machine crashed.
const UNDER_WAY: Duration = Duration::from_secs(5);

/// A session of a client with a lease.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) key: PublicKey,
    pub(super) own: Vec<IpAddr>,
    /// The largest packet that it is sent.
    pub(super) mtu: Mtu,
    /// It takes joined packets.
    pub(super) joined: bool,
    /// What may come back to it.
    pub(super) gate: Gate,
    /// Queues of its conversations, as its own packets show them; the session bounds their number.
    pub(super) flows: Mutex<HashMap<Key, Arc<Queue>>>,
    pub(super) common: Mutex<Option<Arc<Queue>>>,
    /// Its lease is over.
    pub(super) ended: CancellationToken,
    standing: watch::Sender<Standing>,
    /// Ends the stream that informs the client.
    told: Mutex<CancellationToken>,
    aside: Mutex<Aside>,
}

/// Since when a guest has been set aside, and whether it has shown since that it lives.
#[derive(Debug, Default)]
struct Aside {
    since: Option<Instant>,
    lives: bool,
}

/// What shows that a guest which was set aside lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// It knows that it was set aside.
    Answer,
    /// It sends packets.
    Packet,
}

/// Everybody who is in the tunnel.
#[derive(Debug, Default)]
pub(super) struct Guests {
    /// The newest session that has the address.
    by_address: HashMap<IpAddr, Arc<Guest>>,
    /// The sessions of a key, the newest last; the endpoint bounds their number.
    by_key: HashMap<PublicKey, Vec<Arc<Guest>>>,
    /// Networks behind clients.
    prefixes: Prefixes,
    /// Of the keys that have ever been here, which are no more than the operator lets in.
    lines: HashMap<PublicKey, Lines>,
}

/// What is logged of a key.
#[derive(Debug, Default)]
struct Lines {
    arrivals: Seldom,
    twice: Seldom,
    once: Seldom,
    /// Two machines use it.
    is_twice: bool,
}

impl Guest {
    pub(super) fn new(
        key: PublicKey,
        own: Vec<IpAddr>,
        mtu: Mtu,
        joined: bool,
        gate: Gate,
    ) -> Self {
        Guest {
            key,
            own,
            mtu,
            joined,
            gate,
            flows: Mutex::default(),
            common: Mutex::default(),
            ended: CancellationToken::new(),
            standing: watch::Sender::default(),
            told: Mutex::default(),
            aside: Mutex::default(),
        }
    }

    /// Who has its addresses, and what becomes of that, until what is returned beside it is
    /// cancelled, by the next request. The client is informed by one stream.
    pub(super) fn standing(&self) -> (watch::Receiver<Standing>, CancellationToken) {
        let mine = self.ended.child_token();
        std::mem::replace(&mut *lock(&self.told), mine.clone()).cancel();
        (self.standing.subscribe(), mine)
    }

    /// Where a packet of the conversation `key` is to wait.
    pub(super) fn queue(&self, key: Key) -> Option<Arc<Queue>> {
        let found = lock(&self.flows).get(&key).cloned();
        found.or_else(|| self.common())
    }

    /// Where what belongs to no conversation, or needs no order, is to wait.
    pub(super) fn common(&self) -> Option<Arc<Queue>> {
        lock(&self.common).clone()
    }

    pub(super) fn forget(&self, queue: &Arc<Queue>, key: Option<Key>) {
        queue.close();
        let same = |other: &Arc<Queue>| Arc::ptr_eq(other, queue);
        if let Some(key) = key {
            let mut flows = lock(&self.flows);
            if flows.get(&key).is_some_and(same) {
                flows.remove(&key);
            }
        }
        lock(&self.common).take_if(|other| same(other));
    }

    /// Whether `sign` shows for the first time that it lives though it was set aside.
    pub(super) fn shows(&self, sign: Sign) -> bool {
        let mut aside = lock(&self.aside);
        let late = |since: Instant| since.elapsed() >= UNDER_WAY;
        let is_sign = aside
            .since
            .is_some_and(|since| sign == Sign::Answer || late(since));
        is_sign && !std::mem::replace(&mut aside.lives, true)
    }

    fn set_aside(&self) {
        let mut aside = lock(&self.aside);
        aside.since.get_or_insert_with(Instant::now);
        drop(aside);
        self.stand(Standing::SetAside);
    }

    fn come_first(&self, standing: Standing) {
        *lock(&self.aside) = Aside::default();
        self.stand(standing);
    }

    fn lives(&self) -> bool {
        lock(&self.aside).lives
    }

    fn stand(&self, new: Standing) {
        self.standing
            .send_if_modified(|old| std::mem::replace(old, new) != new);
    }
}

impl Guests {
    /// Nobody yet, with these networks behind them.
    pub(super) fn with(prefixes: Prefixes) -> Self {
        Guests {
            prefixes,
            ..Guests::default()
        }
    }

    /// Networks behind them.
    pub(super) fn prefixes(&self) -> &Prefixes {
        &self.prefixes
    }

    /// Has these networks behind them from now on.
    pub(super) fn set_prefixes(&mut self, prefixes: Prefixes) {
        self.prefixes = prefixes;
    }

    /// Ends the leases of all that have other addresses than they `may` have; they ask again.
    pub(super) fn end_unless(&self, may: impl Fn(&Guest) -> bool) {
        let guests = self.by_key.values().flatten();
        for guest in guests.filter(|guest| !may(guest)) {
            guest.ended.cancel();
        }
    }

    /// Who gets the packets to `address`.
    pub(super) fn at(&self, address: IpAddr) -> Option<&Arc<Guest>> {
        let behind = || self.by_key.get(&self.prefixes.behind(address)?)?.last();
        self.by_address.get(&address).or_else(behind)
    }

    /// Is the address in a network behind this client?
    pub(super) fn is_behind(&self, address: IpAddr, key: &PublicKey) -> bool {
        self.prefixes.behind(address).as_ref() == Some(key)
    }

    pub(super) fn is_present(&self, key: &PublicKey) -> bool {
        self.by_key.contains_key(key)
    }

    /// Gives `guest` its addresses.
    pub(super) fn arrive(&mut self, guest: &Arc<Guest>) {
        let sessions = self.by_key.entry(guest.key).or_default();
        sessions.push(Arc::clone(guest));
        for address in &guest.own {
            self.by_address.insert(*address, Arc::clone(guest));
        }
        let addresses: Vec<String> = guest.own.iter().map(IpAddr::to_string).collect();
        let lines = self.lines.entry(guest.key).or_default();
        lines.arrivals.say(|left_out| {
            let addresses = addresses.join(", ");
            tracing::info!("tunnel: {} is {addresses}{left_out}", guest.key);
        });
        self.judge(&guest.key);
    }

    /// Gives the addresses of `guest` back to the session that came before it. Nothing happens if
    /// it has gone already.
    pub(super) fn leave(&mut self, guest: &Arc<Guest>) {
        let Some(sessions) = self.by_key.get_mut(&guest.key) else {
            return;
        };
        sessions.retain(|other| !Arc::ptr_eq(other, guest));
        for address in &guest.own {
            // Another client may have it meanwhile.
            let now = self.by_address.get(address);
            if now.is_some_and(|now| now.key != guest.key) {
                continue;
            }
            let next = sessions.iter().rfind(|other| other.own.contains(address));
            match next {
                Some(next) => self.by_address.insert(*address, Arc::clone(next)),
                None => self.by_address.remove(address),
            };
        }
        if sessions.is_empty() {
            self.by_key.remove(&guest.key);
        }
        self.judge(&guest.key);
    }

    /// Informs the sessions of `key` where they stand, and logs whether two machines use it.
    pub(super) fn judge(&mut self, key: &PublicKey) {
        let mut is_twice = false;
        if let Some((newest, older)) = self.by_key.get(key).and_then(|all| all.split_last()) {
            older.iter().for_each(|guest| guest.set_aside());
            is_twice = older.iter().any(|guest| guest.lives());
            newest.come_first(match is_twice {
                true => Standing::Shared,
                false => Standing::Alone,
            });
        }
        let Some(lines) = self.lines.get_mut(key) else {
            return;
        };
        match (std::mem::replace(&mut lines.is_twice, is_twice), is_twice) {
            (false, true) => lines.twice.say(|left_out| {
                tracing::warn!(
                    "tunnel: the key {key} is in use twice: the newest session has its addresses, and older ones get \
                     nothing until it ends; give every machine a key of its own{left_out}"
                );
            }),
            (true, false) => lines.once.say(|left_out| {
                tracing::info!("tunnel: the key {key} is not in use twice any more{left_out}");
            }),
            _ => {}
        }
    }
}
