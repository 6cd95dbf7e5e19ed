//! What was sent and is not yet acknowledged: in flight, lost, or selectively acknowledged.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use marline_base::Instant;
use marline_proto::path::delivery::DeliverySnapshot;
use marline_proto::ranges::RangeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Flying,
    /// Given up, and not sent again yet.
    Lost,
    /// Selectively acknowledged.
    Sacked,
}

/// A segment of the stream and its last transmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) seq: u64,
    pub(super) len: u32,
    pub(super) fate: Fate,
    /// Number of the transmission; the connection's transmissions are counted from zero.
    pub(super) transmission: u64,
    pub(super) at: Instant,
    /// It was sent before.
    pub(super) again: bool,
    pub(super) delivery: DeliverySnapshot,
}

impl Sent {
    pub(super) const fn end(&self) -> u64 {
        self.seq + self.len as u64
    }
}

#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    /// By place in the stream, without gaps.
    segments: VecDeque<Sent>,
    sacked: RangeSet,
    sacked_segments: u64,
    lost: BTreeSet<u64>,
    /// Transmissions in their order, those that are superseded or settled included until they come
    /// to the front: number and place.
    order: VecDeque<(u64, u64)>,
    transmissions: u64,
    in_flight: u64,
}

impl Scoreboard {
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The number that the next transmission gets.
    pub(super) const fn next_transmission(&self) -> u64 {
        self.transmissions
    }

    /// Nothing waits for an acknowledgement.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) const fn sacked_segments(&self) -> u64 {
        self.sacked_segments
    }

    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The lost segment with the lowest place.
    pub(super) fn first_lost(&self) -> Option<Sent> {
        self.find(*self.lost.first()?).copied()
    }

    pub(super) fn first(&self) -> Option<&Sent> {
        self.segments.front()
    }

    pub(super) fn last(&self) -> Option<&Sent> {
        self.segments.back()
    }

    fn index(&self, seq: u64) -> Option<usize> {
        let i = self.segments.partition_point(|sent| sent.seq < seq);
        self.segments.get(i).filter(|sent| sent.seq == seq)?;
        Some(i)
    }

    pub(super) fn find(&self, seq: u64) -> Option<&Sent> {
        self.index(seq).map(|i| &self.segments[i])
    }

    /// A segment at the end of the stream leaves.
    pub(super) fn send(&mut self, now: Instant, seq: u64, len: u32, delivery: DeliverySnapshot) {
        self.segments.push_back(Sent {
            seq,
            len,
            fate: Fate::Flying,
            transmission: self.transmissions,
            at: now,
            again: false,
            delivery,
        });
        self.in_flight += u64::from(len);
        self.count(seq);
    }

    /// The segment at `seq`, which is not sacked, leaves again.
    pub(super) fn send_again(&mut self, now: Instant, seq: u64, delivery: DeliverySnapshot) {
        let Some(i) = self.index(seq) else { return };
        let sent = &mut self.segments[i];
        if sent.fate == Fate::Lost {
            self.lost.remove(&seq);
            self.in_flight += u64::from(sent.len);
        }
        sent.fate = Fate::Flying;
        sent.transmission = self.transmissions;
        sent.at = now;
        sent.again = true;
        sent.delivery = delivery;
        self.count(seq);
    }

    fn count(&mut self, seq: u64) {
        self.order.push_back((self.transmissions, seq));
        self.transmissions += 1;
    }

    /// Settles everything before `next` and the `blocks`; what is newly delivered, as it was.
    pub(super) fn acknowledge(
        &mut self,
        next: u64,
        blocks: impl Iterator<Item = Range<u64>>,
    ) -> Vec<Sent> {
        let mut delivered = Vec::new();
        while let Some(sent) = self.segments.front().copied()
            && sent.end() <= next
        {
            self.segments.pop_front();
            if sent.fate == Fate::Sacked {
                self.sacked_segments -= 1;
            } else {
                self.settle(&sent);
                delivered.push(sent);
            }
        }
        self.sacked.drop_below(next);
        let Some(end) = self.segments.back().map(Sent::end) else {
            return delivered;
        };
        for block in blocks {
            let block = block.start.max(next)..block.end.min(end);
            let new: Vec<_> = self.sacked.absent_in(block).collect();
            for part in new {
                let mut i = self.segments.partition_point(|sent| sent.seq < part.start);
                while let Some(sent) = self.segments.get(i).copied()
                    && sent.end() <= part.end
                {
                    if sent.fate != Fate::Sacked {
                        self.settle(&sent);
                        self.segments[i].fate = Fate::Sacked;
                        self.sacked_segments += 1;
                        delivered.push(sent);
                    }
                    i += 1;
                }
                self.sacked.insert(part);
            }
        }
        delivered
    }

    fn settle(&mut self, sent: &Sent) {
        match sent.fate {
            Fate::Flying => self.in_flight -= u64::from(sent.len),
            Fate::Lost => {
                self.lost.remove(&sent.seq);
            }
            Fate::Sacked => {}
        }
    }

    /// The oldest transmission whose segment is still in flight on it.
    pub(super) fn oldest(&mut self) -> Option<Sent> {
        while let Some(&(transmission, seq)) = self.order.front() {
            if let Some(sent) = self.find(seq)
                && sent.transmission == transmission
                && sent.fate == Fate::Flying
            {
                return Some(*sent);
            }
            self.order.pop_front();
        }
        None
    }

    /// Gives up the segment at `seq`.
    pub(super) fn lose(&mut self, seq: u64) {
        let Some(i) = self.index(seq) else { return };
        let sent = &mut self.segments[i];
        if sent.fate == Fate::Flying {
            sent.fate = Fate::Lost;
            self.in_flight -= u64::from(sent.len);
            self.lost.insert(seq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNAPSHOT: DeliverySnapshot = DeliverySnapshot {
        delivered: 0,
        delivered_at: Instant::ZERO,
        first_sent_at: Instant::ZERO,
        app_limited: false,
    };

    fn ten() -> Scoreboard {
        let mut board = Scoreboard::default();
        for n in 0..10 {
            board.send(Instant::from_millis(n), n * 100, 100, SNAPSHOT);
        }
        board
    }

    fn places(sent: &[Sent]) -> Vec<u64> {
        sent.iter().map(|s| s.seq / 100).collect()
    }

    #[test]
    fn every_segment_is_delivered_once() {
        let mut board = ten();
        let block = |from: u64, to: u64| from * 100..to * 100;
        let delivered = board.acknowledge(100, [block(3, 5), block(7, 8)].into_iter());
        assert_eq!(places(&delivered), [0, 3, 4, 7]);
        assert_eq!((board.in_flight(), board.sacked_segments()), (600, 3));
        let delivered = board.acknowledge(100, [block(3, 8)].into_iter());
        assert_eq!(places(&delivered), [5, 6]);
        let delivered = board.acknowledge(900, [block(3, 8)].into_iter());
        assert_eq!(places(&delivered), [1, 2, 8]);
        assert_eq!((board.in_flight(), board.sacked_segments()), (100, 0));
        // Half a segment, and places that were never sent, settle nothing.
        assert!(
            board
                .acknowledge(950, [block(10, 20)].into_iter())
                .is_empty()
        );
        assert_eq!(places(&board.acknowledge(1_000, core::iter::empty())), [9]);
        assert!(board.is_empty());
    }

    #[test]
    fn lost_segments_leave_the_flight_and_return_with_a_new_number() {
        let mut board = ten();
        assert_eq!(board.oldest().unwrap().seq, 0);
        board.lose(0);
        board.lose(200);
        board.lose(200);
        assert_eq!(board.in_flight(), 800);
        assert_eq!(board.first_lost().unwrap().seq, 0);
        assert_eq!(board.oldest().unwrap().seq, 100);
        board.send_again(Instant::from_millis(50), 0, SNAPSHOT);
        assert_eq!(board.in_flight(), 900);
        assert_eq!(board.first_lost().unwrap().seq, 200);
        let sent = board.find(0).unwrap();
        assert_eq!((sent.transmission, sent.again), (10, true));
        board.acknowledge(1_000, core::iter::empty());
        assert!(!board.has_lost());
        assert_eq!(board.in_flight(), 0);
        assert!(board.oldest().is_none());
    }
}
