use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use quinn_proto::{ServerConfig, VarInt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::attempt::Attempt;
use super::batches::Singly;
use super::greet::{QuicHandshake, Rejected, TcpHandshake};
use super::listen_config::{BALANCES, ListenConfig};
use super::quic::{Incoming, ServerEndpoint, Socket, Worker};
use super::strangers::{Strangers, Turn};
use super::{ConfigError, MAX_CLOSE_REASON, SocketError, cut, serving, tls};
use crate::identity::{AllowList, Identity};
use crate::support::accept::PatientListener;
use crate::support::seldom::Seldom;

/// Bytes kept for one connection attempt that waits to be looked at, and for all of them.
const WAITING_BYTES: u64 = 16 << 10;
const ALL_WAITING_BYTES: u64 = 1 << 20;

/// TCP connections taken in before those that have to give way to them have had a turn to go.
const TAKEN_AT_ONCE: usize = 16;

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// No address was given.
    #[error("no address to listen at was given")]
    NoAddress,
    /// A socket cannot be opened.
    #[error("cannot listen at {addr}: {source}")]
    Socket {
        /// The address.
        addr: SocketAddr,
        /// What is wrong.
        source: SocketError,
    },
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The server's key or TLS set-up does not work.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

/// A server's sockets. Connections go through their handshake within it, many at a time; what
/// [`accept`](Self::accept) yields has proved a listed key and asked for something well-formed.
pub struct Listener {
    endpoints: Vec<ServerEndpoint>,
    local_addrs: Vec<SocketAddr>,
    tcp: Vec<PatientListener>,
    server: ServerConfig,
    tls: Arc<rustls::ServerConfig>,
    handshakes: JoinSet<Result<Attempt, Rejected>>,
    strangers: Arc<Strangers>,
    /// The clients to which packets are sent one by one.
    singly: Singly,
    allowed: AllowList,
    config: ListenConfig,
    log: Seldom,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("local_addrs", &self.local_addrs())
            .field("handshakes", &self.handshakes.len())
            .finish_non_exhaustive()
    }
}

impl Listener {
    /// Opens the sockets. Needs a tokio runtime, which answers clients and takes TCP connections
    /// in.
    ///
    /// # Errors
    /// A socket that cannot be opened, or a value that is out of range.
    pub fn bind(
        config: ListenConfig,
        identity: &Identity,
        allowed: AllowList,
    ) -> Result<Self, ListenError> {
        if config.addresses.is_empty() {
            return Err(ListenError::NoAddress);
        }
        let crypto = tls::server(identity).map_err(|error| ListenError::Tls(error.to_string()))?;
        let workers = workers(&config);
        // What waits to be looked at is bounded for all workers together.
        let sharers = workers.len() as u64;
        let mut server = ServerConfig::with_crypto(Arc::new(crypto));
        server
            .transport_config(
                config
                    .quic
                    .transport(config.addresses[0], &Singly::default())?,
            )
            .max_incoming((config.max_half_open / workers.len()).max(1))
            .incoming_buffer_size(WAITING_BYTES)
            .incoming_buffer_size_total((ALL_WAITING_BYTES / sharers).max(WAITING_BYTES));
        let shared_server = Arc::new(server.clone());
        let endpoint = config.quic.listening_endpoint(identity);
        let strangers = Arc::new(Strangers::new(&config));
        let tls =
            tls::server_for_tcp(identity).map_err(|error| ListenError::Tls(error.to_string()))?;
        let (mut endpoints, mut tcp) = (Vec::new(), Vec::new());
        let mut local_addrs = Vec::new();
        let singly = Singly::default();
        for &addr in &config.addresses {
            let refused = |source| ListenError::Socket { addr, source };
            let (udp, listener) = sockets(&config, addr, workers.len()).map_err(refused)?;
            let mut read = Vec::new();
            for (udp, worker) in udp.into_iter().zip(&workers) {
                let socket = taken(udp, worker, &singly, &strangers).map_err(|source| {
                    let bind = super::Bind::Address(addr.ip());
                    refused(SocketError::Io { bind, source })
                })?;
                #[cfg(test)]
                let socket = socket.losing_batches(config.quic.loses_batches);
                read.push((socket, worker.clone()));
            }
            local_addrs.extend(read.first().map(|(socket, _)| socket.local_addr()));
            let inbox = config.quic.receive_buffer / 2;
            let opened = ServerEndpoint::open(read, &endpoint, &shared_server, inbox);
            endpoints.push(opened);
            tcp.extend(listener.map(PatientListener::new));
        }
        Ok(Self {
            endpoints,
            local_addrs,
            tcp,
            server,
            tls: Arc::new(tls),
            handshakes: JoinSet::new(),
            strangers,
            singly,
            allowed,
            config,
            log: Seldom::default(),
        })
    }

    /// Where it listens, in the order configured, with the ports that the system chose for 0.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.local_addrs.clone()
    }

    /// QUIC connections of which anything is left.
    #[cfg(test)]
    pub(super) fn open_quic(&self) -> usize {
        self.endpoints
            .iter()
            .map(ServerEndpoint::open_connections)
            .sum()
    }

    /// Packets that came by another worker's socket than their connection's.
    #[cfg(test)]
    pub(super) fn handed_over(&self) -> usize {
        self.endpoints.iter().map(ServerEndpoint::handed_over).sum()
    }

    /// The next client that asks for a session or a path. May be cancelled and called again.
    ///
    /// Connections are taken in only while this is awaited or called again soon. Answer each
    /// attempt promptly: until then it counts as half open. After [`close`](Self::close) it never
    /// yields again.
    pub async fn accept(&mut self) -> Attempt {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// [`accept`](Self::accept) for a hand-written loop.
    pub fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<Attempt> {
        for index in 0..self.endpoints.len() {
            while let Poll::Ready(incoming) = self.endpoints[index].poll_incoming(cx) {
                self.admit(incoming);
            }
        }
        for index in 0..self.tcp.len() {
            let mut left = TAKEN_AT_ONCE;
            while let Poll::Ready((stream, remote)) = self.tcp[index].poll_accept(cx) {
                self.admit_tcp(stream, remote);
                left -= 1;
                if left == 0 {
                    cx.waker().wake_by_ref();
                    break;
                }
            }
        }
        while let Poll::Ready(Some(done)) = self.handshakes.poll_join_next(cx) {
            match done {
                Ok(Ok(attempt)) => return Poll::Ready(attempt),
                Ok(Err(rejected)) => self.warn(&rejected),
                Err(error) => tracing::error!("a handshake's task failed: {error}"),
            }
        }
        Poll::Pending
    }

    fn warn(&self, rejected: &Rejected) {
        self.log.say(|more| tracing::warn!("{rejected}{more}"));
    }

    /// Starts a handshake, or does the least that turns the attempt away.
    fn admit(&mut self, incoming: Incoming) {
        let (remote, proved) = (
            incoming.remote_address(),
            incoming.remote_address_validated(),
        );
        let turned =
            match self.strangers.quic(remote, proved) {
                Ok(place) => match self.config.quic.transport_holding(
                    remote,
                    &self.singly,
                    Arc::clone(&place),
                ) {
                    Ok(transport) => {
                        let mut config = self.server.clone();
                        config.transport_config(transport);
                        let worker = incoming.worker().clone();
                        let handshake = QuicHandshake {
                            config,
                            allowed: self.allowed.clone(),
                            limit: self.config.handshake_timeout,
                            place,
                            worker: worker.number,
                        };
                        let running = handshake.run(incoming);
                        self.handshakes.spawn_on(running, &worker.runtime);
                        return;
                    }
                    // Checked when the socket was opened.
                    Err(error) => Turn::Away(error.to_string()),
                },
                Err(turned) => turned,
            };
        match turned {
            // Stateless: a client that gives a false address sends nothing more.
            Turn::Prove => incoming.retry(),
            Turn::Away(why) => {
                self.warn(&Rejected { remote, why });
                drop(incoming);
            }
        }
    }

    /// Waits for the beginning of a handshake over TCP.
    fn admit_tcp(&mut self, stream: TcpStream, remote: SocketAddr) {
        let Some(silent) = self.strangers.silent(remote.ip()) else {
            let why = "too many connections are silent".to_owned();
            self.warn(&Rejected { remote, why });
            return;
        };
        let handshake = TcpHandshake {
            tls: Arc::clone(&self.tls),
            quic: self.config.quic.clone(),
            allowed: self.allowed.clone(),
            silent,
            silent_limit: self.config.silent_timeout,
            limit: self.config.handshake_timeout,
            strangers: Arc::clone(&self.strangers),
        };
        self.handshakes.spawn(handshake.run(stream, remote));
    }

    /// Takes no more connections and closes all QUIC carriers that came from here, with a code and
    /// a reason for the peers. Those over TCP have sockets of their own, and say so themselves.
    pub fn close(&mut self, code: u32, reason: &str) {
        let reason = cut(reason, MAX_CLOSE_REASON);
        for endpoint in &self.endpoints {
            endpoint.close(VarInt::from_u32(code), reason.as_bytes());
        }
        self.tcp.clear();
        self.handshakes.abort_all();
    }

    /// Waits, after [`close`](Self::close), until all peers have been informed, or until `limit` is
    /// over.
    pub async fn drained(&mut self, limit: Duration) {
        let _ = timeout(limit, async {
            for endpoint in &self.endpoints {
                endpoint.idle().await;
            }
        })
        .await;
    }
}

/// What reads, at least one.
fn workers(config: &ListenConfig) -> Vec<Worker> {
    let all = match &config.workers[..] {
        [] => vec![Handle::current()],
        [first, ..] if !BALANCES => vec![first.clone()],
        all => all.to_vec(),
    };
    let numbered = all.into_iter().enumerate();
    let workers = numbered.map(|(number, runtime)| Worker { number, runtime });
    workers.collect()
}

/// A socket for a worker, whose runtime reports what comes.
fn taken(
    udp: UdpSocket,
    worker: &Worker,
    singly: &Singly,
    strangers: &Strangers,
) -> io::Result<Socket> {
    let _within = worker.runtime.enter();
    Socket::new(udp, singly.clone(), Some(strangers.unproved()))
}

/// The sockets of one address: for UDP as many as there are workers, and TCP at the same port.
fn sockets(
    config: &ListenConfig,
    addr: SocketAddr,
    workers: usize,
) -> Result<(Vec<UdpSocket>, Option<TcpListener>), SocketError> {
    /// Ports that are tried where the system chooses.
    const TRIES: usize = 16;
    let dual = !config
        .addresses
        .iter()
        .any(|other| other.is_ipv4() && other.port() == addr.port());
    let mut left = TRIES;
    loop {
        left -= 1;
        let udp = serving::udp(addr, dual, config.buffer, workers)?;
        let Some(first) = udp.first().filter(|_| config.tcp) else {
            return Ok((udp, None));
        };
        let bound = first.local_addr().map_err(|source| SocketError::Io {
            bind: super::Bind::Address(addr.ip()),
            source,
        })?;
        match serving::tcp(bound, dual, config.tcp_congestion.as_deref()) {
            // The port that the system chose for UDP is somebody's for TCP.
            Err(SocketError::Busy { .. }) if addr.port() == 0 && left > 0 => {}
            listener => return Ok((udp, Some(listener?))),
        }
    }
}
