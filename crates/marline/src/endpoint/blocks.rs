//! A flow of blocks.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use marline_proto::Accepted;
use marline_proto::flow::{BlockTerms, SendError};
use marline_proto::stats::{Delays, FlowCounters};
use marline_proto::wire::FlowId;

use super::report::Settled;
use super::shared::Shared;
use super::units::{Incoming, Units};

/// Blocks over all paths of a session: each is delivered whole, as soon as enough of it is there,
/// and worth something only by its deadline.
///
/// Dropping it ends both directions; blocks that were written are still sent until their deadlines.
///
/// ```
/// use bytes::Bytes;
/// use marline::{Accepted, BlockTerms, FlowOptions, Incoming};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let marline::loopback::Loopback { session, mut incomings, client, server } =
/// #     marline::loopback::loopback().await?;
/// let blocks = session.open_blocks(FlowOptions::default())?;
/// let terms = BlockTerms {
///     deadline: Some(Duration::from_secs(5)),
///     reliability: None,
/// };
/// blocks.write(&Bytes::from(vec![7; 100_000]), terms).await?;
///
/// // At the server:
/// let (_, flow) = incomings.accept().await?;
/// if let Accepted::Blocks(blocks) = flow {
///     match blocks.recv().await {
///         Some(Incoming::Piece(block)) => assert_eq!(block.data.len(), 100_000),
///         other => panic!("it should have come: {other:?}"),
///     }
/// }
/// # drop((client, server));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Blocks {
    units: Units,
}

impl Blocks {
    pub(super) fn new(shared: Arc<Shared>, flow: FlowId) -> Self {
        let units = Units { shared, flow };
        Self { units }
    }

    /// The flow's number in its session.
    pub fn id(&self) -> FlowId {
        self.units.flow
    }

    /// Writes a block at once, or says why not. The scheduler may refuse it, with what it could
    /// keep instead ([`marline_proto::sched::Refusal`]).
    ///
    /// # Errors
    /// As [`SendError`] says; the block was not taken.
    pub fn try_write(&self, block: &Bytes, terms: BlockTerms) -> Result<Accepted, SendError> {
        self.units
            .with(|session, now, flow| session.write_block(now, flow, block, terms))
    }

    /// Writes a block, waiting while the flow has no room.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if this block is too long or the scheduler refuses it; any
    /// other kind if the flow is over.
    pub async fn write(&self, block: &Bytes, terms: BlockTerms) -> io::Result<Accepted> {
        self.units
            .write(|session, now, flow| session.write_block(now, flow, block, terms))
            .await
    }

    /// Largest block (bytes) that would arrive `within` this time with at least this probability,
    /// if it were written now; `None` if the flow's scheduler does not know. What it says holds for
    /// the present: ask again before each block, for paths and what waits for them change with
    /// every acknowledgement.
    pub fn capacity(&self, within: Duration, reliability: f64) -> Option<u64> {
        self.units
            .with(|session, now, flow| session.block_capacity(now, flow, within, reliability))
    }

    /// Shortest time within which a block of `len` bytes would arrive with at least this
    /// probability, if it were written now; `None` if the flow's scheduler does not know.
    pub fn deadline(&self, len: u64, reliability: f64) -> Option<Duration> {
        self.units
            .with(|session, now, flow| session.block_deadline(now, flow, len, reliability))
    }

    /// Cancels a block that was written here, with a code for the receiver.
    pub fn cancel(&self, block: u64, code: u64) {
        self.units
            .with(|session, now, flow| session.cancel_block(now, flow, block, code));
    }

    /// Drops blocks that come late instead of delivering them marked as late.
    pub fn drop_late(&self, drop: bool) {
        self.units
            .with(|session, _, flow| session.drop_late_blocks(flow, drop));
    }

    /// The next block, or a notice of one that will not come; `None` when nothing more will.
    pub async fn recv(&self) -> Option<Incoming> {
        self.units.recv().await
    }

    /// What became of a block that was written here, in the order in which that became known; the
    /// oldest of more than 4096 that nobody asks for are forgotten. `None` when the flow is
    /// over or the other end wants no more of it.
    pub async fn settled(&self) -> Option<Settled> {
        self.units.settled().await
    }

    /// Is the session over or about to be, and not this flow alone?
    pub fn is_session_over(&self) -> bool {
        self.units.shared.is_over()
    }

    /// Blocks that the other end is not known to have and that are not given up, oldest first, each
    /// with its number; see [`Packets::unsettled`](super::Packets::unsettled).
    pub fn unsettled(&self) -> Vec<(u64, Bytes)> {
        self.units.unsettled()
    }

    /// Waits until the flow takes more, or is over.
    pub async fn room(&self) {
        self.units.room().await;
    }

    /// How long blocks took until this end knew that the other has them in order; `None` once
    /// its session has forgotten the flow.
    pub fn delays(&self) -> Option<Delays> {
        self.units.delays()
    }

    /// What the flow has counted; `None` once it is forgotten.
    pub fn counters(&self) -> Option<FlowCounters> {
        let state = self.units.shared.lock();
        state.session.flow_counters(self.units.flow)
    }

    /// No more blocks will be written.
    pub fn finish(&self) {
        self.units.finish();
    }
}
