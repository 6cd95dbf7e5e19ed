//! What an application does with blocks and objects, and what the peer says of them.

use alloc::format;
use alloc::string::String;

use bytes::Bytes;
use marline_base::{Duration, Instant};

use super::Session;
use super::flow::Flow;
use crate::event::Event;
use crate::flow::{
    BlockTerms, Fate, ObjectOptions, Received, RecvHalf, SendError, SendHalf, Settlement,
    UnitError, UnitsRecv, UnitsSend,
};
use crate::observe::Record;
use crate::path::{Control, Path};
use crate::sched::{Forecast, PathView};
use crate::wire::{
    BlockHeading, Finish, FlowId, FlowKind, UnitCancel, UnitData, UnitFate, UnitRepair, Verdict,
    close_code,
};

/// Most bytes of a block's heading.
const BLOCK_HEADING: usize = 8;

/// A block that was taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accepted {
    /// Its number in the flow.
    pub number: u64,
    /// What the flow's scheduler expects of it, if it forecasts.
    pub forecast: Option<Forecast>,
}

impl Session {
    /// Writes a block to a flow of blocks.
    ///
    /// Its fate comes with [`Event::UnitSettled`]. At its deadline what was not sent of it is
    /// dropped; what is under way may still complete it, late.
    ///
    /// # Errors
    /// As [`SendError`] says; the block was not taken then.
    pub fn write_block(
        &mut self,
        now: Instant,
        id: FlowId,
        block: &Bytes,
        terms: BlockTerms,
    ) -> Result<Accepted, SendError> {
        let offset = peer_clock(&self.paths);
        let units = self.units_send(id, FlowKind::Blocks)?;
        if !units.is_open() {
            return Err(SendError::Closed);
        }
        let limit = units.longest(BLOCK_HEADING);
        if block.len() as u64 > limit {
            return Err(SendError::TooLong(block.len(), limit as usize));
        }
        let deadline = terms.deadline.zip(offset).map(|(deadline, offset)| {
            let at = (now + deadline).as_micros().saturating_add_signed(offset);
            at.clamp(1, crate::wire::varint::MAX)
        });
        let heading = BlockHeading {
            deadline_us: deadline.unwrap_or(0),
        };
        let len = block.len() as u64 + BLOCK_HEADING as u64;
        // Before the scheduler is asked, which takes a block that is offered for one that is
        // written.
        if let Err(error) = units.check_room(1, len) {
            return self.after_write(id, 0, Err(error));
        }
        let unit = units.offered(now, len, terms);
        let views = self.views.look(&self.paths, &self.waiting);
        let Some(flow) = self.flows.get_mut(&id) else {
            return Err(SendError::Closed);
        };
        let admitted = flow.scheduler.admit(now, views, &unit);
        self.planning.wish(flow);
        self.timers.wake();
        let forecast = admitted.map_err(SendError::Refused)?;
        let units = self.units_send(id, FlowKind::Blocks)?;
        let written = units.write_block(now, block, heading, terms);
        let number = self.after_write(id, block.len(), written)?;
        self.count_unit(id);
        self.retime(id);
        Ok(Accepted { number, forecast })
    }

    /// Largest block (bytes) that is ever taken and would arrive `within` this time with at least
    /// this probability, if it were written now; `None` if the flow's scheduler does not know.
    pub fn block_capacity(
        &mut self,
        now: Instant,
        id: FlowId,
        within: Duration,
        reliability: f64,
    ) -> Option<u64> {
        let (flow, views) = self.flow_and_views(id)?;
        let bytes = flow.scheduler.capacity(now, views, within, reliability)?;
        let bytes = bytes.saturating_sub(BLOCK_HEADING as u64);
        let longest = self.units_send(id, FlowKind::Blocks).ok()?;
        Some(bytes.min(longest.longest(BLOCK_HEADING)))
    }

    /// Shortest time within which a block of `len` bytes would arrive with at least this
    /// probability, if it were written now; `None` if the flow's scheduler does not know.
    pub fn block_deadline(
        &mut self,
        now: Instant,
        id: FlowId,
        len: u64,
        reliability: f64,
    ) -> Option<Duration> {
        let (flow, views) = self.flow_and_views(id)?;
        let len = len + BLOCK_HEADING as u64;
        flow.scheduler.deadline(now, views, len, reliability)
    }

    fn flow_and_views(&mut self, id: FlowId) -> Option<(&Flow, &[PathView])> {
        let views = self.views.look(&self.paths, &self.waiting);
        Some((self.flows.get(&id)?, views))
    }

    /// Cancels a block that was written here, with a code for the receiver. Does nothing if its
    /// fate is known or if it was cancelled before.
    pub fn cancel_block(&mut self, now: Instant, id: FlowId, number: u64, code: u64) {
        if let Ok(units) = self.units_send(id, FlowKind::Blocks) {
            units.cancel_block(number, code);
            self.settle_units(now, id);
            self.retime(id);
        }
    }

    /// Drops blocks that come late instead of delivering them, or (`false`, the default) delivers
    /// them marked as late.
    pub fn drop_late_blocks(&mut self, id: FlowId, drop: bool) {
        if let Some(units) = self.units_recv(id) {
            units.set_drop_late(drop);
        }
    }

    /// Opens an object on a flow of objects and returns its number. It is written by
    /// [`write_object`](Self::write_object).
    ///
    /// # Errors
    /// As [`SendError`] says; nothing has changed then.
    pub fn open_object(
        &mut self,
        now: Instant,
        id: FlowId,
        options: &ObjectOptions,
    ) -> Result<u64, SendError> {
        let units = self.units_send(id, FlowKind::Objects)?;
        let opened = units.open_object(now, options);
        let number = self.after_write(id, 0, opened)?;
        self.count_unit(id);
        Ok(number)
    }

    /// Appends `data` to an object, all of it or nothing; `last`: the object ends with it. Each
    /// call makes at least one unit, so many small ones cost more than few large ones.
    ///
    /// # Errors
    /// As [`SendError`] says; nothing was taken then.
    pub fn write_object(
        &mut self,
        now: Instant,
        id: FlowId,
        object: u64,
        data: &Bytes,
        last: bool,
    ) -> Result<(), SendError> {
        let units = self.units_send(id, FlowKind::Objects)?;
        let written = units.write_object(now, object, data, last);
        self.after_write(id, data.len(), written)
    }

    /// Sends an object whole and returns its number.
    ///
    /// # Errors
    /// As [`SendError`] says; it was not taken then.
    pub fn send_object(
        &mut self,
        now: Instant,
        id: FlowId,
        data: &Bytes,
        options: &ObjectOptions,
    ) -> Result<u64, SendError> {
        let units = self.units_send(id, FlowKind::Objects)?;
        let sent = units.send_object(now, data, options);
        let number = self.after_write(id, data.len(), sent)?;
        self.count_unit(id);
        Ok(number)
    }

    /// Changes the priority of an object that was not delivered yet (RFC 9218).
    ///
    /// # Errors
    /// [`SendError::NoObject`], [`SendError::Urgency`], [`SendError::Closed`].
    pub fn reprioritise(
        &mut self,
        id: FlowId,
        object: u64,
        urgency: u8,
        incremental: bool,
    ) -> Result<(), SendError> {
        let units = self.units_send(id, FlowKind::Objects)?;
        units.reprioritise(object, urgency, incremental)?;
        self.activate(id);
        Ok(())
    }

    /// Cancels an object that was opened here, with a code for the receiver. Does nothing if it is
    /// settled. Cancelling the last that a flow holds may take a little more than its send buffer.
    pub fn cancel_object(&mut self, now: Instant, id: FlowId, object: u64, code: u64) {
        if let Ok(units) = self.units_send(id, FlowKind::Objects) {
            units.cancel_object(object, code);
            self.settle_units(now, id);
            self.activate(id);
        }
    }

    /// Refuses an object of the peer's, with a code for its sender: what comes of it from now on is
    /// dropped.
    pub fn refuse_object(&mut self, now: Instant, id: FlowId, object: u64, code: u64) {
        if let Some(units) = self.units_recv(id) {
            units.refuse_object(object, code);
            self.settle_received(now, id);
        }
    }

    /// Lets a flow of blocks or objects hold at most this many bytes that are not known to have
    /// arrived, with 256 for each of its units, if that is less than
    /// [`crate::Config::send_buffer`].
    pub fn limit_units(&mut self, id: FlowId, bytes: u64) {
        if let Some(flow) = self.flows.get_mut(&id)
            && let SendHalf::Units(units) = &mut flow.send
        {
            units.limit(bytes);
        }
    }

    /// May more be heard of what was written to this flow of blocks or objects? Not of a flow that
    /// is over, and not after the peer wanted no more of it ([`Event::FlowStopped`]).
    pub fn settles(&self, id: FlowId) -> bool {
        self.flows
            .get(&id)
            .is_some_and(|flow| matches!(flow.send, SendHalf::Units(_)) && flow.reset.is_none())
    }

    /// The next block, or piece of an object, of a flow of these, or how things stand.
    pub fn receive_unit(&mut self, now: Instant, id: FlowId) -> Received {
        let Some(units) = self.units_recv(id) else {
            return Received::Finished;
        };
        let received = units.read();
        let freed = units.take_freed();
        if let Some(flow) = self.flows.get_mut(&id) {
            match &received {
                Received::Piece(piece) => flow.counters.read_bytes += piece.data.len() as u64,
                Received::Gone { .. } => {}
                Received::Blocked => flow.readable_announced = false,
                Received::Finished | Received::Reset(_) => flow.end_read = true,
            }
        }
        if freed > 0 {
            self.credit.on_read(freed);
            self.renew_credit(id);
        }
        self.on_read(now, id);
        self.reap(id);
        received
    }

    /// The sending half of a flow of units of this kind that can still be written.
    fn units_send(&mut self, id: FlowId, kind: FlowKind) -> Result<&mut UnitsSend, SendError> {
        let closing = self.ending.is_some();
        match self.flows.get_mut(&id) {
            Some(flow) if flow.kind == kind && flow.reset.is_none() && !closing => {
                match &mut flow.send {
                    SendHalf::Units(units) => {
                        units.allow(self.memory.sent.most(units.held()));
                        Ok(units)
                    }
                    _ => Err(SendError::Closed),
                }
            }
            _ => Err(SendError::Closed),
        }
    }

    pub(super) fn units_recv(&mut self, id: FlowId) -> Option<&mut UnitsRecv> {
        match &mut self.flows.get_mut(&id)?.recv {
            RecvHalf::Units(units) => Some(units),
            _ => None,
        }
    }

    pub(super) fn has_units(&self, id: FlowId) -> bool {
        self.flows.get(&id).is_some_and(|f| f.kind.has_units())
    }

    fn count_unit(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.counters.units.written += 1;
        }
    }

    fn after_write<T>(
        &mut self,
        id: FlowId,
        len: usize,
        written: Result<T, SendError>,
    ) -> Result<T, SendError> {
        if let Some(flow) = self.flows.get_mut(&id) {
            match &written {
                Ok(_) => flow.counters.written_bytes += len as u64,
                Err(error) => flow.was_blocked |= *error == SendError::Full,
            }
        }
        if written.is_ok() {
            self.account(id);
            self.activate(id);
        }
        written
    }

    /// Acts on what the sending half of a flow of units decided.
    pub(super) fn settle_units(&mut self, now: Instant, id: FlowId) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let SendHalf::Units(units) = &mut flow.send else {
            return;
        };
        let todo = units.take_todo();
        if units.is_finish_due() && flow.reset.is_none() && !units.is_done() {
            self.egress.control.insert(Control::Finish(id));
            self.timers.wake();
        }
        if todo.is_empty() {
            return;
        }
        self.timers.wake();
        for unit in &todo.cancels {
            flow.queues.drop_unit(*unit);
            self.egress.control.insert(Control::CancelUnit(id, *unit));
        }
        for (unit, fate) in &todo.units {
            let (unit, fate) = (*unit, *fate);
            flow.queues.drop_unit(unit);
            flow.scheduler.on_unit(now, unit, fate);
            self.egress.control.remove(&Control::CancelUnit(id, unit));
            let flow = id;
            self.observer
                .on(now, &Record::UnitSettled { flow, unit, fate });
        }
        self.planning.wish(flow);
        flow.lost.extend(todo.again);
        let offset = peer_clock(&self.paths);
        for settlement in todo.settled {
            let Settlement { number, fate, .. } = settlement;
            let after = elapsed(now, &settlement, offset);
            match fate {
                Fate::OnTime => flow.counters.units.acked += 1,
                Fate::Late => flow.counters.units.acked_late += 1,
                Fate::Lost => flow.counters.units.lost += 1,
                Fate::Cancelled(_) | Fate::Refused(_) => flow.counters.units.cancelled += 1,
            }
            if matches!(fate, Fate::OnTime | Fate::Late) {
                flow.delays.record(after);
            }
            self.events.push_back(Event::UnitSettled {
                flow: id,
                number,
                fate,
                after,
            });
        }
        self.waiting.account(flow);
        self.activate(id);
    }

    /// Acts on what the receiving half of a flow of units decided.
    fn settle_received(&mut self, now: Instant, id: FlowId) {
        let listens = self.observer.listens();
        let Some(units) = self.units_recv(id) else {
            return;
        };
        let due = units.take_due();
        let freed = units.take_freed();
        let shorts: alloc::vec::Vec<u64> = units.shorts().collect();
        for unit in shorts {
            self.egress.control.insert(Control::UnitShort(id, unit));
        }
        for unit in due {
            self.egress.control.insert(Control::UnitFate(id, unit));
            let verdict = self.units_recv(id).and_then(|units| units.verdict(unit));
            if listens && let Some(Verdict::OnTime(_) | Verdict::Late(_)) = verdict {
                let late = matches!(verdict, Some(Verdict::Late(_)));
                let flow = id;
                self.observer
                    .on(now, &Record::UnitWhole { flow, unit, late });
            }
        }
        self.timers.wake();
        if freed > 0 {
            self.credit.on_read(freed);
            self.renew_credit(id);
        }
    }

    pub(super) fn on_unit(&mut self, now: Instant, frame: &UnitData<'_>) {
        if let Some(units) = self.receiving_units(frame.flow) {
            let result = units.receive(now, frame);
            self.settle_received(now, frame.flow);
            self.after_unit(now, frame.flow, result);
        }
    }

    pub(super) fn on_unit_repair(&mut self, now: Instant, frame: &UnitRepair<'_>) {
        if let Some(units) = self.receiving_units(frame.flow) {
            let result = units.repair(now, frame);
            self.settle_received(now, frame.flow);
            self.after_unit(now, frame.flow, result);
        }
    }

    pub(super) fn on_unit_cancel(&mut self, now: Instant, frame: &UnitCancel) {
        if let Some(units) = self.receiving_units(frame.flow) {
            let result = units.cancel(frame);
            self.settle_received(now, frame.flow);
            self.after_unit(now, frame.flow, result);
        }
    }

    pub(super) fn on_units_finished(&mut self, now: Instant, frame: Finish) {
        if let Some(units) = self.receiving_units(frame.flow) {
            let result = units.finish(frame.sequence).map(|()| 0);
            self.settle_received(now, frame.flow);
            self.after_unit(now, frame.flow, result);
        }
    }

    pub(super) fn on_unit_fate(&mut self, now: Instant, frame: UnitFate) {
        let id = frame.flow;
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let SendHalf::Units(units) = &mut flow.send else {
            let reason = format!("a fate of a unit for flow {}, which has none", id.0);
            return self.fail(close_code::PROTOCOL, reason);
        };
        // After a reset the units are forgotten, and what is said of them is old.
        if flow.reset.is_none() && !units.on_verdict(frame.unit, frame.verdict) {
            let reason = format!(
                "a fate that unit {} of flow {} cannot have",
                frame.unit, id.0
            );
            return self.fail(close_code::PROTOCOL, reason);
        }
        self.settle_units(now, id);
        self.retime(id);
        self.notify_writable(id);
        self.reap(id);
    }

    /// The receiving half of a flow that a frame of units came for. A flow that is over is
    /// ignored; one of another kind ends the session.
    fn receiving_units(&mut self, id: FlowId) -> Option<&mut UnitsRecv> {
        let kind = match self.flows.get(&id) {
            Some(flow) if flow.kind.has_units() => flow.kind,
            _ => FlowKind::Blocks,
        };
        let id = self.receiving(id, kind)?;
        self.units_recv(id)
    }

    pub(super) fn after_unit(&mut self, now: Instant, id: FlowId, result: Result<u64, UnitError>) {
        let error = match result {
            Ok(rise) => {
                if !self.credit.on_received(rise) {
                    let reason = String::from("sent more than the session's credit");
                    return self.fail(close_code::FLOW_CONTROL, reason);
                }
                let freed = self.units_recv(id).map_or(0, UnitsRecv::take_freed);
                if freed > 0 {
                    self.credit.on_read(freed);
                    self.renew_credit(id);
                }
                return self.after_receive(now, id);
            }
            Err(error) => error,
        };
        let (code, what) = match error {
            UnitError::Contradiction => (close_code::PROTOCOL, "contradicts itself"),
            UnitError::Credit => (close_code::FLOW_CONTROL, "sent more than its credit"),
            UnitError::Span => (close_code::FLOW_CONTROL, "has too many units under way"),
            UnitError::Fragments => (close_code::FLOW_CONTROL, "came in too many pieces"),
            UnitError::Repairs => (close_code::FLOW_CONTROL, "sent too many repair symbols"),
        };
        self.fail(code, format!("flow {} {what}", id.0));
    }
}

/// The peer's clock less ours (µs), as the quickest path has it; `None` before the first
/// acknowledgement.
fn peer_clock(paths: &[Path]) -> Option<i64> {
    let known = paths.iter().filter_map(|path| path.one_way.clock_us());
    known.min().map(|(_, offset)| offset)
}

/// From a write until the receiver had it, as far as the clocks can be compared.
fn elapsed(now: Instant, settlement: &Settlement, offset: Option<i64>) -> Duration {
    let whole = settlement.whole_us.zip(offset);
    let at = whole.map(|(at, offset)| {
        let ours = at.saturating_add_signed(offset.saturating_neg());
        Instant::from_micros(ours).min(now)
    });
    at.unwrap_or(now).since(settlement.written)
}
