//! A packet on its way, and what becomes of it.

use marline_base::Instant;
use marline_proto::path::EmissionKind;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The next unit is written.
    Write,
    /// The packet arrives.
    Arrival(Packet),
    /// The server of a path is done with a packet, and the sender knows.
    Freed,
    /// The sender learns that the packet arrived, of the packets that became known by it, and how
    /// many equations the receiver holds.
    Acked(Packet, Vec<u64>, u32),
    /// The sender learns that the packet is lost.
    Lost(Packet),
    /// The scheduler asked for it.
    Wake,
}

/// A packet on its way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Packet {
    /// Counts everything that leaves.
    pub(super) sequence: u64,
    pub(super) path: usize,
    pub(super) unit: u64,
    pub(super) offset: u64,
    pub(super) kind: Kind,
    pub(super) sent: Instant,
    pub(super) arrives: Instant,
    /// Code number of a source packet; start, count and key of a repair symbol.
    pub(super) coded: (u64, u16, u16),
    pub(super) payload: Vec<u8>,
}

/// [`EmissionKind`], in an order for the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Source,
    Copy,
    Again,
    Repair,
}

impl From<EmissionKind> for Kind {
    fn from(kind: EmissionKind) -> Self {
        match kind {
            EmissionKind::Source => Self::Source,
            EmissionKind::Copy => Self::Copy,
            EmissionKind::Retransmission => Self::Again,
            EmissionKind::Repair => Self::Repair,
        }
    }
}

impl From<Kind> for EmissionKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Source => Self::Source,
            Kind::Copy => Self::Copy,
            Kind::Again => Self::Retransmission,
            Kind::Repair => Self::Repair,
        }
    }
}
