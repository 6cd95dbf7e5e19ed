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
    /// Datagrams that the peer has sent, as the highest number that arrived tells.
    pub numbered_packets: u64,
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

impl PathCounters {
    /// Datagrams that the peer has sent before the last that arrived, and that did not arrive:
    /// lost, or still on the way where packets overtake each other.
    pub const fn missing_packets(&self) -> u64 {
        let arrived = self.received_packets.saturating_sub(self.duplicate_packets);
        self.numbered_packets.saturating_sub(arrived)
    }
}
