//! Packets without a mark for explicit congestion notification (ECN, RFC 3168).
//!
//! quinn marks all packets as capable of it (ECT(0)). A router then marks in place of dropping, and
//! expects whoever sends to slow down; but the session does the congestion control, by losses and
//! delays, and learns of no marks.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};

/// A socket that sends packets unmarked.
pub(super) struct Unmarked(Arc<dyn AsyncUdpSocket>);

impl Unmarked {
    /// Takes a socket into the runtime.
    ///
    /// # Errors
    /// The runtime's.
    pub(super) fn wrap(socket: std::net::UdpSocket) -> io::Result<Arc<Self>> {
        let socket = TokioRuntime.wrap_udp_socket(socket)?;
        Ok(Arc::new(Self(socket)))
    }
}

impl AsyncUdpSocket for Unmarked {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.0).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.0.try_send(&Transmit {
            destination: transmit.destination,
            ecn: None,
            contents: transmit.contents,
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        })
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.0.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.0.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.0.may_fragment()
    }
}

impl fmt::Debug for Unmarked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unmarked").field(&self.0).finish()
    }
}
