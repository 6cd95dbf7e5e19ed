//! A path's packets in the order of sending.

use alloc::collections::VecDeque;

use marline_base::{Duration, Instant};

use crate::flow::Symbol;
use crate::sched::Feedback;

/// Packets that are waited for at most; the oldest of more are given up.
const MOST: usize = 4_096;
/// What is not known of a packet this long after others left will not become known.
const PATIENCE: Duration = Duration::from_secs(1);
/// After such a pause another burst begins.
pub(super) const PAUSE: Duration = Duration::from_millis(3);

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    /// Nothing is known.
    Open,
    /// It arrived: by the peer's clock (µs), and when that was reported.
    Arrived { at: u64, heard: Instant },
    /// It was lost, or its arrival time is not known.
    Gone,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    symbol: Symbol,
    pub(super) sent: Instant,
    pub(super) bits: f64,
    pub(super) state: State,
    /// It has been measured by itself.
    pub(super) measured: bool,
    /// A burst begins with it.
    pub(super) first: bool,
}

/// Packets from the oldest about which nothing is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    packets: VecDeque<Packet>,
    /// When the latest was sent.
    latest: Option<Instant>,
}

impl Flight {
    pub(super) fn sent(&mut self, feedback: &Feedback, bits: f64) {
        if self.packets.len() == MOST {
            self.packets.pop_front();
        }
        let latest = self.latest.replace(feedback.sent);
        self.packets.push_back(Packet {
            symbol: feedback.symbol,
            sent: feedback.sent,
            bits,
            state: State::Open,
            measured: false,
            first: latest.is_none_or(|latest| feedback.sent.since(latest) > PAUSE),
        });
    }

    /// Notes what became of a packet; reports come nearly in the order of sending.
    pub(super) fn settle(&mut self, feedback: &Feedback, state: State) {
        let found = self.packets.iter_mut().find(|packet| {
            packet.state == State::Open
                && packet.sent == feedback.sent
                && packet.symbol == feedback.symbol
        });
        if let Some(packet) = found {
            packet.state = state;
        }
    }

    /// All of them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Packet> {
        self.packets.iter_mut()
    }

    /// The oldest, if it is known what became of it or it will not become known, and when the one
    /// after it was sent.
    pub(super) fn next(&mut self) -> Option<(Packet, Option<Instant>)> {
        let (oldest, newest) = (self.packets.front()?, self.packets.back()?);
        if oldest.state == State::Open && newest.sent.since(oldest.sent) <= PATIENCE {
            return None;
        }
        let packet = self.packets.pop_front()?;
        Some((packet, self.packets.front().map(|next| next.sent)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::EmissionKind;
    use crate::sched::Outcome;
    use crate::wire::PathId;

    fn symbol(offset: u64, sent: u64) -> Feedback {
        Feedback {
            symbol: Symbol {
                unit: 1,
                offset,
                len: 1_000,
            },
            kind: EmissionKind::Source,
            path: PathId(0),
            sent: Instant::from_millis(sent),
            outcome: Outcome::Sent,
            arrived_us: None,
            own_way: true,
        }
    }

    #[test]
    fn packets_come_out_in_the_order_of_sending() {
        let mut flight = Flight::default();
        for offset in 0..3 {
            flight.sent(&symbol(offset, 10 + offset), 8.0);
        }
        flight.settle(&symbol(1, 11), State::Gone);
        assert!(flight.next().is_none());
        flight.settle(&symbol(0, 10), State::Gone);
        // Of nothing like it: it was sent at another time.
        flight.settle(&symbol(2, 13), State::Gone);
        let sent =
            |next: Option<(Packet, Option<Instant>)>| next.map(|(packet, _)| packet.symbol.offset);
        assert_eq!(sent(flight.next()), Some(0));
        assert_eq!(sent(flight.next()), Some(1));
        assert_eq!(sent(flight.next()), None);
        // A second later it is not waited for any more.
        flight.sent(&symbol(3, 1_013), 8.0);
        let (packet, next) = flight.next().unwrap();
        assert_eq!((packet.symbol.offset, packet.state), (2, State::Open));
        assert_eq!(next, Some(Instant::from_millis(1_013)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut flight = Flight::default();
        for offset in 0..2 * MOST as u64 {
            flight.sent(&symbol(offset, 10), 8.0);
        }
        assert_eq!(flight.iter_mut().count(), MOST);
    }
}
