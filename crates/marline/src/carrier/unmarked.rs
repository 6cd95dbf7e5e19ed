//! Packets without a mark for explicit congestion notification (ECN, RFC 3168), and one by one to
//! those destinations that get none in batches.
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

use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};

use super::batches::Singly;
use super::plain::Plain;

/// A socket that sends packets unmarked.
pub(super) struct Unmarked {
    pub(super) socket: Arc<dyn AsyncUdpSocket>,
    pub(super) singly: Singly,
}

impl Unmarked {
    /// Takes a socket into the runtime.
    ///
    /// # Errors
    /// The runtime's.
    pub(super) fn wrap(socket: std::net::UdpSocket, singly: Singly) -> io::Result<Arc<Self>> {
        // Tried first: the runtime would keep the socket with the error.
        let socket = match UdpSocketState::new((&socket).into()) {
            Ok(_) => TokioRuntime.wrap_udp_socket(socket)?,
            Err(error) => Plain::wrap(socket, &error)?,
        };
        Ok(Arc::new(Self { socket, singly }))
    }

    /// Sends a batch one by one.
    fn send_singly(&self, batch: &Transmit<'_>, size: usize) -> io::Result<()> {
        for (index, contents) in batch.contents.chunks(size).enumerate() {
            let sent = self.socket.try_send(&Transmit {
                destination: batch.destination,
                ecn: None,
                contents,
                segment_size: None,
                src_ip: batch.src_ip,
            });
            match sent {
                Ok(()) => {}
                Err(error) if index == 0 => return Err(error),
                // Some have left, so the batch must not come again: the rest is lost, as it may
                // be on the way.
                Err(_) => break,
            }
        }
        Ok(())
    }
}

impl AsyncUdpSocket for Unmarked {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.socket).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if let Some(size) = transmit.segment_size.filter(|size| *size > 0)
            && self.singly.has(transmit.destination)
        {
            return self.send_singly(transmit, size);
        }
        self.socket.try_send(&Transmit {
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
        self.socket.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

impl fmt::Debug for Unmarked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unmarked").field(&self.socket).finish()
    }
}
