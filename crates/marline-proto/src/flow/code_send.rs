//! The sending side of a coded flow: which source symbols left, what the receiver is known to have
//! of them, and combinations of the rest (RFC 8681).
//!
//! # When a lost symbol is not sent again
//!
//! A source symbol that was lost waits for the code as long as an equation is to be had for it: a
//! repair symbol that combines it and is in flight, or is among the newest that arrived, as many as
//! the receiver has equations to spare. An equation stands in for one symbol. Repair symbols
//! combine all from some symbol on to the newest of their moment, so that those which combine a
//! symbol combine all older ones too, and giving the newest lost symbol its equation first finds
//! one for as many as can have one. What has none is sent again, and so is what waited longer than
//! a status of the receiver takes.
//!
//! # Source and repair symbols
//!
//! A flow is coded if its scheduler asks for it
//! ([`Scheduler::codes`](crate::sched::Scheduler::codes)) and the peer decodes. Then every symbol
//! is a numbered source symbol (a SYMBOL frame instead of STREAM or PACKET). Symbols are numbered
//! in the order in which they leave, because a repair symbol combines only what has left. The coded
//! content includes offset and length, so that a recovered symbol is handled exactly as if it had
//! arrived. A symbol is cut when it leaves, and never again: a retransmission has the number and
//! the bytes of the first transmission, or travels outside the code.
//!
//! A repair symbol is computed when it leaves, over everything that the receiver is not known to
//! have by then, at most 256 symbols; if that is nothing, the repair symbol does not leave. Repair
//! symbols are limited by the flow's repair budget (`flow/code_budget.rs`), whatever the scheduler
//! asks for.
//!
//! What the receiver recovered counts as delivered. If the receiver's CODE_STATUS does not come
//! within a round trip, a lost symbol is sent again. So a code that cannot help costs a round trip,
//! and never a byte.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use marline_base::Instant;
use marline_fec::stream::{Encoder, Limits, Repair};
use smallvec::SmallVec;

use super::code_budget::{Advance, Budget};
use super::shown::Coding;
use super::{Due, SendHalf, Symbol};
use crate::wire::{CODED_LENGTH, CodeStatus, PathId};

/// Repair symbols of a flow that wait for paths, at most: a bound where no path takes any. A
/// choice, not tuned.
const MAX_QUEUED: u32 = 64;
/// Bytes of a content that are not data: its type, and at most three numbers.
const CONTENT_OVERHEAD: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// On its way, as far as is known, or about to be sent again.
    Open,
    /// Lost, and waits for the code until then.
    Waits(Instant),
    /// Lost, and is to be sent again.
    Resent,
    /// The receiver has it.
    Known,
}

/// A source symbol that left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) symbol: Symbol,
    /// It ends its stream.
    pub(crate) fin: bool,
    /// Where and when it left first.
    pub(crate) path: PathId,
    pub(crate) sent: Instant,
    /// Bytes of its content.
    content: u32,
    state: State,
}

/// A repair symbol whose fate is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flying {
    number: u64,
    /// It combines the symbols before this one.
    end: u64,
    pub(crate) path: PathId,
    pub(crate) sent: Instant,
}

/// As what a symbol leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As a source symbol with this number, for the first time.
    New(u64),
    /// As the source symbol of this number, which ended its stream or not.
    Again(u64, bool),
    /// As what it would be in a flow that is not coded.
    Plain,
}

#[derive(Debug)]
pub(crate) struct CodeSend {
    encoder: Encoder,
    limits: Limits,
    /// The symbols in the encoder's window.
    window: VecDeque<Sent>,
    /// Number of the first of them.
    first: u64,
    /// Their numbers, by unit and offset, in ascending order. They leave nearly so, and the window
    /// is short: a tree is slower.
    numbers: VecDeque<((u64, u64), u64)>,
    /// How many of them are not known at the receiver, and how many of these were lost.
    unknown: u32,
    lost: u32,
    /// How many wait for the code.
    waiting: u32,
    flying: VecDeque<Flying>,
    queued: u32,
    /// Repair symbols ever asked for.
    repairs: u64,
    /// Repair symbols that the peer acknowledged.
    arrived: u64,
    /// Those of them that combined what may still be missing, in ascending order of numbers.
    landed: VecDeque<Flying>,
    heard: CodeStatus,
    /// Longest content so far, or of what is about to leave.
    longest: u32,
    budget: Budget,
}

/// The peer spoke of symbols that never left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeverLeft;

impl CodeSend {
    /// For a receiver with these limits; `budget` is the redundancy allowed, bytes of repair
    /// symbols over bytes of source symbols.
    pub(crate) fn new(limits: Limits, budget: f64) -> Self {
        Self {
            encoder: Encoder::new(0, limits),
            limits,
            window: VecDeque::new(),
            first: 0,
            numbers: VecDeque::new(),
            unknown: 0,
            lost: 0,
            waiting: 0,
            flying: VecDeque::new(),
            queued: 0,
            repairs: 0,
            arrived: 0,
            landed: VecDeque::new(),
            heard: CodeStatus::default(),
            longest: 0,
            budget: Budget::new(budget),
        }
    }

    pub(crate) fn set_budget(&mut self, budget: f64) {
        self.budget.set(budget);
    }

    /// A plan begins: it may spend what the session has to lend.
    pub(crate) fn borrow(&mut self, from: &mut Advance) {
        self.budget.borrow(from);
    }

    /// A plan is over: what was borrowed goes back as far as it was not spent, or was earned since.
    pub(crate) fn repay(&mut self, to: &mut Advance) {
        self.budget.repay(to);
    }

    /// The flow ends: what it earned and did not spend is for others.
    pub(crate) fn leave(&mut self, to: &mut Advance) {
        self.budget.repay(to);
        self.budget.leave(to);
    }

    /// Longest piece of a unit that fits a source symbol (bytes).
    pub(crate) fn longest_piece(&self) -> u32 {
        u32::from(self.limits.symbol)
            .saturating_sub(CONTENT_OVERHEAD)
            .max(1)
    }

    /// A fresh piece of this length is about to be queued.
    pub(crate) fn expect(&mut self, len: u32) {
        self.longest = self.longest.max(len + CONTENT_OVERHEAD);
        self.budget.earn(len.into());
    }

    /// The window, for schedulers.
    pub(crate) fn view(&self) -> Coding {
        let flying = self.flying.len() as u32;
        let helped = self.equations() + flying + self.queued;
        Coding {
            window: self.window.len() as u32,
            unknown: self.unknown,
            lost: self.lost,
            missing: self.lost.saturating_sub(helped),
            repairs_in_flight: flying,
            repairs_queued: self.queued,
            budget: self.budget.left(),
        }
    }

    /// Is there anything that the receiver is not known to have?
    pub(crate) fn has_unknown(&self) -> bool {
        self.unknown > 0
    }

    /// Equations about missing symbols that the receiver holds, as far as is known: those that it
    /// spoke of, and one for each repair symbol that arrived after it spoke.
    fn equations(&self) -> u32 {
        let since = self.arrived.saturating_sub(self.heard.repairs);
        (self.heard.equations + since).min(self.limits.window.into()) as u32
    }

    /// Takes a repair symbol's length from the budget, if that allows it.
    pub(crate) fn reserve(&mut self) -> Option<Symbol> {
        let len = self.longest + CODED_LENGTH as u32;
        if self.queued >= MAX_QUEUED || !self.budget.take(len.into()) {
            return None;
        }
        self.queued += 1;
        self.repairs += 1;
        Some(Symbol {
            unit: self.repairs - 1,
            offset: 0,
            len,
        })
    }

    /// A repair symbol that was asked for does not leave after all.
    pub(crate) fn cancel(&mut self, symbol: &Symbol) {
        self.queued -= 1;
        self.budget.give_back(symbol.len.into());
    }

    /// As what the symbol leaves. `source`: nobody sent any of its bytes as a source before.
    pub(crate) fn form(&self, symbol: &Symbol, source: bool) -> Form {
        if source {
            debug_assert!(self.index_of(symbol).is_none(), "it left before");
            return Form::New(self.encoder.window().end);
        }
        let known = self
            .index_of(symbol)
            .map(|index| (index, &self.window[index]));
        match known {
            Some((index, known)) if known.symbol == *symbol => {
                Form::Again(self.first + index as u64, known.fin)
            }
            _ => Form::Plain,
        }
    }

    /// Where in `numbers` the symbol stands that begins where this one does, or would stand.
    fn place(&self, symbol: &Symbol) -> Result<usize, usize> {
        let key = (symbol.unit, symbol.offset);
        // What leaves comes last, and what is settled comes first or is there no longer.
        match (self.numbers.front(), self.numbers.back()) {
            (_, Some((last, _))) if *last < key => Err(self.numbers.len()),
            (Some((first, _)), _) if key < *first => Err(0),
            (Some((first, _)), _) if key == *first => Ok(0),
            _ => self.numbers.binary_search_by_key(&key, |(key, _)| *key),
        }
    }

    /// Where in the window the symbol stands that begins where this one does.
    fn index_of(&self, symbol: &Symbol) -> Option<usize> {
        let place = self.place(symbol).ok()?;
        Some((self.numbers[place].1 - self.first) as usize)
    }

    /// A source symbol with this content leaves for the first time. Returns the symbol that has no
    /// room in the window any more, if it was waiting for the code.
    pub(crate) fn on_source(
        &mut self,
        now: Instant,
        path: PathId,
        symbol: Symbol,
        fin: bool,
        content: &[u8],
    ) -> Option<Symbol> {
        let full = self.window.len() >= usize::from(self.limits.window.max(1));
        let gone = if full { self.pop() } else { None };
        let number = self.encoder.push(content).ok()?;
        self.longest = self.longest.max(content.len() as u32);
        let entry = ((symbol.unit, symbol.offset), number);
        match self.place(&symbol) {
            Ok(place) => self.numbers[place] = entry,
            Err(place) => self.numbers.insert(place, entry),
        }
        self.window.push_back(Sent {
            symbol,
            fin,
            path,
            sent: now,
            content: content.len() as u32,
            state: State::Open,
        });
        self.unknown += 1;
        gone.filter(|gone| matches!(gone.state, State::Waits(_)))
            .map(|gone| gone.symbol)
    }

    /// The symbol of this number leaves again.
    pub(crate) fn on_again(&mut self, number: u64) {
        let index = (number - self.first) as usize;
        if self.window[index].state != State::Known {
            self.set(index, State::Open);
        }
    }

    /// Makes a repair symbol over the window, up to the first symbol that is still on its way when
    /// the repair symbol arrives; `None` if the receiver has all of that. What leaves a full window
    /// can be combined no later, so that of a full one with nothing but that to combine, all is.
    pub(crate) fn repair(&mut self, out: &mut Vec<u8>, due: &Due) -> Option<Repair> {
        if self.unknown == 0 {
            return None;
        }
        let flies = |sent: &&Sent| sent.state == State::Open && !due.is(sent.path, sent.sent);
        let there = self.window.iter().take_while(|sent| !flies(sent));
        let (mut count, mut unknown) = (0, false);
        for sent in there {
            count += 1;
            unknown |= sent.state != State::Known;
        }
        let full = self.window.len() >= usize::from(self.limits.window);
        if unknown {
            let combined = self.first..self.first + count;
            self.encoder.repair_of(combined, out)
        } else if full {
            self.encoder.repair(out)
        } else {
            None
        }
    }

    /// Number of the first symbol that a repair symbol would combine now, and the bytes of its
    /// payload.
    pub(crate) fn next_repair(&self) -> (u64, usize) {
        let longest = self.window.iter().map(|sent| sent.content).max();
        (self.first, longest.unwrap_or(0) as usize + CODED_LENGTH)
    }

    /// Bytes that a content may have.
    pub(crate) fn longest_content(&self) -> usize {
        self.limits.symbol.into()
    }

    /// The repair symbol that was `asked` for left, with a payload of `len` bytes.
    pub(crate) fn on_repair(
        &mut self,
        now: Instant,
        path: PathId,
        asked: &Symbol,
        (repair, len): (&Repair, u32),
    ) {
        self.queued -= 1;
        self.budget.give_back(asked.len.saturating_sub(len).into());
        self.flying.push_back(Flying {
            number: asked.unit,
            end: repair.symbols().end,
            path,
            sent: now,
        });
    }

    pub(crate) fn on_repair_acked(&mut self, number: u64) {
        self.arrived += 1;
        let Some(index) = self.flying.iter().position(|f| f.number == number) else {
            return;
        };
        let at = self.landed.partition_point(|f| f.number < number);
        if let Some(repair) = self.flying.remove(index) {
            self.landed.insert(at, repair);
        }
        let first = self.first;
        let window = usize::from(self.limits.window);
        while self.landed.len() > window || self.landed.front().is_some_and(|f| f.end <= first) {
            self.landed.pop_front();
        }
    }

    pub(crate) fn on_repair_lost(&mut self, number: u64) {
        self.flying.retain(|f| f.number != number);
    }

    /// A symbol was acknowledged, or is not worth sending any more.
    pub(crate) fn on_settled(&mut self, symbol: &Symbol, send: &SendHalf) {
        if let Some(index) = self.index_of(symbol)
            && send.is_settled(&self.window[index].symbol)
        {
            self.set(index, State::Known);
        }
        self.release(send);
    }

    /// Lets go of the oldest symbols that the receiver has.
    pub(crate) fn release(&mut self, send: &SendHalf) {
        while let Some(front) = self.window.front()
            && (front.state == State::Known || send.is_settled(&front.symbol))
        {
            self.pop();
        }
        self.encoder.release_before(self.first);
    }

    fn pop(&mut self) -> Option<Sent> {
        let front = *self.window.front()?;
        self.set(0, State::Known);
        self.window.pop_front();
        self.first += 1;
        if let Ok(place) = self.place(&front.symbol) {
            self.numbers.remove(place);
        }
        Some(front)
    }

    fn set(&mut self, index: usize, state: State) {
        let entry = &mut self.window[index];
        let before = core::mem::replace(&mut entry.state, state);
        let counts = |state| {
            let lost = matches!(state, State::Waits(_) | State::Resent);
            let waits = matches!(state, State::Waits(_));
            [state != State::Known, lost, waits].map(u32::from)
        };
        let (old, new) = (counts(before), counts(state));
        for (count, (old, new)) in [&mut self.unknown, &mut self.lost, &mut self.waiting]
            .into_iter()
            .zip(old.into_iter().zip(new))
        {
            *count = *count + new - old;
        }
    }

    /// The symbol was lost, and nothing else brings it. Does it wait for the code, `until` then at
    /// the latest? If so, an older one may have to [give up](Self::give_up). `soon`: will a repair
    /// symbol in flight arrive before the symbol would, sent again?
    pub(crate) fn waits(
        &mut self,
        symbol: &Symbol,
        until: Instant,
        soon: impl Fn(&Flying) -> bool,
    ) -> bool {
        let Some(index) = self.index_of(symbol) else {
            return false;
        };
        if self.window[index].symbol != *symbol || self.window[index].state == State::Known {
            return false;
        }
        self.set(index, State::Waits(until));
        let left_out = self.without_equation(soon);
        let waits = !left_out.contains(&index);
        if !waits {
            self.set(index, State::Resent);
        }
        waits
    }

    /// Symbols that waited for the code and have to be sent again: no equation is left for them, or
    /// they waited too long.
    pub(crate) fn give_up(
        &mut self,
        now: Instant,
        soon: impl Fn(&Flying) -> bool,
    ) -> SmallVec<[Symbol; 4]> {
        let mut gone = SmallVec::new();
        if self.waiting == 0 {
            return gone;
        }
        let left_out = self.without_equation(soon);
        for index in 0..self.window.len() {
            if let State::Waits(until) = self.window[index].state
                && (until <= now || left_out.contains(&index))
            {
                gone.push(self.window[index].symbol);
                self.set(index, State::Resent);
            }
        }
        gone
    }

    /// Places of the symbols that wait for the code and for which there is no equation.
    fn without_equation(&self, soon: impl Fn(&Flying) -> bool) -> SmallVec<[usize; 8]> {
        let mut left_out = SmallVec::new();
        let mut free = 0_u32;
        // Newer repair symbols end later. The oldest that landed were spent first.
        let held = self.landed.iter().rev().take(self.equations() as usize);
        let mut held = held.peekable();
        let mut flying = self.flying.iter().rev().filter(|f| soon(f)).peekable();
        for (index, entry) in self.window.iter().enumerate().rev() {
            let combines = |f: &&Flying| f.end > self.first + index as u64;
            while held.next_if(combines).is_some() || flying.next_if(combines).is_some() {
                free += 1;
            }
            if !matches!(entry.state, State::Waits(_)) {
                continue;
            }
            match free.checked_sub(1) {
                Some(left) => free = left,
                None => left_out.push(index),
            }
        }
        left_out
    }

    /// When the first symbol has waited long enough for the code.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.waiting == 0 {
            return None;
        }
        let waits = self.window.iter().filter_map(|entry| match entry.state {
            State::Waits(until) => Some(until),
            _ => None,
        });
        waits.min()
    }

    /// The receiver said how far it is. Returns what it is now known to have.
    ///
    /// # Errors
    /// It spoke of symbols that never left.
    pub(crate) fn on_status(
        &mut self,
        status: &CodeStatus,
    ) -> Result<SmallVec<[Sent; 4]>, NeverLeft> {
        let asked = self.repairs - u64::from(self.queued);
        if status.next > self.encoder.window().end || status.repairs > asked {
            return Err(NeverLeft);
        }
        let heard = &self.heard;
        let old = status.next < heard.next || status.repairs < heard.repairs;
        let mut known = SmallVec::new();
        if old || status.recovered < heard.recovered {
            return Ok(known);
        }
        self.heard = *status;
        let until = status.next.saturating_sub(self.first) as usize;
        for index in 0..until.min(self.window.len()) {
            if self.window[index].state != State::Known {
                known.push(self.window[index]);
                self.set(index, State::Known);
            }
        }
        Ok(known)
    }

    /// Repair symbols that recovered something at the peer, and those that came for nothing.
    pub(crate) fn worth(&self) -> (u64, u64) {
        let spent = self.heard.recovered + self.heard.equations;
        let wasted = self.heard.repairs.saturating_sub(spent);
        (self.heard.recovered, wasted)
    }
}

#[cfg(test)]
mod tests;
