use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use marline_base::{Instant, Rate};

use super::laws::Histories;
use super::redundancy;
use super::{Blocked, Choice, Coding, Common, PathView, Unit};
use crate::flow::Symbol;

/// The backlog of a flow: cuts symbols and takes emissions.
///
/// The session implements it; tests of schedulers may bring their own.
pub trait SymbolSource {
    /// Length (bytes) of the next symbol if it may have up to `max` bytes; `None` if nothing is
    /// unsent or the peer's credit is used up.
    fn next_len(&self, max: u32) -> Option<u32>;
    /// Bytes that could be cut into symbols now.
    fn unsent(&self) -> u64;
    /// The unit that the next symbol belongs to; `None` in a stream, which is all one.
    fn unit(&self) -> Option<Unit>;
    /// The units under way, first [`unit`](Self::unit), then in the order in which they would be
    /// sent, then those that were emitted whole and that the peer is not known to have; not more
    /// than a scheduler can look at.
    fn units(&self) -> Vec<Unit> {
        self.unit().into_iter().collect()
    }
    /// Queues a repair symbol of a unit for the path at `index`; `None` if the unit has none left.
    fn repair_of(&mut self, unit: u64, index: usize, max: u32) -> Option<Symbol> {
        let _ = (unit, index, max);
        None
    }
    /// Rate that the application said it needs, if it did.
    fn needed_rate(&self) -> Option<Rate> {
        None
    }
    /// Must every symbol fit every path? Those that repair symbols combine must, for these are as
    /// long as the longest. What else goes again over a narrower path goes in pieces.
    fn fits_all(&self) -> bool {
        true
    }
    /// Cuts the next symbol and queues it for the path at `index`.
    fn send(&mut self, index: usize, max: u32) -> Symbol;
    /// Queues another copy of a symbol for the path at `index`.
    fn copy(&mut self, index: usize, symbol: Symbol);
    /// How the flow's code stands; `None` if it has none.
    fn coding(&self) -> Option<Coding> {
        None
    }
    /// Queues a repair symbol for the path at `index`; `None` if there is nothing to repair or the
    /// budget is spent.
    fn repair(&mut self, index: usize) -> Option<Symbol> {
        let _ = index;
        None
    }
    /// Bytes beyond the oldest unacknowledged one that the peer's credit allows to be sent.
    fn send_window(&self) -> u64 {
        u64::MAX
    }
    /// Is there data that only the peer's credit holds back?
    fn blocked(&self) -> Option<Blocked> {
        None
    }
    /// Takes back what is queued and has not left; it becomes the head of the backlog again.
    /// Returns the bytes taken back from each path, in the order of the paths.
    fn take_back(&mut self) -> Vec<u64>;
}

/// One planning step of one flow's scheduler: what it sees, and where its emissions go.
pub struct Plan<'a> {
    now: Instant,
    paths: &'a mut [PathView],
    source: &'a mut dyn SymbolSource,
    /// The longest symbol that fits every path.
    symbol: u32,
    common: Option<&'a mut Common>,
}

impl<'a> Plan<'a> {
    /// A plan over `paths` (ascending by id) for the backlog of `source`.
    pub fn new(now: Instant, paths: &'a mut [PathView], source: &'a mut dyn SymbolSource) -> Self {
        let symbol = paths.iter().map(|p| p.symbol).min().unwrap_or(0);
        Self {
            now,
            paths,
            source,
            symbol,
            common: None,
        }
    }

    /// The same plan beside other flows. Without this the flow is alone.
    #[must_use]
    pub fn among(self, common: &'a mut Common) -> Self {
        Self {
            common: Some(common),
            ..self
        }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The paths that may carry data, ascending by id; queues include what this plan emitted.
    pub fn paths(&self) -> &[PathView] {
        self.paths
    }

    /// Length of the next source symbol (bytes), or `None` if there is nothing to send. On a path
    /// that takes longer ones it may be longer.
    pub fn next_len(&self) -> Option<u32> {
        if self.paths.is_empty() {
            return None;
        }
        self.source.next_len(self.symbol)
    }

    /// Bytes that could be sent now, were there room.
    pub fn unsent(&self) -> u64 {
        self.source.unsent()
    }

    /// Bytes that could be sent now, were there room, of this flow and of all others. Only for
    /// schedulers that [mind others](super::Scheduler::minds_others).
    pub fn waiting(&self) -> u64 {
        let others = self.common.as_ref().map_or(0, |common| common.others());
        self.unsent() + others
    }

    /// Takes what all flows of the session with this choice share for the flow's own, or gives it
    /// back. A flow that is alone keeps its own.
    pub(super) fn exchange<T: Any + Clone + Send>(&mut self, choice: &Choice, own: &mut T) {
        if let Some(common) = &mut self.common {
            common.exchange(choice, own);
        }
    }

    /// Takes what the session's flows have learnt of its paths together, or gives it back; not if
    /// the flow is alone, which keeps its own.
    pub(super) fn exchange_histories(&mut self, own: &mut Histories) -> bool {
        match &mut self.common {
            Some(common) if !common.blind => {
                core::mem::swap(&mut common.histories, own);
                true
            }
            _ => false,
        }
    }

    /// The unit that the next symbol belongs to and what is left of it, for schedulers that plan a
    /// unit as a whole; `None` in a stream and when there is nothing to send.
    pub fn unit(&self) -> Option<Unit> {
        self.source.unit().map(|unit| self.shape(unit))
    }

    /// The units under way: [`Plan::unit`] first, then those that follow, then those that were
    /// emitted whole (`len` is 0) and that the peer is not known to have. Schedulers that add
    /// redundancy after a unit's last symbol, or that plan several units together, look here. At
    /// most 64 of each sort are shown; in a stream there are none.
    pub fn units(&self) -> Vec<Unit> {
        let units = self.source.units().into_iter();
        units.map(|unit| self.shape(unit)).collect()
    }

    /// A unit is cut when its first symbol is emitted: until then it is seen as it would be cut
    /// now.
    fn shape(&self, mut unit: Unit) -> Unit {
        if let Some(code) = &mut unit.code
            && code.symbol == 0
            && self.symbol > 0
        {
            let count = unit.len.div_ceil(u64::from(self.symbol)).max(1);
            code.symbols = count.min(u64::from(u32::MAX)) as u32;
            code.symbol = unit.len.div_ceil(count) as u32;
        }
        unit
    }

    /// Rate that the application said it needs; `None` if it did not.
    pub fn needed_rate(&self) -> Option<Rate> {
        self.source.needed_rate()
    }

    /// Bytes that may be outstanding, the oldest unacknowledged one first, by the peer's credit:
    /// what MPTCP calls the send window. `u64::MAX` for flows without credit.
    pub fn send_window(&self) -> u64 {
        self.source.send_window()
    }

    /// Why nothing can be sent although there is data: the peer's credit is used up. Schedulers
    /// that ask for it by [`Scheduler::minds_credit`](super::Scheduler::minds_credit) see it.
    pub fn blocked(&self) -> Option<Blocked> {
        self.source.blocked()
    }

    /// Emits the next source symbol on the path at `index` of [`Plan::paths`]. Must follow a
    /// [`Plan::next_len`] that is `Some`.
    pub fn send(&mut self, index: usize) -> Symbol {
        let longest = match self.source.fits_all() {
            true => self.symbol,
            false => self.paths[index].symbol,
        };
        let symbol = self.source.send(index, longest);
        self.charge(index, symbol.len);
        symbol
    }

    /// Emits a copy of `symbol` on the path at `index`.
    pub fn copy(&mut self, index: usize, symbol: Symbol) {
        self.source.copy(index, symbol);
        self.charge(index, symbol.len);
    }

    /// Bytes of redundancy for a byte of data that are worth sending, by what the paths lose, for
    /// schedulers that fill what is left over. `f64::INFINITY` where the user set a
    /// [budget](crate::Config::repair_budget), which holds anyway, and outside of a session.
    pub fn redundancy(&self) -> f64 {
        match self.is_bounded() {
            true => redundancy::share(self.paths),
            false => f64::INFINITY,
        }
    }

    fn is_bounded(&self) -> bool {
        self.common.as_ref().is_some_and(|common| common.bounded)
    }

    /// Does it cost next to nothing, beside all that the session sends, to send what needs `need`
    /// bytes/s over every path? Never where the user set a
    /// [budget](crate::Config::repair_budget), nor outside of a session.
    pub fn is_negligible(&self, need: f64) -> bool {
        self.is_bounded() && redundancy::is_negligible(self.paths, need)
    }

    /// How the flow's code stands; `None` if the flow is not coded.
    pub fn coding(&self) -> Option<Coding> {
        self.source.coding()
    }

    /// Emits a repair symbol on the path at `index` of [`Plan::paths`]: a combination of what the
    /// receiver is not known to have when it leaves. If that is nothing by then, it does not leave.
    /// Its number in the flow is the unit of the returned symbol, whose length (bytes) is an upper
    /// bound. `None` if the flow is not coded, there is nothing to combine, or the flow's budget of
    /// redundancy is spent.
    pub fn repair(&mut self, index: usize) -> Option<Symbol> {
        let symbol = self.source.repair(index)?;
        self.charge(index, symbol.len);
        Some(symbol)
    }

    /// Emits a repair symbol of the unit with this id, one of [`Plan::units`], on the path at
    /// `index` of [`Plan::paths`]. It is encoded when it leaves, and does not leave if the peer has
    /// the unit by then. `None` if the unit has not begun, is done, or has no repair symbol left.
    pub fn repair_of(&mut self, unit: u64, index: usize) -> Option<Symbol> {
        let symbol = self.source.repair_of(unit, index, self.symbol)?;
        self.charge(index, symbol.len);
        Some(symbol)
    }

    /// Takes back all source symbols of this flow that have not left yet; answers their bytes.
    pub fn take_back(&mut self) -> u64 {
        let taken = self.source.take_back();
        for (path, bytes) in self.paths.iter_mut().zip(&taken) {
            path.queued = path.queued.saturating_sub(*bytes);
            path.queued_own = path.queued_own.saturating_sub(*bytes);
        }
        taken.iter().sum()
    }

    fn charge(&mut self, index: usize, len: u32) {
        self.paths[index].queued += u64::from(len);
        self.paths[index].queued_own += u64::from(len);
    }
}

impl fmt::Debug for Plan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("now", &self.now)
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}
