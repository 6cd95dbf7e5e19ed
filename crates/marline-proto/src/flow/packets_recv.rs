//! The receiving half of a packets flow: each message once, whole, in order if that was agreed.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;
use marline_base::{Duration, Instant};

use super::buffer::compact;
use super::reassembly::Reassembly;
use crate::ranges::RangeSet;
use crate::wire::{DeliveryOrder, FlowId, FlowReport};

/// Ranges of sequence numbers remembered to tell duplicates; older numbers count as seen.
const MAX_SEEN_RANGES: usize = 4_096;
/// Ranges of numbers given up that are remembered to tell what comes too late from what comes
/// twice.
const MAX_GIVEN_UP: usize = 64;
/// The peer gets a report of its messages no more often: statistics, by which nothing is
/// decided.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// What a message costs besides its bytes, so that empty ones are bounded too.
const MESSAGE_COST: u64 = 64;
/// What an incomplete message costs besides its bytes.
const PARTIAL_COST: u64 = 256;

/// A piece of a message contradicts what came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;

/// What the receiving half has counted, in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) delivered: u64,
    /// Given up because they had not come in time.
    pub(crate) skipped: u64,
    /// Of those, came all the same.
    pub(crate) late: u64,
    /// Dropped because nobody read them.
    pub(crate) dropped: u64,
    /// Arrivals of what had arrived.
    pub(crate) duplicates: u64,
    /// Came in time, but after later ones.
    pub(crate) reordered: u64,
}

impl Counts {
    fn missed(&self) -> u64 {
        self.skipped + self.dropped
    }
}

#[derive(Debug)]
pub(crate) struct PacketsRecv {
    order: DeliveryOrder,
    lifetime: Option<Duration>,
    /// Next sequence number to deliver, when in order.
    next: u64,
    seen: RangeSet,
    /// Numbers below it count as seen.
    floor: u64,
    /// Skipped numbers that have not come since.
    given_up: RangeSet,
    /// One more than the highest number that has come.
    came: u64,
    partial: BTreeMap<u64, Reassembly>,
    /// Whole messages that wait for earlier ones, and since when.
    held: BTreeMap<u64, (Instant, Bytes)>,
    ready: VecDeque<Bytes>,
    /// Bytes in `held`, `ready` and `partial`, with [`MESSAGE_COST`] or [`PARTIAL_COST`] each.
    bytes: u64,
    limit: u64,
    gap_since: Option<Instant>,
    /// Count of messages, once the peer finished.
    end: Option<u64>,
    reset: Option<u64>,
    /// Nobody will read: parts are not put together any more.
    discarding: bool,
    counts: Counts,
    /// The sum of what the peer was reported last, and when.
    reported: u64,
    reported_at: Instant,
}

impl PacketsRecv {
    pub(crate) fn new(order: DeliveryOrder, lifetime: Option<Duration>, limit: u64) -> Self {
        Self {
            order,
            lifetime,
            next: 0,
            seen: RangeSet::default(),
            floor: 0,
            given_up: RangeSet::default(),
            came: 0,
            partial: BTreeMap::new(),
            held: BTreeMap::new(),
            ready: VecDeque::new(),
            bytes: 0,
            limit,
            gap_since: None,
            end: None,
            reset: None,
            discarding: false,
            counts: Counts::default(),
            reported: 0,
            reported_at: Instant::ZERO,
        }
    }

    /// Has the report of messages changed, and was there none for a while? Then it goes out now.
    pub(crate) fn reports(&mut self, now: Instant) -> bool {
        // Each of them only grows.
        let sum = self.counts.missed() + self.counts.late + self.counts.duplicates;
        let due = sum != self.reported && now.since(self.reported_at) >= REPORT_EVERY;
        if due {
            (self.reported, self.reported_at) = (sum, now);
        }
        due
    }

    pub(crate) fn report(&self, flow: FlowId) -> FlowReport {
        FlowReport {
            flow,
            missed: self.counts.missed(),
            late: self.counts.late,
            duplicates: self.counts.duplicates,
        }
    }

    fn is_seen(&self, sequence: u64) -> bool {
        sequence < self.floor || self.seen.contains(sequence)
    }

    /// Takes a whole message.
    pub(crate) fn receive(&mut self, now: Instant, sequence: u64, data: Bytes) {
        if self.is_seen(sequence) {
            self.came_again(sequence);
        } else {
            self.drop_partial(sequence);
            self.complete(now, sequence, compact(data));
        }
    }

    /// Counts the arrival of what is not wanted any more.
    fn came_again(&mut self, sequence: u64) {
        if self.given_up.remove(sequence) {
            // It may have stood amid others.
            self.given_up.drop_lowest_above(MAX_GIVEN_UP);
            self.counts.late += 1;
        } else {
            self.counts.duplicates += 1;
        }
    }

    /// Takes a part of a message of `total` bytes.
    pub(crate) fn receive_part(
        &mut self,
        now: Instant,
        sequence: u64,
        offset: u64,
        total: u64,
        data: &[u8],
    ) -> Result<(), Contradiction> {
        if self.is_seen(sequence) {
            if offset == 0 {
                self.came_again(sequence);
            }
            return Ok(());
        }
        if self.discarding {
            self.mark_seen(sequence);
            return Ok(());
        }
        if !self.partial.contains_key(&sequence) {
            self.bytes += total + PARTIAL_COST;
            self.partial.insert(sequence, Reassembly::new(total));
        }
        let Some(partial) = self.partial.get_mut(&sequence) else {
            return Ok(());
        };
        if partial.size() != total || offset + data.len() as u64 > total {
            return Err(Contradiction);
        }
        partial.take(offset, data).map_err(|_| Contradiction)?;
        if let Some(whole) = partial.whole() {
            self.partial.remove(&sequence);
            self.bytes -= total + PARTIAL_COST;
            self.complete(now, sequence, Bytes::from(whole));
        }
        self.shed();
        Ok(())
    }

    fn drop_partial(&mut self, sequence: u64) {
        if let Some(partial) = self.partial.remove(&sequence) {
            self.bytes -= partial.size() + PARTIAL_COST;
        }
    }

    fn mark_seen(&mut self, sequence: u64) {
        self.seen.insert(sequence..sequence + 1);
        if self.seen.len() > MAX_SEEN_RANGES {
            self.seen.drop_lowest_above(MAX_SEEN_RANGES);
            self.floor = self.seen.first().map_or(self.floor, |r| r.start);
        }
    }

    fn complete(&mut self, now: Instant, sequence: u64, data: Bytes) {
        self.mark_seen(sequence);
        self.counts.reordered += u64::from(sequence < self.came);
        self.came = self.came.max(sequence + 1);
        self.bytes += data.len() as u64 + MESSAGE_COST;
        match self.order {
            DeliveryOrder::AsTheyCome => self.deliver(data),
            DeliveryOrder::InOrder => {
                if sequence == self.next && self.held.is_empty() {
                    self.next += 1;
                    self.deliver(data);
                } else {
                    self.held.insert(sequence, (now, data));
                }
                self.release();
            }
        }
        self.shed();
    }

    fn deliver(&mut self, data: Bytes) {
        self.counts.delivered += 1;
        self.ready.push_back(data);
    }

    /// Delivers what is next in order and notes whether something waits for a gap. What was
    /// dropped here, or is too old to be taken, is no gap: it will not come again.
    fn release(&mut self) {
        loop {
            let held = self.held.first_key_value().map(|(&s, _)| s);
            let before = held.unwrap_or(u64::MAX);
            if before <= self.next {
                if let Some((sequence, (_, data))) = self.held.pop_first() {
                    self.next = sequence + 1;
                    self.deliver(data);
                }
            } else if self.next < self.floor {
                self.skip_to(self.floor.min(before));
            } else if let Some(end) = self.seen.end_of(self.next) {
                self.next = end.min(before);
            } else {
                break;
            }
            self.gap_since = None;
        }
        // The wait for a gap begins when what is behind it comes, not when the gap before it ends:
        // one wait after the other would add up without a bound.
        match self.held.first_key_value() {
            None => self.gap_since = None,
            Some((_, (came, _))) => {
                self.gap_since.get_or_insert(*came);
            }
        }
    }

    /// Messages below `sequence` that have not arrived will not come any more.
    pub(crate) fn forward(&mut self, sequence: u64) {
        let stale: Vec<u64> = self.partial.range(..sequence).map(|(&s, _)| s).collect();
        for s in stale {
            self.drop_partial(s);
        }
        if self.order == DeliveryOrder::AsTheyCome && !self.discarding {
            self.give_up(self.floor..sequence);
        } else if sequence > self.next {
            while let Some((&first, _)) = self.held.range(..sequence).next() {
                self.skip_to(first);
                self.release();
            }
            self.skip_to(sequence);
            self.release();
        }
        self.seen.drop_below(sequence);
        self.floor = self.floor.max(sequence);
    }

    fn skip_to(&mut self, sequence: u64) {
        if sequence > self.next {
            self.give_up(self.next..sequence);
            self.next = sequence;
            self.floor = self.floor.max(sequence);
            self.gap_since = None;
        }
    }

    /// Those of them that were not seen. What was dropped here was, and is counted as that.
    fn give_up(&mut self, sequences: Range<u64>) {
        for gap in self.seen.absent_in(sequences) {
            self.counts.skipped += gap.end - gap.start;
            self.given_up.insert(gap);
        }
        self.given_up.drop_lowest_above(MAX_GIVEN_UP);
    }

    /// When to stop waiting for the gap; `None` if nothing waits or waiting has no limit.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        Some(self.gap_since? + self.lifetime?)
    }

    /// Skips the gap if the wait is over: its messages' lifetime has ended at the sender.
    pub(crate) fn on_deadline(&mut self, now: Instant) {
        while self.deadline().is_some_and(|at| at <= now) {
            self.skip_gap();
        }
    }

    /// Nothing more will come: nothing waits for gaps.
    pub(crate) fn let_go(&mut self) {
        while !self.held.is_empty() {
            self.skip_gap();
        }
    }

    fn skip_gap(&mut self) {
        if let Some((&first, _)) = self.held.first_key_value() {
            self.skip_to(first);
            self.release();
        }
    }

    /// Sets the most bytes that it holds, besides one message, from the next arrival on.
    pub(crate) fn limit(&mut self, bytes: u64) {
        self.limit = bytes;
    }

    /// Keeps memory within the limit: drops what is oldest first, be it unread, behind a gap or
    /// incomplete.
    fn shed(&mut self) {
        while self.bytes > self.limit {
            if let Some(data) = self.ready.pop_front() {
                self.bytes -= data.len() as u64 + MESSAGE_COST;
                self.counts.dropped += 1;
            } else if !self.held.is_empty() {
                self.skip_gap();
            } else if let Some((&oldest, _)) = self.partial.first_key_value() {
                self.drop_partial(oldest);
                self.mark_seen(oldest);
                self.counts.dropped += 1;
                if self.order == DeliveryOrder::InOrder {
                    self.release();
                }
            } else {
                break;
            }
        }
    }

    pub(crate) fn read(&mut self) -> Option<Bytes> {
        let data = self.ready.pop_front()?;
        self.bytes -= data.len() as u64 + MESSAGE_COST;
        Some(data)
    }

    /// Bytes of messages, whole or not, that were not read, with what each costs besides.
    pub(crate) fn held(&self) -> u64 {
        self.bytes
    }

    /// Messages below it were delivered or given up; nothing waits if the order is not kept.
    pub(crate) fn frontier(&self) -> u64 {
        match self.order {
            DeliveryOrder::InOrder => self.next,
            DeliveryOrder::AsTheyCome => u64::MAX,
        }
    }

    /// Bytes of messages that wait for earlier ones, and of those that are not whole.
    pub(crate) fn out_of_order(&self) -> u64 {
        let held = self.held.values().map(|(_, data)| data.len() as u64);
        let parts = self.partial.values().map(Reassembly::arrived);
        held.chain(parts).sum()
    }

    pub(crate) fn is_readable(&self) -> bool {
        !self.ready.is_empty() || self.is_finished() || self.reset.is_some()
    }

    /// The peer gave the flow up, with its code; what was delivered can still be read.
    pub(crate) fn reset(&mut self, code: u64) {
        if !self.is_complete() {
            self.reset = Some(code);
            self.held.clear();
            self.partial.clear();
            self.bytes = self
                .ready
                .iter()
                .map(|d| d.len() as u64 + MESSAGE_COST)
                .sum();
            self.gap_since = None;
        }
    }

    /// The peer's code, if it gave the flow up.
    pub(crate) fn reset_code(&self) -> Option<u64> {
        self.reset
    }

    /// The peer sent `count` messages and no more.
    pub(crate) fn finish(&mut self, count: u64) -> Result<(), Contradiction> {
        if self.end.is_some_and(|end| end != count) {
            return Err(Contradiction);
        }
        self.end = Some(count);
        Ok(())
    }

    /// Everything that will come has been read.
    pub(crate) fn is_finished(&self) -> bool {
        self.ready.is_empty() && self.reset.is_none() && self.is_complete()
    }

    /// Nothing more is expected.
    pub(crate) fn is_complete(&self) -> bool {
        if self.reset.is_some() {
            return true;
        }
        let Some(end) = self.end else { return false };
        match self.order {
            DeliveryOrder::InOrder => self.next >= end,
            DeliveryOrder::AsTheyCome => {
                self.floor >= end || self.seen.covers(&(self.floor.min(end)..end))
            }
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// The application wants no more: drops what arrived. Order no longer matters, so that the end
    /// is reached when every message has come, whether those dropped here were next or not.
    pub(crate) fn discard(&mut self) {
        self.discarding = true;
        self.order = DeliveryOrder::AsTheyCome;
        self.ready.clear();
        self.held.clear();
        while let Some((sequence, _)) = self.partial.pop_first() {
            self.mark_seen(sequence);
        }
        self.bytes = 0;
        self.gap_since = None;
    }
}

#[cfg(test)]
mod tests;
