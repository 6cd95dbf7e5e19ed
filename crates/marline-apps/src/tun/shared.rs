//! What the tasks of a client's tunnel have in common.

use super::elsewhere::Elsewhere;
use super::fit::Mtu;
use super::hello::{Place, Standing};
use super::joined::Message;
use super::mss::clamped;
use super::packet::Packet;
use super::queue::Queue;
use super::rules::Rules;
use super::terms::Terms;
use crate::tun::{ClientSetup, Resolver, TunIn};
use bytes::Bytes;
use marline::support::lock;
use marline::support::seldom::Seldom;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// The addresses that the server has given.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) mtu: Mtu,
    /// The server takes joined packets.
    pub(super) joined: bool,
    pub(super) places: Vec<Place>,
    /// What belongs to no conversation; also for what can have no flow of its own.
    pub(super) common: Arc<Queue>,
}

/// What the tasks of a client's tunnel have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) device: String,
    pub(super) rules: Rules,
    pub(super) terms: Terms,
    pub(super) setup: ClientSetup,
    pub(super) resolvers: Vec<Resolver>,
    pub(super) kernel: mpsc::Sender<Bytes>,
    lease: Mutex<Option<Arc<Lease>>>,
    /// Who has the lease's addresses, as the server last said.
    standing: Mutex<Standing>,
    /// How [`Elsewhere`] is found out, by the tunnel's device, and what it was last.
    look: fn(&str) -> Elsewhere,
    elsewhere: Mutex<Arc<Elsewhere>>,
    strays: Strays,
    pub(super) strangers: Strangers,
    /// A name server of one link was reported.
    one_link: AtomicBool,
}

/// What this host's kernel handed over under addresses that are not the tunnel's.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    is_said: AtomicBool,
}

/// What the server sent and this host's kernel did not get.
#[derive(Debug, Default)]
struct Strays {
    count: AtomicU64,
    lines: Seldom,
}

impl Shared {
    pub(super) fn new(
        device: String,
        config: TunIn,
        kernel: mpsc::Sender<Bytes>,
        look: fn(&str) -> Elsewhere,
    ) -> Arc<Self> {
        Arc::new(Shared {
            device,
            rules: config.rules,
            terms: Terms::new(config.routes, config.announced),
            setup: config.setup,
            resolvers: config.resolvers,
            kernel,
            lease: Mutex::default(),
            standing: Mutex::default(),
            look,
            elsewhere: Mutex::default(),
            strays: Strays::default(),
            strangers: Strangers::default(),
            one_link: AtomicBool::new(false),
        })
    }

    pub(super) fn lease(&self) -> Option<Arc<Lease>> {
        lock(&self.lease).clone()
    }

    pub(super) fn set_lease(&self, lease: Option<Arc<Lease>>) {
        *lock(&self.lease) = lease;
    }

    /// Takes note of what the server says of the lease's addresses. Returns what it said before.
    pub(super) fn set_standing(&self, standing: Standing) -> Standing {
        std::mem::replace(&mut *lock(&self.standing), standing)
    }

    /// Who has the lease's addresses, as the server last said.
    pub(super) fn standing(&self) -> Standing {
        *lock(&self.standing)
    }

    /// How many packets the server has sent that this host's kernel did not get.
    pub(super) fn strays(&self) -> u64 {
        self.strays.count.load(Ordering::Relaxed)
    }

    /// Looks what this host reaches without the tunnel.
    pub(super) async fn look(&self) -> Arc<Elsewhere> {
        let (look, device) = (self.look, self.device.clone());
        let found = tokio::task::spawn_blocking(move || Arc::new(look(&device))).await;
        if let Ok(found) = found {
            *lock(&self.elsewhere) = found;
        }
        self.elsewhere()
    }

    /// Says once which name server is reached by one link alone, though everything else goes
    /// through the tunnel: names fail when that link does.
    pub(super) fn say_resolvers(&self) {
        let takes_all = self.terms.routes().iter().any(|net| net.prefix_len() == 0);
        if !takes_all || !self.resolvers.is_empty() {
            return;
        }
        let elsewhere = self.elsewhere();
        if let Some((server, link)) = elsewhere.resolver_of_one_link()
            && !self.one_link.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                "the name server {server} is reached by {link} alone: names fail when that link does, and are asked \
                 for outside of the tunnel; --tun-dns 9.9.9.9, or another one, asks through the tunnel"
            );
        }
    }

    fn elsewhere(&self) -> Arc<Elsewhere> {
        Arc::clone(&lock(&self.elsewhere))
    }

    /// Hands a packet from the server to the kernel, if it is for this host.
    pub(super) async fn deliver(&self, message: Bytes) {
        let Some(lease) = self.lease() else {
            return;
        };
        let (packet, bytes) = match Message::parse(&message) {
            Ok(read) => (read.packet, read.packet(&message)),
            Err(error) => return self.strays.drop("what is no packet", &error),
        };
        let verdict = self
            .terms
            .packet(bytes, &packet, &lease.places, &self.elsewhere());
        if let Err(stray) = verdict {
            let (from, to) = (packet.source, packet.destination);
            return self
                .strays
                .drop(format_args!("a packet from {from} to {to}"), &stray);
        }
        let message = clamped(message, &packet, lease.mtu.get());
        // Without a reader the program is about to end.
        let _ = self.kernel.send(message).await;
    }
}

impl Strangers {
    /// Says once that packets from there are dropped, and what to do about it. The kernel also
    /// sends from its own link-local addresses, to nobody in particular.
    pub(super) fn say(&self, source: IpAddr) {
        let is_local = match source {
            IpAddr::V4(source) => source.is_unspecified() || source.is_link_local(),
            IpAddr::V6(source) => source.is_unspecified() || source.is_unicast_link_local(),
        };
        if !is_local && !self.is_said.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "packets from {source} are dropped, for they are not from this host's address in the tunnel: for a \
                 network behind this host, add --tun-setup=gateway; for a program, have it send from the tunnel's \
                 address"
            );
        }
    }
}

impl Strays {
    fn drop(&self, what: impl fmt::Display, why: &dyn fmt::Display) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.lines.say(|left_out| {
            tracing::warn!("the server sent {what}, which was dropped: {why}{left_out}");
        });
    }
}

impl Lease {
    pub(super) fn owns(&self, address: IpAddr) -> bool {
        self.places.iter().any(|place| place.own.addr() == address)
    }

    /// The server's address of the family of `packet`.
    pub(super) fn server(&self, packet: &Packet) -> Option<IpAddr> {
        let same = |place: &&Place| place.server.is_ipv4() == packet.source.is_ipv4();
        self.places.iter().find(same).map(|place| place.server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_behind_this_host_is_reported_and_the_kernels_own_chatter_is_not() {
        let strangers = Strangers::default();
        for (source, reported) in [
            ("fe80::1", false),
            ("169.254.7.7", false),
            ("0.0.0.0", false),
            ("::", false),
            ("192.168.7.5", true),
        ] {
            strangers.say(source.parse().unwrap());
            assert_eq!(
                strangers.is_said.load(Ordering::Relaxed),
                reported,
                "{source}"
            );
        }
    }
}
