//! Counters and snapshots for status, metrics and statistics.

mod delay;
mod units;

pub use crate::flow::GivenUp;
pub use crate::path::counters::PathCounters;
pub use delay::Delays;
pub use units::UnitCounters;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use marline_base::{Duration, Instant, Rate};

use crate::law::Calibration;
use crate::path::PathState;
use crate::sched::{Choice, Outlook};
use crate::wire::{FlowId, FlowKind, PathId};

/// What one flow has counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Bytes that the application wrote.
    pub written_bytes: u64,
    /// Bytes sent for the first time.
    pub source_bytes: u64,
    /// Bytes sent again while the first copy might still arrive.
    pub copy_bytes: u64,
    /// Bytes sent again because they were lost.
    pub retransmitted_bytes: u64,
    /// Repair symbols sent.
    pub repair_symbols: u64,
    /// Bytes of repair symbols sent.
    pub repair_bytes: u64,
    /// Repair symbols that gave the peer a symbol before that arrived, as it said last.
    pub repairs_used: u64,
    /// Repair symbols that reached the peer for nothing, as it said last. The others were lost, or
    /// wait there for more.
    pub repairs_wasted: u64,
    /// Repair symbols that arrived from the peer.
    pub received_repairs: u64,
    /// Symbols that came out of these before they arrived.
    pub recovered_symbols: u64,
    /// Bytes that the application read.
    pub read_bytes: u64,
    /// Messages delivered (packets flows).
    pub delivered_messages: u64,
    /// Messages skipped at the receiver because they never came in time.
    pub skipped_messages: u64,
    /// Of those, messages that came all the same, too late.
    pub late_messages: u64,
    /// Arrivals of messages that had arrived already: copies that were not needed.
    pub duplicate_messages: u64,
    /// Messages that came in time, but after later ones.
    pub reordered_messages: u64,
    /// Messages dropped at the receiver because nobody read them.
    pub dropped_messages: u64,
    /// Messages given up at the sender because their lifetime ended.
    pub expired_messages: u64,
    /// Symbols of messages whose first transmission was lost and which the peer has all the same,
    /// by a copy or a retransmission.
    pub repaired_symbols: u64,
    /// Messages that the peer gave up or did not read, as it said last.
    pub peer_missed: u64,
    /// Of those, messages that reached it all the same, too late.
    pub peer_late: u64,
    /// Arrivals there of messages that had arrived.
    pub peer_duplicates: u64,
    /// Bytes that the peer acknowledged, each counted once.
    pub acked_bytes: u64,
    /// Bytes that the peer acknowledged after they had been given up at the sender.
    pub acked_late_bytes: u64,
    /// Blocks and objects.
    pub units: UnitCounters,
}

impl FlowCounters {
    /// Bytes that the peer is known to have, in time or not.
    pub fn arrived_bytes(&self) -> u64 {
        // What was sent again may be acknowledged twice once it was given up.
        let acked = self.acked_bytes + self.acked_late_bytes;
        acked.min(self.written_bytes)
    }

    /// (bytes sent − source bytes) / source bytes; 0 if nothing was sent.
    pub fn redundancy(&self) -> f64 {
        if self.source_bytes == 0 {
            return 0.0;
        }
        let more = self.copy_bytes + self.retransmitted_bytes + self.repair_bytes;
        more as f64 / self.source_bytes as f64
    }
}

/// One path now.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStats {
    /// The path.
    pub id: PathId,
    /// Its state.
    pub state: PathState,
    /// Why it is in that state.
    pub reason: String,
    /// Since when, on the session's clock; of a suspect or dead path, since when it is in doubt.
    pub since: Instant,
    /// When the peer last acknowledged a packet of it; before the first, when the path was added.
    pub heard: Instant,
    /// Cost rank; lower is cheaper.
    pub cost: u32,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_var: Duration,
    /// Smallest round-trip time of the last 10 to 20 s.
    pub min_rtt: Duration,
    /// Smoothed forward delay beyond its minimum, from arrival times at the peer.
    pub queueing: Duration,
    /// Smoothed time between arrivals of consecutive packets at the peer.
    pub spacing: Option<Duration>,
    /// Fraction of packets lost lately, 0..=1.
    pub loss: f64,
    /// How often the path's law of arrivals came true ([`law`](crate::law)).
    pub law: Calibration,
    /// Congestion window (bytes).
    pub cwnd: u64,
    /// Bytes sent and neither acknowledged nor lost.
    pub in_flight: u64,
    /// Bytes that wait at the sender for this path.
    pub queued: u64,
    /// Packets remembered: in flight, or settled lately.
    pub tracked: usize,
    /// Expected delivery rate.
    pub rate: Rate,
    /// Name of the congestion controller.
    pub congestion: &'static str,
    /// Largest datagram (bytes).
    pub max_datagram: usize,
    /// Counters.
    pub counters: PathCounters,
}

/// A flow may use paths that cost more than others, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spill {
    /// Highest cost rank that it may use.
    pub cost: u32,
    /// How long what waits would wait on the cheaper paths alone.
    pub wait: Duration,
}

/// One flow now.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowStats {
    /// The flow.
    pub id: FlowId,
    /// Its kind.
    pub kind: FlowKind,
    /// Its scheduler.
    pub scheduler: Choice,
    /// Its priority, 0 (first) to 7.
    pub priority: u8,
    /// Bytes written that were not sent yet.
    pub unsent: u64,
    /// Bytes written that the peer has not acknowledged, with what each message costs besides its
    /// bytes.
    pub unacked: u64,
    /// Bytes that arrived and were not read yet, or not passed on by who read them, with what each
    /// message costs besides its bytes.
    pub unread: u64,
    /// From a write until the peer had it and all before it, as this side knows by the
    /// acknowledgement (so a way back is included); messages of an unordered flow count alone.
    pub delays: Box<Delays>,
    /// What its scheduler expects, and how often it was right; `None` from schedulers that forecast
    /// nothing.
    pub outlook: Option<Box<Outlook>>,
    /// τ: one packet that leaves in so many is a repair symbol, as of the scheduler's last plan;
    /// `None` while none are due by such a rule, and of flows that are not coded.
    pub coding_interval: Option<u32>,
    /// That it may use dear paths now.
    pub spill: Option<Spill>,
    /// Counters.
    pub counters: FlowCounters,
}

/// Credit of all streams together (bytes since the start).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credit {
    /// What the peer allows to be sent, and what was cut into symbols.
    pub send: (u64, u64),
    /// What the peer may send, what it did send, and what of it was read.
    pub receive: (u64, u64, u64),
}

/// What flows carried, in bytes of applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Taken from applications at this end.
    pub written_bytes: u64,
    /// Of these, acknowledged by the peer, in time or not.
    pub acked_bytes: u64,
    /// Handed to applications at this end.
    pub read_bytes: u64,
}

impl Carried {
    pub(crate) fn add(&mut self, flow: &FlowCounters) {
        self.written_bytes += flow.written_bytes;
        self.acked_bytes += flow.arrived_bytes();
        self.read_bytes += flow.read_bytes;
    }
}

/// The session now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionStats {
    /// Credit of all streams together.
    pub credit: Credit,
    /// Paths, ascending by id.
    pub paths: Vec<PathStats>,
    /// Open flows, ascending by id.
    pub flows: Vec<FlowStats>,
    /// Flows that have ended.
    pub closed_flows: u64,
    /// What all flows carried, those that have ended included.
    pub carried: Carried,
}
