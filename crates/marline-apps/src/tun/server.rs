//! The server's side: gives addresses, judges packets, and finds the flow that an answer belongs
//! to.

use super::ack;
use super::carry::TCP_IDLE;
use super::fit::{MOST, Mtu, room};
use super::gate::Gate;
use super::guests::{Guest, Guests, Sign};
use super::hello::{Offer, Place, Standing};
use super::icmp::{Refusal, answer};
use super::joined::Message;
use super::key::Key;
use super::lease_file::{LastWrite, LeaseFile};
use super::leases::Fixed;
use super::packet::Packet;
use super::pool::Pool;
use super::queue::Queue;
use super::remains::Remains;
use super::setup::{Applied, Setup};
use super::{Device, FLOW_QUEUE, Port, TunnelError};
use crate::destination::Role;
use crate::proxy::associations::send;
use crate::proxy::idle::Idle;
use crate::proxy::policy::Judge;
use crate::proxy::until_end;
use crate::proxy::{PacketFlow, Tasks};
use crate::tun::{Prefixes, TunOut, TunSetup};
use bytes::Bytes;
use marline::endpoint::Session;
use marline::identity::PublicKey;
use marline::support::lock;
use marline::support::seldom::Seldom;
use marline_proto::sched::Choice;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// A flow that is quiet for this time is closed: longer than the client's own limit, which ends
/// most of them sooner.
const IDLE: Duration = TCP_IDLE.saturating_add(Duration::from_secs(30));

/// A server's tunnel, opened and set up, and not yet served.
#[derive(Debug)]
pub struct ServerTunnel {
    device: Device,
    gate: Gate,
    pool: Pool,
    leases: LeaseFile,
    by_cost: Option<Choice>,
    config: TunOut,
    setup: Setup,
    /// Undone when the tunnel ends.
    applied: Option<Applied>,
}

impl ServerTunnel {
    /// Opens the device and, if that is asked for, sets it up. `key` is the server's, by which it
    /// has a network of its own where none is configured. `stop` ends the setup and undoes it.
    ///
    /// # Errors
    /// The device, the state file, a command that sets the device up, or `stop` during those.
    pub async fn open(
        config: &TunOut,
        judge: Judge,
        key: PublicKey,
        stop: CancellationToken,
    ) -> Result<Self, TunnelError> {
        let pool = config
            .pool
            .unwrap_or_else(|| Pool::of_server(key.as_bytes()));
        if let Some(net) = config.prefixes.overlap(pool.networks()) {
            return Err(TunnelError::Prefix(net, pool));
        }
        let leases = LeaseFile::load(config.state.clone())?;
        let device = Device::open(&config.device)?;
        let setup = Setup::server(
            device.name(),
            &pool,
            MOST,
            config.setup,
            &config.prefixes,
            Remains::beside(config.state.as_deref()),
        );
        let done = setup.clone();
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
            gate: Gate::new(pool, judge, config.peers),
            pool,
            leases,
            by_cost: config.by_cost,
            config: config.clone(),
            setup: done,
            applied,
        })
    }

    /// The networks that clients have addresses of.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Begins to carry packets, as tasks.
    pub fn serve(self, tasks: &Tasks) -> Hub {
        let device = self.device.name().to_owned();
        let port = self.device.serve(tasks);
        let guests = Guests::with(self.config.prefixes.clone());
        let hub = Hub::serve(
            self.gate,
            self.pool,
            self.leases,
            guests,
            self.by_cost,
            port,
            tasks,
        );
        let draining = tasks.clone();
        let (config, pool) = (self.config, self.pool);
        // Undone when this ends.
        let (mut setup, mut applied) = (self.setup, self.applied);
        let mut prefixes = hub.0.prefixes.subscribe();
        tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = draining.draining() => return,
                    never = keep(&applied) => match never {},
                    Ok(()) = prefixes.changed() => {}
                }
                let new = prefixes.borrow_and_update().clone();
                let remains = Remains::default();
                let new = Setup::server(&device, &pool, MOST, config.setup, &new, remains);
                match applied.take() {
                    Some(before) => applied = before.become_another(&setup, new.clone()).await,
                    None => new.show_beside(&setup),
                }
                setup = new;
            }
        });
        hub
    }
}

/// Keeps the system as it was set up.
async fn keep(applied: &Option<Applied>) -> std::convert::Infallible {
    match applied {
        Some(applied) => applied.watch().await,
        None => std::future::pending().await,
    }
}

/// A running tunnel of a server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    gate: Gate,
    pool: Pool,
    /// The scheduler of what is sent to clients whose paths have different costs; `None` for the
    /// session's default.
    by_cost: Option<Choice>,
    leases: Arc<LeaseFile>,
    guests: Mutex<Guests>,
    /// Networks behind clients.
    prefixes: watch::Sender<Prefixes>,
    kernel: mpsc::Sender<Bytes>,
    /// What is logged of a pool that is used up.
    used_up: Seldom,
}

/// One session of a client, which may or may not ask for a lease.
#[derive(Debug)]
pub struct Visitor {
    hub: Hub,
    gate: Gate,
    peer: PublicKey,
    session: Option<Session>,
    guest: Mutex<Option<Arc<Guest>>>,
}

impl Hub {
    /// Carries packets between `port` and clients, and keeps leases, as tasks.
    pub(super) fn serve(
        gate: Gate,
        pool: Pool,
        leases: LeaseFile,
        guests: Guests,
        by_cost: Option<Choice>,
        port: Port,
        tasks: &Tasks,
    ) -> Hub {
        let leases = Arc::new(leases);
        let prefixes = guests.prefixes().clone();
        let hub = Hub(Arc::new(Inner {
            gate,
            pool,
            by_cost,
            leases: Arc::clone(&leases),
            guests: Mutex::new(guests),
            prefixes: watch::Sender::new(prefixes),
            kernel: port.outgoing.clone(),
            used_up: Seldom::default(),
        }));
        let inner = Arc::clone(&hub.0);
        tasks.spawn_until_drained(async move { inner.carry_back(port).await });
        let draining = tasks.clone();
        tasks.spawn(async move {
            let last = LastWrite(leases);
            tokio::select! {
                () = draining.draining() => {}
                () = last.0.keep(|snapshot| Arc::clone(&last.0).write(snapshot)) => {}
            }
        });
        hub
    }

    /// Has these networks behind clients, and these clients at these addresses, from now on. Who
    /// has another one's address gets a new one. An address that no client can have is left out.
    pub fn grant(&self, prefixes: &Prefixes, addresses: &HashMap<PublicKey, IpAddr>) {
        let Inner {
            pool,
            guests,
            leases,
            ..
        } = &*self.0;
        let numbers = addresses.iter();
        let numbers = numbers.filter_map(|(key, address)| Some((*key, pool.number(*address)?)));
        let fixed: Fixed = numbers.collect();
        let owners: HashMap<IpAddr, PublicKey> = fixed
            .iter()
            .flat_map(|(key, number)| {
                pool.client(*number)
                    .into_iter()
                    .map(|net| (net.addr(), *key))
            })
            .collect();
        // Held: nobody arrives by the old numbers meanwhile.
        let mut guests = lock(guests);
        leases.fix(fixed.clone());
        guests.end_unless(|guest| match fixed.contains_key(&guest.key) {
            true => guest
                .own
                .iter()
                .all(|own| owners.get(own) == Some(&guest.key)),
            false => guest.own.iter().all(|own| !owners.contains_key(own)),
        });
        guests.set_prefixes(prefixes.clone());
        drop(guests);
        self.0.prefixes.send_if_modified(|old| {
            let changed = *old != *prefixes;
            old.clone_from(prefixes);
            changed
        });
    }

    #[cfg(test)]
    pub(super) fn guests(&self) -> &Mutex<Guests> {
        &self.0.guests
    }

    /// A session with `peer`, whose targets `judge` judges.
    pub fn visitor(&self, peer: PublicKey, session: Option<Session>, judge: Judge) -> Visitor {
        Visitor {
            gate: self.0.gate.judged_by(judge),
            hub: self.clone(),
            peer,
            session,
            guest: Mutex::default(),
        }
    }
}

/// Informs a client that asks for a lease that there is none to be had.
pub(crate) async fn refuse<S: AsyncWrite + Unpin>(mut stream: S, why: &str) {
    let refused = Offer::Refused(why.to_owned()).encode();
    if stream.write_all(&refused).await.is_ok() {
        let _ = stream.shutdown().await;
    }
}

impl Inner {
    /// Carries what the kernel hands over to whom it is for.
    async fn carry_back(&self, mut port: Port) {
        let mut messages = Vec::new();
        while let Some(bytes) = port.incoming.recv().await {
            let Ok(message) = Message::parse(&bytes) else {
                continue;
            };
            let packet = message.packet;
            let Some(guest) = lock(&self.guests).at(packet.destination).cloned() else {
                continue;
            };
            if !guest.gate.back(message.packet(&bytes), &packet) {
                continue;
            }
            // Of a client with smaller packets than this device's, senders are informed.
            let mtu = guest.mtu.get();
            if packet.dont_fragment && message.largest(&bytes) > usize::from(mtu) {
                // From the client's address: the kernel takes none from outside that have its own.
                let from = packet.destination;
                let inner = message.packet(&bytes);
                if let Some(told) = answer(inner, &packet, from, Refusal::TooBig(mtu)) {
                    let _ = self.kernel.try_send(told.into());
                }
                continue;
            }
            let is_free = !message.is_joined() && ack::is_pure(&bytes, &packet);
            let common = guest.common().filter(|_| is_free);
            let own = || guest.queue(Key::of(&packet).reversed());
            if let Some(queue) = common.or_else(own) {
                message.send(bytes, guest.joined, &mut messages);
                queue.push_all(messages.drain(..));
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
}

/// Lets the guest go when it is dropped.
struct Stay<'a>(&'a Visitor, &'a Arc<Guest>);

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        let Stay(visitor, guest) = self;
        lock(&visitor.hub.0.guests).leave(guest);
        lock(&visitor.guest).take_if(|current| Arc::ptr_eq(current, guest));
        guest.ended.cancel();
    }
}

impl Visitor {
    /// Gives the client its addresses for as long as `stream` is open, or until the session asks
    /// again. `joined` says whether it takes joined packets.
    pub(crate) async fn lease<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        mut stream: S,
        mtu: u16,
        joined: bool,
    ) {
        let inner = &self.hub.0;
        let Some((guest, places)) = self.arrive(mtu, joined) else {
            inner.used_up.say(|left_out| {
                tracing::warn!("the tunnel's pool {} is used up{left_out}", inner.pool);
            });
            return refuse(stream, "all of its tunnel's addresses are in use").await;
        };
        let _stay = Stay(self, &guest);
        inner.leases.is_kept(&self.peer).await;
        let offer = Offer::Granted {
            mtu: guest.mtu.get(),
            places,
            joined,
        };
        let said = stream.write_all(&offer.encode()).await;
        if said.and(stream.flush().await).is_err() {
            return;
        }
        // Its end is the lease's.
        tokio::select! {
            () = until_end(&mut stream) => {}
            () = guest.ended.cancelled() => {}
            () = guest.mtu.follow(|| self.session.as_ref().and_then(room), |_| std::future::ready(())) => {}
        }
    }

    /// Makes the client known, with the addresses that are its own. `None` when there are none
    /// left.
    fn arrive(&self, mtu: u16, joined: bool) -> Option<(Arc<Guest>, Vec<Place>)> {
        let inner = &self.hub.0;
        // Held to the end: nobody else is given the addresses of somebody who is about to be known.
        let mut guests = lock(&inner.guests);
        let present = |key: &PublicKey| guests.is_present(key);
        let number = inner.leases.take(&inner.pool, self.peer, present)?;
        let own = inner.pool.client(number);
        let places = own.iter().zip(inner.pool.server());
        let places = places.map(|(own, server)| Place {
            own: *own,
            server: server.addr(),
        });
        let addresses = own.iter().map(|net| net.addr()).collect();
        let guest = Arc::new(Guest::new(
            self.peer,
            addresses,
            Mtu::new(mtu, MOST),
            joined,
            self.gate.clone(),
        ));
        let before = lock(&self.guest).replace(Arc::clone(&guest));
        if let Some(before) = before {
            guests.leave(&before);
            before.ended.cancel();
        }
        guests.arrive(&guest);
        Some((guest, places.collect()))
    }

    /// Informs the client who has its addresses, and learns whether it is there.
    pub(crate) async fn tell_standing<S: AsyncRead + AsyncWrite>(&self, stream: S) {
        let Some(guest) = lock(&self.guest).clone() else {
            return;
        };
        let (mut answers, mut told) = tokio::io::split(stream);
        let (mut standing, over) = guest.standing();
        let tell = async {
            loop {
                let now = *standing.borrow_and_update();
                told.write_u8(now.encode()).await?;
                told.flush().await?;
                standing.changed().await.map_err(io::Error::other)?;
            }
        };
        let hear = async {
            loop {
                if answers.read_u8().await? == Standing::SetAside.encode() {
                    self.sees(&guest, Sign::Answer);
                }
            }
        };
        let _: io::Result<()> = tokio::select! {
            ended = tell => ended,
            ended = hear => ended,
            () = over.cancelled() => Ok(()),
        };
    }

    /// Takes note of what `guest` does though another session has its addresses.
    fn sees(&self, guest: &Guest, sign: Sign) {
        if guest.shows(sign) {
            lock(&self.hub.0.guests).judge(&guest.key);
        }
    }

    /// Does the client pay more for some of its paths than for others?
    fn costs_differ(&self) -> bool {
        let Some(session) = &self.session else {
            return false;
        };
        let paths = session.stats().paths;
        let costs = || paths.iter().map(|path| path.cost);
        costs().min() != costs().max()
    }

    /// Carries a flow of the tunnel both ways until either side ends it or it has been quiet for
    /// long.
    pub(crate) async fn carry<P: PacketFlow>(&self, role: Role, flow: P) {
        let Some(guest) = lock(&self.guest).clone() else {
            tracing::debug!("a client without a lease opened a flow of the tunnel");
            return;
        };
        flow.set_queue(Some(FLOW_QUEUE));
        if self.costs_differ()
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
                if guest.ended.is_cancelled() {
                    return;
                }
                idle.touch();
                let (packet, inner) = match Message::parse(&message) {
                    Ok(read) => (read.packet, read.packet(&message)),
                    Err(error) => {
                        tracing::debug!(%error, "a client sent what is no packet");
                        continue;
                    }
                };
                // Its own addresses, or one of a network behind it.
                let behind = [packet.source];
                let is_behind = lock(&self.hub.0.guests).is_behind(packet.source, &guest.key);
                let own = if is_behind { &behind[..] } else { &guest.own };
                if !self.gate.out(own, inner, &packet) {
                    tracing::debug!(to = %packet.destination, "a packet in the tunnel is not allowed");
                    if own.contains(&packet.source)
                        && !self.gate.is_undecided(packet.destination)
                        && let Some(told) = self.hub.0.tell(inner, &packet, Refusal::Prohibited)
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
                self.sees(&guest, Sign::Packet);
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
            // Its addresses may be another's now.
            () = guest.ended.cancelled() => {}
        }
        guest.forget(&queue, key);
    }
}
