//! What an application reads from one flow, checked as it comes.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use marline_proto::Session;
use marline_proto::flow::{Chunk, Received, UnitPiece};
use marline_proto::wire::{DeliveryOrder, FlowId, FlowKind};
use marline_sim::{Duration, Instant};

use super::outbox::HEADER;
use super::pattern;

pub(crate) struct Inbox {
    kind: FlowKind,
    order: DeliveryOrder,
    /// Bytes or messages read.
    pub(crate) read: u64,
    /// Messages that were read; units that are over.
    seen: BTreeSet<u64>,
    /// Bytes read of units that are not over.
    partial: BTreeMap<u64, u64>,
    last: Option<u64>,
    pub(crate) finished: bool,
    pub(crate) reset: Option<u64>,
    /// Stopped by this side: what comes is of no interest.
    pub(crate) stopped: bool,
    /// Do not read for now.
    pub(crate) paused: bool,
    /// Delay of each message with a header, from write to read.
    pub(crate) delays: Vec<(Instant, Duration)>,
    /// How far a stream was read, and when.
    pub(crate) progress: Vec<(Instant, u64)>,
    pub(crate) first_at: Option<Instant>,
    pub(crate) last_at: Instant,
    /// Longest time between two reads that brought something.
    pub(crate) silence: Duration,
    pub(crate) silence_at: Instant,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox")
            .field("kind", &self.kind)
            .field("order", &self.order)
            .field("read", &self.read)
            .field("finished", &self.finished)
            .field("reset", &self.reset)
            .field("stopped", &self.stopped)
            .field("paused", &self.paused)
            .finish_non_exhaustive()
    }
}

impl Inbox {
    pub(crate) fn new(kind: FlowKind, order: DeliveryOrder) -> Self {
        Self {
            kind,
            order,
            read: 0,
            seen: BTreeSet::new(),
            partial: BTreeMap::new(),
            last: None,
            finished: false,
            reset: None,
            stopped: false,
            paused: false,
            delays: Vec::new(),
            progress: Vec::new(),
            first_at: None,
            last_at: Instant::ZERO,
            silence: Duration::ZERO,
            silence_at: Instant::ZERO,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.finished || self.reset.is_some() || self.stopped
    }

    /// Delay that the fraction `q` of messages did not exceed.
    pub(crate) fn quantile(&self, q: f64) -> Duration {
        let mut sorted: Vec<Duration> = self.delays.iter().map(|(_, d)| *d).collect();
        sorted.sort_unstable();
        let rank = (q * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied().unwrap_or_default()
    }

    pub(crate) fn worst(&self) -> Duration {
        self.quantile(1.0)
    }

    /// Reads all there is.
    pub(crate) fn pump(&mut self, now: Instant, session: &mut Session, flow: FlowId, max: usize) {
        while !self.paused && !self.is_over() {
            let chunk = match self.kind {
                FlowKind::Stream => session.read(now, flow, max),
                FlowKind::Packets => session.receive(now, flow),
                FlowKind::Blocks | FlowKind::Objects => {
                    match session.receive_unit(now, flow) {
                        Received::Piece(piece) => self.check_piece(&piece),
                        Received::Gone { number, .. } => self.check_over(number),
                        Received::Finished => self.finished = true,
                        Received::Reset(code) => self.reset = Some(code),
                        Received::Blocked => break,
                    }
                    continue;
                }
            };
            match chunk {
                Chunk::Data(data) => self.take(now, flow, &data),
                Chunk::Finished => self.finished = true,
                Chunk::Reset(code) => self.reset = Some(code),
                Chunk::Blocked => break,
            }
        }
    }

    fn take(&mut self, now: Instant, flow: FlowId, data: &Bytes) {
        match self.kind {
            FlowKind::Stream => {
                self.check_stream(flow, data);
                self.progress.push((now, self.read));
            }
            _ => self.check_message(now, data),
        }
        if self.first_at.is_none() {
            self.first_at = Some(now);
        } else if now.since(self.last_at) > self.silence {
            self.silence = now.since(self.last_at);
            self.silence_at = self.last_at;
        }
        self.last_at = now;
    }

    fn check_stream(&mut self, flow: FlowId, data: &Bytes) {
        assert!(!data.is_empty(), "an empty piece of a stream");
        for byte in data {
            let expected = pattern(flow.0, self.read);
            assert_eq!(*byte, expected, "byte {} of stream {}", self.read, flow.0);
            self.read += 1;
        }
    }

    /// Pieces of a unit come in order and without gaps, and none after it is over.
    fn check_piece(&mut self, piece: &UnitPiece) {
        let number = piece.number;
        assert!(
            !self.seen.contains(&number),
            "unit {number} goes on after its end"
        );
        let have = self.partial.entry(number).or_default();
        assert_eq!(*have, piece.offset, "unit {number} has a gap");
        *have += piece.data.len() as u64;
        for (offset, byte) in (piece.offset..).zip(&piece.data) {
            let expected = pattern(number, offset);
            assert_eq!(*byte, expected, "byte {offset} of unit {number}");
        }
        if piece.last || self.kind == FlowKind::Blocks {
            self.read += 1;
            self.check_over(number);
        }
    }

    fn check_over(&mut self, number: u64) {
        self.partial.remove(&number);
        assert!(self.seen.insert(number), "unit {number} was over before");
    }

    fn check_message(&mut self, now: Instant, data: &Bytes) {
        self.read += 1;
        let Some((header, _)) = data.split_at_checked(HEADER) else {
            return;
        };
        let number = u64::from_be_bytes(header[..8].try_into().expect("8 bytes"));
        let sent = u64::from_be_bytes(header[8..].try_into().expect("8 bytes"));
        for (offset, byte) in data.iter().enumerate().skip(HEADER) {
            let expected = pattern(number, offset as u64);
            assert_eq!(*byte, expected, "byte {offset} of message {number}");
        }
        assert!(self.seen.insert(number), "message {number} came twice");
        if self.order == DeliveryOrder::InOrder {
            let last = self.last.replace(number);
            assert!(last < Some(number), "message {number} came after {last:?}");
        }
        let delay = now.since(Instant::from_nanos(sent));
        self.delays.push((now, delay));
    }
}
