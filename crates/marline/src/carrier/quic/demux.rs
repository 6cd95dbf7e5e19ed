//! A server's socket, the task that reads it, and the table of its connections.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quinn_proto::{
    ConnectionError, ConnectionEvent, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig,
    EndpointEvent, ServerConfig, VarInt,
};
use tokio::runtime::Handle;

use super::batch::{Batch, Packet};
use super::clock;
use super::inbox::Inbox;
use super::packet::handle;
use super::socket::Socket;
use super::steering::Steering;
use crate::support::lock;

/// After an error of the socket it is asked again, this seldom.
const RESTS: Duration = Duration::from_millis(100);

/// One socket of a server. A task reads it, and puts each packet into the inbox of its connection,
/// whose own task handles it and sends by the socket itself. What is for a connection of another
/// socket at the same port is put into its inbox by way of that one's table.
pub(super) struct Demux {
    socket: Arc<Socket>,
    table: Mutex<Table>,
    /// Bytes that may wait for the task of one connection.
    inbox: usize,
    worker: Worker,
    siblings: Arc<Siblings>,
}

/// The thread on which a socket is read.
#[derive(Clone, Debug)]
pub(in crate::carrier) struct Worker {
    /// Counted from 0.
    pub(in crate::carrier) number: usize,
    pub(in crate::carrier) runtime: Handle,
}

/// The sockets at one port, one for each worker.
pub(super) struct Siblings {
    steering: Steering,
    /// By their worker's number, once all are there.
    all: OnceLock<Vec<Weak<Demux>>>,
    /// Connections of all of them.
    open: AtomicUsize,
    /// Packets that one has put into another's inboxes.
    #[cfg(test)]
    handed_over: AtomicUsize,
}

impl Siblings {
    pub(super) fn new(steering: Steering) -> Arc<Self> {
        Arc::new(Self {
            steering,
            all: OnceLock::new(),
            open: AtomicUsize::new(0),
            #[cfg(test)]
            handed_over: AtomicUsize::new(0),
        })
    }

    /// These are all.
    pub(super) fn complete(&self, all: &[Arc<Demux>]) {
        let _ = self.all.set(all.iter().map(Arc::downgrade).collect());
    }

    fn all(&self) -> impl Iterator<Item = Arc<Demux>> {
        let all = self.all.get().map_or(&[][..], Vec::as_slice);
        all.iter().filter_map(Weak::upgrade)
    }

    fn get(&self, number: usize) -> Option<Arc<Demux>> {
        self.all.get()?.get(number)?.upgrade()
    }
}

/// The connections of a socket.
struct Table {
    endpoint: Endpoint,
    /// By the number of their handle.
    connections: Vec<Option<Entry>>,
    open: usize,
    /// Connections that begin and were not accepted yet; their number is bounded by the server's
    /// configuration.
    incoming: VecDeque<quinn_proto::Incoming>,
    closed: Option<(VarInt, Vec<u8>)>,
    /// Connections that begin are refused.
    refusing: bool,
    accepting: Option<Waker>,
    reader: Option<Waker>,
    idle: Vec<Waker>,
}

/// One connection.
struct Entry {
    inbox: Arc<Inbox>,
    connection: Option<Weak<dyn Close>>,
}

/// What can be closed with a code and a reason.
pub(super) trait Close: Send + Sync {
    fn close(&self, code: VarInt, reason: &[u8]);
}

/// A connection that was taken in.
pub(super) struct Accepted {
    pub(super) number: ConnectionHandle,
    pub(super) proto: quinn_proto::Connection,
    pub(super) inbox: Arc<Inbox>,
}

impl Table {
    /// Puts a packet into the inbox of its connection, and returns the waker of its task.
    fn put(&self, number: ConnectionHandle, event: ConnectionEvent, bytes: usize) -> Option<Waker> {
        let entry = self.connections.get(number.0)?.as_ref()?;
        entry.inbox.put(event, bytes)
    }
}

impl fmt::Debug for Demux {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Demux")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

impl Demux {
    /// A socket that is read once [`start`](Self::start) is called.
    pub(super) fn new(
        socket: Socket,
        mut endpoint: EndpointConfig,
        server: Arc<ServerConfig>,
        inbox: usize,
        worker: Worker,
        siblings: Arc<Siblings>,
    ) -> Arc<Self> {
        siblings.steering.apply(&mut endpoint, worker.number);
        let (endpoint, server) = (Arc::new(endpoint), Some(server));
        Arc::new(Self {
            table: Mutex::new(Table {
                endpoint: Endpoint::new(endpoint, server, !socket.may_fragment(), None),
                connections: Vec::new(),
                open: 0,
                incoming: VecDeque::new(),
                closed: None,
                refusing: false,
                accepting: None,
                reader: None,
                idle: Vec::new(),
            }),
            socket: Arc::new(socket),
            inbox,
            worker,
            siblings,
        })
    }

    /// Begins to read packets of at most `longest` bytes, on the worker's thread.
    pub(super) fn start(self: &Arc<Self>, longest: usize) {
        let reading = Arc::clone(self).read(self.socket.batch(longest));
        self.worker.runtime.spawn(reading);
    }

    pub(super) const fn worker(&self) -> &Worker {
        &self.worker
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    pub(super) const fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    pub(super) fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// Connections that are not drained.
    #[cfg(test)]
    pub(super) fn open_connections(&self) -> usize {
        self.table().endpoint.open_connections()
    }

    #[cfg(test)]
    pub(super) fn handed_over(&self) -> usize {
        self.siblings.handed_over.load(Ordering::Relaxed)
    }

    /// The next connection that begins. One task may wait for it.
    pub(super) fn poll_incoming(&self, cx: &Context<'_>) -> Poll<quinn_proto::Incoming> {
        let mut table = self.table();
        match table.incoming.pop_front() {
            Some(incoming) => Poll::Ready(incoming),
            None => {
                table.accepting = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Takes a connection in, whose packets go to the inbox from now on.
    ///
    /// # Errors
    /// It has ended already, or is none.
    pub(super) fn accept(
        &self,
        incoming: quinn_proto::Incoming,
        config: ServerConfig,
    ) -> Result<Accepted, ConnectionError> {
        let (now, mut answer) = (clock::now(), Vec::new());
        let mut table = self.table();
        let config = Some(Arc::new(config));
        let accepted = table.endpoint.accept(incoming, now, &mut answer, config);
        let (number, proto) = accepted.map_err(|error| {
            if let Some(transmit) = error.response {
                self.answer(&transmit, &answer);
            }
            error.cause
        })?;
        let inbox = Arc::new(Inbox::new(self.inbox));
        if table.connections.len() <= number.0 {
            table.connections.resize_with(number.0 + 1, || None);
        }
        table.connections[number.0] = Some(Entry {
            inbox: Arc::clone(&inbox),
            connection: None,
        });
        table.open += 1;
        self.siblings.open.fetch_add(1, Ordering::Relaxed);
        Ok(Accepted {
            number,
            proto,
            inbox,
        })
    }

    /// The connection of this number is closed when the server closes all.
    pub(super) fn register(&self, number: ConnectionHandle, connection: Weak<dyn Close>) {
        let mut table = self.table();
        let closed = table.closed.clone();
        let now = connection.upgrade();
        if let Some(Some(entry)) = table.connections.get_mut(number.0) {
            entry.connection = Some(connection);
        }
        drop(table);
        if let (Some((code, reason)), Some(connection)) = (closed, now) {
            connection.close(code, &reason);
        }
    }

    /// Turns a connection away.
    pub(super) fn refuse(&self, incoming: quinn_proto::Incoming) {
        let mut answer = Vec::new();
        let transmit = self.table().endpoint.refuse(incoming, &mut answer);
        self.answer(&transmit, &answer);
    }

    /// Has a connection prove its address.
    pub(super) fn retry(&self, incoming: quinn_proto::Incoming) {
        let mut answer = Vec::new();
        let retried = self.table().endpoint.retry(incoming, &mut answer);
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
        let mut table = self.table();
        let mut last = false;
        if event.is_drained()
            && let Some(entry) = table.connections.get_mut(number.0)
            && entry.take().is_some()
        {
            table.open -= 1;
            if table.open == 0 {
                table.idle.drain(..).for_each(Waker::wake);
            }
            last = self.siblings.open.fetch_sub(1, Ordering::Relaxed) == 1;
        }
        let answer = table.endpoint.handle_event(number, event);
        drop(table);
        if last {
            self.siblings.all().for_each(|demux| demux.wake_reader());
        }
        answer
    }

    fn wake_reader(&self) {
        let reader = self.table().reader.take();
        reader.into_iter().for_each(Waker::wake);
    }

    /// Closes all connections, and takes no more.
    pub(super) fn close(&self, code: VarInt, reason: &[u8]) {
        let mut table = self.table();
        table.closed = Some((code, reason.to_owned()));
        let incoming = std::mem::take(&mut table.incoming);
        let connections = table.connections.iter().flatten();
        let connections: Vec<_> = connections
            .filter_map(|entry| entry.connection.as_ref()?.upgrade())
            .collect();
        drop(table);
        for incoming in incoming {
            self.refuse(incoming);
        }
        for connection in connections {
            connection.close(code, reason);
        }
    }

    /// Takes no more connections; those that there are go on, and the socket is kept for them.
    pub(super) fn stop_accepting(&self) {
        let mut table = self.table();
        table.refusing = true;
        while let Some(incoming) = table.incoming.pop_front() {
            table.endpoint.ignore(incoming);
        }
        table.reader.take().into_iter().for_each(Waker::wake);
    }

    /// Waits until all connections are drained.
    pub(super) async fn idle(&self) {
        poll_fn(|cx| {
            let mut table = self.table();
            if table.open == 0 {
                return Poll::Ready(());
            }
            table.idle.push(cx.waker().clone());
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
                self.dispatch(batch, wakers);
                wakers.drain(..).for_each(Waker::wake);
                // The tasks that were woken have their turn before more is read.
                cx.waker().wake_by_ref();
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => {}
        }
        let mut table = self.table();
        // The kernel may have this socket get packets of connections that are the others'.
        if table.refusing && self.siblings.open.load(Ordering::Relaxed) == 0 {
            return Poll::Ready(Ok(()));
        }
        table.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Gives each packet to its connection.
    fn dispatch(&self, batch: &mut Batch, wakers: &mut Vec<Waker>) {
        let mut answer = Vec::new();
        // None but after the address of a client has changed.
        let mut astray = Vec::new();
        let mut table = self.table();
        while let Some(packet) = batch.pop() {
            match self.siblings.steering.owner(&packet.data) {
                Some(owner) if owner != self.worker.number => astray.push((owner, packet)),
                _ => self.take(&mut table, packet, &mut answer, wakers),
            }
        }
        drop(table);
        // One table's lock at a time: the other's task may be handing over to this one.
        for (owner, packet) in astray {
            if let Some(demux) = self.siblings.get(owner) {
                #[cfg(test)]
                self.siblings.handed_over.fetch_add(1, Ordering::Relaxed);
                demux.take(&mut demux.table(), packet, &mut answer, wakers);
            }
        }
    }

    fn take(
        &self,
        table: &mut Table,
        packet: Packet,
        answer: &mut Vec<u8>,
        wakers: &mut Vec<Waker>,
    ) {
        let bytes = packet.data.len();
        answer.clear();
        match handle(&mut table.endpoint, packet, answer) {
            Some(DatagramEvent::ConnectionEvent(number, event)) => {
                wakers.extend(table.put(number, event, bytes));
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if table.closed.is_some() || table.refusing {
                    let transmit = table.endpoint.refuse(incoming, answer);
                    self.answer(&transmit, answer);
                } else {
                    table.incoming.push_back(incoming);
                    wakers.extend(table.accepting.take());
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.answer(&transmit, answer),
            None => {}
        }
    }
}
