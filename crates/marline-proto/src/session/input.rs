//! Datagrams come in.

use alloc::format;
use alloc::string::String;

use bytes::Bytes;
use marline_base::{Duration, Instant};

use super::Session;
use super::code::symbol_of;
use super::flow::{Flow, FlowSpec};
use super::share::Scope;
use crate::event::{CloseReason, Event};
use crate::flow::{PacketsRecv, RecvHalf, SendHalf, Symbol};
use crate::observe::Record;
use crate::path::Control;
use crate::wire::{
    self, Availability, Content, DeliveryOrder, FlowId, FlowKind, FlowReport, Frame, OpenFlow,
    PathId, ResetFlow, StopSending, UnitRepair, close_code,
};

/// What a frame brings of a flow, for observers.
struct Brought {
    flow: FlowId,
    symbol: Option<Symbol>,
}

impl Brought {
    fn of(frame: &Frame<'_>) -> Option<Self> {
        let symbol = |unit, offset, data: &[u8]| {
            let len = data.len() as u32;
            Some(Symbol { unit, offset, len })
        };
        let (flow, symbol) = match frame {
            Frame::Stream(f) => (f.flow, symbol(0, f.offset, f.data)),
            Frame::Packet(f) => (f.flow, symbol(f.sequence, 0, f.data)),
            Frame::PacketPart(f) => (f.flow, symbol(f.sequence, f.offset, f.data)),
            Frame::Unit(f) => (f.flow, symbol(f.unit, f.offset, f.data)),
            Frame::UnitRepair(f) => (f.flow, symbol(f.unit, repair_offset(f), f.data)),
            Frame::UnitCancel(f) => (f.flow, None),
            Frame::Forward(f) => (f.flow, None),
            Frame::Symbol(f) => (
                f.flow,
                Content::decode(f.content).ok().map(|c| symbol_of(&c)),
            ),
            _ => return None,
        };
        Some(Self { flow, symbol })
    }
}

/// Where a repair symbol stands, beyond the end of its unit.
fn repair_offset(frame: &UnitRepair<'_>) -> u64 {
    let len = frame.data.len() as u64;
    (frame.size.div_ceil(len) + u64::from(frame.index)) * len
}

/// Does the frame bring bytes of a flow and nothing else? What a session may send changes with it
/// only by an acknowledgement that is due, or by what its flow asks for.
fn is_data(frame: &Frame<'_>) -> bool {
    matches!(
        frame,
        Frame::Padding { .. }
            | Frame::Stream(_)
            | Frame::Packet(_)
            | Frame::PacketPart(_)
            | Frame::Symbol(_)
    )
}

impl Session {
    /// Takes a datagram that the carrier authenticated.
    ///
    /// Whatever it holds, memory stays within the bounds of the configuration; a peer that breaks
    /// the protocol ends the session with [`Event::Closed`]. Datagrams of unknown paths are
    /// dropped.
    pub fn handle_datagram(&mut self, now: Instant, id: PathId, datagram: &Bytes) {
        let rest = self.timers.rest.take();
        if self.ending.is_some() {
            return self.say_farewell_again(id);
        }
        let Some(index) = self.path_index(id) else {
            return;
        };
        let (header, frames) = match wire::decode(datagram) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.fail(close_code::MALFORMED, format!("{error}"));
                return;
            }
        };
        let path = &mut self.paths[index];
        let fresh = !path.received.is_duplicate(header.packet);
        path.counters.received_packets += 1;
        path.counters.received_bytes += datagram.len() as u64;
        path.counters.duplicate_packets += u64::from(!fresh);
        let numbered = &mut path.counters.numbered_packets;
        *numbered = header.packet.saturating_add(1).max(*numbered);
        self.timers.last_received = now;
        self.observer.on(
            now,
            &Record::Received {
                path: id,
                packet: header.packet,
                size: datagram.len(),
                duplicate: !fresh,
            },
        );
        if !fresh {
            return;
        }
        self.learn_start(now, datagram.len());
        let (mut eliciting, mut asked) = (false, false);
        // Whatever ends the rest because of what is in the datagram still does.
        self.timers.rest = rest;
        for frame in frames {
            match frame {
                Ok(frame) => {
                    // As if it were lost: it comes again after the flow's opening.
                    if self.is_early(&frame) {
                        self.timers.wake();
                        return;
                    }
                    if !is_data(&frame) {
                        self.timers.wake();
                    }
                    eliciting |= frame.is_ack_eliciting();
                    asked |= matches!(frame, Frame::Ping);
                    let brought = self
                        .observer
                        .listens()
                        .then(|| Brought::of(&frame))
                        .flatten();
                    self.on_frame(now, id, datagram, frame);
                    if let Some(Brought { flow, symbol }) = brought {
                        self.tell_progress(now, flow, symbol);
                    }
                }
                Err(error) => self.fail(close_code::MALFORMED, format!("{error}")),
            }
            if self.ending.is_some() {
                self.timers.wake();
                return;
            }
        }
        if eliciting && !asked {
            self.note_traffic(now);
        }
        if eliciting {
            self.on_ping_in_reserve(now, id);
        }
        let longest = self.config.max_ack_delay;
        let (mut sooner, first) = (false, self.timers.path.map(|(at, _)| at));
        let peer_ack_delay = self.peer_ack_delay();
        if let Some(path) = self.path_mut(id) {
            let oldest = first.and_then(|_| path.ledger.oldest_open());
            let before = oldest.and_then(|oldest| path.silent_if(oldest));
            path.received.insert(header.packet, now);
            if path.quiet.on_received() {
                path.last_progress = now;
            }
            if eliciting {
                path.last_eliciting_received = now;
                let delay = path.ack_delay(longest);
                path.received.on_eliciting(header.packet, now, delay);
                let silent = oldest.and_then(|oldest| path.silent_if(oldest));
                sooner = silent.is_some_and(|at| before.is_none_or(|before| at < before))
                    && path
                        .feedback_at(peer_ack_delay)
                        .is_some_and(|at| Some(at) < first);
            }
            if asked {
                path.received.on_ping(now);
            }
        }
        // The pace of the peer's packets says when a silence begins, perhaps before the timer that
        // is known to be the first.
        if sooner {
            self.timers.path = None;
        }
        if let Some(rest) = self.timers.rest.take() {
            self.rest_on(now, &rest);
        }
    }

    /// Tells the observer how far a flow's receiver is.
    pub(super) fn tell_progress(&mut self, now: Instant, flow: FlowId, symbol: Option<Symbol>) {
        let frontier = self.flows.get(&flow).map(|f| match &f.recv {
            RecvHalf::Stream(stream) => (0, stream.received()),
            RecvHalf::Packets(packets) => (packets.frontier(), 0),
            RecvHalf::Units(_) => (u64::MAX, 0),
        });
        let record = Record::Progress {
            flow,
            symbol,
            frontier: frontier.unwrap_or((u64::MAX, 0)),
        };
        self.observer.on(now, &record);
    }

    /// Is the frame about a flow that the peer may open and has not opened?
    fn is_early(&self, frame: &Frame<'_>) -> bool {
        let id = match frame {
            Frame::Stream(f) => f.flow,
            Frame::Packet(f) => f.flow,
            Frame::PacketPart(f) => f.flow,
            Frame::ResetFlow(f) => f.flow,
            Frame::StopSending(f) => f.flow,
            Frame::Forward(f) => f.flow,
            Frame::Finish(f) => f.flow,
            Frame::Unit(f) => f.flow,
            Frame::UnitRepair(f) => f.flow,
            Frame::UnitCancel(f) => f.flow,
            Frame::UnitFate(f) => f.flow,
            Frame::MaxFlowData(f) => f.flow,
            Frame::Symbol(f) => f.flow,
            Frame::Repair(f) => f.flow,
            _ => return false,
        };
        !self.flows.contains_key(&id)
            && !self.is_ours(id)
            && !self.numbers.was_opened_by_peer(id.index())
    }

    pub(super) fn on_frame(
        &mut self,
        now: Instant,
        via: PathId,
        datagram: &Bytes,
        frame: Frame<'_>,
    ) {
        match frame {
            Frame::Padding { .. } | Frame::Ping => {}
            Frame::Ack(ack) => self.on_ack(now, via, &ack),
            Frame::OpenFlow(open) => self.on_open_flow(&open),
            Frame::ResetFlow(reset) => self.on_reset(now, reset),
            Frame::StopSending(stop) => self.on_stop_sending(stop),
            Frame::Stream(stream) => {
                if let Some(flow) = self.receiving(stream.flow, FlowKind::Stream) {
                    let data = datagram.slice_ref(stream.data);
                    if let RecvHalf::Stream(recv) = &mut self.flow(flow).recv {
                        let result = recv.receive(stream.offset, data, stream.fin);
                        self.after_stream(now, flow, result);
                    }
                }
            }
            Frame::Packet(packet) => {
                if let Some(flow) = self.receiving(packet.flow, FlowKind::Packets) {
                    let data = datagram.slice_ref(packet.data);
                    if let Some(recv) = self.packets_recv(flow) {
                        recv.receive(now, packet.sequence, data);
                        self.after_packet(now, flow, Ok(()));
                    }
                }
            }
            Frame::PacketPart(part) => {
                if let Some(flow) = self.receiving(part.flow, FlowKind::Packets)
                    && let Some(recv) = self.packets_recv(flow)
                {
                    let (sequence, offset) = (part.sequence, part.offset);
                    let result = recv.receive_part(now, sequence, offset, part.total, part.data);
                    self.after_packet(now, flow, result);
                }
            }
            Frame::Forward(forward) => {
                if let Some(flow) = self.receiving(forward.flow, FlowKind::Packets)
                    && let RecvHalf::Packets(recv) = &mut self.flow(flow).recv
                {
                    recv.forward(forward.sequence);
                    self.after_packet(now, flow, Ok(()));
                }
            }
            Frame::Unit(frame) => self.on_unit(now, &frame),
            Frame::UnitRepair(frame) => self.on_unit_repair(now, &frame),
            Frame::UnitCancel(frame) => self.on_unit_cancel(now, &frame),
            Frame::UnitFate(frame) => self.on_unit_fate(now, frame),
            Frame::Finish(finish) if self.has_units(finish.flow) => {
                self.on_units_finished(now, finish);
            }
            Frame::Finish(finish) => {
                if let Some(flow) = self.receiving(finish.flow, FlowKind::Packets)
                    && let RecvHalf::Packets(recv) = &mut self.flow(flow).recv
                {
                    if recv.finish(finish.sequence).is_err() {
                        let reason = format!("flow {} changed its end", finish.flow.0);
                        return self.fail(close_code::FINAL_SIZE, reason);
                    }
                    self.after_packet(now, flow, Ok(()));
                }
            }
            Frame::FlowReport(report) => self.on_flow_report(&report),
            Frame::Symbol(symbol) => self.on_source_symbol(now, via, datagram, &symbol),
            Frame::Repair(repair) => self.on_repair_symbol(now, via, &repair),
            Frame::CodeStatus(status) => self.on_code_status(now, &status),
            Frame::MaxData(credit) => {
                if self.credit.on_granted(credit.max) {
                    for flow in self.planning.take_starved() {
                        self.activate(flow);
                    }
                    self.planning.widen(Scope::Concerned);
                }
            }
            Frame::MaxFlowData(credit) => {
                let raised = match self.flows.get_mut(&credit.flow).map(|f| &mut f.send) {
                    Some(SendHalf::Stream(send)) => send.raise_credit(credit.max),
                    Some(SendHalf::Units(send)) => send.raise_credit(credit.max),
                    Some(SendHalf::Packets(_)) | None => false,
                };
                if self.is_ours(credit.flow) {
                    let (index, next) = (credit.flow.index(), self.numbers.unopened());
                    self.starts.on_given(index, credit.max, next);
                }
                if raised {
                    self.activate(credit.flow);
                    self.notify_writable(credit.flow);
                }
            }
            Frame::MaxFlows(limit) => {
                self.numbers.on_limit(limit.max);
            }
            Frame::PathStatus(status) => {
                let standby = status.status == Availability::Standby;
                self.on_peer_standby(now, status.path, standby, status.sequence);
            }
            Frame::PathCost(cost) => self.on_peer_cost(&cost),
            Frame::PathQuiet(frame) => self.on_peer_quiet(&frame),
            Frame::PathAbandon(abandon) => {
                if let Some(index) = self.path_index(abandon.path) {
                    self.drop_path(now, index);
                    self.events.push_back(Event::PathAbandoned(abandon.path));
                }
            }
            Frame::Close(close) => self.end(CloseReason::Peer {
                code: close.code,
                reason: String::from(close.reason),
            }),
        }
    }

    /// The flow that data arrived for, if it exists and is of that kind. Data for a flow that is
    /// over is dropped; anything else that does not fit ends the session.
    pub(super) fn receiving(&mut self, id: FlowId, kind: FlowKind) -> Option<FlowId> {
        match self.flows.get(&id) {
            Some(flow) if flow.kind == kind => Some(id),
            Some(_) => {
                let reason = format!("data of another kind for flow {}", id.0);
                self.fail(close_code::PROTOCOL, reason);
                None
            }
            None => {
                if self.is_ours(id) && id.index() >= self.numbers.unopened() {
                    let reason = format!("data for flow {}, which was never opened", id.0);
                    self.fail(close_code::PROTOCOL, reason);
                }
                None
            }
        }
    }

    /// The receiving half of a packets flow that something arrived for, with the memory that it
    /// may use now.
    fn packets_recv(&mut self, id: FlowId) -> Option<&mut PacketsRecv> {
        let flow = self.flows.get_mut(&id)?;
        let RecvHalf::Packets(recv) = &mut flow.recv else {
            return None;
        };
        let most = self.memory.received.most(flow.accounted.0);
        recv.limit(most.min(self.config.flow_window));
        Some(recv)
    }

    fn flow(&mut self, id: FlowId) -> &mut Flow {
        match self.flows.get_mut(&id) {
            Some(flow) => flow,
            None => unreachable!("`receiving` found the flow"),
        }
    }

    fn on_open_flow(&mut self, open: &OpenFlow<'_>) {
        let id = open.flow;
        if self.is_ours(id) {
            let reason = format!("opened flow {}, whose number is ours to give", id.0);
            return self.fail(close_code::PROTOCOL, reason);
        }
        if self.numbers.was_opened_by_peer(id.index()) {
            return;
        }
        if id.index() >= self.numbers.peer_may_open() {
            let reason = format!("opened flow {} beyond the limit", id.0);
            return self.fail(close_code::FLOW_LIMIT, reason);
        }
        if open.kind.has_units() && self.config.max_units == 0 {
            let reason = format!("opened flow {} of a kind not taken", id.0);
            return self.fail(close_code::PROTOCOL, reason);
        }
        self.numbers.on_opened_by_peer(id.index());
        let spec = FlowSpec {
            kind: open.kind,
            order: open.order,
            priority: open.priority,
            lifetime: (open.lifetime_us > 0).then(|| Duration::from_micros(open.lifetime_us)),
            queue: None,
            target: Bytes::copy_from_slice(open.target),
        };
        let scheduler = self
            .config
            .scheduler(open.kind, open.order == DeliveryOrder::InOrder);
        self.insert_flow(id, spec, scheduler, true);
        self.events.push_back(Event::FlowOpened(id));
    }

    fn on_reset(&mut self, now: Instant, reset: ResetFlow) {
        let Some(flow) = self.flows.get_mut(&reset.flow) else {
            return;
        };
        // Of an application that has not read up: it may wait for something else.
        if flow.readable_announced {
            self.events.push_back(Event::FlowReadable(reset.flow));
        }
        match &mut flow.recv {
            RecvHalf::Stream(recv) => {
                let unread = recv.unread();
                let result = recv.on_reset(reset.code, reset.final_size);
                // What will never be read must not hold the session's credit.
                if let Ok(rise) = result {
                    self.credit.on_read(unread + rise);
                }
                self.after_stream(now, reset.flow, result);
                self.renew_credit(reset.flow);
            }
            RecvHalf::Packets(recv) => {
                recv.reset(reset.code);
                self.retime(reset.flow);
                self.after_receive(now, reset.flow);
            }
            RecvHalf::Units(recv) => {
                let result = recv.reset(reset.code, reset.final_size);
                self.after_unit(now, reset.flow, result);
            }
        }
    }

    fn on_stop_sending(&mut self, stop: StopSending) {
        if let Some(flow) = self.flows.get_mut(&stop.flow)
            && flow.reset.is_none()
            && !flow.send.is_done()
        {
            self.reset_send(stop.flow, stop.code);
            self.events
                .push_back(Event::FlowStopped(stop.flow, stop.code));
        }
    }

    fn after_stream(
        &mut self,
        now: Instant,
        id: FlowId,
        result: Result<u64, crate::flow::RecvError>,
    ) {
        use crate::flow::RecvError;
        match result {
            Ok(rise) => {
                if !self.credit.on_received(rise) {
                    let reason = String::from("sent more than the session's credit");
                    return self.fail(close_code::FLOW_CONTROL, reason);
                }
                self.after_receive(now, id);
            }
            Err(error) => {
                let (code, what) = match error {
                    RecvError::Credit => (close_code::FLOW_CONTROL, "sent more than its credit"),
                    RecvError::FinalSize => (close_code::FINAL_SIZE, "changed its end"),
                    RecvError::Fragments => (close_code::FLOW_CONTROL, "came in too many pieces"),
                };
                self.fail(code, format!("flow {} {what}", id.0));
            }
        }
    }

    fn after_packet(
        &mut self,
        now: Instant,
        id: FlowId,
        result: Result<(), crate::flow::Contradiction>,
    ) {
        if result.is_err() {
            let reason = format!("parts of a message of flow {} contradict each other", id.0);
            return self.fail(close_code::PROTOCOL, reason);
        }
        let recv = self.flows.get_mut(&id).map(|flow| &mut flow.recv);
        if let Some(RecvHalf::Packets(recv)) = recv
            && recv.reports(now)
        {
            self.egress.asides.insert(Control::FlowReport(id));
        }
        self.retime(id);
        self.after_receive(now, id);
    }

    pub(super) fn after_receive(&mut self, now: Instant, id: FlowId) {
        let mut is_ended = false;
        if let Some(flow) = self.flows.get_mut(&id) {
            self.memory.account(flow);
            flow.wait_for_reader(now);
            is_ended = matches!(&flow.recv, RecvHalf::Stream(stream) if stream.is_ended());
        }
        self.relieve(now);
        if is_ended {
            self.retime(id);
        }
        if let Some(flow) = self.flows.get_mut(&id) {
            if flow.stopped.is_some() {
                self.discard(id);
            } else if flow.recv.is_readable() && !flow.readable_announced {
                flow.readable_announced = true;
                self.events.push_back(Event::FlowReadable(id));
            }
        }
        self.reap(id);
    }

    /// Totals only grow: a smaller one than before is an old frame. None is larger than what was
    /// sent.
    fn on_flow_report(&mut self, report: &FlowReport) {
        let Some(flow) = self.flows.get_mut(&report.flow) else {
            return;
        };
        if let SendHalf::Packets(packets) = &flow.send {
            let counters = &mut flow.counters;
            let most = packets.count();
            counters.peer_missed = counters.peer_missed.max(report.missed.min(most));
            counters.peer_late = counters.peer_late.max(report.late.min(most));
            counters.peer_duplicates = counters.peer_duplicates.max(report.duplicates);
        }
    }

    /// Order in which a flow of ours delivers, from its option.
    pub(super) const fn order_of(ordered: bool) -> DeliveryOrder {
        if ordered {
            DeliveryOrder::InOrder
        } else {
            DeliveryOrder::AsTheyCome
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::config::Config;
    use crate::path::PathParams;
    use crate::session::Side;
    use crate::wire::Header;

    #[test]
    fn what_did_not_arrive_is_known_by_the_numbers_of_what_did() {
        let (now, path, config) = (Instant::ZERO, PathId(0), Config::default());
        let peer = config.params();
        let mut session = Session::new(now, Side::Server, config, peer, 7).unwrap();
        session.add_path(now, path, &PathParams::default()).unwrap();
        let mut hear = |packet| {
            let mut datagram = Vec::new();
            Header { packet }.encode(&mut datagram);
            Frame::Ping.encode(&mut datagram);
            session.handle_datagram(now, path, &Bytes::from(datagram));
            let counters = session.stats().paths[0].counters;
            (counters.numbered_packets, counters.missing_packets())
        };
        for (packet, expected) in [
            (0, (1, 0)),
            (2, (3, 1)),
            (2, (3, 1)),
            (6, (7, 4)),
            // One that was overtaken.
            (1, (7, 3)),
        ] {
            assert_eq!(hear(packet), expected, "packet {packet}");
        }
    }
}
