use core::fmt;
use marline_base::Instant;

/// What happens to a packet that was offered to a [`Link`](crate::Link).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The packet reaches the other end.
    Delivered {
        /// When it arrives.
        at: Instant,
        /// When its last byte leaves the queue; the rest of the way is propagation.
        departs: Instant,
        /// When a second copy arrives, if the link duplicates this packet; not before `at`
        /// unless the link lets packets overtake each other.
        copy: Option<Instant>,
    },
    /// The packet is lost.
    Dropped(Reason),
}

impl Verdict {
    /// When the packet arrives, if it does.
    pub const fn arrival(self) -> Option<Instant> {
        match self {
            Self::Delivered { at, .. } => Some(at),
            Self::Dropped(_) => None,
        }
    }
}

/// Why a packet was lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// The queue had no room.
    QueueFull,
    /// Random loss behind the queue.
    Loss,
    /// The link was dark, or went dark while the packet was waiting.
    Outage,
    /// CoDel dropped it as it left the queue.
    CoDel,
    /// It was larger than the link's MTU.
    TooBig,
}

impl Reason {
    /// Every reason, in the order of [`Counters::dropped`].
    pub const ALL: [Self; 5] = [
        Self::QueueFull,
        Self::Loss,
        Self::Outage,
        Self::CoDel,
        Self::TooBig,
    ];

    /// A short name for tables and metrics: lower case, no blanks.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::Loss => "loss",
            Self::Outage => "outage",
            Self::CoDel => "codel",
            Self::TooBig => "too-big",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a link has done since it was made. Copies are not counted as deliveries.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Packets offered.
    pub offered: u64,
    /// Bytes offered.
    pub offered_bytes: u64,
    /// Packets for which a delivery was announced.
    pub delivered: u64,
    /// Bytes for which a delivery was announced.
    pub delivered_bytes: u64,
    /// Packets of which a second copy was announced.
    pub copied: u64,
    /// Packets dropped, by the place of their reason in [`Reason::ALL`].
    pub dropped: [u64; Reason::ALL.len()],
}

impl Counters {
    /// Packets dropped for `reason`.
    pub const fn dropped_for(&self, reason: Reason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Packets dropped for whatever reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }
}
