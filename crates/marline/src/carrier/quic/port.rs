//! A server's socket, which all its QUIC connections share.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quinn_proto::{
    ConnectionError, ConnectionEvent, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig,
    EndpointEvent, ServerConfig, VarInt,
};

use super::batch::Batch;
use super::clock;
use super::connection::{Connection, Shared};
use super::home::{handle, longest};
use super::inbox::Inbox;
use super::incoming::Incoming;
use super::socket::Socket;
use crate::support::lock;

/// After an error of the socket it is asked again, this seldom.
const RESTS: Duration = Duration::from_millis(100);

/// One socket of a server. A task reads it, and puts each packet into the inbox of its connection,
/// whose own task handles it and sends by the socket itself.
pub(in crate::carrier) struct Port {
    socket: Arc<Socket>,
    hub: Mutex<Hub>,
    /// Bytes that may wait for the task of one connection.
    inbox: usize,
}

/// Who is who at a port.
struct Hub {
    endpoint: Endpoint,
    /// By the number of their handle.
    connections: Vec<Option<Entry>>,
    open: usize,
    /// Those that have begun and are not looked at yet; their number is bounded by the server's
    /// configuration.
    begun: VecDeque<quinn_proto::Incoming>,
    closed: Option<(VarInt, Vec<u8>)>,
    /// Nobody will look at those that begin.
    abandoned: bool,
    accepting: Option<Waker>,
    reader: Option<Waker>,
    idle: Vec<Waker>,
}

/// One connection.
struct Entry {
    inbox: Arc<Inbox>,
    connection: Weak<Shared>,
}

impl Hub {
    /// Gives a packet to its connection, and returns whom to wake for it.
    fn put(&self, number: ConnectionHandle, event: ConnectionEvent, bytes: usize) -> Option<Waker> {
        let entry = self.connections.get(number.0)?.as_ref()?;
        entry.inbox.put(event, bytes)
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

impl Port {
    /// Opens a port. Needs a tokio runtime.
    pub(in crate::carrier) fn open(
        socket: Socket,
        endpoint: EndpointConfig,
        server: ServerConfig,
        inbox: usize,
    ) -> Arc<Self> {
        let batch = socket.batch(longest(&endpoint));
        let (endpoint, server) = (Arc::new(endpoint), Some(Arc::new(server)));
        let port = Arc::new(Self {
            hub: Mutex::new(Hub {
                endpoint: Endpoint::new(endpoint, server, !socket.may_fragment(), None),
                connections: Vec::new(),
                open: 0,
                begun: VecDeque::new(),
                closed: None,
                abandoned: false,
                accepting: None,
                reader: None,
                idle: Vec::new(),
            }),
            socket: Arc::new(socket),
            inbox,
        });
        tokio::spawn(Arc::clone(&port).read(batch));
        port
    }

    fn hub(&self) -> MutexGuard<'_, Hub> {
        lock(&self.hub)
    }

    pub(super) const fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    pub(in crate::carrier) fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// Connections of which anything is left.
    #[cfg(test)]
    pub(in crate::carrier) fn open_connections(&self) -> usize {
        self.hub().endpoint.open_connections()
    }

    /// The next connection that begins. One task may wait for it.
    pub(in crate::carrier) fn poll_incoming(self: &Arc<Self>, cx: &Context<'_>) -> Poll<Incoming> {
        let mut hub = self.hub();
        match hub.begun.pop_front() {
            Some(begun) => Poll::Ready(Incoming::new(begun, Arc::clone(self))),
            None => {
                hub.accepting = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Takes a connection in.
    pub(super) fn accept(
        self: &Arc<Self>,
        begun: quinn_proto::Incoming,
        config: ServerConfig,
    ) -> Result<Connection, ConnectionError> {
        let (now, mut answer) = (clock::now(), Vec::new());
        let mut hub = self.hub();
        let config = Some(Arc::new(config));
        let accepted = hub.endpoint.accept(begun, now, &mut answer, config);
        let (number, proto) = accepted.map_err(|error| {
            if let Some(transmit) = error.response {
                self.answer(&transmit, &answer);
            }
            error.cause
        })?;
        let inbox = Arc::new(Inbox::new(self.inbox));
        let shared = Arc::clone(&inbox);
        let connection = Connection::accepted(proto, number, Arc::clone(self), shared);
        if hub.connections.len() <= number.0 {
            hub.connections.resize_with(number.0 + 1, || None);
        }
        hub.connections[number.0] = Some(Entry {
            inbox,
            connection: Arc::downgrade(connection.shared()),
        });
        hub.open += 1;
        let closed = hub.closed.clone();
        drop(hub);
        if let Some((code, reason)) = closed {
            connection.close(code, &reason);
        }
        Ok(connection)
    }

    /// Turns a connection away.
    pub(super) fn refuse(&self, begun: quinn_proto::Incoming) {
        let mut answer = Vec::new();
        let transmit = self.hub().endpoint.refuse(begun, &mut answer);
        self.answer(&transmit, &answer);
    }

    /// Has a connection prove its address.
    pub(super) fn retry(&self, begun: quinn_proto::Incoming) {
        let mut answer = Vec::new();
        let retried = self.hub().endpoint.retry(begun, &mut answer);
        match retried {
            Ok(transmit) => self.answer(&transmit, &answer),
            // It has proved it already.
            Err(error) => self.refuse(error.into_incoming()),
        }
    }

    /// Sends an answer that belongs to no connection. Whoever it is for asks again if it is lost.
    fn answer(&self, transmit: &quinn_proto::Transmit, bytes: &[u8]) {
        let _ = self.socket.send(transmit, bytes);
    }

    /// What a connection has for the endpoint.
    pub(super) fn handle_event(
        &self,
        number: ConnectionHandle,
        event: EndpointEvent,
    ) -> Option<ConnectionEvent> {
        let mut hub = self.hub();
        if event.is_drained()
            && let Some(entry) = hub.connections.get_mut(number.0)
            && entry.take().is_some()
        {
            hub.open -= 1;
            if hub.open == 0 {
                hub.idle.drain(..).for_each(Waker::wake);
                hub.reader.take().into_iter().for_each(Waker::wake);
            }
        }
        hub.endpoint.handle_event(number, event)
    }

    /// Closes all connections, and takes no more.
    pub(in crate::carrier) fn close(&self, code: VarInt, reason: &[u8]) {
        let mut hub = self.hub();
        hub.closed = Some((code, reason.to_owned()));
        let begun = std::mem::take(&mut hub.begun);
        let connections = hub.connections.iter().flatten();
        let connections: Vec<_> = connections
            .filter_map(|entry| entry.connection.upgrade())
            .collect();
        drop(hub);
        for begun in begun {
            self.refuse(begun);
        }
        for connection in connections {
            connection.close(code, reason);
        }
    }

    /// Takes no more connections; those that there are go on, and the socket is kept for them.
    pub(in crate::carrier) fn abandon(&self) {
        let mut hub = self.hub();
        hub.abandoned = true;
        while let Some(begun) = hub.begun.pop_front() {
            hub.endpoint.ignore(begun);
        }
        hub.reader.take().into_iter().for_each(Waker::wake);
    }

    /// Waits until nothing is left of any connection.
    pub(in crate::carrier) async fn idle(&self) {
        poll_fn(|cx| {
            let mut hub = self.hub();
            if hub.open == 0 {
                return Poll::Ready(());
            }
            hub.idle.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Reads the socket as long as anybody needs it.
    async fn read(self: Arc<Self>, mut batch: Batch) {
        let mut wakers = Vec::new();
        loop {
            let read = poll_fn(|cx| self.poll_read(cx, &mut batch, &mut wakers));
            let Err(error) = read.await else {
                return;
            };
            tracing::error!("the UDP socket at {} failed: {error}", self.local_addr());
            tokio::time::sleep(RESTS).await;
        }
    }

    /// Ready when nobody needs the socket any more.
    fn poll_read(
        &self,
        cx: &mut Context<'_>,
        batch: &mut Batch,
        wakers: &mut Vec<Waker>,
    ) -> Poll<io::Result<()>> {
        match self.socket.poll_recv(cx, batch) {
            Poll::Ready(Ok(())) => {
                self.sort(batch, wakers);
                wakers.drain(..).for_each(Waker::wake);
                // The tasks that were woken have their turn before more is read.
                cx.waker().wake_by_ref();
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => {}
        }
        let mut hub = self.hub();
        if hub.abandoned && hub.open == 0 {
            return Poll::Ready(Ok(()));
        }
        hub.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Gives each packet to its connection.
    fn sort(&self, batch: &mut Batch, wakers: &mut Vec<Waker>) {
        let mut hub = self.hub();
        let mut answer = Vec::new();
        while let Some(packet) = batch.pop() {
            let bytes = packet.data.len();
            answer.clear();
            match handle(&mut hub.endpoint, packet, &mut answer) {
                Some(DatagramEvent::ConnectionEvent(number, event)) => {
                    wakers.extend(hub.put(number, event, bytes));
                }
                Some(DatagramEvent::NewConnection(begun)) => {
                    if hub.closed.is_some() || hub.abandoned {
                        let transmit = hub.endpoint.refuse(begun, &mut answer);
                        self.answer(&transmit, &answer);
                    } else {
                        hub.begun.push_back(begun);
                        wakers.extend(hub.accepting.take());
                    }
                }
                Some(DatagramEvent::Response(transmit)) => self.answer(&transmit, &answer),
                None => {}
            }
        }
    }
}
