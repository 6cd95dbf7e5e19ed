//! What an application does with flows.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use bytes::Bytes;
use marline_base::Instant;
use smallvec::SmallVec;

use super::flow::{Awaits, Flow, FlowSpec};
use super::share::Scope;
use super::{FlowInfo, FlowOptions, OpenError, Session, WriteError};
use crate::config::check_scheduler;
use crate::flow::{
    Chunk, Limits, PacketsRecv, PacketsSend, Queues, RecvHalf, SendError, SendHalf, StreamRecv,
    StreamSend, UnitsRecv, UnitsSend,
};
use crate::observe::Record;
use crate::path::Control;
use crate::sched::Choice;
use crate::stats::{Delays, FlowCounters};
use crate::wire::{DeliveryOrder, FlowId, FlowKind, LEAST_PRIORITY, MAX_TARGET};

/// Unsent bytes that a stream may always hold, however small the windows are: four of a
/// writer's pieces of 64 KiB.
const LEAST_UNSENT: u64 = 256 << 10;

impl Session {
    /// Opens a flow. It can be written at once; the peer learns of it with the first data.
    ///
    /// # Errors
    /// As [`OpenError`] says; nothing has changed then.
    pub fn open_flow(&mut self, options: &FlowOptions) -> Result<FlowId, OpenError> {
        if self.ending.is_some() {
            return Err(OpenError::Closing);
        }
        if !self.numbers.may_open() {
            return Err(OpenError::TooManyFlows);
        }
        if options.target.len() > MAX_TARGET {
            return Err(OpenError::TargetTooLong(options.target.len()));
        }
        if options.priority > LEAST_PRIORITY {
            return Err(OpenError::Priority(options.priority));
        }
        if options.kind.has_units() && self.peer.max_units == 0 {
            return Err(OpenError::Kind(options.kind));
        }
        let default = self.config.scheduler(options.kind, options.ordered);
        let scheduler = options.scheduler.unwrap_or(default);
        check_scheduler(scheduler, options.kind).map_err(OpenError::Scheduler)?;
        let id = FlowId::new(self.is_client(), self.numbers.open());
        let ordered = match options.kind {
            FlowKind::Stream => true,
            FlowKind::Packets => options.ordered,
            FlowKind::Blocks | FlowKind::Objects => false,
        };
        let spec = FlowSpec {
            kind: options.kind,
            order: Self::order_of(ordered),
            priority: options.priority,
            lifetime: options.lifetime,
            queue: options.queue,
            target: options.target.clone(),
        };
        self.insert_flow(id, spec, scheduler, false);
        self.egress.control.insert(Control::OpenFlow(id));
        self.timers.wake();
        Ok(id)
    }

    pub(super) fn insert_flow(
        &mut self,
        id: FlowId,
        spec: FlowSpec,
        scheduler: Choice,
        announced: bool,
    ) {
        // What its peer takes, and what was said to the peer that this end takes.
        let (credit, granted) = match self.is_ours(id) {
            true => (self.starts.take_given(id.index()), None),
            false => (0, self.starts.on_opened(id.index())),
        };
        let (send, recv) = match spec.kind {
            FlowKind::Stream => {
                let granted = granted.unwrap_or(self.config.reserve());
                let start = self.start().max(granted);
                if start > granted {
                    self.egress.control.insert(Control::MaxFlowData(id));
                }
                self.starts.on_begun(id, start - self.config.reserve());
                if !self.is_ours(id) {
                    self.starts.on_stream();
                }
                (
                    SendHalf::Stream(StreamSend::new(self.peer.max_flow_data.max(credit))),
                    RecvHalf::Stream(StreamRecv::new(start)),
                )
            }
            FlowKind::Packets => (
                SendHalf::Packets(PacketsSend::new(
                    self.config.send_buffer,
                    spec.lifetime,
                    spec.order == DeliveryOrder::InOrder,
                    spec.queue,
                )),
                RecvHalf::Packets(PacketsRecv::new(
                    spec.order,
                    spec.lifetime,
                    self.config.flow_window,
                )),
            ),
            FlowKind::Blocks | FlowKind::Objects => {
                let limits = Limits::new(self.config.send_buffer, &self.peer);
                let (span, repairs) = (self.config.max_units, self.config.max_repairs);
                let window = self.config.flow_window;
                (
                    SendHalf::Units(Box::new(UnitsSend::new(spec.kind, limits))),
                    RecvHalf::Units(Box::new(UnitsRecv::new(spec.kind, window, span, repairs))),
                )
            }
        };
        let mut flow = Flow {
            id,
            kind: spec.kind,
            order: spec.order,
            priority: spec.priority,
            lifetime: spec.lifetime,
            target: spec.target,
            scheduler: scheduler.make(),
            choice: scheduler,
            needed_rate: None,
            send,
            recv,
            coder: None,
            decoder: None,
            queues: Queues::default(),
            lost: VecDeque::new(),
            returned: VecDeque::new(),
            announced,
            reset: None,
            reset_acked: false,
            stopped: None,
            readable_announced: false,
            unread_since: None,
            unacked_since: None,
            accounted: (0, 0),
            retained: 0,
            spill: None,
            held_up: SmallVec::new(),
            was_blocked: false,
            end_read: false,
            final_size: 0,
            deficit: 0,
            promoted: false,
            served_at: 0,
            turn: None,
            changed: false,
            awaits: Awaits::Nothing,
            planned_in: 0,
            wish: None,
            timer: None,
            delays: Box::new(Delays::default()),
            counters: FlowCounters::default(),
        };
        let (kind, by_peer) = (flow.kind, announced);
        self.observer.soon(Record::FlowOpened {
            flow: id,
            kind,
            by_peer,
        });
        self.inherit(&mut flow);
        self.planning.on_scheduler(&*flow.scheduler);
        self.flows.insert(flow);
        if by_peer {
            self.grant_starts();
        }
        self.start_coding(id);
        self.rewatch(id);
    }

    /// What a flow was opened with; `None` if there is no such flow (any more).
    pub fn flow_info(&self, id: FlowId) -> Option<FlowInfo> {
        let flow = self.flows.get(&id)?;
        Some(FlowInfo {
            kind: flow.kind,
            order: flow.order,
            priority: flow.priority,
            lifetime: flow.lifetime,
            target: flow.target.clone(),
        })
    }

    /// Bytes that a stream would take now.
    pub(super) fn writable(&self, id: FlowId) -> u64 {
        let Some(flow) = self.flows.get(&id) else {
            return 0;
        };
        match &flow.send {
            SendHalf::Stream(stream) => {
                // Unsent bytes beyond two windows would only age in the buffer.
                let windows: u64 = self
                    .paths
                    .iter()
                    .map(|p| p.controller.window().min(self.config.send_buffer))
                    .sum();
                let unsent =
                    (2 * windows).clamp(LEAST_UNSENT, self.config.send_buffer.max(LEAST_UNSENT));
                let by_unsent = unsent.saturating_sub(stream.unsent());
                // What the peer gives no credit for waits with the application, but for what may
                // leave as soon as there is some.
                let by_credit =
                    (stream.credit() + self.config.reserve()).saturating_sub(stream.end());
                let held = stream.unacked();
                let most = self.memory.sent.most(held).min(self.config.send_buffer);
                by_unsent.min(by_credit).min(most.saturating_sub(held))
            }
            SendHalf::Packets(packets) => {
                u64::from(packets.has_room(self.memory.sent.most(packets.held())))
            }
            SendHalf::Units(units) => {
                u64::from(units.has_room(self.memory.sent.most(units.held())))
            }
        }
    }

    /// Does a flow of messages, blocks or objects take more now? If it does not,
    /// [`Event::FlowWritable`](crate::Event::FlowWritable) tells when it does.
    pub fn has_room(&mut self, id: FlowId) -> bool {
        let has_room = self.writable(id) > 0;
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.was_blocked |= !has_room;
        }
        has_room
    }

    /// Bytes that a stream takes now; `None` if it takes none any more. Where it is 0,
    /// [`Event::FlowWritable`](crate::Event::FlowWritable) tells of room.
    pub fn room(&mut self, id: FlowId) -> Option<u64> {
        let room = self.writable(id);
        let flow = self.flows.get_mut(&id)?;
        let SendHalf::Stream(stream) = &flow.send else {
            return None;
        };
        if self.ending.is_some() || flow.reset.is_some() || !stream.is_open() {
            return None;
        }
        flow.was_blocked |= room == 0;
        Some(room)
    }

    /// Has something of a stream arrived that is next to be read?
    pub fn has_data(&self, id: FlowId) -> bool {
        match self.flows.get(&id).map(|flow| &flow.recv) {
            Some(RecvHalf::Stream(recv)) => recv.has_data(),
            _ => false,
        }
    }

    /// Writes to a stream; returns how many of the bytes were taken, at least one unless `data` is
    /// empty.
    ///
    /// # Errors
    /// [`WriteError::Blocked`] if none fit now, [`WriteError::Closed`] if none ever will.
    pub fn write(&mut self, now: Instant, id: FlowId, data: &Bytes) -> Result<usize, WriteError> {
        let room = self.room(id).ok_or(WriteError::Closed)?;
        let Some(flow) = self.flows.get_mut(&id) else {
            return Err(WriteError::Closed);
        };
        let SendHalf::Stream(stream) = &mut flow.send else {
            return Err(WriteError::Closed);
        };
        if data.is_empty() {
            return Ok(0);
        }
        let len = room.min(data.len() as u64) as usize;
        flow.was_blocked |= len < data.len();
        if len == 0 {
            return Err(WriteError::Blocked);
        }
        stream.write(now, data.slice(..len));
        flow.unacked_since.get_or_insert(now);
        flow.counters.written_bytes += len as u64;
        self.memory.account(flow);
        self.activate(id);
        self.watch_rate(now, id, now);
        Ok(len)
    }

    /// Sends a message on a packets flow; returns its sequence number.
    ///
    /// # Errors
    /// As [`SendError`] says; the message was not taken then.
    pub fn send(&mut self, now: Instant, id: FlowId, message: Bytes) -> Result<u64, SendError> {
        self.send_since(now, id, message, now)
    }

    /// Sends a message that has waited since an earlier time: its lifetime and its delay count from
    /// then. None is given up before those that were sent before it.
    ///
    /// # Errors
    /// As [`SendError`] says; the message was not taken then.
    pub fn send_since(
        &mut self,
        now: Instant,
        id: FlowId,
        message: Bytes,
        since: Instant,
    ) -> Result<u64, SendError> {
        let closing = self.ending.is_some();
        let Some(flow) = self.flows.get(&id) else {
            return Err(SendError::Closed);
        };
        let SendHalf::Packets(packets) = &flow.send else {
            return Err(SendError::Closed);
        };
        if closing || flow.reset.is_some() {
            return Err(SendError::Closed);
        }
        let limit = self.peer.max_message.min(packets.longest()) as usize;
        if message.len() > limit {
            return Err(SendError::TooLong(message.len(), limit));
        }
        let unit = packets.offered(since, message.len());
        let views = self.views.look(&self.paths, &self.waiting);
        let Some(flow) = self.flows.get_mut(&id) else {
            return Err(SendError::Closed);
        };
        let admitted = flow.scheduler.admit(now, views, &unit);
        self.planning.wish(flow);
        self.timers.wake();
        admitted.map_err(SendError::Refused)?;
        let SendHalf::Packets(packets) = &mut flow.send else {
            return Err(SendError::Closed);
        };
        let len = message.len() as u64;
        packets.allow(self.memory.sent.most(packets.held()));
        match packets.push(since, message) {
            Ok(sequence) => {
                flow.counters.written_bytes += len;
                flow.unacked_since.get_or_insert(now);
                self.memory.account(flow);
                self.activate(id);
                self.watch_rate(now, id, since);
                self.retime(id);
                Ok(sequence)
            }
            Err(error) => {
                flow.was_blocked |= error == SendError::Full;
                Err(error)
            }
        }
    }

    /// Bounds what may wait on this side of a packets flow, as [`FlowOptions::queue`] does for
    /// flows that this side opens. Does nothing if there is no such flow.
    pub fn set_queue(&mut self, id: FlowId, queue: Option<u64>) {
        if let Some(SendHalf::Packets(packets)) = self.flows.get_mut(&id).map(|f| &mut f.send) {
            packets.set_queue(queue);
            self.rewatch(id);
        }
    }

    /// Gives a flow another scheduler on this side, as [`FlowOptions::scheduler`] does for flows
    /// that this side opens. What was scheduled stays so. Does nothing if there is no such flow.
    ///
    /// # Errors
    /// [`OpenError::Scheduler`].
    pub fn set_scheduler(&mut self, id: FlowId, scheduler: Choice) -> Result<(), OpenError> {
        if let Some(flow) = self.flows.get_mut(&id) {
            check_scheduler(scheduler, flow.kind).map_err(OpenError::Scheduler)?;
            (flow.scheduler, flow.choice) = (scheduler.make(), scheduler);
            self.planning.on_scheduler(&*flow.scheduler);
            self.planning.wish(flow);
            self.timers.wake();
            self.plan_for(id);
        }
        Ok(())
    }

    /// Gives a flow another priority on this side, 0 (served first) to 7. The peer's stays as it
    /// is.
    ///
    /// # Errors
    /// [`OpenError::Priority`].
    pub fn set_priority(&mut self, id: FlowId, priority: u8) -> Result<(), OpenError> {
        if priority > LEAST_PRIORITY {
            return Err(OpenError::Priority(priority));
        }
        if self.flows.get(&id).is_some_and(|f| f.priority != priority) {
            self.reclass(id, |flow| flow.priority = priority);
        }
        Ok(())
    }

    /// Changes something of which a flow's class depends.
    pub(super) fn reclass(&mut self, id: FlowId, change: impl FnOnce(&mut Flow)) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        self.waiting.withdraw(flow);
        self.share.move_back(flow, change);
        self.share.note_change(flow);
        self.waiting.account(flow);
        self.timers.wake();
        // Less may wait before others now.
        self.planning.widen(Scope::Concerned);
    }

    /// Reads the next bytes of a stream, at most `max`.
    pub fn read(&mut self, now: Instant, id: FlowId, max: usize) -> Chunk {
        let Some(flow) = self.flows.get_mut(&id) else {
            return Chunk::Finished;
        };
        let RecvHalf::Stream(recv) = &mut flow.recv else {
            return Chunk::Finished;
        };
        let chunk = recv.read(max);
        match &chunk {
            Chunk::Data(data) => {
                flow.counters.read_bytes += data.len() as u64;
                self.credit.on_read(data.len() as u64);
                self.on_read(now, id);
                self.renew_stream(now, id);
                self.renew_credit(id);
            }
            Chunk::Blocked => flow.readable_announced = false,
            Chunk::Finished | Chunk::Reset(_) => {
                flow.end_read = true;
                self.reap(id);
            }
        }
        chunk
    }

    /// The next message of a packets flow, or how things stand.
    ///
    /// After the session's end nothing is waited for any more: the peer believes that what has
    /// arrived was delivered.
    pub fn receive(&mut self, now: Instant, id: FlowId) -> Chunk {
        let closing = self.ending.is_some();
        let Some(flow) = self.flows.get_mut(&id) else {
            return Chunk::Finished;
        };
        let RecvHalf::Packets(recv) = &mut flow.recv else {
            return Chunk::Finished;
        };
        if closing {
            recv.let_go();
        }
        if let Some(message) = recv.read() {
            flow.counters.read_bytes += message.len() as u64;
            self.on_read(now, id);
            return Chunk::Data(message);
        }
        if let Some(code) = recv.reset_code() {
            flow.end_read = true;
            self.reap(id);
            return Chunk::Reset(code);
        }
        if recv.is_finished() {
            flow.end_read = true;
            self.reap(id);
            return Chunk::Finished;
        }
        flow.readable_announced = false;
        Chunk::Blocked
    }

    /// Flows that are not over yet on both sides.
    pub fn open_flows(&self) -> usize {
        self.flows.len()
    }

    /// The flow has, or may have, something to send.
    pub(super) fn activate(&mut self, id: FlowId) {
        self.timers.wake();
        if let Some(flow) = self.flows.get_mut(&id)
            && flow.turn.is_none()
        {
            self.share.add(flow);
            flow.served_at = self.ageing.sent;
            self.planning.wish(flow);
            self.on_active(id);
        }
        self.plan_for(id);
    }

    /// As [`activate`](Self::activate), after something was put into a queue of the flow.
    pub(super) fn activate_queued(&mut self, id: FlowId) {
        self.activate(id);
        if let Some(flow) = self.flows.get_mut(&id) {
            self.waiting.account(flow);
        }
    }
}
