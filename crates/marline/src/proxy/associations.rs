//! A bounded table of message flows, one for each local peer or destination, that opens on the first datagram and
//! forgets what has gone quiet; and the task of a flow that carries datagrams as they are.

use super::idle::Idle;
use super::{OpenOptions, PacketFlow, Tasks, Tunnel};
use bytes::Bytes;
use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::Instant;

/// Most flows of one table. The one that has been quiet longest makes room for a new one.
const MAX_FLOWS: usize = 1024;
/// Datagrams that wait for the session, for each flow; more are dropped, as UDP does. More than the
/// runtime lets a socket hand over before other tasks have their turn.
const MAX_WAITING: usize = 256;
/// A flow without a datagram in either direction for this long is closed. RFC 4787 REQ-5 asks for two minutes or more.
pub(crate) const IDLE: Duration = Duration::from_secs(120);
/// How long a flow that the server closed stays closed: a refused target is not asked for again with every datagram.
const REFUSED: Duration = Duration::from_secs(1);

/// Where the answers of a flow go.
#[derive(Debug, Clone)]
pub(super) struct ReturnPath {
    /// The socket that the local program talks to.
    pub(super) socket: Arc<UdpSocket>,
    /// The local program.
    pub(super) peer: SocketAddr,
    /// Put before every answer.
    pub(super) header: Bytes,
}

/// Flows by `K`, each with a task that takes what is sent on it, items of `I`.
#[derive(Debug)]
pub(crate) struct Associations<K, I> {
    tasks: Tasks,
    flows: HashMap<K, Flow<I>>,
}

#[derive(Debug)]
struct Flow<I> {
    outgoing: mpsc::Sender<I>,
    used: Instant,
}

impl<K: Hash + Eq + Clone, I: Send + 'static> Associations<K, I> {
    pub(crate) fn new(tasks: Tasks) -> Self {
        Associations {
            tasks,
            flows: HashMap::new(),
        }
    }

    /// Sends `item` on the flow of `key`; if there is none, the future that `open` makes of what is sent on it becomes
    /// its task. False when the item was dropped.
    pub(crate) async fn send<F>(
        &mut self,
        key: &K,
        item: I,
        open: impl FnOnce(mpsc::Receiver<I>) -> F,
    ) -> bool
    where
        F: Future<Output = ()> + Send + 'static,
    {
        match self.flows.get_mut(key) {
            Some(flow) if !flow.outgoing.is_closed() => flow.used = Instant::now(),
            _ => self.open(key.clone(), open),
        }
        let Some(flow) = self.flows.get(key) else {
            return false;
        };
        let item = match flow.outgoing.try_send(item) {
            Ok(()) => return true,
            Err(TrySendError::Closed(_)) => return false,
            Err(TrySendError::Full(item)) => item,
        };
        // After a pause of this process a burst may wait at the socket, and the flow's own task had no turn yet.
        tokio::task::yield_now().await;
        let taken = flow.outgoing.try_send(item).is_ok();
        if !taken {
            tracing::trace!("a datagram was dropped: its flow takes no more for now");
        }
        taken
    }

    fn open<F>(&mut self, key: K, open: impl FnOnce(mpsc::Receiver<I>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.flows.retain(|_, flow| !flow.outgoing.is_closed());
        if self.flows.len() >= MAX_FLOWS {
            let quietest = self.flows.iter().min_by_key(|(_, flow)| flow.used);
            if let Some(key) = quietest.map(|(key, _)| key.clone()) {
                self.flows.remove(&key);
            }
        }
        let (outgoing, waiting) = mpsc::channel(MAX_WAITING);
        self.flows.insert(
            key,
            Flow {
                outgoing,
                used: Instant::now(),
            },
        );
        let task = open(waiting);
        let tasks = self.tasks.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                // Datagrams promise nothing: there is no end to wait for.
                () = tasks.draining() => {}
                () = task => {}
            }
        });
    }
}

/// Carries datagrams over a flow of its own until either side ends it or it has been quiet for long.
pub(super) async fn carry<T: Tunnel>(
    tunnel: T,
    options: OpenOptions,
    mut waiting: mpsc::Receiver<Bytes>,
    back: ReturnPath,
) {
    let flow = match tunnel.open_packets(options).await {
        Ok(flow) => flow,
        Err(error) => {
            tracing::debug!(%error, "cannot open a flow for datagrams");
            tokio::time::sleep(REFUSED).await;
            return;
        }
    };
    let idle = Idle::new(IDLE);
    let outgoing = async {
        while let Some(datagram) = waiting.recv().await {
            idle.touch();
            send(&flow, datagram).await?;
        }
        io::Result::Ok(false)
    };
    let incoming = async {
        let mut packet = Vec::from(&back.header[..]);
        while let Some(message) = flow.recv().await {
            idle.touch();
            packet.truncate(back.header.len());
            packet.extend_from_slice(&message);
            if let Err(error) = back.socket.send_to(&packet, back.peer).await {
                tracing::trace!(%error, "a datagram could not be handed to the local program");
            }
        }
        io::Result::Ok(true)
    };
    let closed_by_server = tokio::select! {
        result = outgoing => result,
        result = incoming => result,
        () = idle.expired() => Ok(false),
    };
    drop(flow);
    if closed_by_server.unwrap_or(true) {
        tracing::debug!("the server closed a flow of datagrams");
        tokio::time::sleep(REFUSED).await;
    }
}

/// Sends one message; one that is too large is dropped as a network would.
///
/// # Errors
/// When the flow is over.
pub(crate) async fn send<P: PacketFlow>(flow: &P, message: Bytes) -> io::Result<()> {
    let length = message.len();
    match flow.send(message).await {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            tracing::debug!(length, %error, "a datagram was dropped");
            Ok(())
        }
        result => result,
    }
}
