//! Literal paths and a backlog for the schedulers' own tests.

use alloc::vec;
use alloc::vec::Vec;

use marline_base::{Duration, Rate};

use super::{Blocked, Coding, PathView, SymbolSource, Unit};
use crate::congestion::{Phase, View};
use crate::flow::Symbol;
use crate::wire::PathId;

const SYMBOL: u32 = 1_200;

pub(crate) fn path(id: u64) -> PathView {
    PathView {
        id: PathId(id),
        window: 100 * u64::from(SYMBOL),
        in_flight: 0,
        queued: 0,
        queued_own: 0,
        srtt: Duration::from_millis(20 + id),
        rtt_var: Duration::from_millis(1),
        min_rtt: Duration::from_millis(20 + id),
        rate: Rate::from_mbps(10),
        loss: 0.0,
        flaps: false,
        queueing: Duration::ZERO,
        back_queueing: Duration::ZERO,
        spacing: None,
        forecast: None,
        symbol: SYMBOL,
        cost: 0,
        congestion: View {
            name: "none",
            phase: Phase::Steady,
            window_gain: 1.0,
            pacing_gain: 1.0,
            bandwidth: None,
            min_rtt: None,
            ssthresh: None,
        },
    }
}

/// A backlog of equal symbols that notes what was emitted where.
pub(crate) struct Backlog {
    left: u64,
    send_window: u64,
    blocked: Option<Blocked>,
    unit: Option<u64>,
    next: u64,
    /// Bytes that wait on each path, planned before.
    waiting: Vec<u64>,
    sent: Vec<usize>,
    copied: Vec<usize>,
    /// Source symbols that are unknown, if the flow has a code.
    unknown: Option<u32>,
    repaired: Vec<usize>,
}

impl Backlog {
    pub(crate) fn of(symbols: u64) -> Self {
        Self {
            left: symbols,
            send_window: u64::MAX,
            blocked: None,
            unit: None,
            next: 0,
            waiting: vec![],
            sent: vec![],
            copied: vec![],
            unknown: None,
            repaired: vec![],
        }
    }

    /// The peer's credit allows this number of bytes to be outstanding.
    pub(crate) fn with_send_window(self, send_window: u64) -> Self {
        Self {
            send_window,
            ..self
        }
    }

    /// This number of symbols waits on each path, planned before.
    pub(crate) fn with_waiting(self, symbols: &[u64]) -> Self {
        let waiting = symbols.iter().map(|n| n * u64::from(SYMBOL)).collect();
        Self { waiting, ..self }
    }

    /// Credit is used up, and the byte at `oldest` is not acknowledged.
    pub(crate) fn blocked_at(self, oldest: u64) -> Self {
        let blocked = Some(Blocked { oldest });
        Self { blocked, ..self }
    }

    /// Made of units of this number of symbols each.
    pub(crate) fn in_units_of(self, symbols: u64) -> Self {
        let unit = Some(symbols * u64::from(SYMBOL));
        Self { unit, ..self }
    }

    /// Coded, with this number of unknown symbols, and no end of repair symbols.
    pub(crate) fn coded(self, unknown: u32) -> Self {
        let unknown = Some(unknown);
        Self { unknown, ..self }
    }

    pub(crate) fn sent_on(&self) -> &[usize] {
        &self.sent
    }

    pub(crate) fn copied_to(&self) -> &[usize] {
        &self.copied
    }

    pub(crate) fn repaired_on(&self) -> &[usize] {
        &self.repaired
    }
}

impl SymbolSource for Backlog {
    fn next_len(&self, max: u32) -> Option<u32> {
        (self.left > 0).then_some(SYMBOL.min(max))
    }

    fn unsent(&self) -> u64 {
        self.left * u64::from(SYMBOL)
    }

    fn unit(&self) -> Option<Unit> {
        let len = self.unit?;
        (self.left > 0).then(|| Unit::new(self.next / len, len - self.next % len))
    }

    fn send_window(&self) -> u64 {
        self.send_window
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked
    }

    fn send(&mut self, index: usize, max: u32) -> Symbol {
        self.left -= 1;
        self.sent.push(index);
        let len = SYMBOL.min(max);
        self.next += u64::from(len);
        Symbol {
            unit: 0,
            offset: self.next - u64::from(len),
            len,
        }
    }

    fn copy(&mut self, index: usize, _: Symbol) {
        self.copied.push(index);
    }

    fn coding(&self) -> Option<Coding> {
        self.unknown.map(|unknown| Coding {
            window: unknown,
            unknown,
            budget: u64::MAX,
            ..Coding::default()
        })
    }

    fn repair(&mut self, index: usize) -> Option<Symbol> {
        self.repaired.push(index);
        Some(Symbol {
            unit: 0,
            offset: 0,
            len: SYMBOL,
        })
    }

    fn take_back(&mut self) -> Vec<u64> {
        self.left += self.waiting.iter().sum::<u64>() / u64::from(SYMBOL);
        core::mem::take(&mut self.waiting)
    }
}
