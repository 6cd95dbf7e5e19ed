//! A stream as tokio knows streams.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use marline_proto::WriteError;
use marline_proto::flow::Chunk;
use marline_proto::wire::FlowId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::shared::{Closed, Shared};

/// Most bytes taken by one write.
const WRITE: usize = 64 << 10;

/// A reliable stream of bytes over all paths of a session.
///
/// `shutdown` finishes the sending half; what was written is still delivered. Dropping the stream
/// before that gives both halves up: the peer reads [`io::ErrorKind::ConnectionReset`].
#[derive(Debug)]
pub struct Stream {
    shared: Arc<Shared>,
    flow: FlowId,
    finished: bool,
    ended: bool,
}

impl Stream {
    pub(super) fn new(shared: Arc<Shared>, flow: FlowId) -> Self {
        Self {
            shared,
            flow,
            finished: false,
            ended: false,
        }
    }

    /// The flow's number in its session.
    pub fn id(&self) -> FlowId {
        self.flow
    }

    /// Is nothing more to be read because the stream was given up, or the session is over?
    pub fn poll_given_up(&self, cx: &Context<'_>) -> Poll<()> {
        // After the end was read there is nothing to lose, and the session may have forgotten the
        // flow.
        if self.ended {
            return Poll::Pending;
        }
        self.shared.poll_given_up(self.flow, cx)
    }
}

fn reset(code: u64) -> io::Error {
    let text = format!("the other end gave the stream up (code {code})");
    io::Error::new(io::ErrorKind::ConnectionReset, text)
}

fn over(closed: &Closed) -> io::Error {
    closed.clone().into()
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ended || buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let this = &mut *self;
        let now = this.shared.clock.now();
        let mut state = this.shared.lock();
        let mut any = false;
        while buf.remaining() > 0 {
            match state.session.read(now, this.flow, buf.remaining()) {
                Chunk::Data(data) => {
                    any = true;
                    buf.put_slice(&data);
                }
                Chunk::Finished => {
                    this.ended = true;
                    break;
                }
                Chunk::Reset(code) if !any => return Poll::Ready(Err(reset(code))),
                Chunk::Reset(_) => break,
                Chunk::Blocked if any => break,
                Chunk::Blocked => {
                    if let Some(closed) = &state.closed {
                        return Poll::Ready(Err(over(closed)));
                    }
                    state.wait_to_read(this.flow, cx);
                    return Poll::Pending;
                }
            }
        }
        // Reading may have freed credit that the peer waits for.
        state.wake_driver();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        if let Some(closed) = &state.closed {
            return Poll::Ready(Err(over(closed)));
        }
        let chunk = Bytes::copy_from_slice(&data[..data.len().min(WRITE)]);
        match state.session.write(now, self.flow, &chunk) {
            Ok(taken) => {
                state.wake_driver();
                Poll::Ready(Ok(taken))
            }
            Err(WriteError::Blocked) => {
                state.wait_to_write(self.flow, cx);
                Poll::Pending
            }
            Err(WriteError::Closed) => {
                let text = "the other end reads no more, or the stream was finished";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, text)))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finished = true;
        let mut state = self.shared.lock();
        state.session.finish(self.flow);
        state.wake_driver();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if !self.finished {
            state.session.reset(self.flow, 0);
        }
        state.session.stop(self.flow, 0);
        state.forget(self.flow);
        state.wake_driver();
    }
}
