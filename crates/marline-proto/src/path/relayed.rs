//! Packets that another path's way back reported first.
//!
//! Delivery rate and round trips are measured when the path's own way back reports a packet, not
//! when another way reported it first. A loss is reported by the quickest way back, and so is what
//! arrived before it. If samples were taken at that moment, a path would look quicker the more it
//! lost: a path of 240 ms beside one of 40 ms was taken to be two and a half times as quick as it
//! is, was overrun, and lost more.

use alloc::collections::VecDeque;

use marline_base::Instant;

/// Number of packets remembered: 100 ms of a gigabit a second in datagrams of 1500 bytes.
const MOST: usize = 8_192;

/// Packets that another path's way back reported first, in the order of the reports. The path's own
/// way back follows and gives the round trip.
#[derive(Debug, Default)]
pub(crate) struct Relayed(VecDeque<(u64, Instant)>);

impl Relayed {
    /// Another way reported this packet, which left at `sent`.
    pub(crate) fn push(&mut self, packet: u64, sent: Instant) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back((packet, sent));
    }

    /// The path's own way reports this packet as its largest: answers when it left, if it is one of
    /// these. What was reported before it is forgotten.
    pub(crate) fn take(&mut self, packet: u64) -> Option<Instant> {
        while let Some((number, sent)) = self.0.front().copied().filter(|(n, _)| *n <= packet) {
            self.0.pop_front();
            if number == packet {
                return Some(sent);
            }
        }
        None
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
        for packet in 0..3 * MOST as u64 {
            relayed.push(packet, Instant::ZERO);
        }
        assert_eq!(relayed.0.len(), MOST);
        assert_eq!(relayed.take(0), None);
        assert_eq!(relayed.take(3 * MOST as u64 - 1), Some(Instant::ZERO));
    }
}
