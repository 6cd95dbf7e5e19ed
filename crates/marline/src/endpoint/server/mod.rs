//! A server: lets listed clients open sessions, and their further paths join them.
//!
//! | file | what |
//! | --- | --- |
//! | `admit.rs` | who may open and who may join |
//! | `registry.rs` | the sessions there are |
//! | `memory.rs` | what they hold together |
//! | `workers.rs` | the threads that they run on |
//! | `manage.rs` | status; the list of clients read again |
//! | `clients.rs` | what is known of each client: its limits, when it was seen last |

mod admit;
mod clients;
mod manage;
mod memory;
mod registry;
mod workers;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use marline_proto::wire::close_code;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Session;
use super::incomings::Incomings;
use crate::carrier::{self, BALANCES, ListenConfig, Listener, SESSION_OVER};
use crate::identity::{AllowList, Identity, PublicKey};
use clients::Clients;
use registry::Registry;
use workers::Workers;

/// Most that a graceful stop waits for the clients to be informed.
const STOP: Duration = Duration::from_secs(2);

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Addresses to listen at, and what strangers may cost. The carriers' idle limit is raised
    /// above the sessions' where it is not.
    pub listen: ListenConfig,
    /// This server's key.
    pub identity: Identity,
    /// The clients that are let in.
    pub allow: AllowList,
    /// The sessions' configuration.
    pub session: marline_proto::Config,
    /// Sessions that one client may have at once, default 16: old ones of a client that was
    /// killed last until their idle limit.
    pub max_sessions_per_client: usize,
    /// Sessions at once, default 1024.
    pub max_sessions: usize,
    /// Bytes that the flows and carriers of all sessions may hold; beyond that the client that
    /// holds most gives up flows, the longest-stalled first. Default 128 MiB, which with what else
    /// a server keeps stays below 256 MB (`docs/SECURITY-MODEL.md`).
    pub memory: u64,
    /// Threads that sessions run on, default 1, which is that of the runtime on which the server is
    /// bound. Each of the others has a runtime of its own, and a socket at each address, so that
    /// one thread reads, decrypts and answers what a session's paths bring. A client's sessions are
    /// all on one; a new client is put on the worker that its packets come to, unless another one
    /// has fewer sessions. Where the system does not share packets out among sockets
    /// ([`BALANCES`]), there is one whatever this says.
    ///
    /// What serves a session runs best on its thread: spawn it on [`Session::runtime`]. What runs
    /// on those of the other workers ends with the server.
    pub workers: usize,
}

impl ServerOptions {
    /// Listening at these addresses, with defaults for the rest.
    pub fn new(addresses: Vec<SocketAddr>, identity: Identity, allow: AllowList) -> Self {
        Self {
            listen: ListenConfig::new(addresses),
            identity,
            allow,
            session: marline_proto::Config::default(),
            max_sessions_per_client: 16,
            max_sessions: 1024,
            memory: 128 << 20,
            workers: 1,
        }
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// It cannot listen.
    #[error(transparent)]
    Listen(#[from] carrier::ListenError),
    /// The session's configuration is wrong.
    #[error(transparent)]
    Config(#[from] marline_proto::ConfigError),
    /// The system has no thread for a worker.
    #[error("cannot start a worker's thread: {0}")]
    Worker(io::Error),
}

/// A running server. Cheap to clone; it runs until [`stop`](Self::stop) or the end of the runtime.
///
/// ```no_run
/// use marline::{Accepted, AllowList, Identity, Server, ServerOptions};
/// use tokio::io::{copy, split};
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let allow = AllowList::load("clients".as_ref())?;
/// let listen = vec!["0.0.0.0:4433".parse()?];
/// let server = Server::bind(ServerOptions::new(listen, Identity::generate()?, allow))?;
/// while let Some(mut session) = server.accept().await {
///     tokio::spawn(async move {
///         while let Ok((info, flow)) = session.accept().await {
///             println!("{} opened a flow of {:?}", session.peer(), info.kind);
///             if let Accepted::Stream(stream) = flow {
///                 tokio::spawn(async move {
///                     let (mut reader, mut writer) = split(stream);
///                     copy(&mut reader, &mut writer).await
///                 });
///             }
///         }
///     });
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    key: PublicKey,
    addrs: Vec<SocketAddr>,
    allow: AllowList,
    config: marline_proto::Config,
    max_sessions_per_client: usize,
    max_sessions: usize,
    memory: u64,
    started: Instant,
    registry: Mutex<Registry>,
    clients: Mutex<Clients>,
    /// Sessions that wait to be served.
    opened: mpsc::Sender<Incomings>,
    waiting: tokio::sync::Mutex<mpsc::Receiver<Incomings>>,
    stop: CancellationToken,
    stopped: CancellationToken,
    drivers: TaskTracker,
    /// The workers'.
    runtimes: Vec<Handle>,
}

impl Shared {
    /// A client in the log: its name in the list, or its key.
    fn name(&self, client: PublicKey) -> String {
        self.allow
            .name(&client)
            .unwrap_or_else(|| client.to_string())
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Opens the sockets and starts to let clients in. Needs a tokio runtime.
    ///
    /// # Errors
    /// A socket that cannot be opened, or a value out of range.
    pub fn bind(options: ServerOptions) -> Result<Self, BindError> {
        let ServerOptions {
            mut listen,
            identity,
            allow,
            session,
            max_sessions_per_client,
            max_sessions,
            memory: budget,
            workers,
        } = options;
        session.check()?;
        listen.quic = super::outliving(listen.quic, &session);
        let workers = Workers::start(if BALANCES { workers } else { 1 });
        let workers = workers.map_err(BindError::Worker)?;
        listen.workers = workers.runtimes().to_vec();
        let listener = Listener::bind(listen, &identity, allow.clone())?;
        let (opened, waiting) = mpsc::channel(max_sessions.max(1));
        let server = Self {
            shared: Arc::new(Shared {
                key: identity.public_key(),
                addrs: listener.local_addrs(),
                allow,
                config: session,
                max_sessions_per_client,
                max_sessions,
                memory: budget,
                started: Instant::now(),
                registry: Mutex::new(Registry::default()),
                clients: Mutex::default(),
                opened,
                waiting: tokio::sync::Mutex::new(waiting),
                stop: CancellationToken::new(),
                stopped: CancellationToken::new(),
                drivers: TaskTracker::new(),
                runtimes: workers.runtimes().to_vec(),
            }),
        };
        tokio::spawn(memory::watch(Arc::clone(&server.shared)));
        tokio::spawn(run(listener, Arc::clone(&server.shared), workers));
        Ok(server)
    }

    /// The server's key.
    pub fn public_key(&self) -> PublicKey {
        self.shared.key
    }

    /// Threads that its sessions run on.
    pub fn workers(&self) -> usize {
        self.shared.runtimes.len()
    }

    /// Where it listens, in the order configured, with the ports that the system chose for 0.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.shared.addrs
    }

    /// The clients that are let in; a clone of the list that it was started with.
    pub fn allowed(&self) -> AllowList {
        self.shared.allow.clone()
    }

    /// The handles of all sessions, in no particular order.
    pub fn handles(&self) -> Vec<Session> {
        let registry = self.shared.registry();
        registry.iter().map(|entry| entry.handle.clone()).collect()
    }

    /// Ends all sessions, sends the clients the reason, and lets no more in. Takes 4 s at most.
    pub async fn stop(&self, reason: &str) {
        self.shared.stop.cancel();
        for session in self.shared.registry().iter() {
            session.handle.close(close_code::NONE, reason);
        }
        self.shared.stopped.cancelled().await;
    }
}

impl Server {
    /// The accepting end of the next session that a client opens; `None` when the server stops.
    /// Cancel safe.
    pub async fn accept(&self) -> Option<Incomings> {
        let mut waiting = self.shared.waiting.lock().await;
        tokio::select! {
            session = waiting.recv() => session,
            () = self.shared.stop.cancelled() => None,
        }
    }
}

/// Answers clients that ask, until the server stops; then the workers end.
async fn run(mut listener: Listener, shared: Arc<Shared>, workers: Workers) {
    loop {
        tokio::select! {
            attempt = listener.accept() => admit::admit(&shared, attempt),
            () = shared.stop.cancelled() => break,
        }
    }
    shared.drivers.close();
    // Their sockets are the listener's, so their last words are said below. Who comes meanwhile is
    // told that the server stops.
    let mut ended = pin!(timeout(STOP, shared.drivers.wait()));
    let ended = loop {
        tokio::select! {
            attempt = listener.accept() => admit::admit(&shared, attempt),
            ended = &mut ended => break ended,
        }
    };
    if ended.is_err() {
        tracing::debug!("the sessions did not end in time");
    }
    listener.close(SESSION_OVER, "the server stops");
    listener.drained(STOP).await;
    drop(workers);
    shared.stopped.cancel();
}
