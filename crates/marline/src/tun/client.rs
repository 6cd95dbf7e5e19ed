//! The client's side: asks for addresses, and gives every conversation of this host a flow.

use super::hello::{Costs, OFFER_HEAD, Offer, Place, Role};
use super::icmp::{Refusal, answer};
use super::key::Key;
use super::mss::clamp;
use super::packet::Packet;
use super::queue::Queue;
use super::rules::Rules;
use super::setup::{Applied, Setup};
use super::{Device, DeviceError, FLOW_QUEUE, Port};
use crate::config::TunIn;
use crate::proxy::associations::send;
use crate::proxy::idle::Idle;
use crate::proxy::{OpenError, OpenOptions, PacketFlow, Tasks, Tunnel};
use bytes::Bytes;
use ipnet::IpNet;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Smallest largest packet: what IPv6 asks of every link (RFC 8200 section 5). On paths with smaller datagrams larger
/// packets travel in parts.
const MIN_MTU: u16 = 1280;
/// Most conversations with a flow of their own; the one that has been quiet longest makes room for a new one.
const MAX_FLOWS: usize = 512;
/// A conversation that is quiet for so long loses its flow, and gets another with its next packet.
const IDLE: Duration = Duration::from_secs(60);
/// How long the server may take to offer a lease.
const OFFER: Duration = Duration::from_secs(10);
/// How often it is looked whether paths have come, gone or got another cost.
const LOOK: Duration = Duration::from_secs(1);
/// After a flow or a lease could not be had.
const RETRY: Duration = Duration::from_millis(300);
/// After the server has said that there is none.
const REFUSED: Duration = Duration::from_secs(10);

/// A client's tunnel, opened and not yet served.
#[derive(Debug)]
pub struct ClientTunnel {
    device: Device,
    config: TunIn,
}

/// The addresses that the server has given.
#[derive(Debug)]
struct Lease {
    mtu: u16,
    places: Vec<Place>,
    /// What belongs to no conversation; also for what can have no flow of its own.
    common: Arc<Queue>,
}

/// A flow of one conversation.
#[derive(Debug)]
struct Flow {
    queue: Arc<Queue>,
    used: Instant,
}

#[derive(Debug)]
struct Shared {
    device: String,
    rules: Rules,
    routes: Vec<IpNet>,
    set_up: bool,
    kernel: mpsc::Sender<Bytes>,
    lease: Mutex<Option<Arc<Lease>>>,
}

impl ClientTunnel {
    /// Opens the device.
    ///
    /// # Errors
    /// It cannot be had.
    pub fn open(config: &TunIn) -> Result<Self, DeviceError> {
        Ok(ClientTunnel {
            device: Device::open(&config.device)?,
            config: config.clone(),
        })
    }

    /// Carries this host's packets over `tunnel`, as tasks.
    pub fn serve<T: Tunnel>(self, tunnel: &T, tasks: &Tasks) {
        let name = self.device.name().to_owned();
        let port = self.device.serve(tasks);
        let shared = Arc::new(Shared {
            device: name,
            rules: self.config.rules,
            routes: self.config.routes,
            set_up: self.config.setup,
            kernel: port.outgoing.clone(),
            lease: Mutex::default(),
        });
        let (asked, its_tasks) = (Arc::clone(&shared), tasks.clone());
        let its_tunnel = tunnel.clone();
        tasks.spawn(async move {
            let draining = its_tasks.clone();
            tokio::select! {
                () = draining.draining() => {}
                () = keep_lease(its_tunnel, asked, its_tasks) => {}
            }
        });
        let (tunnel, its_tasks) = (tunnel.clone(), tasks.clone());
        tasks.spawn(async move {
            let draining = its_tasks.clone();
            tokio::select! {
                () = draining.draining() => {}
                () = carry_out(port, tunnel, shared, its_tasks) => {}
            }
        });
    }
}

impl Shared {
    fn lease_slot(&self) -> MutexGuard<'_, Option<Arc<Lease>>> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lease(&self) -> Option<Arc<Lease>> {
        self.lease_slot().clone()
    }

    /// Hands a packet from the server to the kernel, if it is for this host.
    async fn deliver(&self, message: Bytes) {
        let Some(lease) = self.lease() else {
            return;
        };
        let mut bytes = Vec::from(message);
        match Packet::parse(&bytes) {
            Ok(packet) if lease.owns(packet.destination) => {
                clamp(&mut bytes, &packet, lease.mtu);
                // Without a reader the program is about to end.
                let _ = self.kernel.send(bytes.into()).await;
            }
            Ok(packet) => tracing::debug!("a packet for {} came here", packet.destination),
            Err(error) => tracing::debug!(%error, "the server sent what is no packet"),
        }
    }
}

impl Lease {
    fn owns(&self, address: std::net::IpAddr) -> bool {
        self.places.iter().any(|place| place.own.addr() == address)
    }

    /// The server's address of the family of `packet`.
    fn server(&self, packet: &Packet) -> Option<std::net::IpAddr> {
        let same = |place: &&Place| place.server.is_ipv4() == packet.source.is_ipv4();
        self.places.iter().find(same).map(|place| place.server)
    }
}

/// Asks for a lease whenever there is a session and none, and sets the device up.
async fn keep_lease<T: Tunnel>(tunnel: T, shared: Arc<Shared>, tasks: Tasks) {
    let mut applied: Option<(Vec<Place>, u16, Option<Applied>)> = None;
    let mut complained = false;
    loop {
        let Some(room) = tunnel.room() else {
            sleep(RETRY).await;
            continue;
        };
        let mtu = u16::try_from(room).unwrap_or(u16::MAX).max(MIN_MTU);
        let target = Role::Lease { mtu }.encode();
        let Ok(mut stream) = tunnel.open_stream(OpenOptions::new(target)).await else {
            sleep(RETRY).await;
            continue;
        };
        let offer = timeout(OFFER, read_offer(&mut stream)).await;
        let offer = offer.unwrap_or_else(|_| Err("the server did not answer".to_owned()));
        let (mtu, places) = match offer {
            Ok(offer) => offer,
            Err(why) => {
                if !complained {
                    tracing::warn!("no addresses for the tunnel: {why}");
                    complained = true;
                }
                sleep(REFUSED).await;
                continue;
            }
        };
        complained = false;
        if applied
            .as_ref()
            .is_none_or(|(p, m, _)| (p, *m) != (&places, mtu))
        {
            match applied.take() {
                // The commands replace: connections inside the tunnel do not lose their address.
                Some((before, _, Some(done))) if before == places => done.forget(),
                before => drop(before),
            }
            let setup = Setup::client(&shared.device, &places, mtu, &shared.routes);
            let done = setup.apply_or_show(shared.set_up).await;
            let addresses: Vec<String> = places.iter().map(|p| p.own.to_string()).collect();
            tracing::info!(
                "tunnel {}: {}, packets of up to {mtu} bytes",
                shared.device,
                addresses.join(", ")
            );
            applied = Some((places.clone(), mtu, done));
        }
        let common = Arc::new(Queue::new());
        *shared.lease_slot() = Some(Arc::new(Lease {
            mtu,
            places,
            common: Arc::clone(&common),
        }));
        let options = OpenOptions {
            queue: Some(FLOW_QUEUE),
            ..OpenOptions::datagrams(Role::Common.encode())
        };
        let carried = carry(
            tunnel.clone(),
            options,
            Arc::clone(&common),
            Arc::clone(&shared),
            None,
        );
        let side = tasks.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = side.draining() => {}
                () = carried => {}
            }
        });
        // Its end is the lease's.
        let _ = tell_costs(&tunnel, &mut stream).await;
        common.close();
        *shared.lease_slot() = None;
        sleep(RETRY).await;
    }
}

/// Tells the server what the paths cost, whenever that changes, until the stream ends.
async fn tell_costs<T: Tunnel>(tunnel: &T, stream: &mut T::Stream) -> io::Result<()> {
    let mut told = Costs::default();
    let mut nothing = [0];
    loop {
        let costs = Costs(tunnel.costs());
        if costs != told {
            stream.write_all(&costs.encode()).await?;
            stream.flush().await?;
            told = costs;
        }
        if let Ok(ended) = timeout(LOOK, stream.read(&mut nothing)).await {
            // The server says nothing more.
            return ended.map(|_| ());
        }
    }
}

/// The largest packet and the addresses, or why there are none.
async fn read_offer<S>(stream: &mut S) -> Result<(u16, Vec<Place>), String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    // There is nothing to say but what opened it.
    let _ = stream.flush().await;
    let mut bytes = vec![0; OFFER_HEAD];
    let ended = |_| {
        "the server knows of no tunnels; is it as new as this client, and started with --tun?"
            .to_owned()
    };
    stream.read_exact(&mut bytes).await.map_err(ended)?;
    let rest = Offer::rest([bytes[0], bytes[1], bytes[2]]).map_err(|error| error.to_string())?;
    bytes.resize(OFFER_HEAD + rest, 0);
    stream
        .read_exact(&mut bytes[OFFER_HEAD..])
        .await
        .map_err(ended)?;
    match Offer::decode(&bytes) {
        Ok(Offer::Granted { mtu, places }) => Ok((mtu, places)),
        Ok(Offer::Refused(why)) => Err(format!("the server says: {why}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Carries what the kernel hands over.
async fn carry_out<T: Tunnel>(mut port: Port, tunnel: T, shared: Arc<Shared>, tasks: Tasks) {
    let mut flows: HashMap<(Key, Option<usize>), Flow> = HashMap::new();
    while let Some(mut bytes) = port.incoming.recv().await {
        let Some(lease) = shared.lease() else {
            continue;
        };
        // The kernel also sends from its own link-local addresses, to nobody in particular.
        let Some(packet) = Packet::parse(&bytes).ok().filter(|p| lease.owns(p.source)) else {
            continue;
        };
        if packet.dont_fragment && bytes.len() > usize::from(lease.mtu) {
            let from = lease.server(&packet);
            let refusal = Refusal::TooBig(lease.mtu);
            if let Some(told) = from.and_then(|from| answer(&bytes, &packet, from, refusal)) {
                let _ = shared.kernel.try_send(told.into());
            }
            continue;
        }
        clamp(&mut bytes, &packet, lease.mtu);
        let rule = shared.rules.find(&packet);
        let key = (Key::of(&packet), rule);
        let now = Instant::now();
        if let Some(flow) = flows.get_mut(&key).filter(|flow| !flow.queue.is_closed()) {
            flow.used = now;
            flow.queue.push(bytes.into());
            continue;
        }
        make_room(&mut flows);
        let queue = Arc::new(Queue::new());
        queue.push(bytes.into());
        let options = OpenOptions {
            queue: Some(FLOW_QUEUE),
            ..shared
                .rules
                .options(rule, &packet, Role::Conversation.encode())
        };
        let (its_queue, lease) = (Arc::clone(&queue), Arc::clone(&lease));
        let task = carry(
            tunnel.clone(),
            options,
            its_queue,
            Arc::clone(&shared),
            Some(lease),
        );
        let draining = tasks.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = draining.draining() => {}
                () = task => {}
            }
        });
        flows.insert(key, Flow { queue, used: now });
    }
}

fn make_room<K: std::hash::Hash + Eq + Copy>(flows: &mut HashMap<K, Flow>) {
    if flows.len() < MAX_FLOWS {
        return;
    }
    flows.retain(|_, flow| !flow.queue.is_closed());
    if flows.len() < MAX_FLOWS {
        return;
    }
    let quietest = flows.iter().min_by_key(|(_, flow)| flow.used);
    if let Some(key) = quietest.map(|(key, _)| *key)
        && let Some(flow) = flows.remove(&key)
    {
        flow.queue.close();
    }
}

/// Carries one flow both ways until either side ends it. A conversation's also ends when it is quiet for long; if it can
/// have no flow of its own, it shares that of `lease`.
async fn carry<T: Tunnel>(
    tunnel: T,
    options: OpenOptions,
    queue: Arc<Queue>,
    shared: Arc<Shared>,
    lease: Option<Arc<Lease>>,
) {
    let flow = match tunnel.open_packets(options).await {
        Ok(flow) => flow,
        Err(error) => {
            tracing::debug!(%error, "cannot open a flow for a conversation in the tunnel");
            if let (OpenError::TooManyFlows, Some(lease)) = (error, lease) {
                while let Ok(Some(packet)) = timeout(RETRY, queue.pop()).await {
                    lease.common.push(packet);
                }
            } else {
                sleep(RETRY).await;
            }
            queue.close();
            return;
        }
    };
    let idle = Idle::new(IDLE);
    let outgoing = async {
        while let Some(packet) = queue.pop().await {
            idle.touch();
            send(&flow, packet).await?;
        }
        io::Result::Ok(())
    };
    let incoming = async {
        while let Some(message) = flow.recv().await {
            idle.touch();
            shared.deliver(message).await;
        }
        io::Result::Ok(())
    };
    let quiet = async {
        match lease {
            Some(_) => idle.expired().await,
            None => std::future::pending().await,
        }
    };
    let _ = tokio::select! {
        result = outgoing => result,
        result = incoming => result,
        () = quiet => Ok(()),
    };
    queue.close();
}
