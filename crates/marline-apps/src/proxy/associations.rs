//! A bounded table of message flows, one for each peer or destination, that opens on the first
//! datagram and forgets what has gone quiet; and the task of a flow that carries datagrams as they
//! are.

use super::asker::{AskedSocket, Asker};
use super::flows::Flows;
use super::idle::Idle;
use super::{OpenError, PacketFlow, Tasks, Tunnel};
use bytes::Bytes;
use marline_proto::FlowOptions;
use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Most flows of one table. The one that has been quiet longest makes room for a new one.
const MAX_FLOWS: usize = 1024;
/// Datagrams that wait for the session, for each flow; more are dropped, as UDP does. More than the
/// runtime lets a socket hand over before other tasks have their turn.
pub(super) const MAX_WAITING: usize = 256;
/// A flow without a datagram in either direction for this long is closed. RFC 4787 REQ-5 asks for
/// two minutes or more.
pub(crate) const IDLE: Duration = Duration::from_secs(120);
/// How long a flow that the server closed stays closed: a refused target is not asked for again
/// with every datagram.
const REFUSED: Duration = Duration::from_secs(1);
/// How long after a session that was no good another one is looked for.
pub(crate) const AGAIN: Duration = Duration::from_millis(10);

/// Where the answers of a flow go.
#[derive(Debug, Clone)]
pub(super) struct ReturnPath {
    /// The socket that the local program talks to.
    pub(super) socket: AskedSocket,
    /// The local program.
    pub(super) asker: Asker,
    /// Put before every answer.
    pub(super) header: Bytes,
}

/// Waits as long as a flow that the server closed stays closed.
pub(super) async fn refused() {
    sleep(REFUSED).await;
}

/// Flows by `K`, each with a task that takes what is sent on it, items of `I`.
#[derive(Debug)]
pub(crate) struct Associations<K, I> {
    tasks: Tasks,
    /// Whose they are, where that is not this host's.
    client: Option<OfClient>,
    most: usize,
    flows: HashMap<K, Flow<I>>,
}

/// What runs the flows, and when they end: who waits for the port of their socket waits for no
/// peer that has fallen silent.
#[derive(Debug)]
struct OfClient {
    flows: Arc<Flows>,
    gone: CancellationToken,
    _dropped: DropGuard,
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
            client: None,
            most: MAX_FLOWS,
            flows: HashMap::new(),
        }
    }

    /// At most `most` flows, which run among those of a client, and end when this is dropped.
    pub(crate) fn of_client(tasks: Tasks, flows: Arc<Flows>, most: usize) -> Self {
        let gone = CancellationToken::new();
        let client = OfClient {
            flows,
            gone: gone.clone(),
            _dropped: gone.drop_guard(),
        };
        Associations {
            client: Some(client),
            most,
            ..Associations::new(tasks)
        }
    }

    /// How many items wait for the flow of `key`.
    pub(super) fn waiting(&self, key: &K) -> usize {
        let flow = self.flows.get(key);
        flow.map_or(0, |flow| MAX_WAITING - flow.outgoing.capacity())
    }

    /// Sends `item` on the flow of `key`; if there is none, the future that `open` makes of what is
    /// sent on it becomes its task. False when the item was dropped.
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
        // After a pause of this process a burst may wait at the socket, and the flow's own task had
        // no turn yet.
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
        if self.flows.len() >= self.most {
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
        let task = self.tasks.track(async move {
            tokio::select! {
                // Datagrams promise nothing: there is no end to wait for.
                () = tasks.draining() => {}
                () = task => {}
            }
        });
        match &self.client {
            Some(client) => {
                let gone = client.gone.clone();
                client.flows.spawn(async move {
                    tokio::select! {
                        () = gone.cancelled() => {}
                        () = task => {}
                    }
                });
            }
            None => drop(tokio::spawn(task)),
        }
    }
}

/// How a flow ended at the client.
#[derive(Debug, PartialEq)]
pub(crate) enum FlowEnd {
    /// With its session: the next one may go on.
    Session,
    /// The server closed it.
    Closed,
    /// Nobody uses it any more.
    Quiet,
}

impl FlowEnd {
    /// Of this flow, which is over or has been left.
    pub(crate) fn of<P: PacketFlow>(flow: &P, over: bool) -> FlowEnd {
        match over {
            true if flow.is_session_over() => FlowEnd::Session,
            true => FlowEnd::Closed,
            false => FlowEnd::Quiet,
        }
    }
}

/// Carries datagrams over a flow of its own, one in each session, until either side ends it or it
/// has been quiet for long. Without a session they are dropped, as by a network that is down.
pub(super) async fn carry<T: Tunnel>(
    tunnel: T,
    options: FlowOptions,
    mut waiting: mpsc::Receiver<Bytes>,
    back: ReturnPath,
) {
    loop {
        match tunnel.open_packets(options.clone()).await {
            Ok(flow) => match exchange(flow, &mut waiting, &back).await {
                FlowEnd::Session => {}
                FlowEnd::Quiet => return,
                FlowEnd::Closed => {
                    tracing::debug!("the server closed a flow of datagrams");
                    return sleep(REFUSED).await;
                }
            },
            Err(OpenError::NoSession(why)) => {
                tracing::debug!(%why, "datagrams have no session");
                // It may be there and about to end.
                sleep(AGAIN).await;
            }
            Err(error) => {
                tracing::debug!(%error, "cannot open a flow for datagrams");
                return sleep(REFUSED).await;
            }
        }
        let dropping = async { while let Ok(Some(_)) = timeout(IDLE, waiting.recv()).await {} };
        tokio::select! {
            biased;
            () = tunnel.session_is_there() => {}
            () = dropping => return,
        }
    }
}

/// Carries datagrams as [`carry`] does, with a place that `hold` gives; without one they are
/// dropped for a while.
pub(super) async fn carry_held<T: Tunnel, H>(
    hold: impl FnOnce() -> Option<H>,
    tunnel: T,
    options: FlowOptions,
    waiting: mpsc::Receiver<Bytes>,
    back: ReturnPath,
) {
    let Some(_held) = hold() else {
        tracing::debug!("datagrams are dropped: too many flows are open");
        return sleep(REFUSED).await;
    };
    carry(tunnel, options, waiting, back).await;
}

async fn exchange<P: PacketFlow>(
    flow: P,
    waiting: &mut mpsc::Receiver<Bytes>,
    back: &ReturnPath,
) -> FlowEnd {
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
            if let Err(error) = back.socket.answer(&packet, back.asker).await {
                tracing::trace!(%error, "a datagram could not be handed to the local program");
            }
        }
        io::Result::Ok(true)
    };
    let over = tokio::select! {
        result = outgoing => result.unwrap_or(true),
        result = incoming => result.unwrap_or(true),
        () = idle.expired() => false,
    };
    FlowEnd::of(&flow, over)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::flow_to;
    use marline_proto::wire::FlowKind;
    use std::sync::{Arc, Mutex};
    use tokio::net::UdpSocket;
    use tokio::sync::watch;

    /// Its sessions come and go with what is sent here; each datagram is noted with when it left.
    #[derive(Clone)]
    struct Sessions {
        there: watch::Receiver<bool>,
        sent: Arc<Mutex<Vec<(Bytes, Instant)>>>,
    }

    impl Tunnel for Sessions {
        type Stream = tokio::io::DuplexStream;
        type Packets = Sessions;

        async fn session_is_there(&self) {
            self.there.clone().wait_for(|there| *there).await.unwrap();
        }

        async fn open_stream(&self, _: FlowOptions) -> Result<Self::Stream, OpenError> {
            Err(OpenError::TooManyFlows)
        }

        async fn open_packets(&self, _: FlowOptions) -> Result<Sessions, OpenError> {
            match *self.there.borrow() {
                true => Ok(self.clone()),
                false => Err(OpenError::NoSession("not yet".into())),
            }
        }
    }

    impl PacketFlow for Sessions {
        async fn send(&self, message: Bytes) -> io::Result<()> {
            self.sent.lock().unwrap().push((message, Instant::now()));
            Ok(())
        }

        async fn recv(&self) -> Option<Bytes> {
            let _ = self.there.clone().wait_for(|there| !there).await;
            None
        }

        fn is_session_over(&self) -> bool {
            !*self.there.borrow()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_session_datagrams_are_dropped_and_with_the_next_they_go_on_at_once() {
        let (session, there) = watch::channel(true);
        let sessions = Sessions {
            there,
            sent: Arc::default(),
        };
        let (program, waiting) = mpsc::channel(8);
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let back = ReturnPath {
            asker: socket.local_addr().unwrap().into(),
            socket: AskedSocket::new(socket),
            header: Bytes::new(),
        };
        let options = flow_to(FlowKind::Packets, Bytes::new());
        tokio::spawn(carry(sessions.clone(), options, waiting, back));
        let start = Instant::now();
        for ms in [0, 200, 400] {
            let _ = session.send_replace(ms != 200);
            sleep(Duration::from_millis(100)).await;
            program.send(Bytes::from(format!("{ms}"))).await.unwrap();
            sleep(Duration::from_millis(100)).await;
        }
        let sent = sessions.sent.lock().unwrap().clone();
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(sent, [("0".into(), at(100)), ("400".into(), at(500))]);
    }
}
