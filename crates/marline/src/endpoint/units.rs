//! What flows of blocks and of objects have in common as tokio knows them.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use marline_base::Instant;
use marline_proto::Session as Machine;
use marline_proto::flow::{Fate, Received, SendError, UnitPiece};
use marline_proto::stats::Delays;
use marline_proto::wire::FlowId;

use super::not_taken::not_taken;
use super::report::Settled;
use super::shared::{Closed, Shared};

/// What a flow of units brings: a whole block or a piece of an object, or that one will not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A block, or the next piece of an object.
    Piece(UnitPiece),
    /// A block or an object will not come (any more).
    Gone {
        /// Its number in the flow.
        number: u64,
        /// Why not.
        fate: Fate,
    },
}

/// One flow of units in a session. Public for the streams of bytes that `marline-apps` carries as
/// objects, and free to change.
#[doc(hidden)]
#[derive(Debug)]
pub struct Units {
    pub(super) shared: Arc<Shared>,
    pub(super) flow: FlowId,
}

impl Units {
    /// The flow's number in its session.
    pub fn id(&self) -> FlowId {
        self.flow
    }

    /// The priority of what this end sends; `None` if the flow is forgotten.
    pub fn priority(&self) -> Option<u8> {
        let state = self.shared.lock();
        Some(state.session.flow_info(self.flow)?.priority)
    }

    /// Bounds the bytes that may be in flight, not known to have arrived.
    pub fn limit(&self, bytes: u64) {
        self.shared.lock().session.limit_units(self.flow, bytes);
    }

    /// No task will ask what became of units: their fates are not kept.
    pub fn ignore_settled(&self) {
        self.shared.lock().ignore_settled(self.flow);
    }

    /// Is nothing more to be read because the flow was given up, or the session is over?
    pub fn poll_given_up(&self, cx: &Context<'_>) -> Poll<()> {
        self.shared.poll_given_up(self.flow, cx)
    }

    /// `bytes` of what was read are kept: they count as unread until this is called with less.
    pub fn retain(&self, bytes: u64) {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        state.session.retain(now, self.flow, bytes);
        state.wake_driver();
    }

    /// How long units took; `None` once the session has forgotten the flow.
    pub(super) fn delays(&self) -> Option<Delays> {
        let inner = self.shared.lock();
        inner.session.flow_delays(self.flow).cloned()
    }

    /// Waits until the flow takes more, or is over.
    pub fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.shared.lock();
        let over = state.closed.is_some() || !state.session.settles(self.flow);
        if over || state.session.has_room(self.flow) {
            return Poll::Ready(());
        }
        state.wait_to_write(self.flow, cx);
        Poll::Pending
    }

    /// Why the session is over, if it is.
    pub fn is_closed(&self) -> Option<Closed> {
        self.shared.lock().closed.clone()
    }

    /// Does something to the flow, and lets the driver act on it.
    pub fn with<T>(&self, act: impl FnOnce(&mut Machine, Instant, FlowId) -> T) -> T {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        let result = act(&mut state.session, now, self.flow);
        state.wake_driver();
        result
    }

    /// Writes something, waiting while the flow has no room.
    pub(super) async fn write<T>(
        &self,
        mut write: impl FnMut(&mut Machine, Instant, FlowId) -> Result<T, SendError>,
    ) -> io::Result<T> {
        poll_fn(|cx| self.poll_write(cx, &mut write)).await
    }

    /// The same for one poll.
    pub fn poll_write<T>(
        &self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut Machine, Instant, FlowId) -> Result<T, SendError>,
    ) -> Poll<io::Result<T>> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        if let Some(closed) = &state.closed {
            return Poll::Ready(Err(closed.clone().into()));
        }
        match write(&mut state.session, now, self.flow) {
            Ok(written) => {
                state.wake_driver();
                Poll::Ready(Ok(written))
            }
            Err(SendError::Full) => {
                state.wait_to_write(self.flow, cx);
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(not_taken(error))),
        }
    }

    /// Units that are neither given up nor known to be at the other end, each with the number of
    /// its block or object.
    pub(super) fn unsettled(&self) -> Vec<(u64, Bytes)> {
        let unsettled = self.shared.unsettled(self.flow).into_iter();
        unsettled.map(|unit| (unit.number, unit.data)).collect()
    }

    /// Waits until the flow takes more, or is over.
    pub(super) async fn room(&self) {
        poll_fn(|cx| self.poll_room(cx)).await;
    }

    /// What comes next; `None` when nothing more will.
    pub(super) async fn recv(&self) -> Option<Incoming> {
        match poll_fn(|cx| self.poll_recv(cx)).await {
            Received::Piece(piece) => Some(Incoming::Piece(piece)),
            Received::Gone { number, fate } => Some(Incoming::Gone { number, fate }),
            Received::Finished | Received::Reset(_) | Received::Blocked => None,
        }
    }

    /// What comes next; [`Received::Blocked`] when nothing more will because the session is over.
    pub fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<Received> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        let received = state.session.receive_unit(now, self.flow);
        match received {
            Received::Blocked if state.closed.is_none() => {
                state.wait_to_read(self.flow, cx);
                return Poll::Pending;
            }
            // Reading may have freed credit that the peer waits for.
            Received::Piece(_) => state.wake_driver(),
            _ => {}
        }
        Poll::Ready(received)
    }

    /// What became of the next block or object that is settled; `None` when the flow is over or the
    /// other end wants no more of it.
    pub(super) async fn settled(&self) -> Option<Settled> {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            if let Some(settled) = state.take_settled(self.flow) {
                return Poll::Ready(Some(settled));
            }
            let over = !state.session.settles(self.flow);
            if over || state.closed.is_some() {
                return Poll::Ready(None);
            }
            state.wait_to_settle(self.flow, cx);
            Poll::Pending
        })
        .await
    }

    /// Ends the sending half: what was written is still delivered.
    pub fn finish(&self) {
        let mut state = self.shared.lock();
        state.session.finish(self.flow);
        state.wake_driver();
    }
}

impl Drop for Units {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.session.finish(self.flow);
        state.session.stop(self.flow, 0);
        state.forget(self.flow);
        state.wake_driver();
    }
}
