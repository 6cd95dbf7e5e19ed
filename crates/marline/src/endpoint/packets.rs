//! A flow of messages.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use marline_base::Rate;
use marline_proto::flow::{Chunk, SendError};
use marline_proto::sched::Choice;
use marline_proto::stats::{Delays, FlowCounters};
use marline_proto::wire::FlowId;

use super::not_taken::not_taken;
use super::report::{GivenUp, RateReport};
use super::shared::Shared;

/// Messages over all paths of a session; boundaries are kept.
///
/// Dropping it ends both directions; what was sent is still delivered within its lifetime. `send`
/// and `recv` may wait at the same time and are cancel safe.
///
/// ```
/// use bytes::Bytes;
/// use marline::{Accepted, FlowOptions};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let marline::loopback::Loopback { session, mut incomings, client, server } =
/// #     marline::loopback::loopback().await?;
/// // Late messages are worth nothing.
/// let options = FlowOptions {
///     lifetime: Some(Duration::from_millis(200)),
///     ..FlowOptions::default()
/// };
/// let packets = session.open_packets(options)?;
/// packets.send(Bytes::from_static(b"one message")).await?;
///
/// // At the server:
/// let (_, flow) = incomings.accept().await?;
/// if let Accepted::Packets(packets) = flow {
///     assert_eq!(packets.recv().await.as_deref(), Some(&b"one message"[..]));
/// }
/// # drop((client, server));
/// # Ok(())
/// # }
/// ```
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

    /// Says what rate the application needs, an encoder's bit rate for example: schedulers spend
    /// only what is left over on redundancy, and [`rate_report`](Self::rate_report) reports when
    /// the paths carry less. It may change at any time. `None`, as at the beginning, has it
    /// measured; there are reported then, too, if the flow has a lifetime and no [bounded
    /// queue](Self::set_queue), so that what is written is what is needed.
    pub fn set_needed_rate(&self, rate: Option<Rate>) {
        let mut state = self.shared.lock();
        state.forget_report(self.flow);
        state.session.set_needed_rate(self.flow, rate);
        state.wake_driver();
    }

    /// Bounds what may wait at this end until a path has room for it, in bytes; `None` lifts the
    /// bound.
    pub fn set_queue(&self, queue: Option<u64>) {
        self.shared.lock().session.set_queue(self.flow, queue);
    }

    /// Gives the flow another scheduler at this end; one that does not serve messages is not taken.
    pub fn set_scheduler(&self, scheduler: Choice) {
        let taken = self
            .shared
            .lock()
            .session
            .set_scheduler(self.flow, scheduler);
        if let Err(error) = taken {
            tracing::debug!(%error, "a flow keeps its scheduler");
        }
    }

    /// Waits until the paths carry less than the needed rate, or carry it again; of several changes
    /// since the last call only the latest is reported. `None` when the flow is over. One task may
    /// wait at a time.
    pub async fn rate_report(&self) -> Option<RateReport> {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            if state.closed.is_some() || state.session.flow_info(self.flow).is_none() {
                return Poll::Ready(None);
            }
            match state.rate_report(self.flow, cx) {
                Some(report) => Poll::Ready(Some(report)),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// How long messages took until this end knew that the other has them in order; `None` once
    /// its session has forgotten the flow.
    pub fn delays(&self) -> Option<Delays> {
        self.shared.lock().session.flow_delays(self.flow).cloned()
    }

    /// What the flow has counted so far; `None` once its session has forgotten it.
    pub fn counters(&self) -> Option<FlowCounters> {
        self.shared.lock().session.flow_counters(self.flow)
    }

    /// Where the messages were that this end gave up because their lifetime was over; `None` once
    /// its session has forgotten the flow.
    pub fn given_up(&self) -> Option<GivenUp> {
        self.shared.lock().given_up(self.flow)
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
        self.send_waited(message, Duration::ZERO).await
    }

    /// Sends a message that has waited for this time already: its lifetime counts from when it
    /// began to.
    ///
    /// # Errors
    /// As those of [`send`](Self::send).
    pub async fn send_waited(&self, message: Bytes, waited: Duration) -> io::Result<()> {
        let since = self.shared.clock.now() - waited;
        poll_fn(|cx| {
            let now = self.shared.clock.now();
            let mut state = self.shared.lock();
            if let Some(closed) = &state.closed {
                return Poll::Ready(Err(closed.clone().into()));
            }
            let sent = state
                .session
                .send_since(now, self.flow, message.clone(), since);
            match sent {
                Ok(_) => {
                    state.wake_driver();
                    Poll::Ready(Ok(()))
                }
                Err(SendError::Full) => {
                    state.wait_to_write(self.flow, cx);
                    Poll::Pending
                }
                Err(error) => Poll::Ready(Err(not_taken(error))),
            }
        })
        .await
    }

    /// Is the session over or about to be, and not this flow alone?
    pub fn is_session_over(&self) -> bool {
        self.shared.is_over()
    }

    /// Messages that the other end is not known to have and that are not given up, oldest first,
    /// each with how long it has waited. Once the [session is over](Self::is_session_over), that is
    /// what was under way then: it may be sent over the next session, and some of it may come a
    /// second time.
    pub fn unsettled(&self) -> Vec<(Bytes, Duration)> {
        let now = self.shared.clock.now();
        let unsettled = self.shared.unsettled(self.flow).into_iter();
        unsettled
            .map(|message| (message.data, now.since(message.since)))
            .collect()
    }

    /// The next message; `None` when there are no more.
    pub async fn recv(&self) -> Option<Bytes> {
        poll_fn(|cx| {
            let now = self.shared.clock.now();
            let mut state = self.shared.lock();
            match state.session.receive(now, self.flow) {
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
