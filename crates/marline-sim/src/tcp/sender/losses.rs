//! Losses: declaring them, and finding out that they were none.

use std::collections::BTreeMap;
use std::ops::Range;

use marline_base::Instant;
use marline_proto::congestion::Loss;

use super::super::scoreboard::Sent;
use super::TcpSender;

/// Declared losses that are remembered, in case they prove to be reordering.
const MOST: usize = 4_096;

/// Segments declared lost, by place: when the transmission given up was sent, and its length.
#[derive(Debug, Default)]
pub(super) struct Declared(BTreeMap<u64, (Instant, u32)>);

impl Declared {
    fn insert(&mut self, sent: &Sent) {
        self.0.insert(sent.seq, (sent.at, sent.len));
        if self.0.len() > MOST {
            self.0.pop_first();
        }
    }
}

impl TcpSender {
    /// RFC 8985 §6.2 step 5.
    pub(super) fn detect_losses(&mut self, now: Instant) {
        let beyond = self.board.sacked_segments();
        let window = self.rack.window(self.recovery.is_some(), beyond, &self.rtt);
        self.reordering_until = None;
        let mut lost = Vec::new();
        while let Some(sent) = self.board.oldest()
            && let Some(deadline) = self.rack.deadline(sent.transmission, sent.at, window)
        {
            if deadline > now {
                self.reordering_until = Some(deadline);
                break;
            }
            self.board.lose(sent.seq);
            lost.push(sent);
        }
        if !lost.is_empty() {
            if self.recovery.is_none() {
                self.recovery = Some(self.next);
                self.rescue = true;
            }
            self.declare(now, &lost, false);
        }
    }

    /// A time-out was one: everything sent before it is lost, and `first`, the segment that was
    /// sent again because of it, had been (RFC 5681 §3.1, RFC 8985 §6.3).
    pub(super) fn collapse(&mut self, now: Instant, before: u64, first: &[Sent]) {
        let mut lost = first.to_vec();
        while let Some(sent) = self.board.oldest()
            && sent.transmission < before
        {
            self.board.lose(sent.seq);
            lost.push(sent);
        }
        self.recovery = Some(self.next);
        self.rescue = false;
        self.declare(now, &lost, true);
    }

    /// Informs the controller, and remembers what was given up.
    pub(super) fn declare(&mut self, now: Instant, lost: &[Sent], persistent: bool) {
        let Some(sent) = lost.iter().map(|sent| sent.at).max() else {
            return;
        };
        self.counters.lost += lost.len() as u64;
        lost.iter().for_each(|sent| self.declared.insert(sent));
        let loss = Loss {
            bytes: lost.iter().map(|sent| u64::from(sent.len)).sum(),
            sent,
            in_flight: self.board.in_flight(),
            persistent,
        };
        self.controller.on_loss(now, &loss);
    }

    /// The segment at `seq` arrived although it was given up: by its original (RFC 3522), or twice
    /// (RFC 3708).
    pub(super) fn on_needless(&mut self, now: Instant, seq: u64) {
        let Some((sent, len)) = self.declared.0.remove(&seq) else {
            return;
        };
        self.counters.spurious += 1;
        self.rack.on_needless(self.unacked, self.next);
        self.controller.on_spurious_loss(now, u64::from(len), sent);
    }

    pub(super) fn on_duplicate(&mut self, now: Instant, block: &Range<u64>) {
        let places: Vec<u64> = self
            .declared
            .0
            .range(block.clone())
            .map(|(&seq, _)| seq)
            .collect();
        for seq in places {
            self.on_needless(now, seq);
        }
    }
}
