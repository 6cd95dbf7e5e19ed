//! Carriers: what brings authenticated, encrypted datagrams over one path and back.
//!
//! A session has one carrier a path and never sees a socket. The carrier neither paces nor
//! windows nor judges whether the path is alive: the session does, for all its paths alike.
//!
//! | file | what |
//! | --- | --- |
//! | `config.rs` | [`QuicConfig`]: datagram size, idle limit, buffers |
//! | `bind.rs` | [`Bind`]: the interface or the source address of a path |
//! | `socket.rs`, `socket_error.rs` | [`SocketSpec`]: a UDP socket so bound; why there is none |
//! | `dial/` | [`Dial`]: the client's side of a new carrier |
//! | `listen_config.rs` | [`ListenConfig`]: where a server listens, what strangers may cost |
//! | `listen.rs` | [`Listener`]: the server's sockets |
//! | `serving.rs` | a port's sockets |
//! | `greet.rs` | a connection at a server on its way to being an attempt |
//! | `batches.rs` | whether batches of packets arrive, or are sent one by one |
//! | `strangers/` | what those may cost whom the server does not know, or not yet |
//! | `attempt.rs` | [`Attempt`]: a client that asks, and how it is answered |
//! | `handshake/` | who may open or join a session (`docs/CARRIER.md`) |
//! | `link.rs` | [`PathCarrier`]: either of the next two, and what they begin as |
//! | `quic/` | [`QuicCarrier`]: one QUIC connection (RFC 9000, RFC 9221) |
//! | `tcp/` | [`TcpCarrier`]: one TLS connection over TCP, where UDP is blocked |
//! | `choice.rs` | [`CarrierChoice`]: which of them a path may use |
//! | `memory.rs` | [`MemoryCarrier`]: two ends within one process, for tests |
//! | `tls.rs` | TLS by raw public keys |
//! | `transparent.rs` | a congestion controller that controls nothing |
//!
//! One path has one QUIC connection on its own socket, with a congestion controller that controls
//! nothing, because Marline windows and paces every path itself. Where UDP is blocked, a TLS
//! connection over TCP takes its place; there the session leaves congestion control to the kernel
//! and shows schedulers what the kernel reports (`Session::on_carrier_state`). Both ends prove raw
//! public keys (RFC 7250): the client pins the server's key, the server lists its clients' keys. A
//! further path joins a session by a proof from the first connection's TLS exporter.
//!
//! A carrier buffers at most 128 KiB to send and 4 MiB received, unless it is configured otherwise.

mod attempt;
mod batches;
mod bind;
mod choice;
mod config;
mod dial;
mod greet;
pub mod handshake;
mod link;
mod listen;
mod listen_config;
mod memory;
mod quic;
mod serving;
mod socket;
mod socket_error;
mod strangers;
mod tcp;
mod tls;
mod transparent;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt::Debug;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::Bytes;
use marline_proto::congestion::CarrierState;

pub use attempt::{AcceptError, Attempt, JoinAttempt, NewAttempt};
pub use bind::{Bind, Network, SocketHandle};
pub use choice::{CarrierChoice, CarrierKind};
pub use config::{ConfigError, MAX_MTU, MIN_MTU, Offload, QuicConfig};
pub use dial::{Dial, DialError, Dialled, Opened, Outcomes};
pub use link::PathCarrier;
pub use listen::{ListenError, Listener};
pub use listen_config::{BALANCES, ListenConfig};
pub use memory::{MemoryCarrier, MemoryConfig};
pub use quic::QuicCarrier;
pub use socket::{Egress, SocketSpec};
pub(crate) use socket::{device, is_local, routable};
pub use socket_error::SocketError;
pub use tcp::TcpCarrier;

/// Most bytes of the reason that [`Carrier::close`] hands over; more is cut off between two
/// characters.
pub const MAX_CLOSE_REASON: usize = 256;

/// The code of [`Carrier::close`] that says that the whole session is over, not only the path.
pub const SESSION_OVER: u32 = 1;

/// What brings datagrams over one path.
///
/// Calling contract, on one task: on every turn call [`poll_recv`](Self::poll_recv) until it is
/// pending, then [`send`](Self::send) what there is to send, then [`poll_flush`](Self::poll_flush).
/// After `send` has returned [`SendError::Full`], call [`poll_writable`](Self::poll_writable) and
/// send again once it is ready. What was sent leaves the host by `poll_flush`.
/// Dropping a carrier closes it with code 0.
pub trait Carrier: Debug + Send {
    /// Receives at most `limit` datagrams, appending them to `out` in the order of arrival, and
    /// returns how many (at least one).
    ///
    /// # Errors
    /// Why the carrier has ended, after the last datagram was handed over; and again whenever it
    /// is called after that.
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<Result<usize, CarrierEnd>>;

    /// Queues a datagram of at most [`max_datagram`](Self::max_datagram) bytes. Never waits, and
    /// never drops what was queued before.
    ///
    /// # Errors
    /// The datagram is not queued when there is no room, when it is too large, or when the
    /// carrier has ended.
    fn send(&mut self, datagram: Bytes) -> Result<(), SendError>;

    /// Sees what [`send`](Self::send) has queued on its way, and wakes the task when it should be
    /// called again.
    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// Ready as soon as [`send`](Self::send) has room for a datagram again, and when the carrier
    /// has ended.
    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Longest datagram (bytes) that [`send`](Self::send) takes now. It changes when the carrier
    /// has found that the path takes longer ones, or has shrunk; what was queued and no longer fits
    /// is lost.
    fn max_datagram(&mut self) -> usize;

    /// Length (bytes) of datagrams that pass as long as anything does; the session begins with it.
    fn least_datagram(&mut self) -> usize {
        self.max_datagram()
    }

    /// The peer's address now. At a server it changes when the client's NAT gives the path a new
    /// address; nothing needs to be done about that.
    fn remote_addr(&self) -> SocketAddr;

    /// This end's address, as far as it is known; the IP address is unspecified otherwise.
    fn local_addr(&self) -> SocketAddr;

    /// What brings the datagrams, for people.
    fn kind(&self) -> CarrierKind;

    /// How the carrier's own congestion control stands now; `None` from carriers without one, which
    /// answer that always.
    fn congestion(&mut self) -> Option<CarrierState> {
        None
    }

    /// Ends the carrier and sends the peer a code and a reason in words (at most
    /// [`MAX_CLOSE_REASON`] bytes). What is queued and not yet sent is lost.
    fn close(&mut self, code: u32, reason: &str);

    /// Ready once a closed carrier has informed the peer, and has seen its last late packets. To be
    /// awaited, with a limit, before the runtime ends; else the peer may learn of the end only by
    /// its idle limit. A carrier that shares its socket with others is ready at once.
    fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

/// Why [`Carrier::send`] did not take a datagram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// No room; here is the datagram back.
    #[error("the carrier's send buffer is full")]
    Full(Bytes),
    /// The datagram is longer than the path takes.
    #[error("a datagram of {len} bytes is longer than the {max} that the path takes")]
    TooLarge {
        /// Its length in bytes.
        len: usize,
        /// The most that [`Carrier::max_datagram`] now allows.
        max: usize,
    },
    /// The carrier has ended.
    #[error(transparent)]
    Ended(CarrierEnd),
}

/// Why a carrier has ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CarrierEnd {
    /// This end closed it.
    #[error("closed at this end")]
    Local,
    /// The peer closed it.
    #[error("closed by the peer: {reason} (code {code})")]
    Peer {
        /// The peer's code.
        code: u64,
        /// The peer's words, with control characters replaced.
        reason: String,
    },
    /// Nothing came from the peer for the whole idle limit.
    #[error("nothing came from the peer for the whole idle limit")]
    Idle,
    /// The peer no longer knows this carrier: it was restarted, or has ended it.
    #[error("the peer was restarted, or has given this path up")]
    Reset,
    /// The peer or the network broke the rules of the carrier's protocol.
    #[error("the carrier's protocol failed: {0}")]
    Protocol(String),
}

/// At most `max` bytes of `text`, cut between two characters.
fn cut(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Words from a peer, fit to be shown: at most `max` bytes, no control characters.
fn printable(bytes: &[u8], max: usize) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(max)]);
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}
