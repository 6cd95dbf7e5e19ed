//! A connection whose two ends have proved their keys, whatever it runs over.

use std::fmt;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use marline_proto::congestion::CarrierState;

use super::handshake::{Exported, SessionId};
use super::quic::{self, Connection, QuicCarrier, Side};
use super::tcp::{TcpCarrier, TcpLink};
use super::{Carrier, CarrierEnd, CarrierKind, SendError, SocketError, SocketSpec};

/// A connection that carries nothing but the handshake yet.
pub(super) enum Link {
    Quic(QuicLink),
    Tcp(Box<TcpLink>),
}

/// One QUIC connection, and whose its socket is.
#[derive(Clone)]
pub(super) struct QuicLink {
    pub(super) connection: Connection,
    pub(super) side: Side,
}

impl QuicLink {
    /// `None` when the peer takes no datagrams.
    pub(super) fn into_carrier(self) -> Option<QuicCarrier> {
        QuicCarrier::new(self.connection, self.side)
    }
}

impl Link {
    pub(super) fn exported(&self, session: SessionId) -> Option<Exported> {
        match self {
            Self::Quic(link) => quic::exported(&link.connection, session),
            Self::Tcp(link) => link.exported(session),
        }
    }

    pub(super) fn remote_addr(&self) -> SocketAddr {
        match self {
            Self::Quic(link) => quic::remote_addr(&link.connection),
            Self::Tcp(link) => link.remote,
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Quic(_) => "Quic",
            Self::Tcp(_) => "Tcp",
        };
        f.debug_tuple(name).field(&self.remote_addr()).finish()
    }
}

/// The carrier of a path over a network.
#[derive(Debug)]
pub enum PathCarrier {
    /// QUIC datagrams.
    Quic(QuicCarrier),
    /// TLS over TCP.
    Tcp(TcpCarrier),
}

/// What either carrier answers.
macro_rules! either {
    ($self:ident, $carrier:ident => $answer:expr) => {
        match $self {
            Self::Quic($carrier) => $answer,
            Self::Tcp($carrier) => $answer,
        }
    };
}

impl PathCarrier {
    /// The carrier's own smoothed round-trip time, if it has one; the session measures its own.
    pub fn rtt(&self) -> Option<Duration> {
        match self {
            Self::Quic(carrier) => Some(carrier.rtt()),
            Self::Tcp(carrier) => carrier.rtt(),
        }
    }

    /// Moves to a new socket, for when the local address has changed ([`QuicCarrier::rebind`]).
    ///
    /// # Errors
    /// The socket cannot be opened, or is not this carrier's; a TCP connection has to be dialled
    /// again. The carrier stays as it is.
    pub fn rebind(&mut self, spec: &SocketSpec) -> Result<(), SocketError> {
        match self {
            Self::Quic(carrier) => carrier.rebind(spec),
            Self::Tcp(_) => Err(SocketError::Shared),
        }
    }
}

impl Carrier for PathCarrier {
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<Result<usize, CarrierEnd>> {
        either!(self, carrier => carrier.poll_recv(cx, out, limit))
    }

    fn send(&mut self, datagram: Bytes) -> Result<(), SendError> {
        either!(self, carrier => carrier.send(datagram))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        either!(self, carrier => carrier.poll_flush(cx))
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        either!(self, carrier => carrier.poll_writable(cx))
    }

    fn max_datagram(&mut self) -> usize {
        either!(self, carrier => carrier.max_datagram())
    }

    fn least_datagram(&mut self) -> usize {
        either!(self, carrier => carrier.least_datagram())
    }

    fn remote_addr(&self) -> SocketAddr {
        either!(self, carrier => carrier.remote_addr())
    }

    fn local_addr(&self) -> SocketAddr {
        either!(self, carrier => carrier.local_addr())
    }

    fn kind(&self) -> CarrierKind {
        either!(self, carrier => carrier.kind())
    }

    fn congestion(&mut self) -> Option<CarrierState> {
        either!(self, carrier => carrier.congestion())
    }

    fn close(&mut self, code: u32, reason: &str) {
        either!(self, carrier => carrier.close(code, reason));
    }

    fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        either!(self, carrier => carrier.poll_drained(cx))
    }
}
