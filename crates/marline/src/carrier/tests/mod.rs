//! Carriers over real sockets on loopback.

mod crowds;
mod datagrams;
mod join;
mod nat;
mod open;
mod race;
mod sizes;
mod strangers;
mod tcp;
#[cfg(target_os = "linux")]
mod workers;

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use marline_base::Rng;
use marline_proto::wire::PathId;
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::handshake::SessionKey;
use super::{
    Attempt, Carrier, CarrierChoice, CarrierEnd, CarrierKind, Dial, Dialled, ListenConfig,
    Listener, Opened, PathCarrier, SendError, link::Link, quic::Connection,
};
use crate::identity::{AllowList, Identity, PublicKey};

/// Any port of loopback.
pub(crate) const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Longer than anything here takes; a test that waits this long has failed.
const LIMIT: Duration = Duration::from_secs(30);

/// A server and a client that it lets in.
struct Hosts {
    listener: Listener,
    server: PublicKey,
    addr: SocketAddr,
    client: Identity,
}

impl Hosts {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ListenConfig)) -> Self {
        let client = Identity::generate().unwrap();
        let allowed = AllowList::from_keys([client.public_key()]);
        Self::with_allowed(client, allowed, change)
    }

    fn with_allowed(
        client: Identity,
        allowed: AllowList,
        change: impl FnOnce(&mut ListenConfig),
    ) -> Self {
        let identity = Identity::generate().unwrap();
        let mut config = ListenConfig::new(vec![LOOPBACK]);
        change(&mut config);
        let listener = Listener::bind(config, &identity, allowed).unwrap();
        Self {
            addr: listener.local_addrs()[0],
            server: identity.public_key(),
            listener,
            client,
        }
    }

    fn dial(&self) -> Dial {
        Dial {
            timeout: LIMIT,
            carrier: CarrierChoice::Quic,
            ..Dial::new(self.addr, self.server)
        }
    }

    fn dial_tcp(&self) -> Dial {
        Dial {
            carrier: CarrierChoice::Tcp,
            ..self.dial()
        }
    }

    /// A new session by this dial: the client's end, the server's end and the server's key.
    async fn open(&mut self, dial: &Dial) -> (Opened, PathCarrier, SessionKey) {
        let client = async {
            let dialled = dial.connect(&self.client).await.unwrap();
            let params = Bytes::from_static(b"client");
            dialled.open(PathId(0), params).await.unwrap()
        };
        let server = async {
            let Attempt::New(attempt) = self.listener.accept().await else {
                panic!("not a new session");
            };
            attempt.accept(Bytes::from_static(b"server")).unwrap()
        };
        let (opened, (carrier, key)) = soon(async { tokio::join!(client, server) }).await;
        (opened, carrier, key)
    }

    /// One more path of a session: the client's end and the server's.
    async fn join(
        &mut self,
        dial: &Dial,
        key: &SessionKey,
        path: PathId,
    ) -> (PathCarrier, PathCarrier) {
        let client = async {
            let dialled = dial.connect(&self.client).await.unwrap();
            dialled.join(key, path).await.unwrap()
        };
        let server = async {
            let Attempt::Join(attempt) = self.listener.accept().await else {
                panic!("not a further path");
            };
            assert_eq!(attempt.path(), path);
            assert_eq!(attempt.session(), key.session());
            attempt.accept(key).unwrap()
        };
        soon(async { tokio::join!(client, server) }).await
    }
}

/// The QUIC connection that was dialled.
fn quic(dialled: &Dialled) -> &Connection {
    match &dialled.link {
        Link::Quic(link) => &link.connection,
        Link::Tcp(_) => panic!("that is TCP"),
    }
}

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future)
        .await
        .expect("it should have happened by now")
}

/// The next datagrams, at least one.
async fn recv(carrier: &mut dyn Carrier) -> Result<Vec<Bytes>, CarrierEnd> {
    let mut out = Vec::new();
    poll_fn(|cx| carrier.poll_recv(cx, &mut out, 64)).await?;
    Ok(out)
}

/// Sends one datagram, waiting for room.
async fn send(carrier: &mut dyn Carrier, datagram: Bytes) {
    let mut datagram = datagram;
    loop {
        match carrier.send(datagram) {
            Ok(()) => return poll_fn(|cx| carrier.poll_flush(cx)).await,
            Err(SendError::Full(back)) => datagram = back,
            Err(error) => panic!("{error}"),
        }
        poll_fn(|cx| carrier.poll_writable(cx)).await;
    }
}

/// The same, while the other end of the path is attended to, as its session does: a carrier answers
/// its peer only when it is polled. What that end receives is dropped.
async fn recv_from(
    carrier: &mut dyn Carrier,
    other: &mut dyn Carrier,
) -> Result<Vec<Bytes>, CarrierEnd> {
    let attended = poll_fn(|cx| {
        let mut dropped = Vec::new();
        while let Poll::Ready(Ok(_)) = other.poll_recv(cx, &mut dropped, 64) {}
        let _ = other.poll_flush(cx);
        Poll::Pending
    });
    tokio::select! {
        got = recv(carrier) => got,
        never = attended => never,
    }
}

/// One datagram there and one back.
async fn ping_pong(one: &mut dyn Carrier, other: &mut dyn Carrier) {
    for (from, to) in [(&mut *one, &mut *other)] {
        send(from, Bytes::from_static(b"ping")).await;
        assert_eq!(soon(recv_from(to, from)).await.unwrap(), ["ping"]);
        send(to, Bytes::from_static(b"pong")).await;
        assert_eq!(soon(recv_from(from, to)).await.unwrap(), ["pong"]);
    }
}

/// A relay of UDP datagrams between one client and a server: a NAT, and a bad link.
pub(crate) struct Relay {
    /// Where the client sends to.
    pub(crate) addr: SocketAddr,
    rebind: watch::Sender<u32>,
    loss: Arc<Mutex<f64>>,
    /// Longest datagrams (bytes) that pass, towards the server and back.
    longest: Arc<[AtomicUsize; 2]>,
    task: JoinHandle<()>,
}

impl Relay {
    pub(crate) async fn start(server: SocketAddr, seed: u64) -> Self {
        let inside = UdpSocket::bind(LOOPBACK).await.unwrap();
        let addr = inside.local_addr().unwrap();
        let (rebind, mut rebinds) = watch::channel(0);
        let loss = Arc::new(Mutex::new(0.0));
        let dice = Arc::clone(&loss);
        let longest = Arc::new([const { AtomicUsize::new(usize::MAX) }; 2]);
        let gauge = Arc::clone(&longest);
        let task = tokio::spawn(async move {
            let mut rng = Rng::new(seed);
            let mut outside = UdpSocket::bind(LOOPBACK).await.unwrap();
            let mut client = None;
            let (mut there, mut back) = (vec![0; 65536], vec![0; 65536]);
            loop {
                tokio::select! {
                    Ok((len, from)) = inside.recv_from(&mut there) => {
                        client = Some(from);
                        let chance = *dice.lock().unwrap();
                        let fits = len <= gauge[0].load(Ordering::Relaxed);
                        if fits && !rng.chance(chance) {
                            let _ = outside.send_to(&there[..len], server).await;
                        }
                    }
                    Ok((len, _)) = outside.recv_from(&mut back) => {
                        let chance = *dice.lock().unwrap();
                        let fits = len <= gauge[1].load(Ordering::Relaxed);
                        if let Some(client) = client && fits && !rng.chance(chance) {
                            let _ = inside.send_to(&back[..len], client).await;
                        }
                    }
                    Ok(()) = rebinds.changed() => {
                        outside = UdpSocket::bind(LOOPBACK).await.unwrap();
                    }
                }
            }
        });
        Self {
            addr,
            rebind,
            loss,
            longest,
            task,
        }
    }

    /// Gives the client another outside address from now on.
    fn rebind(&self) {
        self.rebind.send_modify(|count| *count += 1);
    }

    /// Longer datagrams (bytes) vanish from now on, towards the server and back.
    pub(crate) fn narrow(&self, there: usize, back: usize) {
        self.longest[0].store(there, Ordering::Relaxed);
        self.longest[1].store(back, Ordering::Relaxed);
    }

    fn set_loss(&self, chance: f64) {
        *self.loss.lock().unwrap() = chance;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}
