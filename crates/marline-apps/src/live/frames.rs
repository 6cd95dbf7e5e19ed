//! A flow of blocks as a flow of datagrams: frames go as blocks and come out as the datagrams that
//! they were made of.

use super::alarm::{act_in_time, before};
use super::grouping::{Group, Grouper, cut, cut_all};
use super::writing::{keep, write_all};
use crate::live::FrameTerms;
use crate::proxy::PacketFlow;
use bytes::Bytes;
use marline::endpoint::{Blocks, Incoming};
use marline::support::lock;
use marline_proto::flow::{BlockTerms, SendError};
use marline_proto::stats::{Delays, FlowCounters};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a frame waits for its last packet: this part of its deadline.
const PATIENCE: u32 = 4;
/// The same without a deadline.
const NO_DEADLINE: Duration = Duration::from_millis(20);

/// Blocks that are remembered at a time: as many as a session lets be under way.
const WATCHED: usize = 1 << 15;

/// Frames over all paths of a session.
///
/// A frame is given up at its deadline by the sender; one that is whole later is handed over all
/// the same, for receivers of RTP know better what it is worth.
#[derive(Debug)]
pub struct Frames {
    flow: Blocks,
    terms: Option<FrameTerms>,
    open: Mutex<Grouper>,
    /// Blocks that may be under way, and when their first datagrams came; the oldest first.
    written: Mutex<VecDeque<(u64, Instant)>>,
    /// Frames that were complete when the flow was over.
    unwritten: Mutex<Vec<Group>>,
    /// Something changed in `open`.
    changed: Notify,
    /// What is left of the block that came last. Datagrams are cut off it when they are asked for:
    /// an empty one has two bytes there, and by itself many times that.
    arrived: Mutex<Bytes>,
}

impl Frames {
    /// Frames with these terms; without any they are worth something for ever.
    pub fn new(flow: Blocks, terms: Option<FrameTerms>) -> Self {
        let patience = terms.map_or(NO_DEADLINE, |terms| terms.deadline / PATIENCE);
        Frames {
            flow,
            terms,
            open: Mutex::new(Grouper::new(patience)),
            written: Mutex::default(),
            unwritten: Mutex::default(),
            changed: Notify::new(),
            arrived: Mutex::default(),
        }
    }

    fn write(&self, group: &Group) -> Result<(), SendError> {
        // The deadline counts from the first packet.
        let terms = self
            .terms
            .map_or_else(BlockTerms::default, |terms| BlockTerms {
                deadline: Some(terms.deadline.saturating_sub(group.since.elapsed())),
                reliability: Some(terms.reliability()),
            });
        match self.flow.try_write(&group.block, terms) {
            Ok(block) => {
                let mut written = lock(&self.written);
                written.push_back((block.number, group.since));
                let longest = self.terms.map(|terms| terms.deadline);
                let over = |(_, since): &(u64, Instant)| {
                    longest.is_some_and(|longest| since.elapsed() > longest)
                };
                while written.len() > WATCHED || written.front().is_some_and(over) {
                    written.pop_front();
                }
                Ok(())
            }
            Err(SendError::Closed) => keep(&mut lock(&self.unwritten), group),
            Err(error) => Err(error),
        }
    }

    /// Sends frames that have waited too long for their last packets. Never completes.
    async fn flush_in_time(&self) {
        let due = || lock(&self.open).due();
        act_in_time(&self.changed, due, |now| {
            let late = {
                let mut open = lock(&self.open);
                let over = open.due().is_some_and(|at| at <= now);
                over.then(|| open.flush()).flatten()
            };
            if let Some(Err(error)) = late.map(|group| self.write(&group)) {
                tracing::debug!(%error, "a frame was not taken");
            }
        })
        .await;
    }
}

impl PacketFlow for Frames {
    async fn send(&self, message: Bytes) -> io::Result<()> {
        self.send_waited(message, Duration::ZERO).await
    }

    async fn send_waited(&self, message: Bytes, waited: Duration) -> io::Result<()> {
        let came = before(waited);
        // After an outage much may come at once.
        self.flow.room().await;
        let complete = lock(&self.open).push(came, &message);
        self.changed.notify_one();
        write_all(&complete, |group| self.write(group))
    }

    /// While it waits, frames whose last packet does not come are sent.
    async fn recv(&self) -> Option<Bytes> {
        loop {
            if let Some(datagram) = cut(&mut lock(&self.arrived)) {
                return Some(datagram);
            }
            let incoming = tokio::select! {
                incoming = self.flow.recv() => incoming?,
                () = self.flush_in_time() => return None,
            };
            if let Incoming::Piece(piece) = incoming {
                *lock(&self.arrived) = piece.data;
            }
        }
    }

    fn counters(&self) -> Option<FlowCounters> {
        self.flow.counters()
    }

    fn delays(&self) -> Option<Delays> {
        self.flow.delays()
    }

    fn is_session_over(&self) -> bool {
        self.flow.is_session_over()
    }

    fn unsettled(&self) -> Vec<(Bytes, Duration)> {
        let came: HashMap<u64, Instant> = lock(&self.written).iter().copied().collect();
        // Those that nobody remembers are too old.
        let written = self.flow.unsettled().into_iter();
        let written =
            written.filter_map(|(number, block)| Some((block, came.get(&number)?.elapsed())));
        let mut groups = std::mem::take(&mut *lock(&self.unwritten));
        groups.extend(std::iter::from_fn(|| lock(&self.open).flush()));
        let groups = groups.into_iter();
        let groups = groups.map(|group| (group.block, group.since.elapsed()));
        let all = written.chain(groups);
        all.flat_map(|(block, age)| cut_all(block, age)).collect()
    }
}
