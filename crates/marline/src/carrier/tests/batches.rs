//! A network that loses every batch of packets whole.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use super::super::unmarked::Unmarked;
use crate::carrier::QuicConfig;

/// A socket of such a network.
#[derive(Debug)]
struct Losing(Arc<dyn AsyncUdpSocket>);

/// The socket, in such a network if the configuration says so.
pub(in crate::carrier) fn losing(socket: Arc<Unmarked>, config: &QuicConfig) -> Arc<Unmarked> {
    match config.loses_batches {
        true => Arc::new(Unmarked {
            socket: Arc::new(Losing(Arc::clone(&socket.socket))),
            singly: socket.singly.clone(),
        }),
        false => socket,
    }
}

impl AsyncUdpSocket for Losing {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.0).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        match transmit.segment_size {
            Some(_) => Ok(()),
            None => self.0.try_send(transmit),
        }
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
