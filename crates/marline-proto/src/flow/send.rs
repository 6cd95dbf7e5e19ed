//! The sending half of a flow, whatever its kind.

use alloc::borrow::Cow;
use alloc::boxed::Box;

use marline_base::{Duration, Instant};

use super::shown::Blocked;
use super::{PacketsSend, StreamSend, Symbol, UnitsSend};
use crate::wire::PathId;

#[derive(Debug)]
pub(crate) enum SendHalf {
    Stream(StreamSend),
    Packets(PacketsSend),
    Units(Box<UnitsSend>),
}

impl SendHalf {
    /// Length of the next fresh symbol of at most `max` bytes; `credit` is the session's.
    pub(crate) fn next_len(&self, max: u32, credit: u64) -> Option<u32> {
        match self {
            Self::Stream(s) => {
                let len = s.sendable().min(credit).min(u64::from(max)) as u32;
                (len > 0 || s.fin_unsent()).then_some(len)
            }
            Self::Packets(p) => p.next_len(max),
            Self::Units(u) => u.next_len(max, credit),
        }
    }

    /// Cuts the next fresh symbol; [`SendHalf::next_len`] said that there is one.
    pub(crate) fn cut(&mut self, max: u32, credit: u64) -> Option<Symbol> {
        match self {
            Self::Stream(s) => Some(s.cut(max.min(credit.min(u64::from(u32::MAX)) as u32))),
            Self::Packets(p) => p.cut(max),
            Self::Units(u) => u.cut(max, credit),
        }
    }

    /// Bytes never cut into symbols that may be now.
    pub(crate) fn unsent(&self, credit: u64) -> u64 {
        match self {
            Self::Stream(s) => s.sendable().min(credit),
            Self::Packets(p) => p.unsent(),
            Self::Units(u) => u.unsent(),
        }
    }

    /// Bytes beyond the oldest unacknowledged one that may be sent; `credit` is the session's.
    pub(crate) fn send_window(&self, credit: u64) -> u64 {
        match self {
            Self::Stream(s) => s.send_window(credit),
            Self::Packets(_) | Self::Units(_) => u64::MAX,
        }
    }

    /// Is there data that only credit holds back?
    pub(crate) fn blocked(&self, credit: u64) -> Option<Blocked> {
        match self {
            Self::Stream(s) if s.unsent() > 0 && s.sendable().min(credit) == 0 => {
                Some(Blocked { oldest: s.base() })
            }
            _ => None,
        }
    }

    /// Was a unit emitted whole that the peer is not known to have?
    pub(crate) fn has_emitted(&self) -> bool {
        matches!(self, Self::Units(u) if u.has_emitted())
    }

    /// Makes the bytes of a repair symbol of a unit that is about to leave.
    pub(crate) fn prepare(&mut self, symbol: &Symbol) {
        if let Self::Units(u) = self {
            u.prepare(symbol);
        }
    }

    /// A symbol left over `path`; `fresh`: for the first time.
    pub(crate) fn on_left(&mut self, now: Instant, symbol: &Symbol, path: PathId, fresh: bool) {
        match self {
            Self::Units(units) => units.on_left(symbol, fresh),
            Self::Packets(packets) if fresh => packets.on_left(now, symbol, path),
            Self::Packets(_) | Self::Stream(_) => {}
        }
    }

    /// A transmission of a symbol was lost, whether or not that matters.
    pub(crate) fn on_lost(&mut self, symbol: &Symbol) {
        if let Self::Units(u) = self {
            u.on_lost(symbol);
        }
    }

    /// A repair symbol of a unit is not counted on any more.
    pub(crate) fn on_dropped(&mut self, symbol: &Symbol) {
        if let Self::Units(u) = self {
            u.on_dropped(symbol);
        }
    }

    /// A symbol that was to leave for the first time will not: it is settled.
    pub(crate) fn on_skipped(&mut self, symbol: &Symbol) {
        if let Self::Packets(p) = self {
            p.on_skipped(symbol);
        }
    }

    /// A symbol that is no copy was acknowledged, and brought nothing that was waited for.
    pub(crate) fn on_acked_late(&mut self, symbol: &Symbol) {
        if let Self::Packets(p) = self {
            p.on_acked_late(symbol);
        }
    }

    /// Do repair symbols make up for a source symbol that was lost and that nothing else brings?
    pub(crate) fn write_off(&mut self, symbol: &Symbol) -> bool {
        match self {
            Self::Units(u) => u.write_off(symbol),
            Self::Stream(_) | Self::Packets(_) => false,
        }
    }

    /// Credit of the session that was used so far.
    pub(crate) fn spent(&self) -> u64 {
        self.final_size()
    }

    /// Need the symbol not be sent (again)?
    pub(crate) fn is_settled(&self, symbol: &Symbol) -> bool {
        match self {
            Self::Stream(s) => s.is_acked(symbol),
            Self::Packets(p) => p.is_settled(symbol),
            Self::Units(u) => u.is_settled(symbol),
        }
    }

    /// The part of an unsettled symbol that is still held: another transmission, cut otherwise, may
    /// have brought its beginning.
    pub(crate) fn trim(&self, symbol: Symbol) -> Symbol {
        match self {
            Self::Stream(s) => s.trim(symbol),
            Self::Packets(_) => symbol,
            Self::Units(u) => u.trim(symbol),
        }
    }

    /// The symbol's bytes; copied only if they were written in several pieces.
    pub(crate) fn bytes(&self, symbol: &Symbol) -> Cow<'_, [u8]> {
        match self {
            Self::Stream(s) => s.bytes(symbol),
            Self::Packets(p) => Cow::Borrowed(p.bytes(symbol)),
            Self::Units(u) => u.bytes(symbol),
        }
    }

    /// Returns how many bytes were not acknowledged before, and has the delays of what is delivered
    /// with that recorded.
    pub(crate) fn on_acked(
        &mut self,
        now: Instant,
        symbol: &Symbol,
        fin: bool,
        mut record: impl FnMut(Duration),
    ) -> u64 {
        match self {
            Self::Stream(s) => {
                let new = s.on_acked(symbol, fin);
                while let Some(delay) = s.next_delay(now) {
                    record(delay);
                }
                new
            }
            Self::Packets(p) => {
                let (new, delay) = p.on_acked(now, symbol);
                if let Some(delay) = delay {
                    record(delay);
                }
                new
            }
            // What is delivered with that the peer says itself.
            Self::Units(u) => u.on_acked(symbol),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Stream(s) => s.is_done(),
            Self::Packets(p) => p.is_done(),
            Self::Units(u) => u.is_done(),
        }
    }

    /// May the application still write?
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Stream(s) => s.is_open(),
            Self::Packets(p) => p.is_open(),
            Self::Units(u) => u.is_open(),
        }
    }

    pub(crate) fn abandon(&mut self) {
        match self {
            Self::Stream(s) => s.abandon(),
            Self::Packets(p) => p.abandon(),
            Self::Units(u) => u.abandon(),
        }
    }

    /// Stream bytes or credit of units (or 0) ever given to a path: counted against credit.
    pub(crate) fn final_size(&self) -> u64 {
        match self {
            Self::Stream(s) => s.sent(),
            Self::Packets(_) => 0,
            Self::Units(u) => u.spent(),
        }
    }
}
