//! Packet-timed round trips (draft-cardwell-iccrg-bbr-congestion-control-00 §4.1.1.3).

use super::Ack;

/// Counts round trips: one ends when a packet is acknowledged that was sent after its start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// Round trips that have ended.
    pub(super) count: u64,
    /// Value of `delivered` at the start of the current one (bytes).
    started_at: u64,
}

impl Rounds {
    /// True if a round trip ends, and the next one starts, with this acknowledgement.
    pub(super) const fn on_ack(&mut self, ack: &Ack) -> bool {
        let ends = ack.delivered_when_sent >= self.started_at;
        if ends {
            self.started_at = ack.delivered;
            self.count += 1;
        }
        ends
    }

    /// Starts a new round trip at once.
    pub(super) const fn restart(&mut self, delivered: u64) {
        self.started_at = delivered;
    }
}
