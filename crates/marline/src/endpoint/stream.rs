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

/// Most bytes taken by one write, which stay in memory until the last of them is acknowledged: half
/// of a flow's reserve, so that what is counted is not much less than what there is. Twelve
/// datagrams, so that a call a write costs little.
const WRITE: usize = 16 << 10;

/// A reliable stream of bytes over all paths of a session.
///
/// `shutdown` finishes the sending half; what was written is still delivered. Dropping the stream
/// before that gives both halves up: the peer reads [`io::ErrorKind::ConnectionReset`].
///
/// Reading and writing are cancel safe: what a dropped future has not returned was not taken.
///
/// ```no_run
/// # async fn f(session: marline::Session) -> Result<(), Box<dyn std::error::Error>> {
/// use marline::FlowOptions;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let stream = session.open_stream(FlowOptions::default())?;
/// let (mut reader, mut writer) = stream.into_split();
/// writer.write_all(b"a question").await?;
/// writer.shutdown().await?;
/// let mut answer = Vec::new();
/// reader.read_to_end(&mut answer).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Stream {
    reader: ReadHalf,
    writer: WriteHalf,
    /// The flow has bytes that were read and count as unread.
    retains: bool,
}

/// The half of a [`Stream`] that is read. Dropping it tells the peer that nobody reads any more.
#[derive(Debug)]
pub struct ReadHalf {
    flow: Arc<Flow>,
    ended: bool,
}

/// The half of a [`Stream`] that is written. Dropping it before `shutdown` gives it up.
#[derive(Debug)]
pub struct WriteHalf {
    flow: Arc<Flow>,
    finished: bool,
}

/// What both halves are of; forgotten when both are gone.
#[derive(Debug)]
struct Flow {
    shared: Arc<Shared>,
    id: FlowId,
}

impl Stream {
    pub(super) fn new(shared: Arc<Shared>, id: FlowId) -> Self {
        let flow = Arc::new(Flow { shared, id });
        Self {
            reader: ReadHalf {
                flow: Arc::clone(&flow),
                ended: false,
            },
            writer: WriteHalf {
                flow,
                finished: false,
            },
            retains: false,
        }
    }

    /// The flow's number in its session.
    pub fn id(&self) -> FlowId {
        self.writer.flow.id
    }

    /// Both halves, to be used by different tasks.
    pub fn into_split(self) -> (ReadHalf, WriteHalf) {
        (self.reader, self.writer)
    }

    /// Is nothing more to be read because the stream was given up, or the session is over?
    pub fn poll_given_up(&self, cx: &Context<'_>) -> Poll<()> {
        // After the end was read there is nothing to lose, and the session may have forgotten the
        // flow.
        if self.reader.ended && !self.retains {
            return Poll::Pending;
        }
        let Flow { shared, id } = &*self.reader.flow;
        shared.poll_given_up(*id, cx)
    }

    /// Waits until the stream takes bytes, and says how many: one write may take less. 1 when a
    /// write would fail, so that the writer finds out.
    pub fn poll_room(&self, cx: &Context<'_>) -> Poll<usize> {
        let Flow { shared, id } = &*self.writer.flow;
        let mut state = shared.lock();
        if state.closed.is_some() {
            return Poll::Ready(1);
        }
        match state.session.room(*id) {
            Some(0) => {
                state.wait_to_write(*id, cx);
                Poll::Pending
            }
            room => Poll::Ready(room.map_or(1, |room| usize::try_from(room).unwrap_or(usize::MAX))),
        }
    }

    /// `bytes` of what was read are kept for somebody who does not take them yet. They count as
    /// unread, among what the session, its client and its server may hold, until this is called
    /// with less; and a stream that retains some is not forgotten.
    pub fn retain(&mut self, bytes: usize) {
        if bytes == 0 && !self.retains {
            return;
        }
        let Flow { shared, id } = &*self.reader.flow;
        let now = shared.clock.now();
        let mut state = shared.lock();
        let known = state.session.retain(now, *id, bytes as u64);
        self.retains = known && bytes > 0;
        state.wake_driver();
    }
}

fn reset(code: u64) -> io::Error {
    let text = format!("the other end gave the stream up (code {code})");
    io::Error::new(io::ErrorKind::ConnectionReset, text)
}

fn over(closed: &Closed) -> io::Error {
    closed.clone().into()
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ended || buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let flow = Arc::clone(&self.flow);
        let now = flow.shared.clock.now();
        let mut state = flow.shared.lock();
        let mut any = false;
        while buf.remaining() > 0 {
            match state.session.read(now, flow.id, buf.remaining()) {
                Chunk::Data(data) => {
                    any = true;
                    buf.put_slice(&data);
                    // The end is read by itself: what came with it may have to be retained, and
                    // the session forgets a flow whose end was read.
                    if !state.session.has_data(flow.id) {
                        break;
                    }
                }
                Chunk::Finished => {
                    self.ended = true;
                    break;
                }
                Chunk::Reset(code) if !any => return Poll::Ready(Err(reset(code))),
                Chunk::Reset(_) => break,
                Chunk::Blocked if any => break,
                Chunk::Blocked => {
                    if let Some(closed) = &state.closed {
                        return Poll::Ready(Err(over(closed)));
                    }
                    state.wait_to_read(flow.id, cx);
                    return Poll::Pending;
                }
            }
        }
        // Reading may have freed credit that the peer waits for.
        state.wake_driver();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WriteHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Flow { shared, id } = &*self.flow;
        let now = shared.clock.now();
        let mut state = shared.lock();
        if let Some(closed) = &state.closed {
            return Poll::Ready(Err(over(closed)));
        }
        // What is not taken is not copied: the part that is taken would keep all of it in memory.
        let room = state.session.room(*id).unwrap_or_default().max(1);
        let most = room.min(WRITE as u64) as usize;
        let chunk = Bytes::copy_from_slice(&data[..data.len().min(most)]);
        match state.session.write(now, *id, &chunk) {
            Ok(taken) => {
                state.wake_driver();
                Poll::Ready(Ok(taken))
            }
            Err(WriteError::Blocked) => {
                state.wait_to_write(*id, cx);
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
        let mut state = self.flow.shared.lock();
        state.session.finish(self.flow.id);
        state.wake_driver();
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(cx)
    }
}

impl Drop for ReadHalf {
    fn drop(&mut self) {
        let mut state = self.flow.shared.lock();
        state.session.stop(self.flow.id, 0);
        state.wake_driver();
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        if !self.finished {
            let mut state = self.flow.shared.lock();
            state.session.reset(self.flow.id, 0);
            state.wake_driver();
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.shared.lock().forget(self.id);
    }
}
