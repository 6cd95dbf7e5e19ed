//! What a flow shows its scheduler: units, and how code and credit stand.

use marline_base::Instant;

/// A unit that an application hands over, as a scheduler sees it: before it is taken, and while it
/// is under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Its number in its flow; the session counts.
    pub id: u64,
    /// Its length (bytes). In a [`Plan`](crate::sched::Plan): what is left of it to emit for the
    /// first time.
    pub len: u64,
    /// After this it is worth nothing; `None` if it always is.
    pub deadline: Option<Instant>,
    /// Probability, 0..=1, with which the deadline should be kept, if the application asked.
    pub reliability: Option<f64>,
    /// 0 (most urgent) to 7, among the units of its flow.
    pub urgency: u8,
    /// How its code stands; `None` for messages of a packets flow, which have none.
    pub code: Option<UnitCode>,
}

/// How the block code of a unit stands: any `symbols` different symbols bring it back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitCode {
    /// Length (bytes) of its symbols; the last source symbol may be shorter.
    pub symbol: u32,
    /// Its source symbols: *k*.
    pub symbols: u32,
    /// Different symbols, source or repair, that the peer is known to have.
    pub acked: u32,
    /// Symbols that wait or are in flight and about which nothing is known yet.
    pub open: u32,
    /// Repair symbols emitted so far.
    pub repairs: u32,
    /// Repair symbols that may still be emitted
    /// ([`Plan::repair_of`](crate::sched::Plan::repair_of)).
    pub spare: u32,
}

impl Unit {
    /// A unit of `len` bytes without a deadline or a code.
    pub const fn new(id: u64, len: u64) -> Self {
        Self {
            id,
            len,
            deadline: None,
            reliability: None,
            urgency: 3,
            code: None,
        }
    }
}

/// How the code of a flow stands, for schedulers that emit repair symbols ([`Plan::repair`]).
///
/// *Unknown* symbols are source symbols that left and that the receiver is not known to have:
/// neither acknowledged nor reported as recovered.
///
/// [`Plan::repair`]: crate::sched::Plan::repair
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coding {
    /// Source symbols that a repair symbol would combine now: from the oldest unknown one to the
    /// newest that left, bounded by the agreed window.
    pub window: u32,
    /// How many of these are unknown.
    pub unknown: u32,
    /// How many of the unknown ones were lost, as far as is known.
    pub lost: u32,
    /// The number of repair symbols that must still arrive before the receiver can recover all that
    /// was lost: the lost ones, less the equations that the receiver said it holds, less the repair
    /// symbols that wait or fly.
    pub missing: u32,
    /// Repair symbols that left and whose fate is open.
    pub repairs_in_flight: u32,
    /// Repair symbols that wait for a path.
    pub repairs_queued: u32,
    /// Bytes of repair symbols that the flow's budget allows now.
    pub budget: u64,
}

/// A stream that has data to send and no credit of the peer left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Offset of the oldest byte that the peer has not acknowledged.
    pub oldest: u64,
}
