use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use quinn::{Connection, ConnectionError, Endpoint, SendDatagramError, VarInt};

use super::handshake::{EXPORTER_LABEL, Exported, SessionId};
use super::socket::SocketSpec;
use super::socket_error::SocketError;
use super::transparent::{PacketSize, Transparent};
use super::unmarked::Unmarked;
use super::{
    Carrier, CarrierEnd, CarrierKind, MAX_CLOSE_REASON, MIN_MTU, SendError, cut, printable,
};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send + Sync>>;

/// More than quinn counts for a queued datagram besides its bytes, so that the room remembered
/// is never more than the room there is.
const QUEUED_OVERHEAD: usize = 64;

/// A carrier that is one QUIC connection (RFC 9000) and its DATAGRAM frames (RFC 9221).
///
/// QUIC answers for encryption, replay protection, address validation and NAT rebinding, and has
/// neither congestion control, pacing nor keep-alive here: all that is the session's. It searches
/// for the largest packet that passes, so [`max_datagram`](Carrier::max_datagram) changes.
/// Its worst-case memory is [`QuicConfig::receive_buffer`](super::QuicConfig::receive_buffer) and
/// [`QuicConfig::send_buffer`](super::QuicConfig::send_buffer) with a few KiB.
pub struct QuicCarrier {
    pub(super) connection: Connection,
    endpoint: Endpoint,
    side: Side,
    max_datagram: usize,
    /// The size of packets for which `max_datagram` was asked for, and that of now.
    asked_for: u16,
    packet: PacketSize,
    /// Lower bound of the room in quinn's send buffer (bytes). Only `send` takes room, so it is
    /// asked for, under a lock, only when this is used up.
    room: usize,
    /// The datagram that found the buffer full, waiting for room.
    parked: Option<Boxed<Result<(), SendDatagramError>>>,
    /// Waits for the next datagram, and keeps the task registered between two polls.
    reading: Option<Boxed<Result<Bytes, ConnectionError>>>,
    /// The task that polled last.
    waker: Waker,
    /// Waits until the socket has no connection left.
    draining: Option<Boxed<()>>,
}

/// Who owns the socket.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    /// The carrier: it was dialled, from this source address.
    Dialled(IpAddr),
    /// The listener.
    Accepted,
}

impl fmt::Debug for QuicCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicCarrier")
            .field("side", &self.side)
            .field("remote", &self.remote_addr())
            .field("max_datagram", &self.max_datagram)
            .field("room", &self.room)
            .field("parked", &self.parked.is_some())
            .finish_non_exhaustive()
    }
}

impl QuicCarrier {
    /// `None` when the peer takes no datagrams. Of a connection whose transport is
    /// [`QuicConfig`](super::QuicConfig)'s.
    pub(super) fn new(connection: Connection, endpoint: Endpoint, side: Side) -> Option<Self> {
        let packet = PacketSize::of(&connection)?;
        Some(Self {
            asked_for: packet.get(),
            packet,
            max_datagram: connection.max_datagram_size()?,
            room: connection.datagram_send_buffer_space(),
            connection,
            endpoint,
            side,
            parked: None,
            reading: None,
            waker: Waker::noop().clone(),
            draining: None,
        })
    }

    /// Moves to a new socket, for when the local address has changed: the connection goes on from
    /// there (RFC 9000 section 9). For a carrier that was dialled.
    ///
    /// # Errors
    /// The socket cannot be opened; the carrier then keeps the old one.
    pub fn rebind(&mut self, spec: &SocketSpec) -> Result<(), SocketError> {
        let Side::Dialled(source) = &mut self.side else {
            return Err(SocketError::Shared);
        };
        let new = spec.open(self.connection.remote_address())?;
        let singly = Transparent::singly(&self.connection).unwrap_or_default();
        Unmarked::wrap(new.socket, singly)
            .and_then(|socket| self.endpoint.rebind_abstract(socket))
            .map_err(|source| SocketError::Io {
                bind: spec.bind.clone(),
                source,
            })?;
        *source = new.source;
        Ok(())
    }

    /// QUIC's smoothed round-trip time. It counts ACKs that are delayed by up to 25 ms, so it is
    /// for display; the session measures its own.
    pub fn rtt(&self) -> Duration {
        self.connection.rtt()
    }

    /// A datagram that has come, without leaving the task registered for the next.
    fn try_read(&self) -> Poll<Result<Bytes, ConnectionError>> {
        let mut cx = Context::from_waker(Waker::noop());
        pin!(self.connection.read_datagram()).poll(&mut cx)
    }

    /// Pending while a datagram waits for room.
    fn poll_parked(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(parked) = &mut self.parked else {
            return Poll::Ready(());
        };
        // Whatever it says, the datagram is gone: an end shows in `poll_recv` too, and a datagram
        // that no longer fits is as lost as on the way.
        let done = parked.as_mut().poll(cx).map(|_| ());
        if done.is_ready() {
            self.parked = None;
            self.room = 0;
        }
        done
    }

    fn remember(&mut self, cx: &Context<'_>) {
        if !self.waker.will_wake(cx.waker()) {
            self.waker.clone_from(cx.waker());
        }
    }
}

impl Carrier for QuicCarrier {
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<Result<usize, CarrierEnd>> {
        self.remember(cx);
        let _ = self.poll_parked(cx);
        let mut count = 0;
        while count < limit {
            let next = match &mut self.reading {
                Some(reading) => match reading.as_mut().poll(cx) {
                    Poll::Ready(next) => {
                        self.reading = None;
                        next
                    }
                    Poll::Pending => break,
                },
                None => match self.try_read() {
                    Poll::Ready(next) => next,
                    Poll::Pending => {
                        let connection = self.connection.clone();
                        self.reading =
                            Some(Box::pin(async move { connection.read_datagram().await }));
                        continue;
                    }
                },
            };
            match next {
                Ok(datagram) => {
                    out.push(datagram);
                    count += 1;
                }
                Err(_) if count > 0 => break,
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        match count {
            0 => Poll::Pending,
            _ => Poll::Ready(Ok(count)),
        }
    }

    fn send(&mut self, datagram: Bytes) -> Result<(), SendError> {
        let len = datagram.len();
        if len > self.max_datagram() {
            return Err(SendError::TooLarge {
                len,
                max: self.max_datagram,
            });
        }
        if self.parked.is_some() {
            return Err(SendError::Full(datagram));
        }
        if self.room < len + QUEUED_OVERHEAD {
            self.room = self.connection.datagram_send_buffer_space();
        }
        if self.room < len {
            if let Some(error) = self.connection.close_reason() {
                return Err(SendError::Ended(error.into()));
            }
            // quinn reports room only to tasks that wait with a datagram, so this one waits.
            let connection = self.connection.clone();
            self.parked = Some(Box::pin(async move {
                connection.send_datagram_wait(datagram).await
            }));
            let waker = self.waker.clone();
            let _ = self.poll_parked(&mut Context::from_waker(&waker));
            return Ok(());
        }
        self.room = self.room.saturating_sub(len + QUEUED_OVERHEAD);
        match self.connection.send_datagram(datagram) {
            Ok(()) => Ok(()),
            Err(SendDatagramError::ConnectionLost(error)) => Err(SendError::Ended(error.into())),
            Err(_) => {
                self.max_datagram = self.connection.max_datagram_size().unwrap_or(0);
                Err(SendError::TooLarge {
                    len,
                    max: self.max_datagram,
                })
            }
        }
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.remember(cx);
        self.poll_parked(cx)
    }

    fn max_datagram(&mut self) -> usize {
        let packet = self.packet.get();
        if packet != self.asked_for {
            self.asked_for = packet;
            self.max_datagram = self.connection.max_datagram_size().unwrap_or(0);
        }
        self.max_datagram
    }

    fn least_datagram(&mut self) -> usize {
        let max = self.max_datagram();
        max.saturating_sub(usize::from(self.asked_for.saturating_sub(MIN_MTU)))
    }

    fn remote_addr(&self) -> SocketAddr {
        remote_addr(&self.connection)
    }

    fn local_addr(&self) -> SocketAddr {
        let bound = self.endpoint.local_addr();
        let (ip, port) = bound.map_or((IpAddr::from([0; 4]), 0), |a| (a.ip(), a.port()));
        let ip = match self.side {
            Side::Dialled(source) => source,
            Side::Accepted => self.connection.local_ip().unwrap_or(ip),
        };
        SocketAddr::new(ip.to_canonical(), port)
    }

    fn kind(&self) -> CarrierKind {
        CarrierKind::Quic
    }

    fn close(&mut self, code: u32, reason: &str) {
        let reason = cut(reason, MAX_CLOSE_REASON);
        self.connection
            .close(VarInt::from_u32(code), reason.as_bytes());
    }

    fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if matches!(self.side, Side::Accepted) {
            return Poll::Ready(());
        }
        let endpoint = self.endpoint.clone();
        let draining = self
            .draining
            .get_or_insert_with(|| Box::pin(async move { endpoint.wait_idle().await }));
        draining.as_mut().poll(cx)
    }
}

impl Drop for QuicCarrier {
    fn drop(&mut self) {
        // The futures hold connections of their own, which would keep this one open.
        self.close(0, "");
    }
}

/// The peer's address, an IPv4 one as such even where the socket is an IPv6 one.
pub(super) fn remote_addr(connection: &Connection) -> SocketAddr {
    let remote = connection.remote_address();
    SocketAddr::new(remote.ip().to_canonical(), remote.port())
}

/// What this connection's TLS exports for a session (RFC 8446 section 7.5); `None` never, by
/// quinn's and rustls' sources, for 32 bytes after the handshake.
pub(super) fn exported(connection: &Connection, session: SessionId) -> Option<Exported> {
    let mut bytes = Exported::default();
    connection
        .export_keying_material(bytes.as_mut(), EXPORTER_LABEL, &session.0)
        .ok()?;
    Some(bytes)
}

impl From<ConnectionError> for CarrierEnd {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::LocallyClosed => Self::Local,
            ConnectionError::ApplicationClosed(close) => Self::Peer {
                code: close.error_code.into_inner(),
                reason: printable(&close.reason, MAX_CLOSE_REASON),
            },
            ConnectionError::TimedOut => Self::Idle,
            ConnectionError::Reset => Self::Reset,
            // Names the other end's words too, which it may have filled with anything.
            other => Self::Protocol(printable(
                other.to_string().as_bytes(),
                2 * MAX_CLOSE_REASON,
            )),
        }
    }
}
