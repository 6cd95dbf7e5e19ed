//! What another path's way back told first.

use alloc::collections::VecDeque;

use marline_base::Instant;

/// So many are remembered: those of a few round trips.
const MOST: usize = 64;

/// Packets that another path's way back acknowledged, each the largest of its acknowledgement. The
/// path's own way back follows and tells the round trip.
#[derive(Debug, Default)]
pub(crate) struct Relayed(VecDeque<(u64, Instant)>);

impl Relayed {
    /// Another way told of this packet, that left at `sent`.
    pub(crate) fn push(&mut self, packet: u64, sent: Instant) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back((packet, sent));
    }

    /// The path's own way tells of this packet as its largest: when it left, if it is one of these.
    /// Older ones are forgotten.
    pub(crate) fn take(&mut self, packet: u64) -> Option<Instant> {
        let mut found = None;
        self.0.retain(|&(number, sent)| {
            if number == packet {
                found = Some(sent);
            }
            number > packet
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_found_once_and_older_ones_are_forgotten() {
        let mut relayed = Relayed::default();
        let at = Instant::from_millis;
        for packet in 1..=4 {
            relayed.push(packet, at(packet));
        }
        assert_eq!(relayed.take(3), Some(at(3)));
        assert_eq!(relayed.take(3), None);
        assert_eq!(relayed.take(2), None);
        assert_eq!(relayed.take(4), Some(at(4)));
    }

    #[test]
    fn only_the_last_are_remembered() {
        let mut relayed = Relayed::default();
        for packet in 0..1_000 {
            relayed.push(packet, Instant::ZERO);
        }
        assert_eq!(relayed.0.len(), MOST);
        assert_eq!(relayed.take(999), Some(Instant::ZERO));
    }
}
