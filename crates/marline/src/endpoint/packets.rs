//! A flow of messages.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use marline_proto::flow::{Chunk, SendError};
use marline_proto::wire::FlowId;

use super::shared::Shared;

/// Messages over all paths of a session; boundaries are kept.
///
/// Dropping it ends both directions; what was sent is still delivered within its lifetime.
#[derive(Debug)]
pub struct Packets {
    shared: Arc<Shared>,
    flow: FlowId,
}

impl Packets {
    pub(super) fn new(shared: Arc<Shared>, flow: FlowId) -> Self {
        Self { shared, flow }
    }

    /// The flow's number in its session.
    pub fn id(&self) -> FlowId {
        self.flow
    }

    /// Sends a message at once, or says why not.
    ///
    /// # Errors
    /// [`SendError::Full`] when there is no room now; the message was not taken.
    pub fn try_send(&self, message: Bytes) -> Result<(), SendError> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        state.session.send(now, self.flow, message)?;
        state.wake_driver();
        Ok(())
    }

    /// Sends a message, waiting while the flow has no room.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if this message is too long or the scheduler refuses it; any
    /// other kind if the flow is over.
    pub async fn send(&self, message: Bytes) -> io::Result<()> {
        poll_fn(|cx| {
            let now = self.shared.clock.now();
            let mut state = self.shared.lock();
            if let Some(closed) = &state.closed {
                return Poll::Ready(Err(closed.clone().into()));
            }
            match state.session.send(now, self.flow, message.clone()) {
                Ok(_) => {
                    state.wake_driver();
                    Poll::Ready(Ok(()))
                }
                Err(SendError::Full) => {
                    state.wait_to_write(self.flow, cx);
                    Poll::Pending
                }
                Err(error @ (SendError::TooLong(..) | SendError::Refused(_))) => {
                    Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidInput, error)))
                }
                Err(error @ SendError::Closed) => {
                    Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, error)))
                }
            }
        })
        .await
    }

    /// The next message; `None` when there are no more.
    pub async fn recv(&self) -> Option<Bytes> {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            match state.session.receive(self.flow) {
                Chunk::Data(message) => Poll::Ready(Some(message)),
                Chunk::Finished | Chunk::Reset(_) => Poll::Ready(None),
                Chunk::Blocked if state.closed.is_some() => Poll::Ready(None),
                Chunk::Blocked => {
                    state.wait_to_read(self.flow, cx);
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.session.finish(self.flow);
        state.session.stop(self.flow, 0);
        state.forget(self.flow);
        state.wake_driver();
    }
}
