/// What one path has counted since it was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Datagrams handed to the carrier.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Datagrams received.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Datagrams that had arrived before.
    pub duplicate_packets: u64,
    /// Bytes acknowledged.
    pub acked_bytes: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Packets declared lost that arrived after all.
    pub spurious_losses: u64,
    /// Probe timeouts.
    pub probe_timeouts: u64,
    /// Times that the path came under suspicion.
    pub suspicions: u64,
}
