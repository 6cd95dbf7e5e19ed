//! The server's side: gives addresses, judges packets, and finds the flow that an answer belongs to.

use super::gate::Gate;
use super::hello::{Costs, Offer, Place, Role};
use super::icmp::{Refusal, answer};
use super::key::Key;
use super::leases::Leases;
use super::packet::Packet;
use super::pool::Pool;
use super::queue::Queue;
use super::remains::Remains;
use super::setup::{Applied, Setup};
use super::{Device, FLOW_QUEUE, Port, ServerTunnelError};
use crate::config::{TunOut, TunSetup};
use crate::endpoint::Handle;
use crate::identity::PublicKey;
use crate::lock::lock;
use crate::proxy::associations::send;
use crate::proxy::idle::Idle;
use crate::proxy::policy::Policy;
use crate::proxy::{PacketFlow, Tasks};
use bytes::Bytes;
use marline_proto::sched::Choice;
use marline_proto::wire::PathId;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Largest packet of the server's device; a client may have smaller ones, and senders are told so.
const MTU: u16 = 1500;
/// Smallest largest packet that a client may ask for (RFC 8200 section 5).
const MIN_MTU: u16 = 1280;
/// A flow that is quiet for so long is closed; longer than the client's own limit.
const IDLE: Duration = Duration::from_secs(90);

/// A server's tunnel, opened and set up, and not yet served.
#[derive(Debug)]
pub struct ServerTunnel {
    device: Device,
    gate: Gate,
    pool: Pool,
    leases: Leases,
    by_cost: Option<Choice>,
    /// Undone when the tunnel ends.
    applied: Option<Applied>,
}

impl ServerTunnel {
    /// Opens the device and, if that is asked for, sets it up. `key` is the server's, by which it has a network of its
    /// own where none is configured. `stop` ends the setup and undoes it.
    ///
    /// # Errors
    /// The device, the state file, a command that sets the device up, or `stop` during those.
    pub async fn open(
        config: &TunOut,
        policy: Policy,
        key: PublicKey,
        stop: CancellationToken,
    ) -> Result<Self, ServerTunnelError> {
        let pool = config
            .pool
            .unwrap_or_else(|| Pool::of_server(key.as_bytes()));
        let leases = Leases::load(config.state.clone())?;
        let device = Device::open(&config.device)?;
        let setup = Setup::server(
            device.name(),
            &pool,
            MTU,
            config.setup != TunSetup::WithoutNat,
            Remains::beside(config.state.as_deref()),
        );
        let applied = match config.setup {
            TunSetup::Off => {
                setup.show();
                None
            }
            TunSetup::On | TunSetup::WithoutNat => Some(setup.apply(stop).await?),
        };
        tracing::info!("tunnel {}: clients have addresses of {pool}", device.name());
        Ok(ServerTunnel {
            device,
            gate: Gate::new(pool, policy, config.peers),
            pool,
            leases,
            by_cost: config.by_cost,
            applied,
        })
    }

    /// Begins to carry packets, as tasks.
    pub fn serve(self, tasks: &Tasks) -> Hub {
        let port = self.device.serve(tasks);
        let hub = Hub(Arc::new(Inner {
            gate: self.gate,
            pool: self.pool,
            by_cost: self.by_cost,
            leases: Mutex::new(self.leases),
            guests: Mutex::default(),
            kernel: port.outgoing.clone(),
        }));
        let (inner, draining, applied) = (Arc::clone(&hub.0), tasks.clone(), self.applied);
        tasks.spawn(async move {
            let _applied = applied;
            tokio::select! {
                () = draining.draining() => {}
                () = inner.carry_back(port) => {}
            }
        });
        hub
    }
}

/// A running tunnel of a server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    gate: Gate,
    pool: Pool,
    /// The scheduler of what is sent to clients whose paths have different costs; `None` for the session's default.
    by_cost: Option<Choice>,
    leases: Mutex<Leases>,
    /// Clients that have a lease, by each of their addresses.
    guests: Mutex<HashMap<IpAddr, Arc<Guest>>>,
    kernel: mpsc::Sender<Bytes>,
}

/// A client with a lease.
#[derive(Debug)]
struct Guest {
    key: PublicKey,
    own: Vec<IpAddr>,
    mtu: u16,
    /// Queues of its conversations, as its own packets show them; the session bounds their number.
    flows: Mutex<HashMap<Key, Arc<Queue>>>,
    common: Mutex<Option<Arc<Queue>>>,
    /// Some of its paths cost more than others.
    by_cost: AtomicBool,
}

/// One session of a client, which may or may not ask for a lease.
#[derive(Debug)]
pub struct Visitor {
    hub: Hub,
    peer: PublicKey,
    session: Option<Handle>,
    guest: Mutex<Option<Arc<Guest>>>,
}

impl Hub {
    /// A session with `peer`.
    pub fn visitor(&self, peer: PublicKey, session: Option<Handle>) -> Visitor {
        Visitor {
            hub: self.clone(),
            peer,
            session,
            guest: Mutex::default(),
        }
    }
}

/// Tells a client that asks for a lease that there is none to be had.
pub(crate) async fn refuse<S: AsyncWrite + Unpin>(mut stream: S, why: &str) {
    let refused = Offer::Refused(why.to_owned()).encode();
    if stream.write_all(&refused).await.is_ok() {
        let _ = stream.shutdown().await;
    }
}

impl Inner {
    /// Carries what the kernel hands over to whom it is for.
    async fn carry_back(&self, mut port: Port) {
        while let Some(bytes) = port.incoming.recv().await {
            let Ok(packet) = Packet::parse(&bytes) else {
                continue;
            };
            let Some(guest) = lock(&self.guests).get(&packet.destination).cloned() else {
                continue;
            };
            if !self.gate.back(&bytes, &packet) {
                continue;
            }
            if packet.dont_fragment && bytes.len() > usize::from(guest.mtu) {
                // From the client's address: the kernel takes none from outside that have its own.
                let from = packet.destination;
                if let Some(told) = answer(&bytes, &packet, from, Refusal::TooBig(guest.mtu)) {
                    let _ = self.kernel.try_send(told.into());
                }
                continue;
            }
            if let Some(queue) = guest.queue(Key::of(&packet).reversed()) {
                queue.push(bytes.into());
            }
        }
    }

    /// What is answered to a packet, from the server's address of its family.
    fn tell(&self, bytes: &[u8], packet: &Packet, refusal: Refusal) -> Option<Bytes> {
        let servers = self.pool.server().into_iter().map(|net| net.addr());
        let from = servers
            .into_iter()
            .find(|server| server.is_ipv4() == packet.source.is_ipv4())?;
        answer(bytes, packet, from, refusal).map(Bytes::from)
    }

    fn is_present(&self, key: &PublicKey) -> bool {
        lock(&self.guests).values().any(|guest| guest.key == *key)
    }
}

impl Guest {
    fn queue(&self, key: Key) -> Option<Arc<Queue>> {
        let found = lock(&self.flows).get(&key).cloned();
        found.or_else(|| lock(&self.common).clone())
    }

    fn forget(&self, queue: &Arc<Queue>, key: Option<Key>) {
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
}

impl Visitor {
    /// Gives the client its addresses for as long as `stream` is open.
    pub(crate) async fn lease<S: AsyncRead + AsyncWrite + Unpin>(&self, mut stream: S, mtu: u16) {
        let inner = &self.hub.0;
        let number = {
            let mut leases = lock(&inner.leases);
            leases.take(&inner.pool, self.peer, |key| inner.is_present(key))
        };
        let Some(number) = number else {
            tracing::warn!("the tunnel's pool {} is used up", inner.pool);
            return refuse(stream, "all of its tunnel's addresses are in use").await;
        };
        let own = inner.pool.client(number);
        let places = own.iter().zip(inner.pool.server());
        let places = places.map(|(own, server)| Place {
            own: *own,
            server: server.addr(),
        });
        let guest = Arc::new(Guest {
            key: self.peer,
            own: own.iter().map(|net| net.addr()).collect(),
            mtu: mtu.clamp(MIN_MTU, MTU),
            flows: Mutex::default(),
            common: Mutex::default(),
            by_cost: AtomicBool::new(false),
        });
        let offer = Offer::Granted {
            mtu: guest.mtu,
            places: places.collect(),
        };
        let _stay = self.arrive(&guest);
        let said = stream.write_all(&offer.encode()).await;
        if said.and(stream.flush().await).is_err() {
            return;
        }
        let addresses: Vec<String> = guest.own.iter().map(IpAddr::to_string).collect();
        tracing::info!("tunnel: {} is {}", self.peer, addresses.join(", "));
        // Its end is the lease's.
        let _ = self.hear_costs(&mut stream, &guest).await;
    }

    /// Takes over what the client says its paths cost, until the stream ends.
    async fn hear_costs<S: AsyncRead + Unpin>(
        &self,
        stream: &mut S,
        guest: &Guest,
    ) -> io::Result<()> {
        loop {
            let rest = Costs::rest(stream.read_u8().await?).map_err(io::Error::other)?;
            let mut bytes = vec![0; rest];
            stream.read_exact(&mut bytes).await?;
            let costs = Costs::decode(&bytes);
            guest.by_cost.store(costs.differ(), Ordering::Relaxed);
            for (path, cost) in costs.0 {
                // It may have gone meanwhile.
                let _ = self
                    .session
                    .as_ref()
                    .map(|s| s.set_cost(PathId(path), cost));
            }
        }
    }

    /// Makes the client known until what is returned is dropped.
    fn arrive<'a>(&'a self, guest: &'a Arc<Guest>) -> impl Drop + use<'a> {
        struct Stay<'a>(&'a Visitor, &'a Arc<Guest>);
        impl Drop for Stay<'_> {
            fn drop(&mut self) {
                // A newer session of the same client may have taken the addresses over.
                let mut guests = lock(&self.0.hub.0.guests);
                guests.retain(|_, guest| !Arc::ptr_eq(guest, self.1));
                lock(&self.0.guest).take_if(|guest| Arc::ptr_eq(guest, self.1));
            }
        }
        *lock(&self.guest) = Some(Arc::clone(guest));
        let mut guests = lock(&self.hub.0.guests);
        for address in &guest.own {
            guests.insert(*address, Arc::clone(guest));
        }
        Stay(self, guest)
    }

    /// Carries a flow of the tunnel both ways until either side ends it or it has been quiet for long.
    pub(crate) async fn carry<P: PacketFlow>(&self, role: Role, flow: P) {
        let Some(guest) = lock(&self.guest).clone() else {
            tracing::debug!("a client without a lease opened a flow of the tunnel");
            return;
        };
        flow.set_queue(Some(FLOW_QUEUE));
        if guest.by_cost.load(Ordering::Relaxed)
            && let Some(scheduler) = self.hub.0.by_cost
        {
            flow.set_scheduler(scheduler);
        }
        let queue = Arc::new(Queue::new());
        let common = role == Role::Common;
        if common {
            *lock(&guest.common) = Some(Arc::clone(&queue));
        }
        let mut key = None;
        let idle = Idle::new(IDLE);
        let out = async {
            while let Some(message) = flow.recv().await {
                idle.touch();
                let packet = match Packet::parse(&message) {
                    Ok(packet) => packet,
                    Err(error) => {
                        tracing::debug!(%error, "a client sent what is no packet");
                        continue;
                    }
                };
                if !self.hub.0.gate.out(&guest.own, &packet) {
                    tracing::debug!(to = %packet.destination, "a packet in the tunnel is not allowed");
                    if guest.own.contains(&packet.source)
                        && let Some(told) = self.hub.0.tell(&message, &packet, Refusal::Prohibited)
                    {
                        queue.push(told);
                    }
                    continue;
                }
                if key.is_none() && !common {
                    let its = Key::of(&packet);
                    lock(&guest.flows).insert(its, Arc::clone(&queue));
                    key = Some(its);
                }
                if self.hub.0.kernel.send(message).await.is_err() {
                    return;
                }
            }
        };
        let back = async {
            while let Some(packet) = queue.pop().await {
                idle.touch();
                send(&flow, packet).await?;
            }
            io::Result::Ok(())
        };
        let quiet = async {
            match common {
                true => std::future::pending().await,
                false => idle.expired().await,
            }
        };
        tokio::select! {
            () = out => {}
            _ = back => {}
            () = quiet => {}
        }
        guest.forget(&queue, key);
    }
}
