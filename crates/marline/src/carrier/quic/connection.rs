//! One QUIC connection, handled by whoever polls it.
//!
//! One task at a time handles a connection: a task of its own, the *keeper*, until a
//! [`QuicCarrier`](super::QuicCarrier) is polled; then the task that polls the carrier; and after
//! its end the keeper again, until the last late packets have come. So a datagram goes from the
//! session to the socket and back on one task.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, MutexGuard, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use quinn_proto::congestion::Controller;
use quinn_proto::{
    ClientConfig, ConnectError, ConnectionError, ConnectionHandle, Dir, EndpointConfig,
    SendDatagramError, StreamId, VarInt,
};

use super::demux::{Accepted, Close as _, Demux};
use super::inbox::Inbox;
use super::shared::{Handle, Shared};
use super::socket::Socket;
use super::state::State;
use super::streams::{RecvStream, SendStream};
use super::underlay::{Own, Underlay};

/// Packets that the keeper handles before other tasks have their turn: some 200 µs. A choice.
const KEPT_AT_ONCE: usize = 256;

/// A handle on a connection. When the last one of these and of its streams is dropped, the
/// connection is closed with code 0.
#[derive(Clone, Debug)]
pub(in crate::carrier) struct Connection(Arc<Handle>);

impl Connection {
    /// Begins a connection from a socket of its own. Needs a tokio runtime.
    ///
    /// # Errors
    /// Of the configuration or the address.
    pub(in crate::carrier) fn dial(
        socket: Socket,
        endpoint: EndpointConfig,
        config: ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Self, ConnectError> {
        let (own, handle, proto) = Own::dial(socket, endpoint, config, remote, server_name)?;
        let underlay = Underlay::Own(Box::new(own));
        // Its packets come by its own socket.
        Ok(Self::start(
            proto,
            handle,
            underlay,
            Arc::new(Inbox::new(0)),
        ))
    }

    /// A connection that was taken in at a server's socket. Needs a tokio runtime.
    pub(super) fn accepted(accepted: Accepted, demux: &Arc<Demux>) -> Self {
        let Accepted {
            number,
            proto,
            inbox,
        } = accepted;
        let connection = Self::start(proto, number, Underlay::Shared(Arc::clone(demux)), inbox);
        let shared: Weak<Shared> = Arc::downgrade(connection.0.shared());
        demux.register(number, shared);
        connection
    }

    fn start(
        proto: quinn_proto::Connection,
        handle: ConnectionHandle,
        underlay: Underlay,
        inbox: Arc<Inbox>,
    ) -> Self {
        let shared = Arc::new(Shared::new(State::new(proto, handle, underlay, inbox)));
        let kept = Arc::clone(&shared);
        tokio::spawn(poll_fn(move |cx| kept.lock().keep(cx, KEPT_AT_ONCE)));
        Self(Arc::new(Handle::new(shared)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Waits until `answer` has one, or the connection has ended.
    async fn until<T>(
        &self,
        mut answer: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, ConnectionError> {
        poll_fn(|cx| {
            let mut state = self.lock();
            if let Some(found) = answer(&mut state) {
                return Poll::Ready(Ok(found));
            }
            if let Some(error) = state.error() {
                return Poll::Ready(Err(error.clone()));
            }
            state.wait(cx);
            Poll::Pending
        })
        .await
    }

    /// Waits for the end of the handshake.
    pub(in crate::carrier) async fn established(&self) -> Result<(), ConnectionError> {
        self.until(|state| state.is_connected().then_some(())).await
    }

    /// Opens a stream in both directions.
    pub(in crate::carrier) async fn open_bi(
        &self,
    ) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.until(|state| state.proto.streams().open(Dir::Bi));
        Ok(self.streams(id.await?))
    }

    /// Waits for a stream that the peer opens in both directions.
    pub(in crate::carrier) async fn accept_bi(
        &self,
    ) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.until(|state| {
            let id = state.proto.streams().accept(Dir::Bi)?;
            // The peer may open another one.
            state.wake_driver();
            Some(id)
        });
        Ok(self.streams(id.await?))
    }

    fn streams(&self, id: StreamId) -> (SendStream, RecvStream) {
        (
            SendStream::new(Arc::clone(&self.0), id),
            RecvStream::new(Arc::clone(&self.0), id),
        )
    }

    /// Why it has ended, if it has.
    pub(in crate::carrier) fn close_reason(&self) -> Option<ConnectionError> {
        self.lock().error().cloned()
    }

    /// Waits for the end.
    pub(in crate::carrier) async fn closed(&self) -> ConnectionError {
        poll_fn(|cx| {
            let mut state = self.lock();
            match state.error() {
                Some(error) => Poll::Ready(error.clone()),
                None => {
                    state.wait(cx);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Closes it, if it has not ended, and sends the peer a code and a reason.
    pub(in crate::carrier) fn close(&self, code: VarInt, reason: &[u8]) {
        self.0.shared().close(code, reason);
    }

    /// The peer's address, as the socket shows it.
    pub(in crate::carrier) fn remote_address(&self) -> SocketAddr {
        self.lock().proto.remote_address()
    }

    /// The address at which the peer reached this end, where the system reports it.
    pub(in crate::carrier) fn local_ip(&self) -> Option<IpAddr> {
        self.lock().proto.local_ip()
    }

    /// The address that the socket is bound to.
    pub(in crate::carrier) fn bound_to(&self) -> SocketAddr {
        self.lock().underlay.socket().local_addr()
    }

    pub(in crate::carrier) fn rtt(&self) -> Duration {
        self.lock().proto.rtt()
    }

    /// Longest datagram that can be sent now; `None` when the peer takes none.
    pub(in crate::carrier) fn max_datagram_size(&self) -> Option<usize> {
        self.lock().proto.datagrams().max_size()
    }

    /// The peer's certificates or keys.
    pub(in crate::carrier) fn peer_identity(&self) -> Option<Box<dyn std::any::Any>> {
        self.lock().proto.crypto_session().peer_identity()
    }

    /// Fills `output` by TLS' exporter (RFC 8446 section 7.5); false after too much was asked for.
    pub(in crate::carrier) fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> bool {
        let state = self.lock();
        let session = state.proto.crypto_session();
        session
            .export_keying_material(output, label, context)
            .is_ok()
    }

    /// The congestion controller, as it is now.
    pub(in crate::carrier) fn congestion(&self) -> Box<dyn Controller> {
        self.lock().proto.congestion_state().clone_box()
    }

    /// Goes on over another socket (RFC 9000 section 9). For a connection that was dialled.
    pub(in crate::carrier) fn rebind(&self, socket: Socket) {
        let mut state = self.lock();
        if let Underlay::Own(own) = &mut state.underlay {
            own.rebind(socket);
            state.on_rebind();
        }
    }

    /// Appends datagrams that have come to `out`, at most `limit`. The task that calls this handles
    /// the connection from now on.
    pub(super) fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        out: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<Result<usize, ConnectionError>> {
        let mut state = self.lock();
        let carried = state.take_over(cx);
        let mut count = 0;
        loop {
            while count < limit
                && let Some(datagram) = state.proto.datagrams().recv()
            {
                out.push(datagram);
                count += 1;
            }
            if count >= limit || !carried || !state.receive_packet(cx) {
                break;
            }
        }
        // What there is to send is seen to by the flush that ends the caller's turn.
        if count > 0 {
            return Poll::Ready(Ok(count));
        }
        if carried {
            state.drive(cx);
        }
        match state.error() {
            Some(error) => Poll::Ready(Err(error.clone())),
            None => Poll::Pending,
        }
    }

    /// Queues a datagram.
    pub(super) fn send(&self, datagram: Bytes) -> Result<(), SendError> {
        let mut state = self.lock();
        if let Some(error) = state.error() {
            return Err(SendError::Ended(error.clone()));
        }
        state.mark_dirty();
        let sent = state.proto.datagrams().send(datagram, false);
        sent.map_err(|error| match error {
            SendDatagramError::Blocked(datagram) => SendError::Full(datagram),
            _ => SendError::TooLarge,
        })
    }

    /// Is there room for a datagram of this length?
    pub(super) fn has_room(&self, len: usize) -> bool {
        self.lock().proto.datagrams().send_buffer_space() >= len
    }

    /// Sends what is queued. The task that calls this handles the connection from now on.
    pub(super) fn flush(&self, cx: &mut Context<'_>) {
        let mut state = self.lock();
        if state.take_over(cx) {
            state.drive(cx);
        }
    }

    /// Ready when nothing is left of it.
    pub(super) fn poll_drained(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.is_drained() {
            return Poll::Ready(());
        }
        state.wait(cx);
        Poll::Pending
    }
}

/// Why a datagram was not queued.
#[derive(Debug)]
pub(super) enum SendError {
    Full(Bytes),
    TooLarge,
    Ended(ConnectionError),
}
