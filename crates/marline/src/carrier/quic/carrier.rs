use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use quinn_proto::{ConnectionError, VarInt};

use super::connection::{self, Connection};
use super::socket::Socket;
use crate::carrier::handshake::{EXPORTER_LABEL, Exported, SessionId};
use crate::carrier::socket::SocketSpec;
use crate::carrier::socket_error::SocketError;
use crate::carrier::transparent::{PacketSize, Transparent};
use crate::carrier::{
    Carrier, CarrierEnd, CarrierKind, MAX_CLOSE_REASON, MIN_MTU, SendError, cut, printable,
};

/// A carrier that is one QUIC connection (RFC 9000) and its DATAGRAM frames (RFC 9221).
///
/// QUIC answers for encryption, replay protection, address validation and NAT rebinding, and has
/// neither congestion control, pacing nor keep-alive here: all that is the session's. It searches
/// for the largest packet that passes, so [`max_datagram`](Carrier::max_datagram) changes.
/// Its worst-case memory is the [`QuicConfig`](crate::carrier::QuicConfig)'s `receive_buffer` and
/// `send_buffer` with a few KiB.
pub struct QuicCarrier {
    pub(in crate::carrier) connection: Connection,
    side: Side,
    max_datagram: usize,
    /// The size of packets for which `max_datagram` was asked for, and that of now.
    asked_for: u16,
    packet: PacketSize,
    /// Length of the datagram that found the buffer full last, until there was room.
    full: Option<usize>,
}

/// Who owns the socket.
#[derive(Clone, Copy, Debug)]
pub(in crate::carrier) enum Side {
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
            .field("full", &self.full)
            .finish_non_exhaustive()
    }
}

impl QuicCarrier {
    /// `None` when the peer takes no datagrams. Of a connection whose transport is
    /// [`QuicConfig`](crate::carrier::QuicConfig)'s.
    pub(in crate::carrier) fn new(connection: Connection, side: Side) -> Option<Self> {
        let packet = PacketSize::of(connection.congestion())?;
        Some(Self {
            asked_for: packet.get(),
            packet,
            max_datagram: connection.max_datagram_size()?,
            connection,
            side,
            full: None,
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
        let singly = Transparent::singly(self.connection.congestion()).unwrap_or_default();
        let socket = Socket::new(new.socket, singly, None);
        let socket = socket.map_err(|source| SocketError::Io {
            bind: spec.bind.clone(),
            source,
        })?;
        self.connection.rebind(socket);
        *source = new.source;
        Ok(())
    }

    /// QUIC's smoothed round-trip time. It counts ACKs that are delayed by up to 25 ms, so it is
    /// for display; the session measures its own.
    pub fn rtt(&self) -> Duration {
        self.connection.rtt()
    }
}

impl Carrier for QuicCarrier {
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<Result<usize, CarrierEnd>> {
        let polled = self.connection.poll_recv(cx, out, limit);
        polled.map_err(CarrierEnd::from)
    }

    fn send(&mut self, datagram: Bytes) -> Result<(), SendError> {
        let len = datagram.len();
        let sent = match len <= self.max_datagram() {
            true => self.connection.send(datagram),
            false => Err(connection::SendError::TooLarge),
        };
        match sent {
            Ok(()) => Ok(()),
            Err(connection::SendError::Full(datagram)) => {
                self.full = Some(len);
                Err(SendError::Full(datagram))
            }
            Err(connection::SendError::Ended(error)) => Err(SendError::Ended(error.into())),
            Err(connection::SendError::TooLarge) => {
                self.max_datagram = self.connection.max_datagram_size().unwrap_or(0);
                let max = self.max_datagram;
                Err(SendError::TooLarge { len, max })
            }
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.connection.flush(cx);
        Poll::Ready(())
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.connection.flush(cx);
        let Some(len) = self.full else {
            return Poll::Ready(());
        };
        if self.connection.close_reason().is_some() {
            return Poll::Ready(());
        }
        // What was queued has left: others have a turn before more is.
        if self.connection.has_room(len) {
            self.full = None;
            cx.waker().wake_by_ref();
        }
        Poll::Pending
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
        let bound = self.connection.bound_to();
        let ip = match self.side {
            Side::Dialled(source) => source,
            Side::Accepted => self.connection.local_ip().unwrap_or(bound.ip()),
        };
        SocketAddr::new(ip.to_canonical(), bound.port())
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
        self.connection.poll_drained(cx)
    }
}

impl Drop for QuicCarrier {
    fn drop(&mut self) {
        // Others may have handles on the connection, too.
        self.close(0, "");
    }
}

/// The peer's address, an IPv4 one as such even where the socket is an IPv6 one.
pub(in crate::carrier) fn remote_addr(connection: &Connection) -> SocketAddr {
    let remote = connection.remote_address();
    SocketAddr::new(remote.ip().to_canonical(), remote.port())
}

/// What this connection's TLS exports for a session (RFC 8446 section 7.5); `None` never, by
/// quinn's and rustls' sources, for 32 bytes after the handshake.
pub(in crate::carrier) fn exported(
    connection: &Connection,
    session: SessionId,
) -> Option<Exported> {
    let mut bytes = Exported::default();
    connection
        .export_keying_material(bytes.as_mut(), EXPORTER_LABEL, &session.0)
        .then_some(bytes)
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
