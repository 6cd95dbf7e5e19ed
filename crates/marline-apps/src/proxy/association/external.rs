//! The server's end of an association: one socket of each address family, from which all its
//! datagrams leave.

use super::super::associations::send;
use super::super::find::Find;
use super::super::idle::Idle;
use super::super::reply::Refusal;
use super::super::udp::{MAX_DATAGRAM, pause_after, roomy};
use super::super::{PacketFlow, Protocol, Target};
use super::contacts::{Contacts, QUIET, State};
use super::message::{decode, encode};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use marline::support::lock;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Mutex;
use tokio::net::UdpSocket;

/// Destinations of an association that are looked up at a time; datagrams to more are dropped.
/// Names are what takes time, and a program begins with few.
const MOST_SOUGHT: usize = 16;
/// Bytes of datagrams that wait for their destinations to be found; more are dropped. A choice: a
/// burst of full datagrams to a new destination.
const MOST_WAITING: usize = 64 << 10;

/// Its sockets. A host need not have both families.
struct Sockets {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl Sockets {
    async fn bind() -> io::Result<Self> {
        let v4 = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await;
        let v6 = v6_only();
        let sockets = match (v4, v6) {
            (Err(error), Err(_)) => return Err(error),
            (v4, v6) => Sockets {
                v4: v4.ok(),
                v6: v6.ok(),
            },
        };
        sockets.v4.iter().chain(&sockets.v6).for_each(roomy);
        Ok(sockets)
    }

    fn to(&self, address: SocketAddr) -> Option<&UdpSocket> {
        match address {
            SocketAddr::V4(_) => self.v4.as_ref(),
            SocketAddr::V6(_) => self.v6.as_ref(),
        }
    }

    async fn send(&self, address: SocketAddr, payload: &[u8]) {
        let Some(socket) = self.to(address) else {
            return;
        };
        if let Err(error) = socket.send_to(payload, address).await {
            tracing::trace!(%error, "a datagram could not be sent");
        }
    }
}

fn v6_only() -> io::Result<UdpSocket> {
    let socket = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::DGRAM, None)?;
    socket.set_only_v6(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)).into())?;
    UdpSocket::from_std(socket.into())
}

/// Carries the datagrams of an association, until either side ends it or it has been quiet for
/// long.
pub(crate) async fn serve<P: PacketFlow>(flow: P, finder: &impl Find) {
    let sockets = match Sockets::bind().await {
        Ok(sockets) => sockets,
        Err(error) => {
            tracing::debug!(%error, "no socket for an association");
            return refuse(flow).await;
        }
    };
    let (contacts, idle) = (Mutex::new(Contacts::default()), Idle::new(QUIET));
    let receive = async |socket: &Option<UdpSocket>| match socket {
        Some(socket) => receive(&flow, socket, &contacts, &idle).await,
        None => std::future::pending().await,
    };
    let carried = async {
        // It says that this server knows associations.
        send(&flow, Bytes::new()).await?;
        tokio::select! {
            () = pass_on(&flow, &sockets, &contacts, &idle, finder) => Ok(()),
            result = receive(&sockets.v4) => result,
            result = receive(&sockets.v6) => result,
            () = idle.expired() => Ok(()),
        }
    };
    if let Err(error) = carried.await {
        tracing::debug!(%error, "an association ended early");
    }
}

/// Says that this server knows associations, and that it has no room for one more.
pub(crate) async fn refuse<P: PacketFlow>(flow: P) {
    tracing::debug!("an association was refused: too many flows are open");
    let _ = send(&flow, Bytes::new()).await;
}

/// Hands over to the program what comes from those that it has sent to.
async fn receive<P: PacketFlow>(
    flow: &P,
    socket: &UdpSocket,
    contacts: &Mutex<Contacts>,
    idle: &Idle,
) -> io::Result<()> {
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        let (length, from) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                pause_after(error).await;
                continue;
            }
        };
        let Some(host) = lock(contacts).heard(from) else {
            tracing::trace!(%from, "a stranger's datagram was dropped");
            continue;
        };
        idle.touch();
        send(flow, encode(&host, from.port(), &buffer[..length])).await?;
    }
}

/// Passes on what the program sends; ends with the flow.
async fn pass_on<P: PacketFlow>(
    flow: &P,
    sockets: &Sockets,
    contacts: &Mutex<Contacts>,
    idle: &Idle,
    finder: &impl Find,
) {
    let mut sought = FuturesUnordered::new();
    let mut waiting = Waiting::default();
    loop {
        let (target, found) = tokio::select! {
            message = flow.recv() => {
                let Some(message) = message else {
                    return;
                };
                idle.touch();
                let Some((target, payload)) = decode(&message) else {
                    tracing::debug!("a client sent something that goes nowhere");
                    continue;
                };
                let state = lock(contacts).state(&target);
                match state {
                    State::At(at) if finder.still_allows(&target, at) => {
                        lock(contacts).sent(&target, at);
                        sockets.send(at, &payload).await;
                    }
                    State::At(_) => lock(contacts).refused(&target),
                    State::Refused => {}
                    State::New => {
                        if waiting.push(&target, payload) {
                            sought.push(seek(target, sockets, finder));
                        }
                    }
                }
                continue;
            }
            Some(found) = sought.next() => found,
        };
        let datagrams = waiting.take(&target);
        let Ok(at) = found else {
            lock(contacts).refused(&target);
            continue;
        };
        lock(contacts).sent(&target, at);
        for payload in datagrams {
            sockets.send(at, &payload).await;
        }
    }
}

/// Where a target is, of the addresses that may be reached and that there is a socket for.
async fn seek(
    target: Target,
    sockets: &Sockets,
    finder: &impl Find,
) -> (Target, Result<SocketAddr, Refusal>) {
    let found = finder.find(&target, Protocol::Udp).await;
    let found = found.and_then(|addresses| {
        let reached = |address: &SocketAddr| sockets.to(*address).is_some();
        let found = addresses.into_iter().find(reached);
        found.ok_or(Refusal::NetworkUnreachable)
    });
    (target, found)
}

/// Datagrams whose destinations are looked up.
#[derive(Debug, Default)]
struct Waiting {
    datagrams: HashMap<Target, Vec<Bytes>>,
    bytes: usize,
}

impl Waiting {
    /// Keeps a datagram, if there is room. True if its destination is to be looked up.
    fn push(&mut self, target: &Target, payload: Bytes) -> bool {
        let is_new = !self.datagrams.contains_key(target);
        let crowded = is_new && self.datagrams.len() >= MOST_SOUGHT;
        // An empty one is kept, too.
        let cost = payload.len().max(size_of::<Bytes>());
        if crowded || self.bytes + cost > MOST_WAITING && !self.datagrams.is_empty() {
            tracing::debug!(%target, "a datagram was dropped: too many wait for their destinations");
            return false;
        }
        self.bytes += cost;
        let payloads = self.datagrams.entry(target.clone()).or_default();
        payloads.push(payload);
        is_new
    }

    fn take(&mut self, target: &Target) -> Vec<Bytes> {
        let payloads = self.datagrams.remove(target).unwrap_or_default();
        let cost = |payload: &Bytes| payload.len().max(size_of::<Bytes>());
        self.bytes -= payloads.iter().map(cost).sum::<usize>();
        payloads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(number: usize) -> Target {
        Target::parse(Protocol::Udp, &format!("n{number}.example:1")).unwrap()
    }

    #[test]
    fn what_waits_for_its_destinations_is_bounded() {
        let mut waiting = Waiting::default();
        let small = || Bytes::from_static(b"small");
        for number in 0..MOST_SOUGHT {
            assert!(waiting.push(&target(number), small()));
        }
        assert!(
            !waiting.push(&target(MOST_SOUGHT), small()),
            "too many destinations"
        );
        assert_eq!(waiting.datagrams.len(), MOST_SOUGHT);
        for _ in 0..MOST_WAITING {
            assert!(
                !waiting.push(&target(0), Bytes::new()),
                "it is looked up already"
            );
        }
        assert!(waiting.bytes <= MOST_WAITING);
        let kept: usize = (0..MOST_SOUGHT)
            .map(|number| waiting.take(&target(number)).len())
            .sum();
        assert!(kept <= MOST_WAITING / size_of::<Bytes>());
        assert_eq!(waiting.bytes, 0);
        // One of any size is kept.
        assert!(waiting.push(&target(0), vec![0; MAX_DATAGRAM + 1].into()));
        assert!(!waiting.push(&target(1), small()));
    }
}
