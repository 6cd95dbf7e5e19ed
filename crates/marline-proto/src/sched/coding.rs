//! What a scheduler sees of its flow's code.

/// How the code of a flow stands, for schedulers that emit repair symbols ([`Plan::repair`]).
///
/// *Unknown* symbols are source symbols that left and that the receiver is not known to have:
/// neither acknowledged nor reported as recovered.
///
/// [`Plan::repair`]: super::Plan::repair
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
