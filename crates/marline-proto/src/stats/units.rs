/// What one flow of blocks or objects has counted, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitCounters {
    /// Blocks written and objects opened by the application.
    pub written: u64,
    /// Sent: had by the peer, as it said, by their deadlines if they had any.
    pub acked: u64,
    /// Sent: blocks that the peer had whole too late.
    pub acked_late: u64,
    /// Sent: blocks that the peer never had, given up at their deadlines.
    pub lost: u64,
    /// Sent: given up by the application at either end.
    pub cancelled: u64,
    /// Received whole, late blocks included.
    pub delivered: u64,
    /// Of these, blocks that were late.
    pub late: u64,
    /// Given up by the peer before they were whole.
    pub missing: u64,
    /// Source symbols that repair symbols brought back.
    pub rebuilt_symbols: u64,
}
