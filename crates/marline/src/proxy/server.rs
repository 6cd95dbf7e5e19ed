//! The server's side: takes flows, judges their targets, resolves names, connects, relays.

use super::associations::send;
use super::idle::Idle;
use super::places::Place;
use super::relay::{ResetOnDrop, relay};
use super::reply::{self, Refusal};
use super::resolve::{Finder, Targets};
use super::udp::{MAX_DATAGRAM, hand_over, roomy};
use super::{
    Accept, ByteFlow, Incoming, IncomingFlow, PacketFlow, Places, Protocol, Target, Tasks,
};
use crate::live::{Frames, LiveName, Media, Outlets};
use crate::tun::{self, Hub, Role, Visitor};
use bytes::Bytes;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// How long all addresses of a target together may take to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// How long one address may take while there are others.
const CONNECT_ONE: Duration = Duration::from_secs(3);
/// How long a refused client may take to close its end.
const REFUSED: Duration = Duration::from_secs(5);
/// A UDP flow without a datagram in either direction for this long is closed; longer than the client's own limit.
const UDP_IDLE: Duration = Duration::from_secs(150);

/// What a server lets its clients do.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Which targets they may reach.
    pub targets: Targets,
    /// Where live flows end.
    pub live: Outlets,
    /// The tunnel, if there is one.
    pub tunnel: Option<Hub>,
    /// Flows that clients may have at a time.
    pub places: Places,
}

/// Serves the flows of one session until it is over or the tasks drain.
pub async fn serve<A: Accept>(mut session: A, settings: Arc<ServerSettings>, tasks: Tasks) {
    let places = settings.places.clone();
    let peer = session.peer();
    let visitor = settings
        .tunnel
        .as_ref()
        .zip(peer)
        .map(|(hub, peer)| hub.visitor(peer, session.session()));
    let visitor = visitor.map(Arc::new);
    let finder = settings.targets.of(peer);
    let finding = finder.while_held();
    loop {
        let incoming = tokio::select! {
            () = tasks.draining() => break,
            incoming = session.accept() => incoming,
        };
        let Some(Incoming { target, flow }) = incoming else {
            return;
        };
        let place = places.take(peer);
        let settings = Arc::clone(&settings);
        if let Some(name) = LiveName::decode(&target) {
            spawn_live(flow, name, place, settings);
            continue;
        }
        let (visitor, finder) = (visitor.clone(), finder.clone());
        let draining = tasks.clone();
        tasks.spawn(async move {
            let place = place.ok_or(Refusal::TooManyFlows);
            let role = Role::decode(&target);
            match flow {
                IncomingFlow::Stream(flow) if matches!(role, Some(Role::Lease { .. })) => {
                    tokio::select! {
                        () = draining.draining() => {}
                        () = lease(flow, role, visitor.as_deref()) => {}
                    }
                }
                IncomingFlow::Stream(flow) if role == Some(Role::Standing) => {
                    // A session has one at most.
                    drop(place);
                    if let Some(visitor) = visitor {
                        tokio::select! {
                            () = draining.draining() => {}
                            () = visitor.tell_standing(flow) => {}
                        }
                    }
                }
                IncomingFlow::Stream(flow) => {
                    let target = place.as_ref().map_err(|refusal| *refusal).map(|_| target);
                    stream(flow, target, &finder).await;
                }
                IncomingFlow::Packets(flow) if place.is_ok() => {
                    tokio::select! {
                        () = draining.draining() => {}
                        () = packets(flow, &target, &finder, visitor.as_deref()) => {}
                    }
                }
                IncomingFlow::Packets(_) => {
                    tracing::debug!("a flow was refused: too many are open")
                }
                IncomingFlow::Blocks(_) | IncomingFlow::Objects(_) => {
                    tracing::debug!("a client opened a flow of units for no live entry")
                }
            }
        });
    }
    // Streams go on until the session is over, those of new senders, too; nobody waits for that.
    tokio::spawn(async move {
        let _finding = finding;
        while let Some(Incoming { target, flow }) = session.accept().await {
            if let Some(name) = LiveName::decode(&target) {
                spawn_live(flow, name, places.take(peer), Arc::clone(&settings));
            }
        }
    });
}

/// Carries the flow of a client's live entry. A stream has no end to wait for when the server stops: it goes on until its
/// session is over, so that its client knows what to send over the next one.
fn spawn_live<S: Send + 'static, P: PacketFlow>(
    flow: IncomingFlow<S, P>,
    name: LiveName,
    place: Option<Place>,
    settings: Arc<ServerSettings>,
) {
    tokio::spawn(async move {
        match place {
            Some(_place) => live(flow, &name, &settings.live).await,
            None => tracing::debug!("a live flow was refused: too many are open"),
        }
    });
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

async fn stream<S>(mut flow: S, target: Result<Bytes, Refusal>, finder: &Finder)
where
    S: ByteFlow,
{
    let connecting = async {
        let (target, addresses) = finder.find(&target?, Protocol::Tcp).await?;
        connect(&target, &addresses, finder).await
    };
    let connected = tokio::select! {
        connected = connecting => connected,
        () = poll_fn(|cx| flow.poll_given_up(cx)) => return,
    };
    let result = match connected {
        Ok((connection, bound)) => answer_and_relay(flow, connection, bound).await,
        Err(refusal) => refuse(flow, refusal).await,
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a stream ended early");
    }
}

async fn refuse<S>(mut flow: S, refusal: Refusal) -> io::Result<()>
where
    S: ByteFlow,
{
    flow.write_all(&reply::encode(Err(refusal))).await?;
    flow.shutdown().await?;
    // Dropped now, the flow would be reset, and the reset might overtake the answer.
    let mut ignored = tokio::io::sink();
    let gone = tokio::io::copy(&mut flow, &mut ignored);
    let _ = timeout(REFUSED, gone).await;
    Ok(())
}

async fn answer_and_relay<S>(
    mut flow: S,
    connection: ResetOnDrop,
    bound: SocketAddr,
) -> io::Result<()>
where
    S: ByteFlow,
{
    flow.write_all(&reply::encode(Ok(bound))).await?;
    // What the target says is another object.
    flow.flush().await?;
    relay(connection, &mut flow).await?;
    Ok(())
}

/// Connects to the first of `addresses` that answers.
async fn connect(
    target: &Target,
    addresses: &[SocketAddr],
    finder: &Finder,
) -> Result<(ResetOnDrop, SocketAddr), Refusal> {
    let attempts = async {
        let mut refusal = Refusal::Failed;
        for (index, address) in addresses.iter().enumerate() {
            let patience = if index + 1 == addresses.len() {
                CONNECT
            } else {
                CONNECT_ONE
            };
            match timeout(patience, TcpStream::connect(address)).await {
                // Become one of this host meanwhile, it was answered by a service of this host.
                Ok(Ok(_)) if !finder.allows(target, *address) => refusal = Refusal::NotAllowed,
                Ok(Ok(connection)) => {
                    let bound = connection.local_addr().map_err(|_| Refusal::Failed)?;
                    return Ok((
                        ResetOnDrop::new(connection).map_err(|_| Refusal::Failed)?,
                        bound,
                    ));
                }
                Ok(Err(error)) => {
                    tracing::debug!(%target, %address, %error, "cannot connect");
                    refusal = Refusal::of_connect(&error);
                }
                Err(_) => refusal = Refusal::TimedOut,
            }
        }
        Err(refusal)
    };
    timeout(CONNECT, attempts)
        .await
        .unwrap_or(Err(Refusal::TimedOut))
}

/// Answers a client that asks for addresses in the tunnel.
async fn lease<S>(flow: S, role: Option<Role>, visitor: Option<&Visitor>)
where
    S: ByteFlow,
{
    match (role, visitor) {
        (Some(Role::Lease { mtu }), Some(visitor)) => visitor.lease(flow, mtu).await,
        _ => tun::refuse(flow, "it has no tunnel; start it with --tun").await,
    }
}

async fn packets<P: PacketFlow>(
    flow: P,
    target: &[u8],
    finder: &Finder,
    visitor: Option<&Visitor>,
) {
    if let (Some(role), Some(visitor)) = (Role::decode(target), visitor) {
        return visitor.carry(role, flow).await;
    }
    // A flow of messages has no first answer: refused ones are closed, and the reason is in the log.
    let Ok((target, addresses)) = finder.find(target, Protocol::Udp).await else {
        return;
    };
    let Some(address) = addresses.first() else {
        return;
    };
    let allowed = || finder.still_allows(&target, *address);
    if let Err(error) = exchange(&flow, *address, allowed).await {
        tracing::debug!(%target, %error, "a flow of datagrams ended early");
    }
}

/// Carries datagrams both ways for as long as they are `allowed`: the address may become one of
/// this host.
async fn exchange<P: PacketFlow>(
    flow: &P,
    address: SocketAddr,
    allowed: impl Fn() -> bool,
) -> io::Result<()> {
    let any: IpAddr = match address.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    // Connected: the kernel drops what comes from anybody else.
    socket.connect(address).await?;
    roomy(&socket);
    let idle = Idle::new(UDP_IDLE);
    let outgoing = async {
        while let Some(message) = flow.recv().await {
            idle.touch();
            if !allowed() {
                break;
            }
            if let Err(error) = hand_over(&socket, &message).await {
                tracing::trace!(%error, "a datagram could not be sent");
            }
        }
        io::Result::Ok(())
    };
    let incoming = async {
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            match socket.recv(&mut buffer).await {
                Ok(length) => {
                    idle.touch();
                    send(flow, Bytes::copy_from_slice(&buffer[..length])).await?;
                }
                // An ICMP error about an earlier datagram; later ones may arrive.
                Err(error) => {
                    tracing::trace!(%error, "a datagram was not delivered");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        }
    };
    tokio::select! {
        result = outgoing => result,
        result = incoming => result,
        () = idle.expired() => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::resolve::tests::targets;
    use super::*;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
    use tokio::time::{Instant, Sleep, sleep};

    /// A flow that its client resets after a while.
    struct ResetAfter(Pin<Box<Sleep>>);

    impl ByteFlow for ResetAfter {
        fn poll_given_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            self.0.as_mut().poll(cx)
        }
    }

    impl AsyncRead for ResetAfter {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for ResetAfter {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reset_flow_waits_for_no_name() {
        let (targets, _) = targets(&[]);
        let target = Target::parse(Protocol::Tcp, "a.silent:80").unwrap();
        let after = Duration::from_millis(100);
        let start = Instant::now();
        let flow = ResetAfter(Box::pin(sleep(after)));
        stream(flow, Ok(target.encode()), &targets.of(None)).await;
        assert_eq!(start.elapsed(), after);
    }
}
