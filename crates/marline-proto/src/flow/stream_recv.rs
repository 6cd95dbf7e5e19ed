//! The receiving half of a stream: bytes arrive in any order and leave in order.

use alloc::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes};
use marline_base::{Duration, Instant};

use super::buffer::compact;
use super::grant::Grant;

/// Most pieces that wait for earlier bytes, for each 256 bytes of window.
const WINDOW_PER_PIECE: u64 = 256;

/// What a read gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// The next bytes of the stream.
    Data(Bytes),
    /// The stream ended; every byte was read.
    Finished,
    /// The peer gave the stream up, with its code.
    Reset(u64),
    /// Nothing now; an event tells when there is more.
    Blocked,
}

/// What the peer did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecvError {
    /// Bytes beyond the credit that it was given.
    Credit,
    /// Bytes beyond the end, or two different ends.
    FinalSize,
    /// More pieces than a sender with our window can make.
    Fragments,
}

#[derive(Debug)]
pub(crate) struct StreamRecv {
    /// In order, ready to be read.
    ready: VecDeque<Bytes>,
    /// Waiting for earlier bytes; disjoint, all beyond `received`.
    waiting: BTreeMap<u64, Bytes>,
    /// Every byte below it has arrived.
    received: u64,
    end: Option<u64>,
    reset: Option<u64>,
    /// This side gave the stream up, with this code.
    failed: Option<u64>,
    /// Credit, the bytes up to the highest that arrived, and those that were read.
    grant: Grant,
    /// How far the credit is ahead of what is read.
    window: u64,
    /// When the peer got new credit last.
    renewed: Option<Instant>,
}

impl StreamRecv {
    /// A stream that may bring `window` bytes before any are read.
    pub(crate) fn new(window: u64) -> Self {
        Self {
            ready: VecDeque::new(),
            waiting: BTreeMap::new(),
            received: 0,
            end: None,
            reset: None,
            failed: None,
            grant: Grant::new(window),
            window,
            renewed: None,
        }
    }

    /// Takes a piece; returns by how much that raised the highest byte that arrived (it counts
    /// against the session's credit).
    pub(crate) fn receive(
        &mut self,
        offset: u64,
        data: Bytes,
        fin: bool,
    ) -> Result<u64, RecvError> {
        let end = offset + data.len() as u64;
        let highest = self.grant.taken();
        if end > self.grant.granted() {
            return Err(RecvError::Credit);
        }
        if self.end.is_some_and(|e| end > e || (fin && end != e)) || (fin && end < highest) {
            return Err(RecvError::FinalSize);
        }
        if fin {
            self.end = Some(end);
        }
        let rise = end.saturating_sub(highest);
        self.grant.take(rise);
        if self.reset.is_none() {
            self.store(offset, data)?;
        }
        Ok(rise)
    }

    fn store(&mut self, offset: u64, data: Bytes) -> Result<(), RecvError> {
        let end = offset + data.len() as u64;
        if end <= self.received {
            return Ok(());
        }
        if offset <= self.received {
            let mut data = data;
            data.advance((self.received - offset) as usize);
            self.accept(data);
            self.drain_waiting();
            return Ok(());
        }
        // Only the parts that do not wait already are kept.
        let mut start = offset;
        if let Some((&at, piece)) = self.waiting.range(..=start).next_back() {
            start = start.max(at + piece.len() as u64);
        }
        while start < end {
            let next = self
                .waiting
                .range(start..)
                .next()
                .map(|(&at, p)| (at, p.len() as u64));
            let stop = next.map_or(end, |(at, _)| at.min(end));
            if stop > start {
                let piece = data.slice((start - offset) as usize..(stop - offset) as usize);
                self.waiting.insert(start, compact(piece));
            }
            start = next.map_or(end, |(at, len)| at + len);
        }
        if self.waiting.len() as u64 > self.window / WINDOW_PER_PIECE + 64 {
            return Err(RecvError::Fragments);
        }
        Ok(())
    }

    fn accept(&mut self, data: Bytes) {
        self.received += data.len() as u64;
        let fits = |last: &&mut Bytes| (last.len() + data.len()) as u64 <= WINDOW_PER_PIECE;
        // A byte by itself would cost as much as this many.
        match self.ready.back_mut().filter(fits) {
            Some(last) => *last = [&last[..], &data].concat().into(),
            None => self.ready.push_back(compact(data)),
        }
    }

    fn drain_waiting(&mut self) {
        while let Some(entry) = self.waiting.first_entry() {
            if *entry.key() > self.received {
                break;
            }
            let (at, piece) = entry.remove_entry();
            let skip = self.received - at;
            if skip < piece.len() as u64 {
                self.accept(piece.slice(skip as usize..));
            }
        }
    }

    /// The peer gave the stream up after `final_size` bytes; what arrived is dropped.
    pub(crate) fn on_reset(&mut self, code: u64, final_size: u64) -> Result<u64, RecvError> {
        if final_size < self.grant.taken() || self.end.is_some_and(|e| e != final_size) {
            return Err(RecvError::FinalSize);
        }
        if final_size > self.grant.granted() {
            return Err(RecvError::Credit);
        }
        let rise = final_size - self.grant.taken();
        // Whoever has read the end has read the end. Without an end, a reset at the very byte that
        // was read up to is still a reset: taken for an end, it would make what came so far look
        // like the whole.
        let was_read_up = self.is_read_up();
        self.grant.take(rise);
        self.end = Some(final_size);
        if self.reset.is_none() && !was_read_up {
            self.reset = Some(code);
            self.ready.clear();
            self.waiting.clear();
        }
        Ok(rise)
    }

    /// The next bytes, at most `max` of them.
    pub(crate) fn read(&mut self, max: usize) -> Chunk {
        if let Some(code) = self.reset.or(self.failed) {
            return Chunk::Reset(code);
        }
        let Some(mut chunk) = self.ready.pop_front() else {
            return if self.is_read_up() {
                Chunk::Finished
            } else {
                Chunk::Blocked
            };
        };
        if chunk.len() > max {
            self.ready.push_front(chunk.split_off(max));
        }
        self.grant.give_back(chunk.len() as u64);
        Chunk::Data(chunk)
    }

    fn is_read_up(&self) -> bool {
        self.end == Some(self.grant.returned())
    }

    pub(crate) fn is_readable(&self) -> bool {
        !self.ready.is_empty() || self.reset.is_some() || self.failed.is_some() || self.is_read_up()
    }

    pub(crate) fn has_data(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Was it given up, at either end?
    pub(crate) fn is_given_up(&self) -> bool {
        self.reset.or(self.failed).is_some()
    }

    /// The application will not read it: what arrived was dropped.
    pub(crate) fn fail(&mut self, code: u64) {
        self.failed = Some(code);
    }

    /// Is the peer to get new credit, because a quarter of the window was read since the last? Then
    /// the window that it should have: twice as much if that took less than a round trip, `trip`,
    /// because a window that is read four times in one holds the peer up.
    pub(crate) fn due(&self, now: Instant, trip: impl Fn() -> Duration) -> Option<u64> {
        let due = self.grant.is_due(self.window, self.window / 4);
        let quick = || self.renewed.is_none_or(|at| now.since(at) < trip());
        (self.end.is_none() && due).then(|| {
            if quick() {
                2 * self.window
            } else {
                self.window
            }
        })
    }

    /// New credit for the peer, with a window that never shrinks.
    pub(crate) fn renew(&mut self, now: Instant, window: u64) {
        self.window = self.window.max(window);
        self.grant.renew(self.window, 0);
        self.renewed = Some(now);
    }

    pub(crate) fn credit(&self) -> u64 {
        self.grant.granted()
    }

    /// Every byte below it has arrived.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that wait for earlier ones.
    pub(crate) fn out_of_order(&self) -> u64 {
        self.waiting.values().map(|piece| piece.len() as u64).sum()
    }

    /// Bytes that arrived but were not read; all of them after a reset count as read.
    pub(crate) fn unread(&self) -> u64 {
        if self.reset.is_some() {
            0
        } else {
            self.grant.held()
        }
    }

    /// The peer has said where the stream ends.
    pub(crate) fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Nothing more is expected: ended and all arrived, or reset.
    pub(crate) fn is_complete(&self) -> bool {
        self.reset.is_some() || self.end == Some(self.received)
    }

    /// The application wants no more: drops what arrived and returns how many bytes count as read
    /// with that.
    pub(crate) fn discard(&mut self) -> u64 {
        let freed = self.unread();
        self.grant.give_back(self.grant.held());
        self.ready.clear();
        self.waiting.clear();
        self.received = self.received.max(self.grant.taken());
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn drain(recv: &mut StreamRecv) -> Vec<u8> {
        let mut out = Vec::new();
        while let Chunk::Data(data) = recv.read(7) {
            out.extend_from_slice(&data);
        }
        out
    }

    proptest! {
        #[test]
        fn any_order_and_overlap_gives_the_bytes(pieces in prop::collection::vec((0usize..90, 1usize..40), 1..60)) {
            let data: Vec<u8> = (0..100).collect();
            let mut recv = StreamRecv::new(1000);
            let mut have = [false; 100];
            let mut out = Vec::new();
            for (start, len) in pieces {
                let end = (start + len).min(100);
                have[start..end].fill(true);
                recv.receive(start as u64, Bytes::copy_from_slice(&data[start..end]), end == 100).unwrap();
                out.extend(drain(&mut recv));
                let complete = have.iter().take_while(|h| **h).count();
                prop_assert_eq!(&out[..], &data[..complete]);
            }
            recv.receive(0, Bytes::from(data.clone()), true).unwrap();
            out.extend(drain(&mut recv));
            prop_assert_eq!(out, data);
            prop_assert_eq!(recv.read(1), Chunk::Finished);
            prop_assert!(recv.waiting.is_empty());
        }
    }

    #[test]
    fn refuses_what_breaks_the_rules() {
        let mut recv = StreamRecv::new(10);
        let bytes = |n| Bytes::from(alloc::vec![0; n]);
        assert_eq!(recv.receive(8, bytes(3), false), Err(RecvError::Credit));
        assert_eq!(recv.receive(0, bytes(4), true), Ok(4));
        assert_eq!(recv.receive(4, bytes(1), false), Err(RecvError::FinalSize));
        assert_eq!(recv.receive(0, bytes(3), true), Err(RecvError::FinalSize));
        assert_eq!(recv.on_reset(1, 5), Err(RecvError::FinalSize));
    }

    #[test]
    fn a_reset_is_an_end_only_to_those_who_have_read_one() {
        for (fin, then) in [(false, Chunk::Reset(7)), (true, Chunk::Finished)] {
            let mut recv = StreamRecv::new(10);
            recv.receive(0, Bytes::from_static(b"hello"), fin).unwrap();
            assert_eq!(drain(&mut recv), b"hello");
            assert_eq!(recv.on_reset(7, 5), Ok(0));
            assert_eq!(recv.read(1), then);
        }
    }

    #[test]
    fn one_byte_pieces_are_bounded() {
        let mut recv = StreamRecv::new(1 << 20);
        let result = (0..20_000_u64).try_for_each(|i| {
            recv.receive(1 + 2 * i, Bytes::from_static(b"x"), false)
                .map(|_| ())
        });
        assert_eq!(result, Err(RecvError::Fragments));
        assert!(recv.waiting.len() <= 4096 + 65);
        // In order, and unread.
        let mut recv = StreamRecv::new(1 << 20);
        for i in 0..1 << 20 {
            recv.receive(i, Bytes::from(alloc::vec![i as u8]), false)
                .unwrap();
        }
        assert!(recv.ready.len() <= 4096, "{}", recv.ready.len());
        let read = drain(&mut recv);
        assert!(read.iter().zip(0_u64..).all(|(&byte, i)| byte == i as u8));
        assert_eq!(read.len(), 1 << 20);
    }

    #[test]
    fn credit_follows_reading() {
        let (trip, late) = (Duration::from_millis(10), Instant::from_micros(10_000));
        let mut recv = StreamRecv::new(100);
        recv.receive(0, Bytes::from(alloc::vec![0; 60]), false)
            .unwrap();
        assert_eq!(recv.due(Instant::ZERO, || trip), None);
        drain(&mut recv);
        recv.renew(Instant::ZERO, 100);
        assert_eq!((recv.credit(), recv.unread()), (160, 0));
        assert_eq!(recv.due(late, || trip), None);
        recv.receive(60, Bytes::from(alloc::vec![0; 25]), false)
            .unwrap();
        drain(&mut recv);
        assert_eq!(recv.due(late, || trip), Some(100));
    }

    #[test]
    fn a_window_that_is_read_within_a_round_trip_is_too_small() {
        let trip = Duration::from_millis(10);
        let mut recv = StreamRecv::new(100);
        recv.receive(0, Bytes::from(alloc::vec![0; 25]), false)
            .unwrap();
        drain(&mut recv);
        assert_eq!(recv.due(Instant::ZERO, || trip), Some(200), "the first is");
        recv.renew(Instant::ZERO, 100);
        recv.receive(25, Bytes::from(alloc::vec![0; 25]), false)
            .unwrap();
        drain(&mut recv);
        let soon = Instant::from_micros(9_999);
        assert_eq!(recv.due(soon, || trip), Some(200));
        // What it may have is not all that it should have.
        recv.renew(soon, 150);
        assert_eq!(recv.credit(), 200);
        recv.renew(soon, 40);
        assert_eq!(recv.credit(), 200, "credit that was given stays");
    }

    #[test]
    fn a_stream_that_was_given_up_here_reads_as_a_reset() {
        let mut recv = StreamRecv::new(100);
        recv.receive(0, Bytes::from_static(b"hello"), true).unwrap();
        assert_eq!(recv.discard(), 5);
        recv.fail(8);
        assert!(recv.is_readable());
        assert_eq!(recv.read(9), Chunk::Reset(8));
    }
}
