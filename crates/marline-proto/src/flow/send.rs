//! The sending half of a flow, whatever its kind.

use alloc::borrow::Cow;

use marline_base::Instant;

use super::{PacketsSend, StreamSend, Symbol};
use crate::sched::Blocked;
use crate::stats::Delays;

#[derive(Debug)]
pub(crate) enum SendHalf {
    Stream(StreamSend),
    Packets(PacketsSend),
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
        }
    }

    /// Cuts the next fresh symbol; [`SendHalf::next_len`] said that there is one.
    pub(crate) fn cut(&mut self, max: u32, credit: u64) -> Option<Symbol> {
        match self {
            Self::Stream(s) => Some(s.cut(max.min(credit.min(u64::from(u32::MAX)) as u32))),
            Self::Packets(p) => p.cut(max),
        }
    }

    /// Bytes never cut into symbols that may be now.
    pub(crate) fn unsent(&self, credit: u64) -> u64 {
        match self {
            Self::Stream(s) => s.sendable().min(credit),
            Self::Packets(p) => p.unsent(),
        }
    }

    /// Bytes beyond the oldest unacknowledged one that may be sent; `credit` is the session's.
    pub(crate) fn send_window(&self, credit: u64) -> u64 {
        match self {
            Self::Stream(s) => s.send_window(credit),
            Self::Packets(_) => u64::MAX,
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

    /// Need the symbol not be sent (again)?
    pub(crate) fn is_settled(&self, symbol: &Symbol) -> bool {
        match self {
            Self::Stream(s) => s.is_acked(symbol),
            Self::Packets(p) => p.is_settled(symbol),
        }
    }

    /// The part of an unsettled symbol that is still held: another transmission, cut otherwise, may
    /// have brought its beginning.
    pub(crate) fn trim(&self, symbol: Symbol) -> Symbol {
        match self {
            Self::Stream(s) => s.trim(symbol),
            Self::Packets(_) => symbol,
        }
    }

    /// The symbol's bytes; copied only if they were written in several pieces.
    pub(crate) fn bytes(&self, symbol: &Symbol) -> Cow<'_, [u8]> {
        match self {
            Self::Stream(s) => s.bytes(symbol),
            Self::Packets(p) => Cow::Borrowed(p.bytes(symbol)),
        }
    }

    /// Returns how many bytes were not acknowledged before, and records the delays of what is
    /// delivered with that.
    pub(crate) fn on_acked(
        &mut self,
        now: Instant,
        symbol: &Symbol,
        fin: bool,
        delays: &mut Delays,
    ) -> u64 {
        match self {
            Self::Stream(s) => {
                let new = s.on_acked(symbol, fin);
                while let Some(delay) = s.next_delay(now) {
                    delays.record(delay);
                }
                new
            }
            Self::Packets(p) => {
                let (new, delay) = p.on_acked(now, symbol);
                if let Some(delay) = delay {
                    delays.record(delay);
                }
                new
            }
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Stream(s) => s.is_done(),
            Self::Packets(p) => p.is_done(),
        }
    }

    /// May the application still write?
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Stream(s) => s.is_open(),
            Self::Packets(p) => p.is_open(),
        }
    }

    pub(crate) fn abandon(&mut self) {
        match self {
            Self::Stream(s) => s.abandon(),
            Self::Packets(p) => p.abandon(),
        }
    }

    /// Stream bytes (or 0) ever given to a path: counted against credit.
    pub(crate) fn final_size(&self) -> u64 {
        match self {
            Self::Stream(s) => s.sent(),
            Self::Packets(_) => 0,
        }
    }
}
