//! Units through one direction of a flow.
//!
//! A unit's delay counts from when the application wanted to write it, not from when the session
//! had room. What a packets flow refuses, what is given up and what never arrives counts as
//! undelivered, so that a scheduler cannot look good by losing what would have been late. What was
//! written before the end of the warm-up counts nowhere; what was written so late that it may still
//! be on its way at the end of the run counts neither way.

use std::collections::{BTreeMap, VecDeque};

use bytes::{BufMut, Bytes, BytesMut};
use marline_base::{Duration, Instant};
use marline_proto::flow::{BlockTerms, Chunk, ObjectOptions, Received, SendError};
use marline_proto::wire::{FlowId, FlowKind};
use marline_proto::{FlowOptions, OpenError, WriteError};

use super::Context;
use crate::engine::End;
use crate::measure::Measure;
use crate::scenario::FlowPlan;

/// Units that may be under way at once. One more is refused; without order, where lost ones are
/// never settled, the oldest counts as lost instead.
const MOST_UNITS: usize = 1 << 16;
/// Bytes that may wait for the session to take them; beyond, units are refused.
const MOST_WAITING: u64 = 16 << 20;
/// A message begins with its unit's number.
const HEADER: usize = 8;
/// Larger units of a packets flow are sent as several messages.
const LONGEST_MESSAGE: u64 = 60_000;
/// Larger objects are written in pieces of this number of bytes.
const LONGEST_PIECE: u64 = 256 << 10;
/// What streams are filled with.
static FILLING: [u8; 64 << 10] = [0; 64 << 10];

/// A unit that left a [`Pipe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The number that [`Pipe::write`] gave it.
    pub unit: u64,
    /// What [`Pipe::write`] was given to remember.
    pub tag: u64,
    /// Its size (bytes).
    pub size: u64,
    /// When it was written.
    pub written: Instant,
    /// It did not come and will not.
    pub lost: bool,
}

#[derive(Clone, Copy, Debug)]
struct Unit {
    tag: u64,
    size: u64,
    written: Instant,
    /// Bytes that the session has not taken.
    unsent: u64,
    /// Bytes that were not delivered.
    missing: u64,
    /// The session's number of the object that it is written to.
    object: Option<u64>,
}

/// One direction of a flow that carries units of any size: messages of a packets flow, stretches of
/// a stream, blocks, whose deadline is the plan's lifetime, or objects.
///
/// What the session cannot take at once waits here, up to 16 MiB, as it would in an application
/// that blocks; an application on a packets flow that does not wait loses it, as on UDP. Memory
/// is bounded: at most 65 536 units are remembered.
#[derive(Debug)]
pub struct Pipe {
    flow: FlowId,
    from: End,
    kind: FlowKind,
    ordered: bool,
    /// Units from `first` on, in the order in which they were written.
    units: VecDeque<Unit>,
    first: u64,
    /// The first unit that the session has not taken whole.
    sending: u64,
    waiting: u64,
    patient: bool,
    finishing: bool,
    /// Deadline of each block.
    deadline: Option<Duration>,
    /// Units by the numbers that the session gave to blocks and objects.
    named: BTreeMap<u64, u64>,
    /// Longest time from a write to a delivery.
    longest: Duration,
}

/// How far the units that wait got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pumped {
    /// None waits any more.
    All,
    /// The session has no room.
    Blocked,
    /// The session will never take the one at the head.
    Refused,
}

impl Pipe {
    /// Opens a flow as planned and takes its direction away from `from`.
    ///
    /// # Errors
    /// As [`marline_proto::Session::open_flow`].
    pub fn open(cx: &mut Context<'_>, from: End, plan: &FlowPlan) -> Result<Self, OpenError> {
        let scheduler = plan.scheduler.as_deref();
        let options = FlowOptions {
            ordered: plan.ordered,
            priority: plan.priority,
            lifetime: plan.lifetime.filter(|_| plan.kind == FlowKind::Packets),
            queue: plan.queue,
            scheduler: scheduler.and_then(|name| name.parse().ok()),
            ..FlowOptions::new(plan.kind)
        };
        let flow = cx.open_flow(from, &options)?;
        Ok(Self::of(flow, from, plan))
    }

    fn of(flow: FlowId, from: End, plan: &FlowPlan) -> Self {
        Self {
            flow,
            from,
            kind: plan.kind,
            ordered: is_ordered(plan),
            units: VecDeque::new(),
            first: 0,
            sending: 0,
            waiting: 0,
            patient: plan.kind == FlowKind::Stream,
            finishing: false,
            deadline: plan.lifetime.filter(|_| plan.kind == FlowKind::Blocks),
            named: BTreeMap::new(),
            longest: Duration::ZERO,
        }
    }

    /// The other direction of the same flow. It can be written once something has arrived.
    pub fn back(&self, plan: &FlowPlan) -> Self {
        Self::of(self.flow, self.from.other(), plan)
    }

    /// Lets units wait for room where a packets flow would refuse them.
    #[must_use]
    pub fn patient(mut self) -> Self {
        self.patient = true;
        self
    }

    /// The flow.
    pub fn flow(&self) -> FlowId {
        self.flow
    }

    /// The end that writes.
    pub fn from(&self) -> End {
        self.from
    }

    /// The flow and the end that sends on it, as [`Workload::flows`](super::Workload::flows) wants
    /// them.
    pub fn sends(&self) -> (FlowId, End) {
        (self.flow, self.from)
    }

    /// Is the order of units kept?
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// As many units are under way as may be; the next would be refused: where the order is kept,
    /// every one is settled in its turn.
    pub fn is_crowded(&self) -> bool {
        self.ordered && self.units.len() >= MOST_UNITS
    }

    /// Bytes written that the session has not taken.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Writes a unit of `size` bytes (at least 8 in a packets flow), to which `tag` is remembered.
    /// Returns its number, or `None` if it was refused; the meter counts which.
    pub fn write(&mut self, cx: &mut Context<'_>, size: u64, tag: u64) -> Option<u64> {
        let now = cx.now();
        let size = match self.kind {
            FlowKind::Packets => size.max(HEADER as u64),
            _ => size.max(1),
        };
        let full = self.waiting > 0 && self.waiting + size > MOST_WAITING;
        if full || self.is_crowded() {
            cx.meter.trial(Measure::Refused, now, true);
            cx.meter.trial(Measure::Undelivered, now, true);
            return None;
        }
        let number = self.first + self.units.len() as u64;
        self.units.push_back(Unit {
            tag,
            size,
            written: now,
            unsent: size,
            missing: size,
            object: None,
        });
        self.waiting += size;
        let refused = self.pump(cx) == Pumped::Refused || (self.sending <= number && !self.patient);
        cx.meter.trial(Measure::Refused, now, refused);
        if refused {
            self.give_up(number);
            return None;
        }
        Some(number)
    }

    /// Stops sending the unit at the head: it will never be whole, and counts as lost in its turn.
    fn give_up(&mut self, number: u64) {
        if let Some(unit) = self.units.get_mut((number - self.first) as usize) {
            self.waiting -= unit.unsent;
            unit.unsent = 0;
            self.sending = self.sending.max(number + 1);
        }
    }

    /// No unit follows: the flow's direction ends after what was written.
    pub fn end(&mut self, cx: &mut Context<'_>) {
        self.finishing = true;
        self.on_writable(cx);
    }

    /// The flow is writable: gives the session what it takes of the units that wait.
    pub fn on_writable(&mut self, cx: &mut Context<'_>) {
        while self.pump(cx) == Pumped::Refused {
            self.give_up(self.sending);
        }
    }

    fn pump(&mut self, cx: &mut Context<'_>) -> Pumped {
        while self.units.len() as u64 > self.sending - self.first {
            let taken = match self.hand_over(cx) {
                Ok(taken) => taken,
                Err(pumped) => return pumped,
            };
            let Some(unit) = self.units.get_mut((self.sending - self.first) as usize) else {
                break;
            };
            unit.unsent -= taken;
            self.waiting -= taken;
            if unit.unsent == 0 {
                self.sending += 1;
            }
        }
        if self.finishing {
            cx.session(self.from).finish(self.flow);
        }
        Pumped::All
    }

    /// Hands the session what it takes of the unit at the head; returns how many bytes.
    fn hand_over(&mut self, cx: &mut Context<'_>) -> Result<u64, Pumped> {
        let (now, flow, number) = (cx.now(), self.flow, self.sending);
        let session = cx.session(self.from);
        let Some(unit) = self.units.get_mut((number - self.first) as usize) else {
            return Ok(0);
        };
        match self.kind {
            FlowKind::Stream => {
                let piece = unit.unsent.min(FILLING.len() as u64) as usize;
                let data = Bytes::from_static(&FILLING[..piece]);
                match session.write(now, flow, &data) {
                    Ok(taken) => Ok(taken as u64),
                    Err(WriteError::Blocked | WriteError::Closed) => Err(Pumped::Blocked),
                }
            }
            FlowKind::Packets => {
                let piece = message_len(unit.unsent);
                let data = message(number, piece as usize);
                session.send(now, flow, data).map_err(refused)?;
                Ok(piece)
            }
            FlowKind::Blocks => {
                let terms = BlockTerms {
                    deadline: self.deadline,
                    reliability: None,
                };
                let block = Bytes::from(vec![0; unit.unsent as usize]);
                let accepted = session.write_block(now, flow, &block, terms);
                let accepted = accepted.map_err(refused)?;
                self.named.insert(accepted.number, number);
                Ok(unit.unsent)
            }
            FlowKind::Objects => {
                let object = match unit.object {
                    Some(object) => object,
                    None => {
                        let options = ObjectOptions {
                            size: Some(unit.size),
                            ..ObjectOptions::default()
                        };
                        let opened = session.open_object(now, flow, &options);
                        let object = opened.map_err(refused)?;
                        self.named.insert(object, number);
                        *unit.object.insert(object)
                    }
                };
                let piece = unit.unsent.min(LONGEST_PIECE);
                let data = Bytes::from(vec![0; piece as usize]);
                let last = piece == unit.unsent;
                let written = session.write_object(now, flow, object, &data, last);
                written.map_err(refused)?;
                Ok(piece)
            }
        }
    }

    /// Reads what has arrived and appends the units that are whole or lost; counts bytes, and
    /// units that were lost.
    pub fn read(&mut self, cx: &mut Context<'_>, out: &mut Vec<Delivery>) {
        let (now, to, before) = (cx.now(), self.from.other(), out.len());
        loop {
            let chunk = match self.kind {
                FlowKind::Stream => cx.session(to).read(now, self.flow, usize::MAX),
                FlowKind::Packets => cx.session(to).receive(now, self.flow),
                FlowKind::Blocks | FlowKind::Objects => {
                    match cx.session(to).receive_unit(now, self.flow) {
                        Received::Piece(piece) => {
                            let bytes = piece.data.len() as u64;
                            cx.meter.delivered(now, bytes);
                            self.take_piece(piece.number, bytes, piece.last, out);
                        }
                        Received::Gone { number, .. } => self.take_lost(number, out),
                        Received::Blocked | Received::Finished | Received::Reset(_) => break,
                    }
                    continue;
                }
            };
            let Chunk::Data(data) = chunk else { break };
            cx.meter.delivered(now, data.len() as u64);
            match self.kind {
                FlowKind::Stream => self.take_bytes(data.len() as u64, out),
                _ => self.take_message(&data, out),
            }
        }
        while self.units.len() > MOST_UNITS {
            self.pop(out);
        }
        for delivery in &out[before..] {
            if !delivery.lost {
                self.longest = self.longest.max(now.since(delivery.written));
            }
            cx.meter
                .trial(Measure::Undelivered, delivery.written, delivery.lost);
        }
    }

    fn take_bytes(&mut self, mut bytes: u64, out: &mut Vec<Delivery>) {
        while bytes > 0 {
            let Some(unit) = self.units.front_mut() else {
                return;
            };
            let part = bytes.min(unit.missing);
            unit.missing -= part;
            bytes -= part;
            if unit.missing == 0 {
                self.pop(out);
            }
        }
    }

    fn take_piece(&mut self, name: u64, bytes: u64, last: bool, out: &mut Vec<Delivery>) {
        let Some(&number) = self.named.get(&name) else {
            return;
        };
        if last {
            self.named.remove(&name);
        }
        self.take_part(number, bytes, out);
    }

    /// A block or object will not come.
    fn take_lost(&mut self, name: u64, out: &mut Vec<Delivery>) {
        let Some(number) = self.named.remove(&name) else {
            return;
        };
        let Some(index) = number.checked_sub(self.first) else {
            return;
        };
        if let Some(unit) = self.units.get_mut(index as usize)
            && unit.missing > 0
        {
            out.push(delivery(number, *unit));
            unit.missing = 0;
        }
        self.drop_settled();
    }

    fn take_message(&mut self, data: &Bytes, out: &mut Vec<Delivery>) {
        let Some(header) = data.first_chunk::<HEADER>() else {
            return;
        };
        let number = u64::from_be_bytes(*header);
        // What was written before it and has not come will not, if the order is kept.
        while self.ordered && self.first < number && !self.units.is_empty() {
            self.pop(out);
        }
        self.take_part(number, data.len() as u64, out);
    }

    /// A part of a unit that needs no order arrived.
    fn take_part(&mut self, number: u64, bytes: u64, out: &mut Vec<Delivery>) {
        let Some(index) = number.checked_sub(self.first) else {
            return;
        };
        let Some(unit) = self.units.get_mut(index as usize) else {
            return;
        };
        unit.missing = unit.missing.saturating_sub(bytes);
        if unit.missing == 0 {
            let unit = *unit;
            if index == 0 {
                self.pop(out);
            } else {
                out.push(delivery(number, unit));
            }
        }
        self.drop_settled();
    }

    /// Units at the front that were delivered out of turn are done with.
    fn drop_settled(&mut self) {
        while self.units.front().is_some_and(|u| u.missing == 0) {
            self.units.pop_front();
            self.first += 1;
        }
    }

    /// The oldest unit leaves, whole or not.
    fn pop(&mut self, out: &mut Vec<Delivery>) {
        if let Some(unit) = self.units.pop_front() {
            self.waiting -= unit.unsent;
            out.push(delivery(self.first, unit));
            self.first += 1;
            self.sending = self.sending.max(self.first);
        }
    }

    /// The run is over: appends the units that did not come within `patience`, or else within the
    /// longest delay of a delivery. Younger ones may still be on their way and count neither way.
    pub fn settle(
        &mut self,
        cx: &mut Context<'_>,
        patience: Option<Duration>,
        out: &mut Vec<Delivery>,
    ) {
        let patience = patience.unwrap_or(self.longest);
        for (i, unit) in self.units.iter().enumerate() {
            if unit.missing > 0 && unit.written + patience < cx.now() {
                out.push(delivery(self.first + i as u64, *unit));
                cx.meter.trial(Measure::Undelivered, unit.written, true);
            }
        }
    }
}

/// Is the order of units kept?
fn is_ordered(plan: &FlowPlan) -> bool {
    match plan.kind {
        FlowKind::Stream => true,
        FlowKind::Packets => plan.ordered,
        FlowKind::Blocks | FlowKind::Objects => false,
    }
}

/// What a refusal means for the unit at the head.
fn refused(error: SendError) -> Pumped {
    match error {
        SendError::Full | SendError::Closed => Pumped::Blocked,
        _ => Pumped::Refused,
    }
}

fn delivery(number: u64, unit: Unit) -> Delivery {
    Delivery {
        unit: number,
        tag: unit.tag,
        size: unit.size,
        written: unit.written,
        lost: unit.missing > 0,
    }
}

/// Length of the next message of a unit of which `left` bytes remain: parts are never shorter than
/// a header.
fn message_len(left: u64) -> u64 {
    match left {
        0..=LONGEST_MESSAGE => left,
        _ if left < LONGEST_MESSAGE + HEADER as u64 => left - HEADER as u64,
        _ => LONGEST_MESSAGE,
    }
}

fn message(unit: u64, len: usize) -> Bytes {
    let mut data = BytesMut::zeroed(len);
    (&mut data[..HEADER]).put_u64(unit);
    data.freeze()
}
