//! A tunnel within the process: both ends of a session without a session.

use bytes::Bytes;
use marline_apps::proxy::{
    Accept, ByteFlow, Incoming, IncomingFlow, OpenError, PacketFlow, Tunnel,
};
use marline_proto::FlowOptions;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::sync::{Mutex, mpsc};

/// Largest message, as a real session has one too.
pub(crate) const MAX_MESSAGE: usize = 60_000;

#[derive(Clone)]
pub(crate) struct MemoryTunnel {
    opened: mpsc::Sender<Incoming<MemoryStream, MemoryPackets>>,
}

pub(crate) struct MemoryAccept {
    opened: mpsc::Receiver<Incoming<MemoryStream, MemoryPackets>>,
}

/// Both ends of a session. Dropping the accepting end is the end of the session.
pub(crate) fn tunnel() -> (MemoryTunnel, MemoryAccept) {
    let (sender, receiver) = mpsc::channel(16);
    (
        MemoryTunnel { opened: sender },
        MemoryAccept { opened: receiver },
    )
}

impl MemoryTunnel {
    async fn announce(
        &self,
        options: FlowOptions,
        flow: IncomingFlow<MemoryStream, MemoryPackets>,
    ) -> Result<(), OpenError> {
        let incoming = Incoming {
            target: options.target,
            flow,
        };
        self.opened
            .send(incoming)
            .await
            .map_err(|_| OpenError::NoSession("it is over".into()))
    }
}

impl Tunnel for MemoryTunnel {
    type Stream = MemoryStream;
    type Packets = MemoryPackets;

    async fn open_stream(&self, options: FlowOptions) -> Result<MemoryStream, OpenError> {
        let (near, far) = duplex(32 * 1024);
        let ends: [Arc<AtomicBool>; 2] = Default::default();
        let [a, b] = ends.clone();
        let far = MemoryStream {
            inner: far,
            finished: b,
            peer_finished: a,
        };
        self.announce(options, IncomingFlow::Stream(far)).await?;
        let [a, b] = ends;
        Ok(MemoryStream {
            inner: near,
            finished: a,
            peer_finished: b,
        })
    }

    async fn open_packets(&self, options: FlowOptions) -> Result<MemoryPackets, OpenError> {
        let (near_out, far_in) = mpsc::channel(64);
        let (far_out, near_in) = mpsc::channel(64);
        let far = MemoryPackets {
            out: far_out,
            incoming: Mutex::new(far_in),
        };
        self.announce(options, IncomingFlow::Packets(far)).await?;
        Ok(MemoryPackets {
            out: near_out,
            incoming: Mutex::new(near_in),
        })
    }
}

impl Accept for MemoryAccept {
    type Stream = MemoryStream;
    type Packets = MemoryPackets;
    type Towards = MemoryTunnel;

    /// The client takes no flows.
    fn towards(&self) -> MemoryTunnel {
        MemoryTunnel {
            opened: mpsc::channel(1).0,
        }
    }

    async fn next_flow(&mut self) -> Option<Incoming<MemoryStream, MemoryPackets>> {
        self.opened.recv().await
    }
}

/// A pipe that tells an end (after `shutdown`) from a reset (dropped without).
pub(crate) struct MemoryStream {
    inner: DuplexStream,
    finished: Arc<AtomicBool>,
    peer_finished: Arc<AtomicBool>,
}

impl ByteFlow for MemoryStream {}

impl AsyncRead for MemoryStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
        let ended = buf.filled().len() == before && buf.remaining() > 0;
        if ended && !this.peer_finished.load(Ordering::SeqCst) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MemoryStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.finished.store(true, Ordering::SeqCst);
        Pin::new(&mut this.inner).poll_shutdown(cx)
    }
}

pub(crate) struct MemoryPackets {
    out: mpsc::Sender<Bytes>,
    incoming: Mutex<mpsc::Receiver<Bytes>>,
}

impl PacketFlow for MemoryPackets {
    async fn send(&self, message: Bytes) -> io::Result<()> {
        if message.len() > MAX_MESSAGE {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.out
            .send(message)
            .await
            .map_err(|_| io::ErrorKind::ConnectionReset.into())
    }

    async fn recv(&self) -> Option<Bytes> {
        self.incoming.lock().await.recv().await
    }
}
