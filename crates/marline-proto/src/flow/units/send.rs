//! The sending half of a flow of units.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use bytes::Bytes;
use marline_base::{Duration, Instant};

use super::object_table::Objects;
use super::order::{Order, Place};
use super::outgoing::Outgoing;
use super::{Fate, UNIT_COST};
use crate::flow::{SendError, Symbol};
use crate::wire::{BlockHeading, FlowId, FlowKind, MAX_UNIT, Params, UnitCancel, Verdict};

/// What a block is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockTerms {
    /// It is late when it arrives later than this after it was written; `None`: never.
    pub deadline: Option<Duration>,
    /// Probability, 0..=1, with which the deadline should be kept. Schedulers that promise
    /// something mind it; more than 0.99999 counts as that, because nothing is certain.
    pub reliability: Option<f64>,
}

/// Urgency of blocks, and of objects that say none.
pub(super) const COMMON_URGENCY: u8 = 3;

/// What the sending half must keep to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes that it holds, with [`UNIT_COST`] for each unit.
    pub(crate) buffer: u64,
    /// Longest unit (bytes, heading included) that both sides take.
    pub(crate) longest: u64,
    /// The first credit.
    pub(crate) credit: u64,
    /// So far may the numbers of unsettled units lie apart.
    pub(crate) span: u64,
    /// Repair symbols of one unit.
    pub(crate) repairs: u64,
}

impl Limits {
    pub(crate) fn new(buffer: u64, peer: &Params) -> Self {
        let credit = peer.unit_data();
        // Credit comes back in steps of a quarter of the first (docs/PROTOCOL.md), so that what is
        // missing of a step may be missing for ever: a longer unit would wait for it.
        let renewed = credit - credit / 4;
        let longest = renewed.min(peer.max_data).min(buffer);
        Self {
            buffer,
            longest: longest.saturating_sub(UNIT_COST).min(MAX_UNIT),
            credit,
            span: peer.max_units,
            repairs: peer.max_repairs,
        }
    }
}

/// Whose fate became known: a block or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settlement {
    pub(crate) number: u64,
    pub(crate) fate: Fate,
    pub(crate) written: Instant,
    /// When it was whole, by the receiver's clock (microseconds).
    pub(crate) whole_us: Option<u64>,
}

/// What the session has to do after something happened.
#[derive(Debug, Default)]
pub(crate) struct Todo {
    /// Units whose UNIT_CANCEL is due.
    pub(crate) cancels: Vec<u64>,
    /// Symbols to be sent again.
    pub(crate) again: Vec<Symbol>,
    /// Units that are settled, as schedulers know them, and what the application hears of.
    pub(crate) units: Vec<(u64, Fate)>,
    pub(crate) settled: Vec<Settlement>,
}

impl Todo {
    pub(crate) fn is_empty(&self) -> bool {
        self.cancels.is_empty()
            && self.again.is_empty()
            && self.units.is_empty()
            && self.settled.is_empty()
    }
}

#[derive(Debug)]
pub(crate) struct UnitsSend {
    pub(super) kind: FlowKind,
    pub(super) limits: Limits,
    /// Until their fates are known.
    pub(super) units: BTreeMap<u64, Outgoing>,
    /// Units ever written.
    pub(super) count: u64,
    pub(super) order: Order,
    /// Units that were cut whole and are not settled.
    pub(super) emitted: BTreeSet<u64>,
    pub(super) objects: Objects,
    /// Bytes that wait to be cut in units that are in `order`.
    pub(super) unsent: u64,
    held: u64,
    /// Bytes that the session has memory for.
    most: u64,
    credit: u64,
    spent: u64,
    deadlines: BTreeSet<(Instant, u64)>,
    finished: bool,
    finish_acked: bool,
    pub(super) todo: Todo,
}

impl UnitsSend {
    pub(crate) fn new(kind: FlowKind, limits: Limits) -> Self {
        Self {
            kind,
            limits,
            units: BTreeMap::new(),
            count: 0,
            order: Order::default(),
            emitted: BTreeSet::new(),
            objects: Objects::default(),
            unsent: 0,
            held: 0,
            most: u64::MAX,
            credit: limits.credit,
            spent: 0,
            deadlines: BTreeSet::new(),
            finished: false,
            finish_acked: false,
            todo: Todo::default(),
        }
    }

    /// Units ever written.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of units that are not settled, with what each costs besides.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    pub(crate) fn has_room(&self, most: u64) -> bool {
        self.held < self.bound(most) / 2
    }

    /// Bytes that it may hold where the session has memory for `most`. Without a unit it takes one
    /// more anyway, also of an object that is open: nothing would be settled that made room.
    fn bound(&self, most: u64) -> u64 {
        match self.units.is_empty() {
            true => self.limits.buffer,
            false => self.limits.buffer.min(most),
        }
    }

    /// Sets the bytes that the session has memory for.
    pub(crate) fn allow(&mut self, most: u64) {
        self.most = most;
    }

    /// Longest unit that is ever taken, besides a heading of `heading` bytes.
    pub(crate) fn longest(&self, heading: usize) -> u64 {
        self.limits.longest.saturating_sub(heading as u64)
    }

    pub(super) fn hold(&mut self, bytes: u64) {
        self.held += bytes;
    }

    pub(super) fn release(&mut self, bytes: u64) {
        self.held -= bytes;
    }

    /// Holds at most so many bytes from now on, if that is less.
    pub(crate) fn limit(&mut self, bytes: u64) {
        self.limits.buffer = self.limits.buffer.min(bytes);
    }

    /// May units with so many bytes in all, headings included, be written now?
    pub(crate) fn check_room(&self, units: u64, bytes: u64) -> Result<(), SendError> {
        if self.finished {
            return Err(SendError::Closed);
        }
        if self.held + bytes + units * UNIT_COST > self.bound(self.most) {
            return Err(SendError::Full);
        }
        Ok(())
    }

    /// Takes a block whose bytes follow its heading in `data`, and returns its number.
    pub(crate) fn write_block(
        &mut self,
        now: Instant,
        data: &[u8],
        heading: BlockHeading,
        terms: BlockTerms,
    ) -> Result<u64, SendError> {
        let mut unit = Vec::with_capacity(8 + data.len());
        heading.encode(&mut unit);
        unit.extend_from_slice(data);
        self.check_room(1, unit.len() as u64)?;
        let number = self.push(now, Bytes::from(unit), None, COMMON_URGENCY);
        if let Some(unit) = self.units.get_mut(&number) {
            unit.reliability = terms.reliability;
            unit.deadline = terms.deadline.map(|deadline| now + deadline);
            if let Some(at) = unit.deadline {
                self.deadlines.insert((at, number));
            }
        }
        self.offer(number);
        Ok(number)
    }

    /// Takes a unit, of object `tag` or a block, that [`check_room`](Self::check_room) allows. It
    /// is sent once it is offered.
    pub(super) fn push(&mut self, now: Instant, data: Bytes, tag: Option<u64>, urgency: u8) -> u64 {
        let number = self.count;
        self.count += 1;
        self.held += data.len() as u64 + UNIT_COST;
        let place = Place {
            urgency,
            turn: self.order.turn(),
            unit: number,
        };
        let unit = Outgoing::new(now, data, tag.unwrap_or(number), place);
        self.units.insert(number, unit);
        number
    }

    /// The unit may be sent from now on, or again has something to be cut.
    pub(super) fn offer(&mut self, number: u64) {
        if let Some(unit) = self.units.get(&number)
            && unit.uncut() > 0
            && !self.order.contains(number)
        {
            self.order.insert(unit.place, unit.has_begun());
            self.emitted.remove(&number);
            self.unsent += unit.uncut();
        }
    }

    /// The unit is not to be cut for now, or never again.
    pub(super) fn withdraw(&mut self, number: u64) {
        if let Some(unit) = self.units.get(&number)
            && self.order.contains(number)
        {
            self.order.remove(unit.place);
            self.unsent -= unit.uncut();
        }
    }

    /// The unit whose symbol is next, if credit suffices; `credit` is the session's.
    pub(super) fn next(&self, credit: u64) -> Option<u64> {
        if self.order.is_empty() {
            return None;
        }
        let credit = credit.min(self.credit - self.spent);
        let base = self.units.keys().next().copied().unwrap_or(self.count);
        self.order.next(|number| {
            let Some(unit) = self.units.get(&number) else {
                return false;
            };
            let affords = unit.size() + UNIT_COST <= credit;
            unit.has_begun() || (affords && number - base < self.limits.span)
        })
    }

    /// Length of the next symbol of at most `max` bytes.
    pub(crate) fn next_len(&self, max: u32, credit: u64) -> Option<u32> {
        let unit = self.units.get(&self.next(credit)?)?;
        unit.next_len(max)
    }

    /// Cuts the next symbol, of at most `max` bytes.
    pub(crate) fn cut(&mut self, max: u32, credit: u64) -> Option<Symbol> {
        let number = self.next(credit)?;
        self.withdraw(number);
        let unit = self.units.get_mut(&number)?;
        if !unit.has_begun() {
            self.spent += unit.size() + UNIT_COST;
        }
        let symbol = unit.cut(number, max)?;
        let (tag, is_whole) = (unit.tag, unit.uncut() == 0);
        if is_whole {
            self.emitted.insert(number);
            self.offer_following(tag, number);
        } else {
            if self.objects.is_incremental(tag) {
                unit.place.turn = self.order.turn();
            }
            self.offer(number);
        }
        // Whoever was the oldest until now counts.
        self.order.on_cut(number);
        Some(symbol)
    }

    /// Credit that units took so far.
    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }

    pub(crate) fn raise_credit(&mut self, credit: u64) -> bool {
        let more = credit > self.credit;
        self.credit = self.credit.max(credit);
        more
    }

    /// Takes back source symbols that were queued and have not left.
    pub(crate) fn give_back(&mut self, symbols: impl IntoIterator<Item = Symbol>) {
        for symbol in symbols {
            self.withdraw(symbol.unit);
            if let Some(unit) = self.units.get_mut(&symbol.unit)
                && !unit.is_over()
            {
                unit.give_back(&symbol);
            }
            self.offer(symbol.unit);
        }
        self.order.on_taken_back();
    }

    /// Emits a repair symbol of a unit, of at most `max` bytes.
    pub(crate) fn repair(&mut self, number: u64, max: u32) -> Option<Symbol> {
        let most = self.limits.repairs;
        let unit = self.units.get_mut(&number)?;
        (unit.spare(most, max) > 0).then(|| unit.repair(number))
    }

    /// Need the symbol not be sent (again)?
    pub(crate) fn is_settled(&self, symbol: &Symbol) -> bool {
        let unit = self.units.get(&symbol.unit);
        unit.is_none_or(|unit| unit.is_settled(symbol))
    }

    pub(crate) fn trim(&self, symbol: Symbol) -> Symbol {
        let unit = self.units.get(&symbol.unit);
        unit.map_or(symbol, |unit| unit.trim(symbol))
    }

    /// Makes the bytes of a repair symbol that is about to leave.
    pub(crate) fn prepare(&mut self, symbol: &Symbol) {
        if let Some(unit) = self.units.get_mut(&symbol.unit) {
            unit.prepare(symbol);
        }
    }

    pub(crate) fn bytes(&self, symbol: &Symbol) -> Cow<'_, [u8]> {
        let unit = self.units.get(&symbol.unit);
        unit.map_or(Cow::Borrowed(&[]), |unit| unit.bytes(symbol))
    }

    /// Bytes of the whole unit, and the symbol's index if it is a repair symbol.
    pub(crate) fn frame_of(&self, symbol: &Symbol) -> Option<(u64, Option<u16>)> {
        let unit = self.units.get(&symbol.unit)?;
        Some((unit.size(), unit.repair_index(symbol)))
    }

    /// A symbol left; `fresh`: for the first time.
    pub(crate) fn on_left(&mut self, symbol: &Symbol, fresh: bool) {
        if let Some(unit) = self.units.get_mut(&symbol.unit) {
            unit.on_left(symbol);
            if fresh {
                self.order.on_left(symbol.unit);
            }
        }
    }

    /// Notes an acknowledged symbol; returns how many bytes were not acknowledged before.
    pub(crate) fn on_acked(&mut self, symbol: &Symbol) -> u64 {
        let Some(unit) = self.units.get_mut(&symbol.unit) else {
            return 0;
        };
        let new = unit.on_acked(symbol);
        self.give_up_if_hopeless(symbol.unit);
        new
    }

    /// A transmission of a symbol was lost. Of an expired unit that may mean the end; lost repair
    /// symbols make others due.
    pub(crate) fn on_lost(&mut self, symbol: &Symbol) {
        let Some(unit) = self.units.get_mut(&symbol.unit) else {
            return;
        };
        unit.on_landed();
        self.on_dropped(symbol);
        self.give_up_if_hopeless(symbol.unit);
    }

    /// A repair symbol, if it is one, is not counted on any more.
    pub(crate) fn on_dropped(&mut self, symbol: &Symbol) {
        if let Some(unit) = self.units.get_mut(&symbol.unit)
            && let Some(index) = unit.repair_index(symbol)
        {
            let again = unit.on_repair_lost(symbol.unit, index);
            self.todo.again.extend(again);
        }
    }

    /// Do repair symbols make up for a source symbol that was lost and that nothing else brings?
    pub(crate) fn write_off(&mut self, symbol: &Symbol) -> bool {
        let unit = self.units.get_mut(&symbol.unit);
        unit.is_some_and(|unit| unit.write_off(symbol))
    }

    /// When the next deadline is over.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Stops sending blocks whose deadline is over; returns them.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<u64> {
        let mut expired = Vec::new();
        while let Some(&(at, number)) = self.deadlines.first() {
            if at > now {
                break;
            }
            expired.push(number);
            self.deadlines.pop_first();
            self.withdraw(number);
            if let Some(unit) = self.units.get_mut(&number) {
                unit.expired = true;
                self.emitted.remove(&number);
            }
            self.give_up_if_hopeless(number);
        }
        expired
    }

    /// Gives up a unit whose deadline is over, once nothing is on its way that could complete it.
    fn give_up_if_hopeless(&mut self, number: u64) {
        if let Some(unit) = self.units.get(&number)
            && unit.expired
            && unit.given_up.is_none()
            && !unit.flies()
            && !unit.has_enough()
        {
            self.give_up(number, None);
        }
    }

    /// Sends no more of a unit; its receiver is informed, and says what became of it.
    pub(super) fn give_up(&mut self, number: u64, code: Option<u64>) {
        self.withdraw(number);
        let Some(unit) = self.units.get_mut(&number) else {
            return;
        };
        if unit.given_up.is_some() {
            return;
        }
        unit.give_up(code);
        self.held -= unit.size();
        self.emitted.remove(&number);
        if let Some(at) = unit.deadline {
            self.deadlines.remove(&(at, number));
        }
        self.todo.cancels.push(number);
    }

    /// Cancels a block. Whether there was one to cancel.
    pub(crate) fn cancel_block(&mut self, number: u64, code: u64) -> bool {
        let open = self.units.get(&number);
        let open = open.is_some_and(|unit| unit.given_up.is_none());
        if open {
            self.give_up(number, Some(code));
        }
        open
    }

    /// The frame that gives a unit up; `None` once its fate is known.
    pub(crate) fn cancel_frame(&self, flow: FlowId, number: u64) -> Option<UnitCancel> {
        let unit = self.units.get(&number)?;
        Some(UnitCancel {
            flow,
            unit: number,
            size: if unit.has_begun() { unit.size() } else { 0 },
            code: unit.given_up?,
        })
    }

    /// The receiver says what became of a unit. False if it cannot be.
    pub(crate) fn on_verdict(&mut self, number: u64, verdict: Verdict) -> bool {
        if number >= self.count {
            return false;
        }
        let Some(unit) = self.units.get_mut(&number) else {
            return true;
        };
        let (fate, whole_us) = match verdict {
            Verdict::OnTime(at) => (Fate::OnTime, Some(at)),
            Verdict::Late(at) => (Fate::Late, Some(at)),
            Verdict::Refused(code) => (Fate::Refused(code), None),
            Verdict::GivenUp => match unit.given_up {
                Some(None) => (Fate::Lost, None),
                Some(Some(code)) => (Fate::Cancelled(code), None),
                None => return false,
            },
            Verdict::Short => {
                self.todo.again.extend(unit.on_short(number));
                if unit.expired {
                    self.give_up(number, None);
                }
                return true;
            }
        };
        self.settle(number, fate, whole_us);
        true
    }

    fn settle(&mut self, number: u64, fate: Fate, whole_us: Option<u64>) {
        self.withdraw(number);
        let Some(unit) = self.units.remove(&number) else {
            return;
        };
        self.emitted.remove(&number);
        if let Some(at) = unit.deadline {
            self.deadlines.remove(&(at, number));
        }
        self.held -= UNIT_COST;
        if unit.given_up.is_none() {
            self.held -= unit.size();
        }
        self.todo.units.push((number, fate));
        match self.kind {
            FlowKind::Objects => self.on_piece_settled(number, unit.tag, fate, whole_us),
            _ => self.todo.settled.push(Settlement {
                number,
                fate,
                written: unit.written,
                whole_us,
            }),
        }
    }

    /// Units whose UNIT_CANCEL is due.
    pub(crate) fn take_cancels(&mut self) -> Vec<u64> {
        core::mem::take(&mut self.todo.cancels)
    }

    /// What the session has to do.
    pub(crate) fn take_todo(&mut self) -> Todo {
        core::mem::take(&mut self.todo)
    }

    /// Nothing more will be written.
    pub(crate) fn finish(&mut self) {
        self.end_objects();
        self.finished = true;
    }

    /// May the receiver learn how many units there were? Only once all are settled: to give an
    /// object up takes another unit.
    pub(crate) fn is_finish_due(&self) -> bool {
        self.finished && self.units.is_empty() && self.objects.is_empty()
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.finished
    }

    pub(crate) fn on_finish_acked(&mut self) {
        self.finish_acked = true;
    }

    pub(crate) fn is_done(&self) -> bool {
        self.finish_acked
    }

    /// Forgets everything: the flow was reset.
    pub(crate) fn abandon(&mut self) {
        let (kind, limits) = (self.kind, self.limits);
        let (count, spent, credit) = (self.count, self.spent, self.credit);
        *self = Self {
            count,
            spent,
            credit,
            finished: true,
            finish_acked: true,
            ..Self::new(kind, limits)
        };
    }
}
