//! What those may cost a server whom it does not know, or not yet.
//!
//! | file | what |
//! | --- | --- |
//! | `slots.rs` | places for connections, and who gives way to whom |
//! | `buckets.rs` | how often an address or a key may begin |
//! | `known.rs` | addresses that listed clients came from lately |
//! | `unproved.rs` | what is sent to addresses that have not proved to be there |
//! | `address.rs` | which addresses count as one |

mod address;
mod buckets;
mod known;
mod slots;
mod unproved;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::ListenConfig;
use crate::identity::PublicKey;
use crate::support::lock;
use address::Site;
use buckets::Buckets;
use known::Known;
pub(super) use slots::Slot;
use slots::{Bounds, Guest, Slots};
use unproved::Question;
pub(super) use unproved::Unproved;

/// A handshake as old as this gives way under pressure: one round trip over a satellite has passed.
const STALLED: Duration = Duration::from_secs(1);

/// Addresses that are remembered (some 100 bytes each), and for how long after a client of theirs
/// was there: a day, so that who comes every day is known.
const KNOWN_SITES: usize = 1024;
const KNOWN_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Addresses and keys whose handshakes are counted (some 100 bytes each).
const COUNTED: usize = 4096;

/// Handshakes of one listed key: what 16 sessions of 16 paths need at once after the server was
/// restarted, and this often after that.
const KEY_BURST: u32 = 256;
const KEY_REFILL: Duration = Duration::from_millis(31);

/// Refused connections that may wait for their clients to have read why, in all and for one
/// address. Others are closed at once: over QUIC the close says why, too, and over TCP it mostly
/// arrives.
const LINGERING: usize = 16;
const LINGERING_PER_SITE: usize = 4;

/// What a server gives the hosts that come to it, whatever for.
#[derive(Debug)]
pub(super) struct Strangers {
    silent: Slots,
    quic: Gate,
    tcp: Gate,
    lingering: Slots,
    keys: Mutex<Buckets<PublicKey>>,
    known: Mutex<Known>,
    unproved: Arc<Unproved>,
    retry_above: usize,
}

/// Where connections of one kind come in.
#[derive(Debug)]
struct Gate {
    slots: Slots,
    rate: Mutex<Buckets<Site>>,
}

/// Which gate.
#[derive(Clone, Copy, Debug)]
enum Way {
    Quic,
    Tcp,
}

/// What becomes of a QUIC connection that was not taken.
#[derive(Debug)]
pub(super) enum Turn {
    /// Its address has to prove that it receives what is sent to it (RFC 9000 section 8.1.2).
    Prove,
    /// It is refused, for this reason.
    Away(String),
}

impl Gate {
    fn new(config: &ListenConfig, lingers: bool) -> Self {
        let refill = Duration::from_secs(1) / config.handshakes_per_second.max(1);
        Self {
            slots: Slots::new(Bounds {
                all: config.max_half_open,
                per_site: config.max_half_open_per_address,
                reserved: config.reserved_half_open,
                gives_way: STALLED,
                lingers,
            }),
            rate: Mutex::new(Buckets::new(config.handshake_burst, refill, COUNTED)),
        }
    }

    fn crowded(&self) -> String {
        let count = self.slots.len();
        format!("{count} handshakes are going on, its own or others")
    }
}

/// Of hosts that begin too often.
const TOO_OFTEN: &str = "its address begins handshakes too often";

impl Strangers {
    pub(super) fn new(config: &ListenConfig) -> Self {
        Self {
            silent: Slots::new(Bounds {
                all: config.max_silent,
                per_site: config.max_half_open_per_address,
                reserved: 0,
                gives_way: Duration::ZERO,
                lingers: false,
            }),
            // A QUIC connection that is closed stays until late packets of it can no longer come.
            quic: Gate::new(config, true),
            tcp: Gate::new(config, false),
            lingering: Slots::new(Bounds {
                all: LINGERING,
                per_site: LINGERING_PER_SITE,
                reserved: 0,
                gives_way: Duration::MAX,
                lingers: false,
            }),
            keys: Mutex::new(Buckets::new(KEY_BURST, KEY_REFILL, COUNTED)),
            known: Mutex::new(Known::new(KNOWN_SITES, KNOWN_FOR)),
            unproved: Arc::default(),
            retry_above: config.retry_above,
        }
    }

    /// What a server's sockets may send to addresses that have not proved to be there.
    pub(super) fn unproved(&self) -> Arc<Unproved> {
        Arc::clone(&self.unproved)
    }

    /// A place for a TCP connection that has said nothing yet.
    pub(super) fn silent(&self, ip: IpAddr) -> Option<Slot> {
        self.silent.take(self.guest(ip, true))
    }

    /// A place for a TCP connection that begins its TLS handshake; the kernel has seen to it that
    /// the address is true.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn tcp(self: &Arc<Self>, ip: IpAddr) -> Result<Arc<Place>, String> {
        if !lock(&self.tcp.rate).take(ip.into()) {
            return Err(TOO_OFTEN.into());
        }
        match self.tcp.slots.take(self.guest(ip, true)) {
            Some(slot) => Ok(self.place(Way::Tcp, ip, slot, None)),
            None => {
                lock(&self.tcp.rate).give_back(ip.into());
                Err(self.tcp.crowded())
            }
        }
    }

    /// A place for a QUIC connection that begins at `remote`, as the socket shows it; `proved` says
    /// that this address answered a Retry.
    ///
    /// # Errors
    /// What to do with it instead.
    pub(super) fn quic(
        self: &Arc<Self>,
        remote: SocketAddr,
        proved: bool,
    ) -> Result<Arc<Place>, Turn> {
        let (ip, gate) = (remote.ip(), &self.quic);
        // What a false address would be charged for, its owner would be refused for.
        let may_begin = match proved {
            true => lock(&gate.rate).take(ip.into()),
            false => gate.slots.len() < self.retry_above && lock(&gate.rate).has(ip.into()),
        };
        let slot = may_begin.then(|| gate.slots.take(self.guest(ip, proved)));
        match slot {
            Some(Some(slot)) => {
                let question = (!proved).then(|| self.unproved.ask(remote));
                Ok(self.place(Way::Quic, ip, slot, question))
            }
            _ if !proved => Err(Turn::Prove),
            Some(None) => {
                lock(&gate.rate).give_back(ip.into());
                Err(Turn::Away(gate.crowded()))
            }
            None => Err(Turn::Away(TOO_OFTEN.into())),
        }
    }

    fn guest(&self, ip: IpAddr, proved: bool) -> Guest {
        let site = ip.into();
        Guest {
            site,
            proved,
            known: lock(&self.known).has(site),
        }
    }

    fn place(
        self: &Arc<Self>,
        way: Way,
        ip: IpAddr,
        slot: Slot,
        question: Option<Question>,
    ) -> Arc<Place> {
        Arc::new(Place {
            strangers: Arc::clone(self),
            way,
            site: ip.into(),
            slot,
            question: Mutex::new(question),
            let_in: AtomicBool::new(false),
        })
    }
}

/// The place of one connection. It is kept as long as there is anything left of the connection.
#[derive(Debug)]
pub(super) struct Place {
    strangers: Arc<Strangers>,
    way: Way,
    site: Site,
    slot: Slot,
    question: Mutex<Option<Question>>,
    let_in: AtomicBool,
}

impl Place {
    fn rate(&self) -> &Mutex<Buckets<Site>> {
        match self.way {
            Way::Quic => &self.strangers.quic.rate,
            Way::Tcp => &self.strangers.tcp.rate,
        }
    }

    /// Completes when the connection has to give way to another.
    pub(super) async fn gives_way(&self) {
        self.slot.gives_way().await;
    }

    /// The handshake is done, so the address is true, and pays for it.
    pub(super) fn proved(&self) {
        if lock(&self.question).take().is_some() {
            self.slot.proved();
            lock(self.rate()).take(self.site);
        }
    }

    /// The key is listed: it pays for the handshake instead of the address, which others may share.
    /// False when it begins too often.
    pub(super) fn listed(&self, key: PublicKey) -> bool {
        lock(self.rate()).give_back(self.site);
        lock(&self.strangers.keys).take(key)
    }

    /// Leave to wait until the client of a refused connection has read why.
    pub(super) fn lingers(&self) -> Option<Slot> {
        self.strangers.lingering.take(Guest {
            site: self.site,
            proved: true,
            known: false,
        })
    }

    /// The client is let in: the connection is its session's matter from now on, and its address is
    /// known.
    pub(super) fn let_in(&self) {
        self.slot.release();
        self.let_in.store(true, Ordering::Relaxed);
        lock(&self.strangers.known).note(self.site);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Known for a time after the connection, too, however long it lasted.
        if self.let_in.load(Ordering::Relaxed) {
            lock(&self.strangers.known).note(self.site);
        }
    }
}

#[cfg(test)]
mod tests;
