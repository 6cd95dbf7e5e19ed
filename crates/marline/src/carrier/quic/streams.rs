//! The two directions of a stream, as tokio knows streams. One stream carries the handshake.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quinn_proto::{FinishError, ReadError, StreamId, VarInt, WriteError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::shared::Handle;

/// The direction in which this end sends. It is finished when it is dropped.
#[derive(Debug)]
pub(in crate::carrier) struct SendStream {
    connection: Arc<Handle>,
    id: StreamId,
}

/// The direction in which this end receives.
#[derive(Debug)]
pub(in crate::carrier) struct RecvStream {
    connection: Arc<Handle>,
    id: StreamId,
    /// Nothing more will come.
    over: bool,
}

impl SendStream {
    pub(super) const fn new(connection: Arc<Handle>, id: StreamId) -> Self {
        Self { connection, id }
    }

    /// Has the peer see the end of the stream after what was written.
    pub(in crate::carrier) fn finish(&mut self) {
        let mut state = self.connection.lock();
        if state.error().is_some() {
            return;
        }
        let mut stream = state.proto.send_stream(self.id);
        if let Err(FinishError::Stopped(code)) = stream.finish() {
            // The peer wants no more; it has forgotten the stream when it sees this.
            let _ = stream.reset(code);
        }
        state.wake_driver();
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.connection.lock();
        if let Some(error) = state.error() {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::NotConnected,
                error.clone(),
            )));
        }
        match state.proto.send_stream(self.id).write(bytes) {
            Ok(written) => {
                state.wake_driver();
                Poll::Ready(Ok(written))
            }
            Err(WriteError::Blocked) => {
                state.wait(cx);
                Poll::Pending
            }
            Err(WriteError::Stopped(_)) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            Err(WriteError::ClosedStream) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        Poll::Ready(Ok(()))
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        self.finish();
    }
}

impl RecvStream {
    pub(super) const fn new(connection: Arc<Handle>, id: StreamId) -> Self {
        let over = false;
        Self {
            connection,
            id,
            over,
        }
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.over || buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let this = &mut *self;
        let mut state = this.connection.lock();
        let mut stream = state.proto.recv_stream(this.id);
        // A stream that is no more has been read to its end, or reset.
        let Ok(mut chunks) = stream.read(true) else {
            this.over = true;
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let next = chunks.next(buffer.remaining());
        if chunks.finalize().should_transmit() {
            state.wake_driver();
        }
        match next {
            Ok(Some(chunk)) => {
                buffer.put_slice(&chunk.bytes);
                Poll::Ready(Ok(()))
            }
            Ok(None) => {
                this.over = true;
                Poll::Ready(Ok(()))
            }
            Err(ReadError::Reset(_)) => {
                this.over = true;
                Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
            }
            Err(ReadError::Blocked) => match state.error() {
                Some(error) => Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::NotConnected,
                    error.clone(),
                ))),
                None => {
                    state.wait(cx);
                    Poll::Pending
                }
            },
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        let mut state = self.connection.lock();
        if self.over || state.error().is_some() {
            return;
        }
        // What has come and is not read needs no room any more.
        let _ = state.proto.recv_stream(self.id).stop(VarInt::from_u32(0));
        state.wake_driver();
    }
}
