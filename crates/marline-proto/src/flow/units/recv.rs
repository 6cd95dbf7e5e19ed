//! The receiving half of a flow of units.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use bytes::Bytes;
use marline_base::Instant;

use super::arriving::{Arriving, Progress};
use super::assembly::{Assembly, Placed, UnitPiece};
use super::error::UnitError;
use super::{Fate, UNIT_COST};
use crate::flow::grant::Grant;
use crate::ranges::RangeSet;
use crate::wire::{
    BlockHeading, FlowKind, ObjectHeading, UnitCancel, UnitData, UnitRepair, Verdict,
};

/// Units that will not come, kept for an application that does not read; the oldest go.
const MOST_GONE: usize = 4_096;

/// What a flow of units has for its application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A block, or the next piece of an object.
    Piece(UnitPiece),
    /// A block or object will not come (any more).
    Gone {
        /// Its number.
        number: u64,
        /// Why not.
        fate: Fate,
    },
    /// Nothing now.
    Blocked,
    /// The peer finished and everything was read.
    Finished,
    /// The peer gave the flow up, with this code.
    Reset(u64),
}

#[derive(Debug)]
enum Ready {
    /// With the credit that it gives back.
    Piece(UnitPiece, u64),
    Gone(u64, Fate),
}

#[derive(Debug)]
pub(crate) struct UnitsRecv {
    kind: FlowKind,
    window: u64,
    /// Each unit takes [`UNIT_COST`] besides its bytes.
    grant: Grant,
    span: u64,
    most_repairs: u64,
    arriving: BTreeMap<u64, Arriving>,
    done: RangeSet,
    objects: Assembly,
    ready: VecDeque<Ready>,
    /// How many of these are units that will not come.
    gone: usize,
    /// What the sender is not known to have heard.
    verdicts: BTreeMap<u64, Verdict>,
    /// Units with as many symbols as they have that do not suffice; the sender is to hear of it.
    short: BTreeSet<u64>,
    /// Units whose verdict is to be reported, and credit that came back, since the session asked.
    due: Vec<u64>,
    freed: u64,
    drop_late: bool,
    end: Option<u64>,
    reset: Option<u64>,
    /// This side gave the flow up, with this code.
    failed: Option<u64>,
    discarding: bool,
    pub(crate) delivered: u64,
    pub(crate) late: u64,
    pub(crate) lost: u64,
    pub(crate) rebuilt_symbols: u64,
}

impl UnitsRecv {
    /// Of blocks or objects, with a window of so many bytes; numbers of units that are not settled
    /// may lie `span` apart, and a unit has at most `most_repairs` repair symbols.
    pub(crate) fn new(kind: FlowKind, window: u64, span: u64, most_repairs: u64) -> Self {
        Self {
            kind,
            window,
            grant: Grant::new(window),
            span,
            most_repairs,
            arriving: BTreeMap::new(),
            done: RangeSet::default(),
            objects: Assembly::default(),
            ready: VecDeque::new(),
            gone: 0,
            verdicts: BTreeMap::new(),
            short: BTreeSet::new(),
            due: Vec::new(),
            freed: 0,
            drop_late: false,
            end: None,
            reset: None,
            failed: None,
            discarding: false,
            delivered: 0,
            late: 0,
            lost: 0,
            rebuilt_symbols: 0,
        }
    }

    /// Below it every unit is settled.
    fn floor(&self) -> u64 {
        self.done.end_of(0).unwrap_or(0)
    }

    /// The unit of this number and size; `None` if it is settled.
    fn unit(&mut self, number: u64, size: u64) -> Result<Option<&mut Arriving>, UnitError> {
        if self.done.contains(number) || self.is_given_up() {
            return Ok(None);
        }
        if self.end.is_some_and(|end| number >= end) {
            return Err(UnitError::Contradiction);
        }
        if number - self.floor() >= self.span {
            return Err(UnitError::Span);
        }
        if !self.arriving.contains_key(&number) {
            self.take(size)?;
            self.arriving.insert(number, Arriving::new(size));
        }
        let unit = self.arriving.get_mut(&number);
        match unit {
            Some(unit) if unit.size() == size => Ok(Some(unit)),
            _ => Err(UnitError::Contradiction),
        }
    }

    fn take(&mut self, size: u64) -> Result<(), UnitError> {
        let allowed = self.grant.take(size + UNIT_COST);
        allowed.then_some(()).ok_or(UnitError::Credit)
    }

    fn give_back(&mut self, size: u64) {
        self.grant.give_back(size + UNIT_COST);
        self.freed += size + UNIT_COST;
    }

    /// Takes bytes of a unit. Returns how much credit was taken with that.
    pub(crate) fn receive(&mut self, now: Instant, frame: &UnitData<'_>) -> Result<u64, UnitError> {
        let before = self.grant.taken();
        let progress = match self.unit(frame.unit, frame.size)? {
            Some(unit) => unit.take_data(frame.offset, frame.data)?,
            None => return Ok(0),
        };
        self.on_progress(now, frame.unit, progress)?;
        Ok(self.grant.taken() - before)
    }

    /// Takes a repair symbol of a unit. Returns how much credit was taken with that.
    pub(crate) fn repair(
        &mut self,
        now: Instant,
        frame: &UnitRepair<'_>,
    ) -> Result<u64, UnitError> {
        if u64::from(frame.index) >= self.most_repairs {
            return Err(UnitError::Repairs);
        }
        let before = self.grant.taken();
        let progress = match self.unit(frame.unit, frame.size)? {
            Some(unit) => unit.take_repair(frame.index, frame.data)?,
            None => return Ok(0),
        };
        self.on_progress(now, frame.unit, progress)?;
        Ok(self.grant.taken() - before)
    }

    fn on_progress(
        &mut self,
        now: Instant,
        number: u64,
        progress: Progress,
    ) -> Result<(), UnitError> {
        match progress {
            Progress::Incomplete => {
                if self.kind == FlowKind::Objects {
                    self.refuse_early(number);
                }
                Ok(())
            }
            Progress::Short => {
                self.short.insert(number);
                Ok(())
            }
            Progress::Whole(data) => {
                if let Some(unit) = self.arriving.remove(&number) {
                    self.rebuilt_symbols += u64::from(unit.repaired);
                }
                let data = Bytes::from(data);
                let verdict = match self.kind {
                    FlowKind::Objects => self.on_piece(now, data)?,
                    _ => self.on_block(now, number, data)?,
                };
                self.finish_unit(number, verdict)
            }
        }
    }

    /// A unit of an object that the application refused need not come whole.
    fn refuse_early(&mut self, number: u64) {
        let Some(unit) = self.arriving.get(&number) else {
            return;
        };
        if let Ok((heading, _)) = ObjectHeading::decode(unit.beginning())
            && let Some(code) = self.objects.refused(heading.object)
            && !matches!(heading.piece, crate::wire::Piece::Cancelled(_))
            && let Some(unit) = self.arriving.remove(&number)
        {
            self.give_back(unit.size());
            // There is room: a unit that arrives lies within the span.
            let _ = self.finish_unit(number, Verdict::Refused(code));
        }
    }

    fn on_block(&mut self, now: Instant, number: u64, data: Bytes) -> Result<Verdict, UnitError> {
        let size = data.len() as u64;
        let heading = BlockHeading::decode(&data);
        let (heading, len) = heading.map_err(|_| UnitError::Contradiction)?;
        let at = now.as_micros();
        if self.discarding {
            self.give_back(size);
            return Ok(Verdict::Refused(0));
        }
        let late = heading.deadline_us > 0 && at > heading.deadline_us;
        self.delivered += 1;
        self.late += u64::from(late);
        if !late || !self.drop_late {
            let piece = UnitPiece {
                number,
                offset: 0,
                total: Some(size - len as u64),
                data: data.slice(len..),
                last: true,
                late,
            };
            self.ready.push_back(Ready::Piece(piece, size));
        } else {
            self.give_back(size);
        }
        Ok(if late {
            Verdict::Late(at)
        } else {
            Verdict::OnTime(at)
        })
    }

    fn on_piece(&mut self, now: Instant, data: Bytes) -> Result<Verdict, UnitError> {
        let size = data.len() as u64;
        let heading = ObjectHeading::decode(&data);
        let (heading, len) = heading.map_err(|_| UnitError::Contradiction)?;
        if self.discarding {
            self.give_back(size);
            return Ok(Verdict::Refused(0));
        }
        let payload = data.slice(len..);
        let placed = self.objects.place(&heading, payload, size, self.span)?;
        let at = Verdict::OnTime(now.as_micros());
        match placed {
            Placed::Held => Ok(at),
            Placed::Pieces(pieces) => {
                for (piece, size) in pieces {
                    self.delivered += u64::from(piece.last);
                    self.ready.push_back(Ready::Piece(piece, size));
                }
                Ok(at)
            }
            Placed::Unwanted(code) => {
                self.give_back(size);
                Ok(Verdict::Refused(code))
            }
            Placed::Cancelled {
                code,
                dropped,
                is_new,
            } => {
                for size in dropped {
                    self.give_back(size);
                }
                self.give_back(size);
                if is_new {
                    self.lost += 1;
                    self.tell(heading.object, Fate::Cancelled(code));
                }
                Ok(at)
            }
        }
    }

    fn tell(&mut self, number: u64, fate: Fate) {
        self.ready.push_back(Ready::Gone(number, fate));
        self.gone += 1;
        if self.gone > MOST_GONE
            && let Some(oldest) = self.ready.iter().position(|r| matches!(r, Ready::Gone(..)))
        {
            self.ready.remove(oldest);
            self.gone -= 1;
        }
    }

    /// The sender gives a unit up. Returns how much credit was taken with that.
    pub(crate) fn cancel(&mut self, cancel: &UnitCancel) -> Result<u64, UnitError> {
        let number = cancel.unit;
        // What had arrived of a flow that was given up has been counted, and the rest is when its
        // reset comes.
        if self.done.contains(number) || self.is_given_up() {
            return Ok(0);
        }
        if self.end.is_some_and(|end| number >= end) {
            return Err(UnitError::Contradiction);
        }
        if number - self.floor() >= self.span {
            return Err(UnitError::Span);
        }
        let before = self.grant.taken();
        match self.arriving.remove(&number) {
            Some(unit) if unit.size() == cancel.size => self.give_back(unit.size()),
            Some(_) => return Err(UnitError::Contradiction),
            None if cancel.size > 0 => {
                self.take(cancel.size)?;
                self.give_back(cancel.size);
            }
            None => {}
        }
        if self.kind == FlowKind::Blocks && !self.discarding {
            self.lost += 1;
            let fate = cancel.code.map_or(Fate::Lost, Fate::Cancelled);
            self.tell(number, fate);
        }
        self.finish_unit(number, Verdict::GivenUp)?;
        Ok(self.grant.taken() - before)
    }

    fn finish_unit(&mut self, number: u64, verdict: Verdict) -> Result<(), UnitError> {
        self.done.insert(number..number + 1);
        self.short.remove(&number);
        if self.done.len() as u64 > self.span {
            return Err(UnitError::Span);
        }
        self.judge(number, verdict);
        Ok(())
    }

    fn judge(&mut self, number: u64, verdict: Verdict) {
        self.verdicts.insert(number, verdict);
        self.due.push(number);
        // A sender that used this number has heard of those that lie so far behind it.
        let forgotten = number.saturating_sub(self.span);
        while let Some(first) = self.verdicts.first_entry()
            && *first.key() < forgotten
        {
            first.remove();
        }
    }

    /// What is to be said of a unit; `None` if the sender knows.
    pub(crate) fn verdict(&self, number: u64) -> Option<Verdict> {
        self.verdicts.get(&number).copied()
    }

    /// The sender has heard it.
    pub(crate) fn on_verdict_heard(&mut self, number: u64) {
        self.verdicts.remove(&number);
    }

    /// Is the sender to hear that a unit needs more symbols?
    pub(crate) fn is_short(&self, number: u64) -> bool {
        self.short.contains(&number)
    }

    /// The sender has heard it.
    pub(crate) fn on_short_heard(&mut self, number: u64) {
        self.short.remove(&number);
    }

    /// Units that need more symbols than they should.
    pub(crate) fn shorts(&self) -> impl Iterator<Item = u64> + '_ {
        self.short.iter().copied()
    }

    /// Units of which something is to be said, since the last call.
    pub(crate) fn take_due(&mut self) -> Vec<u64> {
        core::mem::take(&mut self.due)
    }

    /// Credit of the session that came back, since the last call.
    pub(crate) fn take_freed(&mut self) -> u64 {
        core::mem::take(&mut self.freed)
    }

    /// The next block or piece, or how things stand.
    pub(crate) fn read(&mut self) -> Received {
        match self.ready.pop_front() {
            Some(Ready::Piece(piece, size)) => {
                self.give_back(size);
                Received::Piece(piece)
            }
            Some(Ready::Gone(number, fate)) => {
                self.gone -= 1;
                Received::Gone { number, fate }
            }
            None => match self.reset.or(self.failed) {
                Some(code) => Received::Reset(code),
                None if self.is_complete() => Received::Finished,
                None => Received::Blocked,
            },
        }
    }

    pub(crate) fn is_readable(&self) -> bool {
        !self.ready.is_empty() || self.failed.is_some() || self.is_complete()
    }

    /// Was it given up, at either end?
    pub(crate) fn is_given_up(&self) -> bool {
        self.reset.or(self.failed).is_some()
    }

    /// The application will not read it: what arrived was dropped.
    pub(crate) fn fail(&mut self, code: u64) {
        self.failed = Some(code);
        self.drop_arriving();
    }

    fn drop_arriving(&mut self) {
        for unit in core::mem::take(&mut self.arriving).into_values() {
            self.give_back(unit.size());
        }
    }

    /// The application does not want the object; units of it that come are refused, with its code.
    pub(crate) fn refuse_object(&mut self, object: u64, code: u64) {
        for size in self.objects.refuse(object, code) {
            self.give_back(size);
        }
        let arriving: Vec<u64> = self.arriving.keys().copied().collect();
        for number in arriving {
            self.refuse_early(number);
        }
    }

    /// Late blocks are dropped, not delivered.
    pub(crate) fn set_drop_late(&mut self, drop: bool) {
        self.drop_late = drop;
    }

    /// Gives the peer new credit, once a quarter of the window was read since the last.
    pub(crate) fn renew(&mut self) -> bool {
        let ended = self.end.is_some() || self.reset.is_some();
        !ended && self.grant.renew(self.window, self.window / 4)
    }

    pub(crate) fn credit(&self) -> u64 {
        self.grant.granted()
    }

    /// Credit taken and not given back: what is held, read or not, whole or not.
    pub(crate) fn held(&self) -> u64 {
        self.grant.held()
    }

    /// Bytes of units that are not whole, and of pieces that wait for earlier ones.
    pub(crate) fn out_of_order(&self) -> u64 {
        let arriving = self.arriving.values().map(Arriving::arrived);
        arriving.sum::<u64>() + self.objects.waiting()
    }

    /// The peer sent `count` units and no more; all are settled.
    pub(crate) fn finish(&mut self, count: u64) -> Result<(), UnitError> {
        let last = self.done.iter_descending().next().map_or(0, |r| r.end);
        let beyond = last > count || self.arriving.range(count..).next().is_some();
        if beyond || self.end.is_some_and(|end| end != count) {
            return Err(UnitError::Contradiction);
        }
        self.end = Some(count);
        Ok(())
    }

    /// The peer gave the flow up after it took `spent` of the credit. Returns how much of that
    /// this side had not heard of.
    pub(crate) fn reset(&mut self, code: u64, spent: u64) -> Result<u64, UnitError> {
        if spent < self.grant.taken() {
            return Err(UnitError::Contradiction);
        }
        let rise = spent - self.grant.taken();
        if rise > self.grant.left() {
            return Err(UnitError::Credit);
        }
        self.grant.take(rise);
        self.grant.give_back(rise);
        self.freed += rise;
        if self.reset.is_none() && !self.is_complete() {
            self.reset = Some(code);
        }
        self.drop_arriving();
        for size in self.objects.clear() {
            self.give_back(size);
        }
        self.verdicts.clear();
        self.short.clear();
        self.due.clear();
        Ok(rise)
    }

    /// The application wants no more: drops what arrived, and what will arrive.
    pub(crate) fn discard(&mut self) {
        self.discarding = true;
        for ready in core::mem::take(&mut self.ready) {
            if let Ready::Piece(_, size) = ready {
                self.give_back(size);
            }
        }
        self.gone = 0;
        for size in self.objects.clear() {
            self.give_back(size);
        }
    }

    /// Nothing more is expected.
    pub(crate) fn is_complete(&self) -> bool {
        self.reset.is_some() || self.end.is_some_and(|end| self.floor() >= end)
    }
}
