//! The sending half of a packets flow: messages that are worth sending until their lifetime ends.
//!
//! Messages whose lifetime is over are given up several at a time, and one FORWARD frame tells the
//! receiver of all of them. With a datagram for each, and one more for each of these that was lost,
//! a stream of small packets filled the links that it overran: of 12 Mb/s over links of 6 Mb/s a
//! tenth was delivered, with this three tenths.
//!
//! Where messages are ordered and their writer is held back, as by a network interface, the newest
//! message never expires: the next one takes its place. What TCP sends again while all paths are
//! dark comes ever more rarely; with the last of it kept, both ends go on when a path is back, and
//! not when TCP tries next.

use alloc::collections::VecDeque;

use bytes::Bytes;
use marline_base::{Duration, Instant};

use super::given_up::GivenUp;
use super::refusal::Refusal;
use super::shown::Unit;
use super::{Symbol, Unsettled};
use crate::ranges::RangeSet;
use crate::wire::{LEAST_PRIORITY, PathId, varint};

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SendError {
    /// There is no such flow, or it takes no messages (any more).
    Closed,
    /// It is longer than the peer takes: (its length, the limit), in bytes.
    TooLong(usize, usize),
    /// The flow holds as many bytes as it may; try again after an event tells of room.
    Full,
    /// The flow's scheduler cannot deliver it as asked.
    Refused(Refusal),
    /// There is no object of that number that could be written, or waited for.
    NoObject(u64),
    /// Urgency beyond 7.
    Urgency(u8),
    /// An object would not have the size that it was opened with.
    Size {
        /// The size (bytes) that it was opened with.
        size: u64,
        /// What it would have.
        bytes: u64,
    },
}

impl core::fmt::Display for SendError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Closed => f.write_str("the flow is closed or of another kind"),
            Self::TooLong(len, limit) => {
                write!(
                    f,
                    "a message of {len} bytes is longer than the limit of {limit}"
                )
            }
            Self::Full => f.write_str("the flow's send buffer is full"),
            Self::Refused(refusal) => write!(f, "{refusal}"),
            Self::NoObject(id) => write!(f, "there is no object {id}, or it has ended"),
            Self::Urgency(u) => write!(f, "urgency {u} is not from 0 to {LEAST_PRIORITY}"),
            Self::Size { size, bytes } => write!(
                f,
                "an object that was opened with {size} bytes would have {bytes}"
            ),
        }
    }
}

impl core::error::Error for SendError {}

/// What a message costs besides its bytes until all before it are settled too, so that empty ones
/// are bounded.
const MESSAGE_COST: u64 = 64;

/// Ranges of messages given up that are remembered, to tell them from those that were delivered
/// when their losses become known.
const MAX_GIVEN_UP: usize = 64;

/// Messages are given up no more often than this, or than every sixteenth of their lifetime if that
/// is shorter.
const GIVE_UP_GAP: Duration = Duration::from_millis(4);

#[derive(Debug)]
struct Message {
    data: Bytes,
    written: Instant,
    /// It is given up after this, up to a [`GIVE_UP_GAP`] later.
    expires: Instant,
    /// Bytes cut into symbols.
    cut: u32,
    /// It was cut to its end (distinguished from `cut` for empty messages).
    cut_whole: bool,
    acked: RangeSet,
    /// Symbols whose first transmission was lost.
    lost: u32,
    /// The path over which its first part left, when, and how many of its bytes have left.
    left: Option<(PathId, Instant, u32)>,
    /// Acknowledged as a whole, or given up.
    done: bool,
}

#[derive(Debug)]
pub(crate) struct PacketsSend {
    messages: VecDeque<Message>,
    /// Sequence number of the first in `messages`.
    base: u64,
    /// First message that was not cut to its end.
    next: u64,
    /// Bytes in messages that are not done.
    held: u64,
    /// Bytes not cut yet.
    unsent: u64,
    limit: u64,
    /// Bytes that it may hold now, if it holds any.
    most: u64,
    /// Most bytes that may wait uncut.
    queue: u64,
    lifetime: Option<Duration>,
    /// The receiver delivers messages in their order.
    ordered: bool,
    finished: bool,
    finish_acked: bool,
    /// Messages given up at the end of their lifetime.
    expired: u64,
    /// Of them, where they were.
    expired_where: GivenUp,
    /// The latest of them.
    given_up: RangeSet,
    /// Bytes of these that never left, and that were acknowledged afterwards.
    never_left: u64,
    acked_late: u64,
    /// Symbols that were lost and are with the peer all the same.
    repaired: u64,
    /// The receiver must learn that nothing below it will come; it knows of what was acknowledged.
    forward: u64,
    forward_acked: u64,
    /// When messages were given up last.
    gave_up: Instant,
}

impl PacketsSend {
    pub(crate) fn new(
        limit: u64,
        lifetime: Option<Duration>,
        ordered: bool,
        queue: Option<u64>,
    ) -> Self {
        Self {
            messages: VecDeque::new(),
            base: 0,
            next: 0,
            held: 0,
            unsent: 0,
            limit,
            most: u64::MAX,
            queue: queue.unwrap_or(u64::MAX),
            lifetime,
            ordered,
            finished: false,
            finish_acked: false,
            expired: 0,
            expired_where: GivenUp::default(),
            given_up: RangeSet::default(),
            never_left: 0,
            acked_late: 0,
            repaired: 0,
            forward: 0,
            forward_acked: 0,
            gave_up: Instant::ZERO,
        }
    }

    pub(crate) fn set_queue(&mut self, queue: Option<u64>) {
        self.queue = queue.unwrap_or(u64::MAX);
    }

    /// Is whoever writes held back until paths have room?
    pub(crate) fn holds_back(&self) -> bool {
        self.queue != u64::MAX
    }

    /// A message of `len` bytes whose lifetime counts from `since`, as a scheduler may judge it.
    pub(crate) fn offered(&self, since: Instant, len: usize) -> Unit {
        Unit {
            deadline: self.lifetime.map(|l| since + l),
            ..Unit::new(self.count(), len as u64)
        }
    }

    /// Sets the bytes that a flow may hold now; one that holds nothing takes one more unit anyway.
    pub(crate) fn allow(&mut self, most: u64) {
        self.most = most;
    }

    /// Takes a message whose lifetime counts from `since` and returns its sequence number.
    pub(crate) fn push(&mut self, since: Instant, data: Bytes) -> Result<u64, SendError> {
        if self.finished {
            return Err(SendError::Closed);
        }
        let fits_queue = self.unsent + data.len() as u64 <= self.queue || self.unsent == 0;
        let most = if self.held > 0 { self.most } else { u64::MAX };
        if !fits_queue || self.held + data.len() as u64 + MESSAGE_COST > self.limit.min(most) {
            return Err(SendError::Full);
        }
        let sequence = self.count();
        self.held += data.len() as u64 + MESSAGE_COST;
        self.unsent += data.len() as u64;
        self.messages.push_back(Message {
            data,
            written: since,
            expires: self.lifetime.map_or(Instant::FAR_FUTURE, |l| since + l),
            cut: 0,
            cut_whole: false,
            acked: RangeSet::default(),
            lost: 0,
            left: None,
            done: false,
        });
        Ok(sequence)
    }

    /// Messages ever written.
    pub(crate) fn count(&self) -> u64 {
        self.base + self.messages.len() as u64
    }

    /// Bytes of messages that are not settled, with what each costs besides.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Longest message that is ever taken (bytes).
    pub(crate) fn longest(&self) -> u64 {
        self.limit.saturating_sub(MESSAGE_COST)
    }

    /// `most`: bytes that it may hold now.
    pub(crate) fn has_room(&self, most: u64) -> bool {
        self.held < self.limit.min(most) / 2 && self.unsent <= self.queue / 2
    }

    /// Messages that are neither acknowledged nor given up, oldest first.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = Unsettled> {
        let numbered = (self.base..).zip(&self.messages);
        let open = numbered.filter(|(_, m)| !m.done);
        open.map(|(number, message)| Unsettled {
            number,
            data: message.data.clone(),
            since: message.written,
        })
    }

    fn message(&self, sequence: u64) -> Option<&Message> {
        self.messages.get(sequence.checked_sub(self.base)? as usize)
    }

    /// Length of the next symbol if it may have `max` bytes; `None` if nothing is unsent.
    pub(crate) fn next_len(&self, max: u32) -> Option<u32> {
        let message = self.message(self.next)?;
        let total = message.data.len() as u32;
        // Small offsets take fewer bytes (RFC 9000 §16) than that of the last part. These are
        // filled with data, so that all parts make datagrams of one length: one call for all.
        let bytes = |offset: u32| varint::len(offset.into()) as u32;
        let spare = bytes(total.saturating_sub(max)).saturating_sub(bytes(message.cut));
        Some((total - message.cut).min(max + spare))
    }

    /// Length of the message that is cut next, if no part of it was cut yet.
    pub(crate) fn next_whole(&self) -> Option<u32> {
        let message = self.message(self.next)?;
        (message.cut == 0).then_some(message.data.len() as u32)
    }

    /// What is left of message `id` from `offset` on.
    pub(crate) fn unit(&self, id: u64, offset: u64) -> Option<Unit> {
        let message = self.message(id)?;
        let left = (message.data.len() as u64).saturating_sub(offset);
        Some(Unit {
            deadline: (message.expires != Instant::FAR_FUTURE).then_some(message.expires),
            ..Unit::new(id, left)
        })
    }

    /// What is left of the message that is cut next.
    pub(crate) fn next_unit(&self) -> Option<Unit> {
        let cut = self.message(self.next)?.cut;
        self.unit(self.next, u64::from(cut))
    }

    pub(crate) fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Cuts the next symbol, of at most `max` bytes.
    pub(crate) fn cut(&mut self, max: u32) -> Option<Symbol> {
        let len = self.next_len(max)?;
        let unit = self.next;
        let message = &mut self.messages[(unit - self.base) as usize];
        let offset = message.cut;
        message.cut += len;
        self.unsent -= u64::from(len);
        if message.cut as usize == message.data.len() {
            message.cut_whole = true;
            self.next += 1;
            self.skip_done();
        }
        Some(Symbol {
            unit,
            offset: u64::from(offset),
            len,
        })
    }

    fn skip_done(&mut self) {
        while self
            .message(self.next)
            .is_some_and(|m| m.done || m.cut_whole)
        {
            self.next += 1;
        }
    }

    /// Is the symbol no longer wanted: acknowledged, or its message's lifetime over?
    pub(crate) fn is_settled(&self, symbol: &Symbol) -> bool {
        self.message(symbol.unit)
            .is_none_or(|m| m.done || (symbol.len > 0 && m.acked.covers(&symbol.range())))
    }

    /// Length of the whole message that the symbol belongs to.
    pub(crate) fn total(&self, symbol: &Symbol) -> u32 {
        self.message(symbol.unit).map_or(0, |m| m.data.len() as u32)
    }

    /// The symbol's bytes; none if its message is settled.
    pub(crate) fn bytes(&self, symbol: &Symbol) -> &[u8] {
        let range = symbol.range();
        self.message(symbol.unit)
            .and_then(|m| m.data.get(range.start as usize..range.end as usize))
            .unwrap_or_default()
    }

    /// Notes an acknowledged symbol; returns how many bytes were not acknowledged before, and the
    /// age of its message if the peer has all of it now.
    pub(crate) fn on_acked(&mut self, now: Instant, symbol: &Symbol) -> (u64, Option<Duration>) {
        let Some(index) = symbol.unit.checked_sub(self.base) else {
            return (0, None);
        };
        let Some(message) = self.messages.get_mut(index as usize) else {
            return (0, None);
        };
        if message.done {
            return (0, None);
        }
        let all = 0..message.data.len() as u64;
        let whole = message.acked.is_empty() && symbol.range() == all;
        let new = if whole {
            all.end
        } else {
            message.acked.insert(symbol.range())
        };
        if !whole && !message.acked.covers(&all) {
            return (new, None);
        }
        let age = now.since(message.written);
        self.repaired += u64::from(message.lost);
        self.settle(index as usize);
        (new, Some(age))
    }

    /// Notes that a symbol left for the first time.
    pub(super) fn on_left(&mut self, now: Instant, symbol: &Symbol, path: PathId) {
        let index = symbol.unit.checked_sub(self.base);
        if let Some(message) = index.and_then(|index| self.messages.get_mut(index as usize)) {
            let (_, _, left) = message.left.get_or_insert((path, now, 0));
            *left = left.saturating_add(symbol.len);
        }
    }

    /// Where the messages were that were given up at the end of their lifetime.
    pub(crate) fn expired_where(&self) -> &GivenUp {
        &self.expired_where
    }

    /// Notes that the first transmission of a symbol was lost.
    pub(crate) fn on_source_lost(&mut self, symbol: &Symbol) {
        let index = symbol.unit.checked_sub(self.base);
        match index.and_then(|index| self.messages.get_mut(index as usize)) {
            Some(message) if !message.done => message.lost += 1,
            // The peer has it by another way, unless it was given up.
            _ => self.repaired += u64::from(!self.given_up.contains(symbol.unit)),
        }
    }

    /// Symbols whose first transmission was lost and which the peer has all the same.
    pub(crate) fn repaired(&self) -> u64 {
        self.repaired
    }

    fn settle(&mut self, index: usize) {
        let message = &mut self.messages[index];
        message.done = true;
        self.held -= message.data.len() as u64;
        self.unsent -= message.data.len() as u64 - u64::from(message.cut);
        message.cut = message.data.len() as u32;
        message.data = Bytes::new();
        self.skip_done();
        while self.messages.front().is_some_and(|m| m.done) {
            self.messages.pop_front();
            self.base += 1;
            self.held -= MESSAGE_COST;
        }
    }

    /// When the next message's lifetime ends, and after a moment if one ended just now: where many
    /// end one after another, one frame reports several to the receiver.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        if self.keeps_first() {
            return None;
        }
        let gap = (self.lifetime? / 16).min(GIVE_UP_GAP);
        Some(self.messages.front()?.expires.max(self.gave_up + gap))
    }

    /// Is the first message the newest, and to be kept until there is a newer one?
    fn keeps_first(&self) -> bool {
        self.ordered && self.holds_back() && self.messages.len() == 1
    }

    /// Gives up messages whose lifetime is over. Returns the sequence number below which nothing
    /// more will come, if it rose: the receiver need not wait for them.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<u64> {
        let before = self.expired;
        while let Some(first) = self.messages.front() {
            if first.expires > now || self.keeps_first() {
                break;
            }
            self.expired += 1;
            let len = first.data.len() as u32;
            match first.left {
                // It was given the path for longer than it had waited.
                Some((path, at, left))
                    if left >= len && at.since(first.written) <= first.expires.since(at) =>
                {
                    self.expired_where.count_on(path);
                }
                _ => self.expired_where.waited += 1,
            }
            self.never_left += first.data.len() as u64 - u64::from(first.cut);
            self.given_up.insert(self.base..self.base + 1);
            self.given_up.drop_lowest_above(MAX_GIVEN_UP);
            self.settle(0);
        }
        (self.expired > before).then(|| {
            self.gave_up = now;
            self.forward = self.base;
            self.base
        })
    }

    /// The receiver knows that nothing below `sequence` will come.
    pub(crate) fn on_forward_acked(&mut self, sequence: u64) {
        self.forward_acked = self.forward_acked.max(sequence);
    }

    /// Messages were given up and the receiver may not know.
    pub(crate) fn must_forward(&self) -> bool {
        self.forward > self.forward_acked
    }

    /// First sequence number that may still come.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// A symbol will not leave because its message is settled.
    pub(crate) fn on_skipped(&mut self, symbol: &Symbol) {
        if self.given_up.contains(symbol.unit) {
            self.never_left += u64::from(symbol.len);
        }
    }

    /// A symbol of a settled message was acknowledged that is no copy.
    pub(crate) fn on_acked_late(&mut self, symbol: &Symbol) {
        if self.given_up.contains(symbol.unit) {
            self.acked_late += u64::from(symbol.len);
        }
    }

    /// Bytes of messages that were given up before they had left.
    pub(crate) fn never_left(&self) -> u64 {
        self.never_left
    }

    /// Bytes that were acknowledged after their messages had been given up.
    pub(crate) fn acked_late(&self) -> u64 {
        self.acked_late
    }

    /// Messages given up so far because their lifetime ended.
    pub(crate) fn expired(&self) -> u64 {
        self.expired
    }

    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.finished
    }

    pub(crate) fn on_finish_acked(&mut self) {
        self.finish_acked = true;
    }

    pub(crate) fn is_done(&self) -> bool {
        self.finish_acked && self.messages.is_empty() && !self.must_forward()
    }

    /// Forgets everything: the flow was reset. What the peer is not known to have counts as given
    /// up.
    pub(crate) fn abandon(&mut self) {
        self.expired += self.messages.iter().filter(|m| !m.done).count() as u64;
        self.base = self.count();
        self.next = self.base;
        self.messages.clear();
        self.held = 0;
        self.unsent = 0;
        self.finished = true;
        self.finish_acked = true;
        self.forward = 0;
    }
}

#[cfg(test)]
mod tests;
