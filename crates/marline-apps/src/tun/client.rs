//! The client's side: asks for addresses, and gives every conversation of this host a flow.

use super::ack;
use super::carry::{Conversation, carry};
use super::elsewhere::Elsewhere;
use super::icmp::{Refusal, answer};
use super::joined::Message;
use super::key::Key;
use super::lease::keep_lease;
use super::mss::clamped;
use super::packet::TCP;
use super::queue::Queue;
use super::shared::Shared;
use super::view::View;
use super::{Device, FLOW_QUEUE, Port, Strict, TunnelError};
use crate::destination::Role;
use crate::proxy::{Tasks, Tunnel};
use crate::tun::{ClientSetup, TunIn};
use marline_proto::FlowOptions;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Most conversations with a flow of their own: half of the flows that a server allows a client by
/// default, so that its proxies have some too. The one that has been quiet longest makes room for a
/// new one, if it was quiet for [`ANSWERED`]; else new ones share the common flow.
const MAX_FLOWS: usize = 512;
/// Quiet after which no answer is awaited any more: resolvers ask again after 5 s
/// (resolv.conf(5)), and that one's answer may take another satellite's round trip.
const ANSWERED: Duration = Duration::from_secs(10);

/// A client's tunnel, opened and not yet served.
#[derive(Debug)]
pub struct ClientTunnel {
    device: Device,
    config: TunIn,
    strict: Option<Strict>,
}

/// A flow of one conversation.
#[derive(Debug)]
struct Flow {
    queue: Arc<Queue>,
    used: Instant,
}

impl ClientTunnel {
    /// Opens the device. From here on nothing leaves in the clear, if that is asked for.
    ///
    /// # Errors
    /// The device, or the table that lets nothing out.
    pub fn open(config: &TunIn) -> Result<Self, TunnelError> {
        let strict = match config.setup {
            ClientSetup { strict: true, .. } => Some(Strict::begin(&config.device)?),
            ClientSetup { on: true, .. } => {
                // Of a run that was killed.
                Strict::clear(&config.device);
                None
            }
            _ => None,
        };
        Ok(ClientTunnel {
            device: Device::open(&config.device)?,
            config: config.clone(),
            strict,
        })
    }

    /// Carries this host's packets over `tunnel`, as tasks.
    pub fn serve<T: Tunnel>(self, tunnel: &T, tasks: &Tasks) -> View {
        let device = self.device.name().to_owned();
        if let Some(strict) = self.strict {
            let draining = tasks.clone();
            tasks.spawn(async move { strict.keep(draining.draining()).await });
        }
        let port = self.device.serve(tasks);
        let shared = Shared::new(device, self.config, port.outgoing.clone(), Elsewhere::read);
        serve(Arc::clone(&shared), port, tunnel, tasks);
        View(shared)
    }
}

/// Carries what `port` hands over, as tasks.
pub(super) fn serve<T: Tunnel>(shared: Arc<Shared>, port: Port, tunnel: &T, tasks: &Tasks) {
    let its_shared = Arc::clone(&shared);
    tasks.spawn_until_drained(keep_lease(tunnel.clone(), its_shared, tasks.clone()));
    tasks.spawn_until_drained(carry_out(port, tunnel.clone(), shared, tasks.clone()));
}

/// Carries what the kernel hands over.
async fn carry_out<T: Tunnel>(mut port: Port, tunnel: T, shared: Arc<Shared>, tasks: Tasks) {
    let mut flows: HashMap<(Key, Option<usize>), Flow> = HashMap::new();
    let mut crowded = false;
    let mut messages = Vec::new();
    while let Some(bytes) = port.incoming.recv().await {
        let Some(lease) = shared.lease() else {
            continue;
        };
        let Ok(message) = Message::parse(&bytes) else {
            continue;
        };
        let packet = message.packet;
        if !lease.owns(packet.source) && !shared.terms.announces(packet.source) {
            shared.strangers.say(packet.source);
            continue;
        }
        let mtu = lease.mtu.get();
        if packet.dont_fragment && message.largest(&bytes) > usize::from(mtu) {
            let from = lease.server(&packet);
            let refusal = Refusal::TooBig(mtu);
            if let Some(told) =
                from.and_then(|from| answer(message.packet(&bytes), &packet, from, refusal))
            {
                let _ = shared.kernel.try_send(told.into());
            }
            continue;
        }
        let bytes = clamped(bytes, &packet, mtu);
        let rule = shared.rules.find(&packet);
        let key = (Key::of(&packet), rule);
        let now = Instant::now();
        let is_free = rule.is_none() && !message.is_joined() && ack::is_pure(&bytes, &packet);
        message.send(bytes, lease.joined, &mut messages);
        if let Some(flow) = flows.get_mut(&key).filter(|flow| !flow.queue.is_closed()) {
            flow.used = now;
            // What a rule is for is carried as it says. Without a flow, an acknowledgement opens
            // one: it shows the server where the other direction's packets belong.
            let queue = match is_free && !lease.common.is_closed() {
                true => &lease.common,
                false => &flow.queue,
            };
            queue.push_all(messages.drain(..));
            continue;
        }
        if !make_room(&mut flows) {
            if !std::mem::replace(&mut crowded, true) {
                tracing::info!(
                    "tunnel {}: {MAX_FLOWS} conversations have a flow of their own, and more share one",
                    shared.device
                );
            }
            lease.common.push_all(messages.drain(..));
            continue;
        }
        let queue = Arc::new(Queue::new());
        queue.push_all(messages.drain(..));
        let options = FlowOptions {
            queue: Some(FLOW_QUEUE),
            ..shared
                .rules
                .options(rule, &packet, Role::Conversation.encode())
        };
        let (its_queue, lease) = (Arc::clone(&queue), Arc::clone(&lease));
        tasks.spawn_until_drained(carry(
            tunnel.clone(),
            options,
            its_queue,
            Arc::clone(&shared),
            Some(Conversation {
                lease,
                is_tcp: packet.protocol == TCP,
                asks: key.0.is_question(),
            }),
        ));
        flows.insert(key, Flow { queue, used: now });
    }
}

/// Is there room for one more flow now?
fn make_room<K: std::hash::Hash + Eq + Copy>(flows: &mut HashMap<K, Flow>) -> bool {
    if flows.len() < MAX_FLOWS {
        return true;
    }
    flows.retain(|_, flow| !flow.queue.is_closed());
    if flows.len() < MAX_FLOWS {
        return true;
    }
    let quietest = flows.iter().min_by_key(|(_, flow)| flow.used);
    let quiet = quietest.filter(|(_, flow)| flow.used.elapsed() >= ANSWERED);
    let Some(key) = quiet.map(|(key, _)| *key) else {
        return false;
    };
    if let Some(flow) = flows.remove(&key) {
        flow.queue.close();
    }
    true
}
