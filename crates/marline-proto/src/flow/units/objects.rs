//! Objects at their sender: pieces, dependencies, priorities.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use bytes::Bytes;
use marline_base::Instant;

use super::object_table::Object;
use super::send::{COMMON_URGENCY, Settlement, UnitsSend};
use super::{Fate, UNIT_COST};
use crate::flow::SendError;
use crate::wire::{LEAST_PRIORITY, ObjectHeading, Piece};

/// Most bytes before the application's in a unit of an object.
const HEADING: usize = ObjectHeading::LONGEST;
/// What an object costs besides its units, so that it can be cancelled whatever is held.
const OBJECT_COST: u64 = UNIT_COST + HEADING as u64;
/// Pieces (bytes) of an object that its receiver uses as they come. A choice, not tuned.
const INCREMENT: u64 = 64 << 10;

/// How an object is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectOptions {
    /// 0 (most urgent) to 7, among the objects of the flow (RFC 9218); default 3.
    pub urgency: u8,
    /// Its receiver uses it piece by piece, so it shares the paths with its equals and is cut into
    /// pieces of 64 KiB (RFC 9218); default false.
    pub incremental: bool,
    /// Its length (bytes), if that is known before it is written.
    pub size: Option<u64>,
    /// It waits until these objects, which were opened before it, were delivered or given up.
    pub after: Vec<u64>,
}

impl Default for ObjectOptions {
    fn default() -> Self {
        Self {
            urgency: COMMON_URGENCY,
            incremental: false,
            size: None,
            after: Vec::new(),
        }
    }
}

fn check_urgency(urgency: u8) -> Result<(), SendError> {
    if urgency > LEAST_PRIORITY {
        return Err(SendError::Urgency(urgency));
    }
    Ok(())
}

/// Joins a heading and the application's bytes.
fn joined(heading: impl FnOnce(&mut Vec<u8>), data: &[u8]) -> Bytes {
    let mut unit = Vec::with_capacity(HEADING + data.len());
    heading(&mut unit);
    unit.extend_from_slice(data);
    Bytes::from(unit)
}

impl UnitsSend {
    /// Opens an object and returns its number.
    pub(crate) fn open_object(
        &mut self,
        now: Instant,
        options: &ObjectOptions,
    ) -> Result<u64, SendError> {
        check_urgency(options.urgency)?;
        let count = self.objects.count;
        if let Some(unknown) = options.after.iter().find(|id| **id >= count) {
            return Err(SendError::NoObject(*unknown));
        }
        self.check_room(0, OBJECT_COST)?;
        if self.objects.table.len() as u64 >= self.limits.span {
            return Err(SendError::Full);
        }
        self.hold(OBJECT_COST);
        self.objects.count += 1;
        let pending = |id: &u64| self.objects.table.contains_key(id);
        let blockers: BTreeSet<u64> = options.after.iter().copied().filter(pending).collect();
        for blocker in &blockers {
            self.objects
                .waiting
                .entry(*blocker)
                .or_default()
                .push(count);
        }
        self.objects.table.insert(
            count,
            Object {
                urgency: options.urgency,
                incremental: options.incremental,
                opened: now,
                size: options.size,
                bytes: 0,
                ended: false,
                blockers,
                queue: VecDeque::new(),
                offered: None,
                open: BTreeSet::new(),
                whole_us: None,
                torn: false,
                end: None,
            },
        );
        Ok(count)
    }

    /// Appends to an object, all of `data` or nothing; `last`: the object ends with it.
    pub(crate) fn write_object(
        &mut self,
        now: Instant,
        id: u64,
        data: &[u8],
        last: bool,
    ) -> Result<(), SendError> {
        let half = (self.limits.longest / 2).saturating_sub(HEADING as u64);
        let object = self.objects.table.get(&id);
        let object = object.filter(|o| !o.ended).ok_or(SendError::NoObject(id))?;
        let len = data.len() as u64;
        let bytes = object.bytes + len;
        if let Some(size) = object.size
            && (bytes > size || (last && bytes < size))
        {
            return Err(SendError::Size { size, bytes });
        }
        let (urgency, start) = (object.urgency, object.bytes);
        let last = last || object.size == Some(bytes);
        let size = object.size.or(last.then_some(bytes));
        let longest = if object.incremental {
            half.min(INCREMENT)
        } else {
            half
        }
        .max(1);
        let count = len.div_ceil(longest).max(u64::from(last));
        let most = self.limits.buffer.saturating_sub(OBJECT_COST);
        let with_headings = len + count * HEADING as u64;
        if with_headings + count * UNIT_COST > most {
            let limit = most.saturating_sub(count * (UNIT_COST + HEADING as u64));
            return Err(SendError::TooLong(data.len(), limit as usize));
        }
        self.check_room(count, with_headings)?;
        let mut units = Vec::with_capacity(count as usize);
        let mut offset = 0;
        for n in 0..count {
            let end = (offset + longest).min(len);
            let heading = ObjectHeading {
                object: id,
                offset: start + offset,
                total: size,
                piece: match last && n + 1 == count {
                    true => Piece::Last,
                    false => Piece::More,
                },
            };
            let part = &data[offset as usize..end as usize];
            let unit = joined(|out| heading.encode(out), part);
            units.push(self.push(now, unit, Some(id), urgency));
            offset = end;
        }
        if let Some(object) = self.objects.table.get_mut(&id) {
            object.bytes = bytes;
            object.ended = last;
            object.open.extend(&units);
            object.queue.extend(units);
        }
        self.offer_next(id);
        Ok(())
    }

    /// Offers the object's next unit, if it may be sent and none is.
    fn offer_next(&mut self, id: u64) {
        let Some(object) = self.objects.table.get_mut(&id) else {
            return;
        };
        if !object.blockers.is_empty() || object.offered.is_some() {
            return;
        }
        if let Some(unit) = object.queue.pop_front() {
            object.offered = Some(unit);
            self.offer(unit);
        }
    }

    /// A unit of an object was cut whole: the next one's turn.
    pub(super) fn offer_following(&mut self, id: u64, unit: u64) {
        if let Some(object) = self.objects.table.get_mut(&id)
            && object.offered == Some(unit)
        {
            object.offered = None;
            self.offer_next(id);
        }
    }

    /// Changes an object's priority. Whether there is one.
    pub(crate) fn reprioritise(
        &mut self,
        id: u64,
        urgency: u8,
        incremental: bool,
    ) -> Result<(), SendError> {
        check_urgency(urgency)?;
        let object = self.objects.table.get_mut(&id);
        let object = object.ok_or(SendError::NoObject(id))?;
        object.urgency = urgency;
        object.incremental = incremental;
        let units: Vec<u64> = object.open.iter().copied().collect();
        for number in units {
            let offered = self.order.contains(number);
            self.withdraw(number);
            if let Some(unit) = self.units.get_mut(&number) {
                unit.place.urgency = urgency;
            }
            if offered {
                self.offer(number);
            }
        }
        Ok(())
    }

    /// Gives an object up; its receiver hears the code. Whether there was one to give up.
    pub(crate) fn cancel_object(&mut self, id: u64, code: u64) -> bool {
        self.end_object(id, code, Fate::Cancelled(code))
    }

    fn end_object(&mut self, id: u64, code: u64, fate: Fate) -> bool {
        let Some(object) = self.objects.table.get_mut(&id) else {
            return false;
        };
        if object.end.is_some() {
            return false;
        }
        object.end = Some(fate);
        object.torn |= !object.ended;
        object.ended = true;
        object.queue.clear();
        object.offered = None;
        let (urgency, bytes, opened) = (object.urgency, object.bytes, object.opened);
        let units: Vec<u64> = object.open.iter().copied().collect();
        for unit in units {
            self.give_up(unit, Some(code));
        }
        // Its last unit says so to the receiver, who may have no other of it.
        let heading = ObjectHeading {
            object: id,
            offset: bytes,
            total: None,
            piece: Piece::Cancelled(code),
        };
        let unit = joined(|out| heading.encode(out), &[]);
        self.release(OBJECT_COST);
        let unit = self.push(opened, unit, Some(id), urgency);
        if let Some(object) = self.objects.table.get_mut(&id) {
            object.open.insert(unit);
        }
        self.offer(unit);
        true
    }

    /// The fate of one of an object's units became known.
    pub(super) fn on_piece_settled(
        &mut self,
        unit: u64,
        id: u64,
        fate: Fate,
        whole_us: Option<u64>,
    ) {
        let Some(object) = self.objects.table.get_mut(&id) else {
            return;
        };
        object.open.remove(&unit);
        object.whole_us = object.whole_us.max(whole_us);
        object.torn |= fate != Fate::OnTime;
        if let Fate::Refused(code) = fate {
            self.end_object(id, code, fate);
        }
        self.offer_following(id, unit);
        self.settle_object(id);
    }

    /// Settles an object once it has ended and all its units are settled.
    fn settle_object(&mut self, id: u64) {
        let settled = |o: &Object| o.ended && o.open.is_empty();
        if !self.objects.table.get(&id).is_some_and(settled) {
            return;
        }
        let Some(object) = self.objects.table.remove(&id) else {
            return;
        };
        if object.end.is_none() {
            self.release(OBJECT_COST);
        }
        let fate = match object.end {
            Some(end) if object.torn => end,
            _ => Fate::OnTime,
        };
        self.todo.settled.push(Settlement {
            number: id,
            fate,
            written: object.opened,
            whole_us: object.whole_us.filter(|_| fate == Fate::OnTime),
        });
        for waiting in self.objects.waiting.remove(&id).unwrap_or_default() {
            if let Some(object) = self.objects.table.get_mut(&waiting) {
                object.blockers.remove(&id);
            }
            self.offer_next(waiting);
        }
    }

    /// Ends every object that is still being written: nothing more will be.
    pub(super) fn end_objects(&mut self) {
        let open = self.objects.table.iter().filter(|(_, o)| !o.ended);
        let open: Vec<u64> = open.map(|(id, _)| *id).collect();
        for id in open {
            self.cancel_object(id, 0);
        }
    }

    /// Takes an object whole and returns its number; see [`open_object`](Self::open_object) and
    /// [`write_object`](Self::write_object).
    pub(crate) fn send_object(
        &mut self,
        now: Instant,
        data: &Bytes,
        options: &ObjectOptions,
    ) -> Result<u64, SendError> {
        let id = self.open_object(now, options)?;
        match self.write_object(now, id, data, true) {
            Ok(()) => Ok(id),
            Err(error) => {
                self.unopen(id);
                Err(error)
            }
        }
    }

    /// Takes back the opening of the newest object, of which nothing was written.
    fn unopen(&mut self, id: u64) {
        if self.objects.table.remove(&id).is_some() {
            self.release(OBJECT_COST);
            self.objects.count -= 1;
            for waiting in self.objects.waiting.values_mut() {
                waiting.retain(|w| *w != id);
            }
        }
    }
}
