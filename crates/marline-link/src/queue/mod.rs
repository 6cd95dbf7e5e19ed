//! The queue in front of the server: how much it holds, and CoDel.

mod codel;

use alloc::collections::VecDeque;
use core::time::Duration;
use marline_base::Instant;

pub use codel::{Codel, CodelControl};

/// How much the queue holds, the packet in transmission included. A packet that finds the queue
/// empty is always taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueLimit {
    /// [`QueueLimit::MAX_PACKETS`] packets.
    #[default]
    Unlimited,
    /// Bytes.
    Bytes(u64),
    /// Packets.
    Packets(u32),
    /// What the link carries within this time at its mean rate.
    Time(Duration),
}

impl QueueLimit {
    /// No queue ever holds more packets, so that a link's memory is bounded (24 bytes a
    /// packet, up to twice that while the queue grows).
    pub const MAX_PACKETS: u32 = 1 << 20;
}

/// Packets that were accepted and have not left yet, in order.
#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    packets: VecDeque<Waiting>,
    bytes: u64,
    max_bytes: u64,
    max_packets: usize,
    /// Latest arrival among the packets that have left.
    settled: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    leaves: Instant,
    arrives: Instant,
    size: u32,
}

impl Backlog {
    pub(crate) fn new(max_bytes: u64, max_packets: u32) -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            max_bytes,
            max_packets: max_packets.min(QueueLimit::MAX_PACKETS) as usize,
            settled: Instant::ZERO,
        }
    }

    /// Limits what is taken from now on.
    pub(crate) fn set_limits(&mut self, max_bytes: u64, max_packets: u32) {
        self.max_bytes = max_bytes;
        self.max_packets = max_packets.min(QueueLimit::MAX_PACKETS) as usize;
    }

    /// Lets go of what has left by `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some(first) = self.packets.front()
            && first.leaves <= now
        {
            self.bytes -= u64::from(first.size);
            self.settled = self.settled.max(first.arrives);
            self.packets.pop_front();
        }
    }

    pub(crate) fn has_room(&self, size: u32) -> bool {
        self.packets.is_empty()
            || (self.packets.len() < self.max_packets
                && self.bytes + u64::from(size) <= self.max_bytes)
    }

    /// Adds a packet that occupies the queue until `leaves`, not before those ahead of it.
    /// `arrives` is zero for one that is dropped.
    pub(crate) fn push(&mut self, size: u32, leaves: Instant, arrives: Instant) {
        self.bytes += u64::from(size);
        self.packets.push_back(Waiting {
            leaves,
            arrives,
            size,
        });
    }

    /// Empties the queue at once; answers the latest arrival among packets that had left.
    pub(crate) fn clear(&mut self) -> Instant {
        self.packets.clear();
        self.bytes = 0;
        self.settled
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets and bytes that have not left by `now`, which is not before the last `advance`.
    pub(crate) fn occupancy(&self, now: Instant) -> (usize, u64) {
        let gone = self.packets.partition_point(|p| p.leaves <= now);
        let bytes: u64 = self
            .packets
            .iter()
            .take(gone)
            .map(|p| u64::from(p.size))
            .sum();
        (self.packets.len() - gone, self.bytes - bytes)
    }
}
