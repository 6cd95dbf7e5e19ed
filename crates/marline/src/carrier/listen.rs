use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use quinn::{Endpoint, Incoming, RecvStream, TokioRuntime, VarInt};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::attempt::{Attempt, JoinAttempt, NewAttempt, Pending};
use super::handshake::{self, DecodeError, Hello, RefuseCode, VERSION};
use super::quic::exported;
use super::slots::{Slot, Slots};
use super::{CarrierEnd, ConfigError, MAX_CLOSE_REASON, QuicConfig, SocketError, cut, socket, tls};
use crate::identity::{AllowList, Identity};

/// Bytes kept for one connection attempt that waits to be looked at, and for all of them.
const WAITING_BYTES: u64 = 16 << 10;
const ALL_WAITING_BYTES: u64 = 1 << 20;

/// Where a server listens and how much strangers may cost it.
#[derive(Clone, Debug)]
pub struct ListenConfig {
    /// UDP addresses. `[::]` takes IPv4 as well unless an IPv4 address with its port is listed.
    pub addresses: Vec<SocketAddr>,
    /// How carriers behave.
    pub quic: QuicConfig,
    /// Kernel buffer to ask for in each direction (bytes), default 4 MiB.
    pub buffer: usize,
    /// A connection must have proved its key and said Hello by then, default 10 s.
    pub handshake_timeout: Duration,
    /// Connections that may be within their handshake at once, default 256; each costs some
    /// 50 KiB. More are refused.
    pub max_half_open: usize,
    /// How many of them one address (IPv4, or an IPv6 /64) may have, default 32.
    pub max_half_open_per_address: usize,
    /// With more than so many of them, an address must first prove that it receives what is sent
    /// to it (Retry, RFC 9000 section 8.1.2), default 64; 0 asks that of everybody.
    pub retry_above: usize,
}

impl ListenConfig {
    /// Listening at these addresses, with defaults for the rest.
    pub fn new(addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses,
            quic: QuicConfig::default(),
            buffer: 4 << 20,
            handshake_timeout: Duration::from_secs(10),
            max_half_open: 256,
            max_half_open_per_address: 32,
            retry_above: 64,
        }
    }
}

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
    endpoints: Vec<Endpoint>,
    waiting: Vec<Waiting>,
    handshakes: JoinSet<Result<Attempt, Rejected>>,
    slots: Slots,
    allowed: AllowList,
    config: ListenConfig,
    log: QuietLog,
}

/// The next connection attempt at one endpoint.
struct Waiting(Pin<Box<dyn Future<Output = Option<Incoming>> + Send>>);

impl Waiting {
    fn at(endpoint: &Endpoint) -> Self {
        let endpoint = endpoint.clone();
        Self(Box::pin(async move { endpoint.accept().await }))
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("local_addrs", &self.local_addrs())
            .field("handshakes", &self.handshakes.len())
            .finish_non_exhaustive()
    }
}

/// A connection that did not get as far as asking, for the log.
#[derive(Debug, thiserror::Error)]
#[error("{remote} was turned away: {why}")]
struct Rejected {
    remote: SocketAddr,
    why: String,
}

impl Listener {
    /// Opens the sockets. Needs a tokio runtime.
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
        let mut server = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        server
            .transport_config(config.quic.transport()?)
            .max_incoming(config.max_half_open.max(1))
            .incoming_buffer_size(WAITING_BYTES)
            .incoming_buffer_size_total(ALL_WAITING_BYTES);
        let endpoint = config.quic.listening_endpoint(identity);
        let mut endpoints = Vec::with_capacity(config.addresses.len());
        for &addr in &config.addresses {
            let dual = !config
                .addresses
                .iter()
                .any(|other| other.is_ipv4() && other.port() == addr.port());
            let endpoint = socket::listen(addr, dual, config.buffer)
                .and_then(|socket| {
                    let runtime = Arc::new(TokioRuntime);
                    let server = Some(server.clone());
                    Endpoint::new(endpoint.clone(), server, socket, runtime).map_err(|source| {
                        SocketError::Io {
                            bind: super::Bind::Address(addr.ip()),
                            source,
                        }
                    })
                })
                .map_err(|source| ListenError::Socket { addr, source })?;
            endpoints.push(endpoint);
        }
        Ok(Self {
            waiting: endpoints.iter().map(Waiting::at).collect(),
            endpoints,
            handshakes: JoinSet::new(),
            slots: Slots::new(config.max_half_open, config.max_half_open_per_address),
            allowed,
            config,
            log: QuietLog::default(),
        })
    }

    /// Where it listens, in the order configured, with the ports that the system chose for 0.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        let addrs = self.endpoints.iter().map(Endpoint::local_addr);
        addrs.filter_map(Result::ok).collect()
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
            while let Poll::Ready(incoming) = self.waiting[index].0.as_mut().poll(cx) {
                // None once the endpoint is closed, by `close` only.
                let Some(incoming) = incoming else {
                    self.waiting[index] = Waiting(Box::pin(std::future::pending()));
                    continue;
                };
                self.waiting[index] = Waiting::at(&self.endpoints[index]);
                self.admit(incoming, index);
            }
        }
        while let Poll::Ready(Some(done)) = self.handshakes.poll_join_next(cx) {
            match done {
                Ok(Ok(attempt)) => return Poll::Ready(attempt),
                Ok(Err(rejected)) => self.log.warn(&rejected),
                Err(error) => tracing::error!("a handshake's task failed: {error}"),
            }
        }
        Poll::Pending
    }

    /// Starts a handshake, or does the least that turns the attempt away.
    fn admit(&mut self, incoming: Incoming, index: usize) {
        let half_open = self.slots.len();
        if half_open >= self.config.retry_above && !incoming.remote_address_validated() {
            // Stateless: whoever gives a false address is never heard of again.
            let _ = incoming.retry();
            return;
        }
        let Some(slot) = self.slots.take(incoming.remote_address().ip()) else {
            self.log.warn(&Rejected {
                remote: incoming.remote_address(),
                why: format!("{half_open} handshakes are going on, its own or others"),
            });
            incoming.refuse();
            return;
        };
        let handshake = Handshake {
            endpoint: self.endpoints[index].clone(),
            allowed: self.allowed.clone(),
            deadline: Instant::now() + self.config.handshake_timeout,
            limit: self.config.handshake_timeout,
            slot,
        };
        self.handshakes.spawn(handshake.run(incoming));
    }

    /// Takes no more connections and closes all carriers that came from here, with a code and a
    /// reason for the peers.
    pub fn close(&mut self, code: u32, reason: &str) {
        let reason = cut(reason, MAX_CLOSE_REASON);
        for endpoint in &self.endpoints {
            endpoint.close(VarInt::from_u32(code), reason.as_bytes());
        }
        self.handshakes.abort_all();
    }

    /// Waits, after [`close`](Self::close), until all peers have been told, or until `limit` is
    /// over.
    pub async fn drained(&mut self, limit: Duration) {
        let _ = timeout(limit, async {
            for endpoint in &self.endpoints {
                endpoint.wait_idle().await;
            }
        })
        .await;
    }
}

/// One connection on its way to being an attempt.
struct Handshake {
    endpoint: Endpoint,
    allowed: AllowList,
    deadline: Instant,
    limit: Duration,
    slot: Slot,
}

impl Handshake {
    async fn run(self, incoming: Incoming) -> Result<Attempt, Rejected> {
        let remote = incoming.remote_address();
        let rejected = |why| Rejected { remote, why };
        let (deadline, limit) = (self.deadline, self.limit);
        match timeout_at(deadline, self.proceed(incoming)).await {
            Ok(result) => result.map_err(rejected),
            Err(_) => Err(rejected(format!(
                "its handshake took longer than {:.1} s",
                limit.as_secs_f64()
            ))),
        }
    }

    async fn proceed(self, incoming: Incoming) -> Result<Attempt, String> {
        let failed = |error: quinn::ConnectionError| CarrierEnd::from(error).to_string();
        let connecting = incoming.accept().map_err(failed)?;
        let connection = connecting.await.map_err(failed)?;
        let peer = tls::peer(&connection).ok_or("it showed no key")?;
        let (send, mut recv) = connection.accept_bi().await.map_err(failed)?;
        let pending = Pending {
            connection,
            endpoint: self.endpoint,
            send,
            peer,
            limit: self.limit,
            _slot: self.slot,
        };
        // Before a byte of what it says is read.
        if !self.allowed.contains(&peer) {
            pending.refuse(
                RefuseCode::UnknownClient,
                format!(
                    "the server does not know this client's key {peer}; add it to the server's \
                     allow list"
                ),
            );
            return Err(format!(
                "its key {peer} is not in the list of allowed clients"
            ));
        }
        match hello(&mut recv).await {
            Ok(Hello::New { path, params }) => Ok(Attempt::New(NewAttempt {
                pending,
                path,
                params,
            })),
            Ok(Hello::Join {
                path,
                session,
                proof,
            }) => {
                let export = exported(&pending.connection, session);
                let export = export.ok_or("no key can be exported")?;
                Ok(Attempt::Join(JoinAttempt {
                    pending,
                    path,
                    session,
                    proof,
                    export,
                }))
            }
            Err((code, why)) => {
                pending.refuse(code, format!("the server cannot serve this client: {why}"));
                Err(format!("client {peer}: {why}"))
            }
        }
    }
}

async fn hello(recv: &mut RecvStream) -> Result<Hello, (RefuseCode, String)> {
    let message = handshake::receive(recv)
        .await
        .map_err(|error| (RefuseCode::Malformed, error.to_string()))?;
    Hello::decode(&message).map_err(|error| match error {
        DecodeError::Version { theirs } => (
            RefuseCode::Version,
            format!(
                "it speaks Marline protocol {theirs}, the server {VERSION}; update the older one"
            ),
        ),
        other => (RefuseCode::Malformed, other.to_string()),
    })
}

/// At most one line a second, so that strangers cannot fill the disk with log lines.
#[derive(Debug, Default)]
struct QuietLog {
    last: Option<Instant>,
    suppressed: u64,
}

impl QuietLog {
    fn warn(&mut self, rejected: &Rejected) {
        let now = Instant::now();
        if self
            .last
            .is_some_and(|last| now - last < Duration::from_secs(1))
        {
            self.suppressed += 1;
            return;
        }
        let suppressed = std::mem::take(&mut self.suppressed);
        self.last = Some(now);
        if suppressed == 0 {
            tracing::warn!("{rejected}");
        } else {
            tracing::warn!("{rejected} (and {suppressed} others before it)");
        }
    }
}
