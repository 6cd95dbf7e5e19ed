//! The sending half of a stream: what is unsent, in flight, lost, acknowledged.

use alloc::borrow::Cow;
use alloc::collections::VecDeque;

use bytes::Bytes;
use marline_base::{Duration, Instant};

use super::Symbol;
use super::buffer::SendBuffer;
use crate::ranges::RangeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    Open,
    /// The application finished; the end was not assigned to a path yet.
    Unsent,
    Sent,
    Acked,
}

#[derive(Debug)]
pub(crate) struct StreamSend {
    buffer: SendBuffer,
    /// First byte that was never cut into a symbol.
    next: u64,
    acked: RangeSet,
    /// Every byte below it is acknowledged.
    base: u64,
    /// The peer's credit: bytes from here on may not be sent yet.
    credit: u64,
    fin: Fin,
    /// When the bytes up to an offset were written, oldest first.
    written: VecDeque<(u64, Instant)>,
}

/// Times of writes that are remembered, 16 kB of memory; the delays of further ones are not
/// measured.
const MAX_WRITES: usize = 1_024;

impl StreamSend {
    pub(crate) fn new(credit: u64) -> Self {
        Self {
            buffer: SendBuffer::default(),
            next: 0,
            acked: RangeSet::default(),
            base: 0,
            credit,
            fin: Fin::Open,
            written: VecDeque::new(),
        }
    }

    pub(crate) fn write(&mut self, now: Instant, data: Bytes) {
        debug_assert_eq!(self.fin, Fin::Open);
        self.buffer.push(data);
        if self.written.len() < MAX_WRITES {
            self.written.push_back((self.buffer.end(), now));
        }
    }

    /// The next write that the peer has whole and in order, by the time since it was made.
    pub(crate) fn next_delay(&mut self, now: Instant) -> Option<Duration> {
        let &(end, at) = self.written.front()?;
        (end <= self.base).then(|| {
            self.written.pop_front();
            now.since(at)
        })
    }

    pub(crate) fn finish(&mut self) {
        if self.fin == Fin::Open {
            self.fin = Fin::Unsent;
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.fin == Fin::Open
    }

    /// Bytes written that were never sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.buffer.end() - self.next
    }

    /// Bytes ever written.
    pub(crate) fn end(&self) -> u64 {
        self.buffer.end()
    }

    /// Bytes that the peer's credit allows to be sent in all.
    pub(crate) fn credit(&self) -> u64 {
        self.credit
    }

    /// Bytes written that the peer has not acknowledged.
    pub(crate) fn unacked(&self) -> u64 {
        self.buffer.end() - self.base
    }

    /// Bytes that the peer's credit allows to be sent now.
    pub(crate) fn sendable(&self) -> u64 {
        self.buffer.end().min(self.credit).saturating_sub(self.next)
    }

    /// Offset of the oldest byte that the peer has not acknowledged.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Bytes from [`base`](Self::base) on that may be sent; `credit` is what the session has left.
    pub(crate) fn send_window(&self, credit: u64) -> u64 {
        let ahead = self.credit.saturating_sub(self.next).min(credit);
        self.next - self.base + ahead
    }

    pub(crate) fn fin_unsent(&self) -> bool {
        self.fin == Fin::Unsent && self.unsent() == 0
    }

    pub(crate) fn raise_credit(&mut self, credit: u64) -> bool {
        let more = credit > self.credit;
        self.credit = self.credit.max(credit);
        more
    }

    /// Cuts the next symbol, of at most `max` bytes, which must be sendable.
    pub(crate) fn cut(&mut self, max: u32) -> Symbol {
        let len = self.sendable().min(u64::from(max)) as u32;
        let symbol = Symbol {
            unit: 0,
            offset: self.next,
            len,
        };
        self.next += u64::from(len);
        if self.fin == Fin::Unsent && self.unsent() == 0 {
            self.fin = Fin::Sent;
        }
        symbol
    }

    /// Does the symbol end the stream?
    pub(crate) fn is_last(&self, symbol: &Symbol) -> bool {
        self.fin >= Fin::Sent && symbol.range().end == self.buffer.end()
    }

    /// What of the symbol is not acknowledged together with all before it.
    pub(crate) fn trim(&self, symbol: Symbol) -> Symbol {
        let range = symbol.range();
        let offset = range.start.max(self.base.min(range.end));
        Symbol {
            offset,
            len: (range.end - offset) as u32,
            ..symbol
        }
    }

    pub(crate) fn bytes(&self, symbol: &Symbol) -> Cow<'_, [u8]> {
        self.buffer.get(symbol.range())
    }

    /// Is all of the symbol acknowledged?
    pub(crate) fn is_acked(&self, symbol: &Symbol) -> bool {
        let bytes = symbol.range().end <= self.base || self.acked.covers(&symbol.range());
        bytes && (self.fin != Fin::Sent || !self.is_last(symbol))
    }

    /// Notes an acknowledged symbol; returns how many bytes were not acknowledged before.
    /// `fin`: it was sent as the end of the stream.
    pub(crate) fn on_acked(&mut self, symbol: &Symbol, fin: bool) -> u64 {
        let range = symbol.range();
        let new = self
            .acked
            .insert(range.start.max(self.base)..range.end.max(self.base));
        if let Some(first) = self.acked.first()
            && first.start <= self.base
        {
            self.base = first.end.max(self.base);
            self.acked.drop_below(self.base);
            self.buffer.release(self.base);
        }
        if fin && self.fin == Fin::Sent {
            self.fin = Fin::Acked;
        }
        new
    }

    /// The peer has every byte and knows that there are no more.
    pub(crate) fn is_done(&self) -> bool {
        self.fin == Fin::Acked && self.base == self.buffer.end()
    }

    /// Bytes that were ever given to a path: the final size after a reset.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    /// Forgets everything: the flow was reset.
    pub(crate) fn abandon(&mut self) {
        self.buffer.clear();
        self.written.clear();
        self.base = self.buffer.end();
        self.next = self.next.max(self.base);
        self.fin = Fin::Acked;
    }
}

impl PartialOrd for Fin {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some((*self as u8).cmp(&(*other as u8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(data: &'static str, credit: u64) -> StreamSend {
        let mut send = StreamSend::new(credit);
        send.write(Instant::ZERO, Bytes::from_static(data.as_bytes()));
        send
    }

    #[test]
    fn cuts_within_credit_and_ends_once() {
        let mut send = stream("abcdef", 4);
        assert_eq!(send.cut(3).range(), 0..3);
        assert_eq!(send.cut(3).range(), 3..4);
        assert_eq!(send.sendable(), 0);
        send.finish();
        assert!(!send.fin_unsent());
        assert!(send.raise_credit(100));
        let last = send.cut(9);
        assert_eq!(last.range(), 4..6);
        assert!(send.is_last(&last));
        assert!(!send.fin_unsent());
    }

    #[test]
    fn an_end_without_bytes_is_a_symbol_too() {
        let mut send = stream("ab", 10);
        let data = send.cut(9);
        send.finish();
        assert!(send.fin_unsent());
        let end = send.cut(9);
        assert_eq!((end.offset, end.len), (2, 0));
        assert_eq!(send.on_acked(&data, false), 2);
        assert!(!send.is_done(), "the end is not acknowledged");
        assert!(!send.is_acked(&end));
        send.on_acked(&end, true);
        assert!(send.is_done());
    }

    #[test]
    fn a_symbol_whose_beginning_is_acknowledged_shrinks() {
        let mut send = stream("abcdef", 10);
        let whole = send.cut(6);
        let (head, _) = whole.split(4).unwrap();
        send.on_acked(&head, false);
        let rest = send.trim(whole);
        assert_eq!(rest.range(), 4..6);
        assert_eq!(send.trim(rest), rest);
        assert_eq!(*send.bytes(&rest), *b"ef");
        assert!(!send.is_acked(&whole));
    }

    #[test]
    fn acknowledgements_in_any_order_free_the_buffer() {
        let mut send = stream("abcdef", 10);
        let (a, b) = (send.cut(3), send.cut(3));
        assert_eq!(send.on_acked(&b, false), 3);
        assert_eq!(send.unacked(), 6);
        assert!(send.is_acked(&b) && !send.is_acked(&a));
        assert_eq!(send.on_acked(&a, false), 3);
        assert_eq!(send.on_acked(&a, false), 0);
        assert_eq!(send.unacked(), 0);
    }
}
