//! What the proxies need of a session: open flows at one end, accept them at the other.

use bytes::Bytes;
use marline::endpoint::{Blocks, GivenUp, Objects, RateReport, Session};
use marline::identity::PublicKey;
use marline_base::Rate;
use marline_proto::FlowOptions;
use marline_proto::sched::Choice;
use marline_proto::stats::{Delays, FlowCounters};
use std::future::Future;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// Why a flow could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The session is over, or not there yet.
    #[error("no session with the server: {0}")]
    NoSession(String),
    /// The other end accepts no more flows at present.
    #[error("too many open flows")]
    TooManyFlows,
    /// The options are not acceptable.
    #[error("cannot open such a flow: {0}")]
    Refused(String),
}

/// A reliable stream of bytes over a session.
pub trait ByteFlow: AsyncRead + AsyncWrite + Send + Unpin {
    /// Is nothing more to be read because the flow was given up, at either end, or because the
    /// session is over? Wakes the task when that comes about. For tasks that do not read for now,
    /// and would not learn of it.
    fn poll_given_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Pending
    }

    /// Waits until the flow takes bytes, and says how many; a flow that takes none any more says 1,
    /// and the write fails.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        let _ = cx;
        Poll::Ready(usize::MAX)
    }

    /// `bytes` of what was read are kept, because who is to have them does not take them yet. They
    /// count as unread until this is called with less.
    fn retain(&mut self, bytes: usize) {
        let _ = bytes;
    }
}

/// Waits until nothing more comes on a stream, whatever is said on it.
pub(crate) async fn until_end<S: AsyncRead + Unpin>(stream: &mut S) {
    let mut ignored = [0; 64];
    while stream.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
}

/// For tests without a session.
impl ByteFlow for tokio::io::DuplexStream {}

/// A handle on a running session that opens flows. Cheap to clone.
pub trait Tunnel: Clone + Send + Sync + 'static {
    /// A reliable stream of bytes. `shutdown` finishes the sending half: what was written is
    /// delivered, also when the stream is dropped right after. Dropping it before resets both
    /// halves, which the other end reads as an error of the kind
    /// [`io::ErrorKind::ConnectionReset`].
    type Stream: ByteFlow + 'static;
    /// A flow of messages.
    type Packets: PacketFlow;

    /// Waits until there is a session. At once where there is no other way.
    fn session_is_there(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// The longest message (bytes) that is sure to travel in one datagram on each of the session's
    /// paths; `None` while there is no session, or where nothing is known of it.
    fn room(&self) -> Option<usize> {
        None
    }

    /// Waits until [`room`](Self::room) is not about to grow, for some seconds at most: a path that
    /// has just come up still searches for what it takes. At once where nothing is known of it.
    fn room_is_found(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Has the other end open flows, or not: those are reset. Nothing where it never does.
    fn take_flows(&self, takes: bool) {
        let _ = takes;
    }

    /// The next flow that the other end opened, in whichever session. Cancel safe; one task at a
    /// time. Never where the other end has nothing to open.
    fn next_flow(&self) -> impl Future<Output = Incoming<Self::Stream, Self::Packets>> + Send {
        std::future::pending()
    }

    /// Opens a stream; where its kind is [`Objects`](marline_proto::wire::FlowKind::Objects), one
    /// that is carried as objects, cut where its bytes say that something ends.
    fn open_stream(
        &self,
        options: FlowOptions,
    ) -> impl Future<Output = Result<Self::Stream, OpenError>> + Send;

    /// Opens a flow of messages.
    fn open_packets(
        &self,
        options: FlowOptions,
    ) -> impl Future<Output = Result<Self::Packets, OpenError>> + Send;

    /// Opens a flow of blocks. Not where there is no session behind it.
    fn open_blocks(
        &self,
        options: FlowOptions,
    ) -> impl Future<Output = Result<Blocks, OpenError>> + Send {
        let _ = options;
        let why = "blocks need a session".to_owned();
        std::future::ready(Err(OpenError::Refused(why)))
    }

    /// Opens a flow of objects. Not where there is no session behind it.
    fn open_objects(
        &self,
        options: FlowOptions,
    ) -> impl Future<Output = Result<Objects, OpenError>> + Send {
        let _ = options;
        let why = "objects need a session".to_owned();
        std::future::ready(Err(OpenError::Refused(why)))
    }
}

/// A flow of messages whose boundaries are kept. Dropping it closes it.
pub trait PacketFlow: Send + Sync + 'static {
    /// Sends one message; waits while the session has no room for it. `send` and `recv` may wait at
    /// the same time.
    ///
    /// An error of the kind [`io::ErrorKind::InvalidInput`] means that this message is too large
    /// and the flow lives on; any other error that the flow is over.
    fn send(&self, message: Bytes) -> impl Future<Output = io::Result<()>> + Send;

    /// Sends a message that has waited for this time already, which is taken from what it is worth
    /// sending. Flows without lifetimes send it as any other.
    fn send_waited(
        &self,
        message: Bytes,
        waited: Duration,
    ) -> impl Future<Output = io::Result<()>> + Send {
        let _ = waited;
        self.send(message)
    }

    /// The next message, or `None` when the flow is over.
    fn recv(&self) -> impl Future<Output = Option<Bytes>> + Send;

    /// Bounds what may wait at this end, as [`FlowOptions::queue`] does. Flows without queues do
    /// nothing with it.
    fn set_queue(&self, _: Option<u64>) {}

    /// Chooses the scheduler of what this end sends. Flows without schedulers do nothing with it.
    fn set_scheduler(&self, _: Choice) {}

    /// Says what rate the application needs; `None` to have it measured. Returns whether the
    /// session watches it: most flows do nothing with it.
    fn set_needed_rate(&self, _: Option<Rate>) -> bool {
        false
    }

    /// Waits until the paths carry less than the target, or carry it again; `None` when the flow is
    /// over. May wait for ever where nothing is known of it.
    fn rate_report(&self) -> impl Future<Output = Option<RateReport>> + Send {
        std::future::pending()
    }

    /// What the flow has counted; `None` where it does not count, or is forgotten.
    fn counters(&self) -> Option<FlowCounters> {
        None
    }

    /// How long what it sent took until the other end was known to have it; `None` where that is
    /// not measured, or is forgotten.
    fn delays(&self) -> Option<Delays> {
        None
    }

    /// Where the messages were that it gave up; `None` where it is not known, or is forgotten.
    fn given_up(&self) -> Option<GivenUp> {
        None
    }

    /// Is the session over or about to be, and not this flow alone? Never where there is none
    /// behind it.
    fn is_session_over(&self) -> bool {
        false
    }

    /// Messages that the other end is not known to have and that are not given up, oldest first,
    /// each with how long it has waited. Once the session is over, they may be sent over the next
    /// one; some may come there a second time.
    fn unsettled(&self) -> Vec<(Bytes, Duration)> {
        Vec::new()
    }
}

/// A server's endpoint, which lets clients in.
pub trait Listen: Send + Sync + 'static {
    /// The accepting end of a client's session.
    type Session: Accept;

    /// The next session, or `None` when no more can come. Cancel safe.
    fn next_session(&self) -> impl Future<Output = Option<Self::Session>> + Send;
}

/// The accepting end of one session. Dropping it resets flows that are opened later; accepted ones
/// live on.
pub trait Accept: Send + 'static {
    /// See [`Tunnel::Stream`].
    type Stream: ByteFlow + 'static;
    /// See [`Tunnel::Packets`].
    type Packets: PacketFlow;

    /// Opens flows towards the other end.
    type Towards: Tunnel<Stream = Self::Stream, Packets = Self::Packets>;

    /// What opens flows towards the other end, in this session only.
    fn towards(&self) -> Self::Towards;

    /// Who is at the other end; `None` where that is not known.
    fn peer(&self) -> Option<PublicKey> {
        None
    }

    /// The session itself; `None` where there is none behind it.
    fn session(&self) -> Option<Session> {
        None
    }

    /// The next flow that the other end opened, or `None` when the session is over. Cancel safe.
    fn next_flow(
        &mut self,
    ) -> impl Future<Output = Option<Incoming<Self::Stream, Self::Packets>>> + Send;
}

/// A flow that the other end opened.
#[derive(Debug)]
pub struct Incoming<S, P> {
    /// What it is for, as the other end wrote it: to be trusted no further than any input.
    pub target: Bytes,
    /// The flow.
    pub flow: IncomingFlow<S, P>,
}

/// An incoming flow by its kind.
#[derive(Debug)]
pub enum IncomingFlow<S, P> {
    /// A stream of bytes.
    Stream(S),
    /// Messages.
    Packets(P),
    /// Blocks.
    Blocks(Blocks),
    /// Objects that are no connection's.
    Objects(Objects),
}
