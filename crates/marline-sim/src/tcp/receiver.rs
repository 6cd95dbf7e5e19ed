//! The receiving end: reassembly, and when and what to acknowledge.

use std::ops::Range;

use marline_base::{Duration, Instant};
use marline_proto::ranges::RangeSet;

use super::config::{TcpConfig, TcpConfigError};
use super::segment::{Ack, MAX_BLOCKS, Segment};

/// `TCP_DELACK_MIN`: how long an acknowledgement may wait for a second segment.
const DELAY: Duration = Duration::from_millis(40);
/// RFC 5681 §4.2: an acknowledgement for at least every second full-sized segment.
const EVERY: u64 = 2;
/// `TCP_MAX_QUICKACKS`: segments acknowledged at once when a connection starts, so that slow start
/// does not wait for timers.
const QUICK: u32 = 16;
/// A piece out of order counts as no fewer bytes, so that small ones cannot fill the memory.
const LEAST_PIECE: u64 = 256;

/// The receiving end of a connection.
#[derive(Clone, Debug)]
pub struct TcpReceiver {
    header: u32,
    mss: u64,
    window: u64,
    /// Everything before this place has arrived, and the application has read it.
    next: u64,
    /// What has arrived behind `next`.
    held: RangeSet,
    held_bytes: u64,
    /// Places in the blocks that changed last, the newest first (RFC 2018 §4).
    recent: Vec<u64>,
    /// What arrived twice and has not been reported (RFC 2883).
    duplicate: Option<Range<u64>>,
    /// RFC 7323 §4.3 `TS.Recent` and `Last.ACK.sent`.
    echo: Instant,
    last_acked: u64,
    quick: u32,
    /// Bytes that arrived in order since the last acknowledgement.
    unacked: u64,
    at_once: bool,
    deadline: Option<Instant>,
    duplicates: u64,
}

impl TcpReceiver {
    /// The receiving end of a connection that has just been set up.
    ///
    /// # Errors
    ///
    /// When a parameter is out of its range; the error names it.
    pub fn new(config: &TcpConfig) -> Result<Self, TcpConfigError> {
        config.check()?;
        Ok(Self {
            header: config.header,
            mss: u64::from(config.mss),
            window: config.window,
            next: 0,
            held: RangeSet::default(),
            held_bytes: 0,
            recent: Vec::new(),
            duplicate: None,
            echo: Instant::ZERO,
            last_acked: 0,
            quick: QUICK,
            unacked: 0,
            at_once: false,
            deadline: None,
            duplicates: 0,
        })
    }

    /// Takes a segment; the bytes that it releases to the application, which follow those that
    /// earlier ones released.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) -> Range<u64> {
        let before = self.next;
        let range = segment.seq..segment.end();
        if range.is_empty() || range.end > self.next + self.window {
            // RFC 9293 §3.10.7.4: what is outside of the window is answered and dropped.
            self.at_once = true;
            return before..before;
        }
        // RFC 7323 §4.3 (2).
        if segment.seq <= self.last_acked && segment.stamp >= self.echo {
            self.echo = segment.stamp;
        }
        let in_order = range.start <= self.next;
        if range.end <= self.next || self.held.covers(&range) {
            self.duplicates += 1;
            self.duplicate = Some(range);
            self.at_once = true;
        } else if in_order {
            self.advance(range.end);
        } else {
            self.hold(range);
            self.at_once = true;
        }
        self.schedule(now);
        before..self.next
    }

    fn advance(&mut self, end: u64) {
        let filled = !self.held.is_empty();
        let mut next = end;
        while let Some(first) = self.held.first()
            && first.start <= next
        {
            next = next.max(first.end);
            let covered = first.end - first.start;
            let end = first.end;
            self.held_bytes -= covered;
            self.held.drop_below(end);
        }
        self.unacked += next - self.next;
        self.next = next;
        self.recent.retain(|&place| place >= next);
        // RFC 5681 §4.2: at once when a segment fills a gap or part of it.
        self.at_once |= filled;
    }

    fn hold(&mut self, range: Range<u64>) {
        let most = (self.window / LEAST_PIECE) as usize + 64;
        if self.held.len() >= most {
            return;
        }
        self.held_bytes += self.held.insert(range.clone());
        let block = self
            .held
            .range_of(range.start)
            .cloned()
            .unwrap_or(range.clone());
        self.recent.retain(|place| !block.contains(place));
        self.recent.insert(0, range.start);
        self.recent.truncate(MAX_BLOCKS);
    }

    /// Decides when to acknowledge what has arrived in order.
    fn schedule(&mut self, now: Instant) {
        if self.unacked > 0 && self.quick > 0 {
            self.quick -= 1;
            self.at_once = true;
        }
        self.at_once |= self.unacked >= EVERY * self.mss;
        if self.unacked > 0 && !self.at_once {
            self.deadline.get_or_insert(now + DELAY);
        }
    }

    /// The next acknowledgement to send, if one is due.
    pub fn poll_ack(&mut self, now: Instant) -> Option<Ack> {
        if self.deadline.is_some_and(|at| at <= now) {
            self.at_once = true;
        }
        if !core::mem::take(&mut self.at_once) {
            return None;
        }
        self.deadline = None;
        self.unacked = 0;
        self.last_acked = self.next;
        let window = u32::try_from(self.window).unwrap_or(u32::MAX);
        let mut ack = Ack::new(self.next, window, self.echo, self.header);
        if let Some(duplicate) = self.duplicate.take() {
            ack.duplicate = true;
            ack.push(duplicate);
        }
        for place in &self.recent {
            if ack.is_full() {
                break;
            }
            if let Some(block) = self.held.range_of(*place) {
                ack.push(block.clone());
            }
        }
        Some(ack)
    }

    /// When [`TcpReceiver::handle_timeout`] wants to be called, if nothing else happens.
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    /// Time has passed: an acknowledgement that waited may be due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_some_and(|at| at <= now) {
            self.at_once = true;
        }
    }

    /// Bytes released to the application, in order and once each.
    pub const fn delivered(&self) -> u64 {
        self.next
    }

    /// Bytes that have arrived and wait for earlier ones.
    pub const fn held(&self) -> u64 {
        self.held_bytes
    }

    /// Segments that brought nothing new.
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_448;

    fn receiver() -> TcpReceiver {
        let mut receiver = TcpReceiver::new(&TcpConfig::new("cubic")).unwrap();
        receiver.quick = 0;
        receiver
    }

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn segment(number: u64, stamp: u64) -> Segment {
        Segment {
            seq: number * MSS,
            payload: MSS as u32,
            size: 1_500,
            stamp: ms(stamp),
        }
    }

    fn feed(receiver: &mut TcpReceiver, at: u64, number: u64) -> Option<Ack> {
        receiver.handle_segment(ms(at), &segment(number, at - 10));
        receiver.poll_ack(ms(at))
    }

    #[test]
    fn every_second_segment_is_acknowledged_and_a_lone_one_after_40_ms() {
        let mut receiver = receiver();
        assert_eq!(feed(&mut receiver, 10, 0), None);
        let ack = feed(&mut receiver, 11, 1).unwrap();
        // The echo is that of the first segment that this acknowledges (RFC 7323 §4.3).
        assert_eq!((ack.next, ack.echo, ack.size), (2 * MSS, ms(0), 52));
        assert_eq!(feed(&mut receiver, 20, 2), None);
        assert_eq!(receiver.poll_timeout(), Some(ms(60)));
        receiver.handle_timeout(ms(59));
        assert_eq!(receiver.poll_ack(ms(59)), None);
        receiver.handle_timeout(ms(60));
        assert_eq!(receiver.poll_ack(ms(60)).unwrap().next, 3 * MSS);
        assert_eq!(receiver.poll_timeout(), None);
    }

    #[test]
    fn the_first_sixteen_segments_are_acknowledged_one_by_one() {
        let mut receiver = TcpReceiver::new(&TcpConfig::new("cubic")).unwrap();
        for number in 0..16 {
            assert!(feed(&mut receiver, 10, number).is_some());
        }
        assert_eq!(feed(&mut receiver, 10, 16), None);
    }

    #[test]
    fn blocks_name_the_newest_first() {
        let mut receiver = receiver();
        for (at, number) in [(10, 0), (11, 2), (12, 4), (13, 6), (14, 8)] {
            feed(&mut receiver, at, number);
        }
        assert_eq!(receiver.held(), 4 * MSS);
        let ack = feed(&mut receiver, 15, 5).unwrap();
        let blocks: Vec<_> = ack.blocks().map(|b| (b.start / MSS, b.end / MSS)).collect();
        assert_eq!(blocks, [(4, 7), (8, 9)]);
        // Three of four fit; the fourth was in the acknowledgements before.
        let ack = feed(&mut receiver, 16, 10).unwrap();
        let blocks: Vec<_> = ack.blocks().map(|b| b.start / MSS).collect();
        assert_eq!(blocks, [10, 4, 8]);
        assert_eq!(ack.next, MSS);
    }

    #[test]
    fn a_filled_gap_releases_what_was_held() {
        let mut receiver = receiver();
        feed(&mut receiver, 10, 1);
        feed(&mut receiver, 11, 2);
        let released = receiver.handle_segment(ms(12), &segment(0, 2));
        assert_eq!(released, 0..3 * MSS);
        let ack = receiver.poll_ack(ms(12)).unwrap();
        assert_eq!((ack.next, ack.blocks().count()), (3 * MSS, 0));
        assert_eq!((receiver.held(), receiver.delivered()), (0, 3 * MSS));
    }

    #[test]
    fn duplicates_are_reported_first() {
        let mut receiver = receiver();
        feed(&mut receiver, 10, 0);
        feed(&mut receiver, 11, 2);
        let ack = feed(&mut receiver, 12, 2).unwrap();
        assert_eq!(ack.duplicate(), Some(2 * MSS..3 * MSS));
        assert_eq!(ack.blocks().count(), 1);
        assert_eq!(ack.blocks().next(), Some(2 * MSS..3 * MSS));
        let ack = feed(&mut receiver, 13, 0).unwrap();
        assert_eq!(ack.duplicate(), Some(0..MSS));
        assert_eq!(receiver.duplicates(), 2);
    }

    #[test]
    fn the_window_is_kept() {
        let mut receiver = receiver();
        let last = (6 << 20) / MSS;
        assert!(feed(&mut receiver, 10, last).is_some());
        assert_eq!(receiver.held(), 0);
        feed(&mut receiver, 11, last - 1);
        assert_eq!(receiver.held(), MSS);
    }
}
