//! The client's side: asks for addresses, and gives every conversation of this host a flow.

use super::elsewhere::Elsewhere;
use super::hello::{Place, Standing};
use super::icmp::{Refusal, answer};
use super::key::Key;
use super::lease::keep_lease;
use super::mss::clamp;
use super::packet::Packet;
use super::queue::Queue;
use super::rules::Rules;
use super::terms::Terms;
use super::view::View;
use super::{Device, DeviceError, FLOW_QUEUE, Port};
use crate::destination::Role;
use crate::proxy::associations::send;
use crate::proxy::idle::Idle;
use crate::proxy::{OpenError, PacketFlow, Tasks, Tunnel};
use crate::tun::TunIn;
use bytes::Bytes;
use marline::support::lock;
use marline::support::seldom::Seldom;
use marline_proto::FlowOptions;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Most conversations with a flow of their own; the one that has been quiet longest makes room for
/// a new one.
const MAX_FLOWS: usize = 512;
/// A conversation that is quiet for this time loses its flow, and gets another with its next
/// packet.
const IDLE: Duration = Duration::from_secs(60);
/// After a flow could not be had.
const RETRY: Duration = Duration::from_millis(300);

/// A client's tunnel, opened and not yet served.
#[derive(Debug)]
pub struct ClientTunnel {
    device: Device,
    config: TunIn,
}

/// The addresses that the server has given.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) mtu: u16,
    pub(super) places: Vec<Place>,
    /// What belongs to no conversation; also for what can have no flow of its own.
    pub(super) common: Arc<Queue>,
}

/// A flow of one conversation.
#[derive(Debug)]
struct Flow {
    queue: Arc<Queue>,
    used: Instant,
}

/// What the tasks of a client's tunnel have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) device: String,
    rules: Rules,
    pub(super) terms: Terms,
    pub(super) set_up: bool,
    kernel: mpsc::Sender<Bytes>,
    lease: Mutex<Option<Arc<Lease>>>,
    /// Who has the lease's addresses, as the server last said.
    standing: Mutex<Standing>,
    /// How [`Elsewhere`] is found out, by the tunnel's device, and what it was last.
    look: fn(&str) -> Elsewhere,
    elsewhere: Mutex<Arc<Elsewhere>>,
    strays: Strays,
}

/// What the server sent and this host's kernel did not get.
#[derive(Debug, Default)]
struct Strays {
    count: AtomicU64,
    lines: Seldom,
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
    pub fn serve<T: Tunnel>(self, tunnel: &T, tasks: &Tasks) -> View {
        let device = self.device.name().to_owned();
        let port = self.device.serve(tasks);
        let shared = Shared::new(device, self.config, port.outgoing.clone(), Elsewhere::read);
        Arc::clone(&shared).serve(port, tunnel, tasks);
        View(shared)
    }
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
            terms: Terms::new(config.routes),
            set_up: config.setup,
            kernel,
            lease: Mutex::default(),
            standing: Mutex::default(),
            look,
            elsewhere: Mutex::default(),
            strays: Strays::default(),
        })
    }

    /// Carries what `port` hands over, as tasks.
    pub(super) fn serve<T: Tunnel>(self: Arc<Self>, port: Port, tunnel: &T, tasks: &Tasks) {
        let (shared, its_tasks) = (Arc::clone(&self), tasks.clone());
        let its_tunnel = tunnel.clone();
        tasks.spawn(async move {
            let draining = its_tasks.clone();
            tokio::select! {
                () = draining.draining() => {}
                () = keep_lease(its_tunnel, shared, its_tasks) => {}
            }
        });
        let (tunnel, its_tasks) = (tunnel.clone(), tasks.clone());
        tasks.spawn(async move {
            let draining = its_tasks.clone();
            tokio::select! {
                () = draining.draining() => {}
                () = carry_out(port, tunnel, self, its_tasks) => {}
            }
        });
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

    fn elsewhere(&self) -> Arc<Elsewhere> {
        Arc::clone(&lock(&self.elsewhere))
    }

    /// Hands a packet from the server to the kernel, if it is for this host.
    async fn deliver(&self, message: Bytes) {
        let Some(lease) = self.lease() else {
            return;
        };
        let mut bytes = Vec::from(message);
        let packet = match Packet::parse(&bytes) {
            Ok(packet) => packet,
            Err(error) => return self.strays.drop("what is no packet", &error),
        };
        let verdict = self
            .terms
            .packet(&bytes, &packet, &lease.places, &self.elsewhere());
        if let Err(stray) = verdict {
            let (from, to) = (packet.source, packet.destination);
            return self
                .strays
                .drop(format_args!("a packet from {from} to {to}"), &stray);
        }
        clamp(&mut bytes, &packet, lease.mtu);
        // Without a reader the program is about to end.
        let _ = self.kernel.send(bytes.into()).await;
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
    fn owns(&self, address: IpAddr) -> bool {
        self.places.iter().any(|place| place.own.addr() == address)
    }

    /// The server's address of the family of `packet`.
    fn server(&self, packet: &Packet) -> Option<IpAddr> {
        let same = |place: &&Place| place.server.is_ipv4() == packet.source.is_ipv4();
        self.places.iter().find(same).map(|place| place.server)
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
        let options = FlowOptions {
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

/// Carries one flow both ways until either side ends it. A conversation's also ends when it is
/// quiet for long; if it can have no flow of its own, it shares that of `lease`.
pub(super) async fn carry<T: Tunnel>(
    tunnel: T,
    options: FlowOptions,
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
