//! One unit at its sender.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;

use bytes::Bytes;
use marline_base::Instant;
use marline_fec::block::Shape;

use super::order::Place;
use super::repairs::Repairs;
use crate::flow::Symbol;
use crate::ranges::RangeSet;
use crate::wire::{CERTAIN, LEAST_SYMBOL, MAX_SOURCES};

/// Length (bytes) of the symbols of a unit when they may have `max`: as equal as can be, so that
/// repair symbols are no longer than they need to be.
pub(super) fn equal_symbols(size: u64, max: u32) -> u64 {
    let count = size.div_ceil(u64::from(max.max(1))).max(1);
    size.div_ceil(count)
}

/// A unit from its writing until its fate is known.
///
/// Source symbols are stretches of its bytes. A repair symbol is one beyond its end: index i
/// stands at (k + i) · length of a symbol, so that no two symbols of a unit overlap.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Heading and the application's bytes; none once it was given up.
    data: Bytes,
    size: u64,
    /// The object or block that it belongs to.
    pub(super) tag: u64,
    pub(super) written: Instant,
    pub(super) deadline: Option<Instant>,
    pub(super) reliability: Option<f64>,
    pub(super) place: Place,
    /// How it was cut; `None` before its first symbol.
    shape: Option<Shape>,
    /// First byte that was never cut into a symbol, and earlier ones that were taken back.
    next: u64,
    returned: RangeSet,
    acked: RangeSet,
    sources_acked: u32,
    /// Source symbols that were lost and that repair symbols make up for.
    written_off: BTreeSet<u64>,
    pub(super) repairs: Repairs,
    /// Transmissions of its symbols whose fate is open.
    flying: u32,
    /// Its deadline is over: nothing is sent of it any more.
    pub(super) expired: bool,
    /// It was given up, with the application's code or because its deadline was over.
    pub(super) given_up: Option<Option<u64>>,
}

impl Outgoing {
    pub(super) fn new(now: Instant, data: Bytes, tag: u64, place: Place) -> Self {
        Self {
            size: data.len() as u64,
            data,
            tag,
            written: now,
            deadline: None,
            reliability: None,
            place,
            shape: None,
            next: 0,
            returned: RangeSet::default(),
            acked: RangeSet::default(),
            sources_acked: 0,
            written_off: BTreeSet::new(),
            repairs: Repairs::default(),
            flying: 0,
            expired: false,
            given_up: None,
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Heading and the application's bytes; none once it was given up.
    pub(super) fn data(&self) -> &Bytes {
        &self.data
    }

    pub(super) fn has_begun(&self) -> bool {
        self.shape.is_some()
    }

    /// Will nothing more be cut of it?
    pub(super) fn is_over(&self) -> bool {
        self.expired || self.given_up.is_some()
    }

    /// Bytes that wait to be cut.
    pub(super) fn uncut(&self) -> u64 {
        if self.is_over() {
            return 0;
        }
        self.size - self.next + self.returned.total()
    }

    /// Length of a symbol, and how many source symbols there are: (0, 0) before the first was cut.
    pub(super) fn code(&self) -> (u64, u64) {
        self.shape
            .map_or((0, 0), |s| (s.symbol() as u64, s.sources() as u64))
    }

    pub(super) fn next_len(&self, max: u32) -> Option<u32> {
        if self.uncut() == 0 || max == 0 {
            return None;
        }
        let (start, end) = match self.returned.first() {
            Some(range) => (range.start, range.end),
            None => (self.next, self.size),
        };
        let symbol = match self.shape {
            Some(shape) => shape.symbol() as u64,
            None => equal_symbols(self.size, max),
        };
        let end = end.min((start / symbol + 1) * symbol);
        Some((end - start).min(u64::from(max)) as u32)
    }

    /// Cuts the next symbol, of at most `max` bytes; the first one decides how long all are.
    pub(super) fn cut(&mut self, unit: u64, max: u32) -> Option<Symbol> {
        let len = self.next_len(max)?;
        if self.shape.is_none() {
            let size = self.size as usize;
            let symbol = equal_symbols(self.size, max) as usize;
            // One that is too long for the code is sent in pieces of one symbol, without repair.
            let shape = Shape::new(size, symbol).or_else(|_| Shape::new(size, size));
            self.shape = shape.ok();
        }
        let offset = match self.returned.first() {
            Some(range) => {
                let start = range.start;
                self.returned.drop_below(start + u64::from(len));
                start
            }
            None => {
                self.next += u64::from(len);
                self.next - u64::from(len)
            }
        };
        Some(Symbol { unit, offset, len })
    }

    /// Takes a source symbol back that did not leave.
    pub(super) fn give_back(&mut self, symbol: &Symbol) {
        self.returned.insert(symbol.range());
    }

    /// Index of the repair symbol, if it is one.
    pub(super) fn repair_index(&self, symbol: &Symbol) -> Option<u16> {
        let (length, sources) = self.code();
        (symbol.offset >= self.size && length > 0)
            .then(|| (symbol.offset / length).saturating_sub(sources) as u16)
    }

    /// Repair symbols that may still be emitted if the peer takes `most` and paths take symbols of
    /// `max` bytes.
    pub(super) fn spare(&self, most: u64, max: u32) -> u32 {
        let (length, sources) = self.code();
        let long_enough = sources <= CERTAIN || length >= LEAST_SYMBOL;
        let fits = length > 0 && length <= u64::from(max) && sources <= MAX_SOURCES;
        if self.is_over() || !long_enough || !fits {
            return 0;
        }
        let most = most.min(u64::from(u16::MAX));
        most.saturating_sub(u64::from(self.repairs.emitted)) as u32
    }

    /// Emits the next repair symbol; [`Outgoing::spare`] said that there is one.
    pub(super) fn repair(&mut self, unit: u64) -> Symbol {
        let (length, sources) = self.code();
        let index = u64::from(self.repairs.emitted);
        self.repairs.emitted += 1;
        Symbol {
            unit,
            offset: (sources + index) * length,
            len: length as u32,
        }
    }

    /// Different symbols that the peer is known to have.
    pub(super) fn symbols_acked(&self) -> u32 {
        self.sources_acked + self.repairs.acked()
    }

    /// Symbols that wait or fly and of which nothing is known yet.
    pub(super) fn open(&self) -> u32 {
        let (length, _) = self.code();
        if length == 0 {
            return 0;
        }
        let back = self.returned.total().div_ceil(length);
        let cut = self.next.div_ceil(length).saturating_sub(back);
        let known = u64::from(self.sources_acked) + self.written_off.len() as u64;
        cut.saturating_sub(known) as u32 + self.repairs.open()
    }

    /// Does the peer have so many symbols that it has the unit for certain?
    pub(super) fn has_enough(&self) -> bool {
        let Some(shape) = self.shape else {
            return false;
        };
        let certain = usize::from(self.repairs.emitted) <= shape.certain_repairs();
        let all = self.sources_acked as usize == shape.sources();
        all || (certain && self.symbols_acked() as usize >= shape.sources())
    }

    /// Need the symbol not be sent (again)?
    pub(super) fn is_settled(&self, symbol: &Symbol) -> bool {
        if self.is_over() || self.has_enough() {
            return true;
        }
        match self.repair_index(symbol) {
            Some(index) => self.repairs.is_acked(index),
            None => self.acked.covers(&symbol.range()),
        }
    }

    /// The part of a source symbol that is not acknowledged yet.
    pub(super) fn trim(&self, symbol: Symbol) -> Symbol {
        let range = symbol.range();
        if range.end > self.size {
            return symbol;
        }
        let offset = match self.acked.end_of(range.start) {
            Some(end) if end < range.end => end,
            _ => range.start,
        };
        Symbol {
            offset,
            len: (range.end - offset) as u32,
            ..symbol
        }
    }

    /// Makes the bytes of a repair symbol that is about to leave.
    pub(super) fn prepare(&mut self, symbol: &Symbol) {
        if let (Some(shape), Some(index)) = (self.shape, self.repair_index(symbol)) {
            self.repairs.encode(shape, &self.data, index);
        }
    }

    /// The symbol's bytes; none if they were freed.
    pub(super) fn bytes(&self, symbol: &Symbol) -> Cow<'_, [u8]> {
        let bytes = match self.repair_index(symbol) {
            Some(index) => self.repairs.get(index),
            None => {
                let range = symbol.range();
                self.data.get(range.start as usize..range.end as usize)
            }
        };
        Cow::Borrowed(bytes.unwrap_or_default())
    }

    pub(super) fn on_left(&mut self, symbol: &Symbol) {
        self.flying += 1;
        if let Some(index) = self.repair_index(symbol) {
            self.repairs.on_left(index);
        }
    }

    /// Is a transmission of one of its symbols still open?
    pub(super) fn flies(&self) -> bool {
        self.flying > 0
    }

    /// Notes an acknowledged symbol; returns how many bytes were not acknowledged before.
    pub(super) fn on_acked(&mut self, symbol: &Symbol) -> u64 {
        self.flying = self.flying.saturating_sub(1);
        if let Some(index) = self.repair_index(symbol) {
            let new = self.repairs.on_acked(index);
            return if new { u64::from(symbol.len) } else { 0 };
        }
        let range = symbol.range();
        let touched = self.numbers(&range);
        let whole = |unit: &Self| {
            let all = touched.clone();
            all.filter(|n| unit.acked.covers(&unit.source(*n))).count() as u32
        };
        let before = whole(self);
        let new = self.acked.insert(range);
        self.sources_acked += whole(self) - before;
        for number in touched {
            if self.acked.covers(&self.source(number)) {
                self.written_off.remove(&number);
            }
        }
        new
    }

    /// Numbers of the source symbols that the bytes belong to.
    fn numbers(&self, range: &core::ops::Range<u64>) -> core::ops::Range<u64> {
        let (length, _) = self.code();
        if length == 0 {
            return 0..0;
        }
        range.start / length..range.end.div_ceil(length)
    }

    /// The bytes of a source symbol.
    fn source(&self, number: u64) -> core::ops::Range<u64> {
        let (length, _) = self.code();
        number * length..((number + 1) * length).min(self.size)
    }

    /// A transmission was lost.
    pub(super) fn on_landed(&mut self) {
        self.flying = self.flying.saturating_sub(1);
    }

    /// Nothing else brings this source symbol, which was lost. Whether repair symbols make up for
    /// it, so that it need not be sent again.
    pub(super) fn write_off(&mut self, symbol: &Symbol) -> bool {
        let numbers = self.numbers(&symbol.range());
        let more = numbers.clone().filter(|n| !self.written_off.contains(n));
        let needed = self.written_off.len() as u64 + more.count() as u64;
        if self.covered() < needed {
            return false;
        }
        self.written_off.extend(numbers);
        true
    }

    /// Source symbols that repair symbols which arrived or may still arrive make up for.
    fn covered(&self) -> u64 {
        let certain = self
            .shape
            .is_some_and(|s| usize::from(self.repairs.emitted) <= s.certain_repairs());
        let repairs = self.repairs.acked() + self.repairs.open();
        // One more where the code is random.
        u64::from(repairs.saturating_sub(u32::from(!certain)))
    }

    /// A repair symbol is not counted on any more. The source symbols that it would have made up
    /// for.
    pub(super) fn on_repair_lost(
        &mut self,
        unit: u64,
        index: u16,
    ) -> impl Iterator<Item = Symbol> + '_ {
        self.repairs.on_lost(index);
        let excess = (self.written_off.len() as u64).saturating_sub(self.covered());
        self.reclaim(unit, excess)
    }

    /// The peer has enough symbols and cannot solve them: everything that was written off is sent
    /// after all.
    pub(super) fn on_short(&mut self, unit: u64) -> impl Iterator<Item = Symbol> + '_ {
        self.reclaim(unit, u64::MAX)
    }

    fn reclaim(&mut self, unit: u64, most: u64) -> impl Iterator<Item = Symbol> + '_ {
        let most = if self.is_over() { 0 } else { most };
        (0..most).map_while(move |_| {
            let number = self.written_off.pop_first()?;
            let range = self.source(number);
            Some(Symbol {
                unit,
                offset: range.start,
                len: (range.end - range.start) as u32,
            })
        })
    }

    /// Frees its bytes: nothing is sent of it any more.
    pub(super) fn give_up(&mut self, code: Option<u64>) {
        self.given_up = Some(code);
        self.data = Bytes::new();
        self.written_off.clear();
        self.returned = RangeSet::default();
    }
}
