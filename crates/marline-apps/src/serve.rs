//! What a server does with the flows of a client: hands each to what it is for.

use crate::destination::{Destination, LiveName, PortRole, Role, Target, TargetError};
use crate::live::{Frames, Media, Outlets};
use crate::measure::{self, Measures};
use crate::proxy::association;
use crate::proxy::places::Place;
use crate::proxy::ports::Port;
use crate::proxy::reply::Refusal;
use crate::proxy::server::{datagrams, refuse, stream};
use crate::proxy::{
    Accept, ByteFlow, FlowsByClient, Incoming, IncomingFlow, PacketFlow, Places, Ports, Targets,
    Tasks,
};
use crate::publish::{Publisher, Visits};
use crate::tun::{self, Hub, Visitor};
use std::sync::Arc;

/// What a server lets its clients do.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Which targets they may reach.
    pub targets: Targets,
    /// Where live flows end.
    pub live: Outlets,
    /// The tunnel, if there is one.
    pub tunnel: Option<Hub>,
    /// Ports that lead to services behind clients.
    pub publisher: Publisher,
    /// Flows that clients may have at a time.
    pub places: Places,
    /// Ports of their connections to targets.
    pub ports: Ports,
    /// Who measures what a path carries.
    pub measures: Measures,
    /// What runs their flows.
    pub flows: FlowsByClient,
}

/// Serves the flows of one session until it is over or the tasks drain.
pub async fn serve<A: Accept>(mut session: A, settings: Arc<ServerSettings>, tasks: Tasks) {
    let places = settings.places.clone();
    let peer = session.peer();
    let visitor = settings.tunnel.as_ref().zip(peer).map(|(hub, peer)| {
        hub.visitor(peer, session.session(), settings.targets.judge(Some(peer)))
    });
    let visitor = visitor.map(Arc::new);
    let finder = settings.targets.of(peer);
    let finding = finder.while_held();
    let flows = settings.flows.of(peer);
    loop {
        let incoming = tokio::select! {
            () = tasks.draining() => break,
            incoming = session.next_flow() => incoming,
        };
        let Some(Incoming { target, flow }) = incoming else {
            return;
        };
        let place = places.take(peer);
        let destination = Destination::decode(&target);
        if let Ok(Destination::Live(name)) = destination {
            let live = carry_live(flow, name, place, Arc::clone(&settings));
            flows.spawn(live);
            continue;
        }
        let (visitor, finder, draining) = (visitor.clone(), finder.clone(), tasks.clone());
        let places = places.clone();
        match (flow, destination) {
            (
                IncomingFlow::Stream(flow),
                Ok(Destination::Tunnel(role @ (Role::Lease { .. } | Role::Standing))),
            ) => {
                flows.spawn(tasks.track(async move {
                    // Of the second kind a session has one at most, which takes no place.
                    let _place = place.filter(|_| role != Role::Standing);
                    tokio::select! {
                        () = draining.draining() => {}
                        () = of_tunnel(flow, role, visitor.as_deref()) => {}
                    }
                }));
            }
            (
                IncomingFlow::Stream(flow),
                Ok(Destination::Port(role @ (PortRole::Ask | PortRole::AskLive(_)), port)),
            ) if place.is_some() => {
                let live = match role {
                    PortRole::AskLive(latency) => Some(latency),
                    _ => None,
                };
                let publisher = settings.publisher.clone();
                let visits = Visits {
                    client: peer,
                    tunnel: session.towards(),
                    flows: Arc::clone(&flows),
                    tasks: tasks.clone(),
                };
                flows.spawn(tasks.track(async move {
                    let _place = place;
                    tokio::select! {
                        () = draining.draining() => {}
                        () = publisher.serve(flow, port, live, visits) => {}
                    }
                }));
            }
            (IncomingFlow::Stream(flow), Ok(Destination::Measure(asked))) => {
                let measures = settings.measures.clone();
                flows.spawn(tasks.track(async move {
                    tokio::select! {
                        () = draining.draining() => {}
                        () = measure::serve(flow, asked, peer, place, &measures) => {}
                    }
                }));
            }
            (IncomingFlow::Stream(flow), destination) => {
                let port = || settings.ports.take(peer);
                match admit(destination, place, port) {
                    Ok((target, held)) => flows.spawn(tasks.track(async move {
                        stream(flow, target, held, &finder).await;
                    })),
                    // A client may have many more of these than of others: they hold little.
                    Err(refusal) => flows.spawn(tasks.track(refuse(flow, refusal))),
                }
            }
            (IncomingFlow::Packets(_), _) if place.is_none() => {
                tracing::debug!("a flow was refused: too many are open");
            }
            (IncomingFlow::Packets(flow), destination) => flows.spawn(tasks.track(async move {
                let _place = place;
                let carry = async {
                    match (destination, visitor.as_deref()) {
                        (Ok(Destination::Tunnel(role)), Some(visitor)) => {
                            visitor.carry(role, flow).await;
                        }
                        (Ok(Destination::Host(target)), _) => {
                            datagrams(flow, target, &finder).await;
                        }
                        // It has two sockets, and so a second place.
                        (Ok(Destination::Association), _) => match places.take(peer) {
                            Some(_place) => association::serve(flow, &finder).await,
                            // Not for want of knowing associations.
                            None => association::refuse(flow).await,
                        },
                        _ => tracing::debug!("a client asked for something that is no target"),
                    }
                };
                tokio::select! {
                    () = draining.draining() => {}
                    () = carry => {}
                }
            })),
            (IncomingFlow::Blocks(_) | IncomingFlow::Objects(_), _) => {
                tracing::debug!("a client opened a flow of units for no live entry");
            }
        }
    }
    // Streams go on until the session is over, those of new senders, too; nobody waits for that.
    tokio::spawn(async move {
        let _finding = finding;
        while let Some(Incoming { target, flow }) = session.next_flow().await {
            if let Ok(Destination::Live(name)) = Destination::decode(&target) {
                let place = places.take(peer);
                flows.spawn(carry_live(flow, name, place, Arc::clone(&settings)));
            }
        }
    });
}

/// The target that a stream asks for, with what a connection to it takes of the host.
fn admit(
    destination: Result<Destination, TargetError>,
    place: Option<Place>,
    port: impl FnOnce() -> Option<Port>,
) -> Result<(Target, (Place, Port)), Refusal> {
    let place = place.ok_or(Refusal::TooManyFlows)?;
    let Ok(Destination::Host(target)) = destination else {
        tracing::debug!("a client asked for something that is no target");
        return Err(Refusal::BadTarget);
    };
    Ok((target, (place, port().ok_or(Refusal::TooManyFlows)?)))
}

/// A stream to the tunnel: a client that asks for addresses, or who has them.
async fn of_tunnel<S: ByteFlow>(flow: S, role: Role, visitor: Option<&Visitor>) {
    match (role, visitor) {
        (Role::Lease { mtu, joined }, Some(visitor)) => visitor.lease(flow, mtu, joined).await,
        (Role::Lease { .. }, None) => {
            tun::refuse(flow, "it has no tunnel; start it with --tun").await;
        }
        (_, Some(visitor)) => visitor.tell_standing(flow).await,
        (_, None) => {}
    }
}

/// Carries the flow of a client's live entry. A stream has no end to wait for when the server
/// stops: it goes on until its session is over, so that its client knows what to send over the next
/// one.
async fn carry_live<S, P: PacketFlow>(
    flow: IncomingFlow<S, P>,
    name: LiveName,
    place: Option<Place>,
    settings: Arc<ServerSettings>,
) {
    match place {
        Some(_place) => live(flow, &name, &settings.live).await,
        None => tracing::debug!("a live flow was refused: too many are open"),
    }
}

async fn live<S, P: PacketFlow>(flow: IncomingFlow<S, P>, name: &LiveName, outlets: &Outlets) {
    match flow {
        IncomingFlow::Packets(flow) => outlets.carry(name, flow).await,
        IncomingFlow::Blocks(flow) => outlets.carry(name, Frames::new(flow, None)).await,
        IncomingFlow::Objects(flow) => {
            let lifetime = flow.lifetime();
            outlets.carry(name, Media::new(flow, lifetime)).await;
        }
        IncomingFlow::Stream(_) => tracing::debug!("a client opened a stream for a live entry"),
    }
}
