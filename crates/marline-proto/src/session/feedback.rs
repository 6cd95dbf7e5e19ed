//! Acknowledgements and losses, and what they mean for flows and control frames.

use alloc::format;
use alloc::vec::Vec;

use marline_base::{Duration, Instant};
use smallvec::SmallVec;

use super::Session;
use super::again::Arrivals;
use super::flow::Flow;
use super::share::{Scope, class_of};
use crate::event::Event;
use crate::flow::{RecvHalf, SendHalf, Symbol};
use crate::law::Arrival;
use crate::observe::{PathMetrics, Record};
use crate::path::{Control, EmissionKind, Health, LOSSY, SentFrame, Settled, Timing, trips};
use crate::sched::{Feedback, Outcome, PathView};
use crate::wire::{Ack, FlowId, FlowKind, PathId, close_code};

/// What the path's own way back would report no more than this much later can wait: less gains
/// nothing that anybody feels. A choice, not tuned.
const EARLY: Duration = Duration::from_millis(5);

/// Time between two reports to observers of how a path stands: a curve of them shows what a round
/// trip changes, at a fiftieth of the cost of one for each acknowledgement.
const METRICS: Duration = Duration::from_millis(100);

impl Session {
    pub(super) fn on_ack(&mut self, now: Instant, via: PathId, ack: &Ack) {
        self.timers.path = None;
        let max_ack_delay = self.peer_ack_delay();
        // An acknowledgement may outlive its path.
        let Some(index) = self.path_index(ack.path) else {
            return;
        };
        if via != ack.path && self.tells_early(now, index, ack) {
            return self.on_silence(now, index, ack);
        }
        let path = &mut self.paths[index];
        let prior_in_flight = path.ledger.in_flight();
        let in_time = path.in_time(max_ack_delay);
        let mut acked = match path.ledger.on_ack(now, &ack.ranges) {
            Ok(acked) => acked,
            Err(never) => {
                let id = ack.path.0;
                let reason = format!("acknowledged packet {} of path {id}, never sent", never.0);
                self.fail(close_code::PROTOCOL, reason);
                return;
            }
        };
        path.size.on_acked(&ack.ranges);
        let delay = Duration::from_micros(ack.delay_us).min(max_ack_delay);
        if via == ack.path {
            if let Some(sent) = ack.largest().and_then(|number| path.relayed.take(number)) {
                // The peer wrote this when another path had brought the report: of its promise that
                // says nothing.
                let delay = Duration::from_micros(ack.delay_us);
                path.on_own_way_back(now, sent, delay);
            }
            if let Some(latest) = ack.arrivals.first() {
                let written = latest.at_us.saturating_add(ack.delay_us);
                path.one_way.on_way_back(now, written);
                self.observer.on(
                    now,
                    &Record::Heard {
                        path: via,
                        written_us: written,
                    },
                );
                if path.one_way.take_jump() {
                    path.on_clock_jump();
                }
            }
        }
        if acked.is_empty() {
            self.conclude_size(now, index);
            return self.on_silence(now, index, ack);
        }
        // RFC 9002 §5.1: a sample only if the largest is newly acknowledged and eliciting counts.
        let eliciting = acked.iter().any(|p| p.eliciting);
        let largest = acked.iter().find(|p| Some(p.number) == ack.largest());
        if via != ack.path {
            for packet in acked.iter().filter(|p| p.eliciting) {
                path.relayed.push(packet.number, packet.sent);
            }
        }
        let trip = largest.filter(|_| eliciting).map(|p| now.since(p.sent));
        let rtt = if via == ack.path {
            // Timers go by what the newest took (RFC 9002 §5.3), windows by what all took.
            let newest = trip.map(|rtt| path.rtt.sample(now, rtt, delay));
            trips::overtaken(now, ack, &acked).or(newest)
        } else {
            trip.into_iter().for_each(|rtt| path.rtt.guess(rtt));
            None
        };
        let mut heard = now;
        if let Some(latest) = ack.arrivals.first()
            && via != ack.path
            && let Some(at) = path.one_way.by_own_way(latest.at_us)
        {
            heard = at.min(now + path.rtt.smoothed()).max(now);
        }
        let rtt = rtt.or(path.own_trip.take());
        let timing = Timing { rtt, heard };
        // Both run upwards, except from one range of packets to the next.
        let mut at = 0;
        for arrival in ack.arrivals.iter().rev() {
            let is_it = |p: &Settled| p.number == arrival.packet;
            if !acked.get(at).is_some_and(is_it) {
                match acked.iter().position(is_it) {
                    Some(found) => at = found,
                    None => continue,
                }
            }
            let packet = &mut acked[at];
            at += 1;
            packet.arrived_us = Some(arrival.at_us);
            let (number, at_us) = (arrival.packet, arrival.at_us);
            let beyond = path.one_way.on_arrival(now, number, packet.sent, at_us);
            if path.one_way.take_jump() {
                path.on_clock_jump();
            }
            if packet.eliciting {
                let arrival = Arrival {
                    number,
                    sent: packet.sent,
                    size: packet.size,
                    at_us,
                    beyond,
                    left: packet.left,
                    own_way: via == ack.path,
                };
                path.on_arrival(now, &arrival);
            }
        }
        let lost = path.ledger.detect_lost(now, &path.rtt);
        path.on_settled(now, &acked, &lost, timing, prior_in_flight, max_ack_delay);
        self.conclude_size(now, index);
        let carries =
            |f: &SentFrame| matches!(f, SentFrame::Data { .. } | SentFrame::Repair { .. });
        let is_data = |p: &&Settled| p.eliciting && p.frames.iter().any(carries);
        if acked.iter().any(|p| p.eliciting) {
            // What was sent before the doubt may only be acknowledged late: it clears nothing.
            let trial = self.paths[index].trial();
            let since = trial.map_or(Instant::ZERO, |trial| trial.since);
            let on_trial = || acked.iter().filter(|p| p.sent >= since);
            let packets = on_trial().filter(|p| p.eliciting).count() as u32;
            let with_data = on_trial().filter(is_data).count() as u32;
            self.on_alive(now, index, packets, with_data);
        }
        // What arrived before the path went dark, another one may still report.
        let by_own_way = |p: &&Settled| p.eliciting && via == ack.path;
        if matches!(self.paths[index].health, Health::Suspect(_)) {
            for packet in acked.iter().filter(by_own_way) {
                if now.since(packet.sent) <= in_time {
                    self.on_answer_in_time(now, index, packet.sent);
                }
            }
        }
        let id = ack.path;
        // Timers, room and ends of flows are looked at once for all packets.
        let mut flows = SmallVec::new();
        for packet in &acked {
            self.on_packet_acked(now, (id, via), packet, &mut flows);
        }
        self.tell_metrics(now, index);
        flows.sort_unstable();
        flows.dedup();
        for flow in flows {
            self.settle_units(now, flow);
            self.retime(flow);
            self.notify_writable(flow);
            self.reap(flow);
        }
        self.on_packets_lost(now, index, lost);
        self.clear_if_only_late(now, index);
        self.planning.widen(Scope::Concerned);
    }

    /// Tells observers how a path stands, if some time has passed.
    fn tell_metrics(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        let due = path.metrics_at.is_none_or(|at| now.since(at) >= METRICS);
        if !due || !self.observer.listens() {
            return;
        }
        path.metrics_at = Some(now);
        let metrics = PathMetrics {
            path: path.id,
            srtt: path.rtt.smoothed(),
            rtt_var: path.rtt.variation(),
            min_rtt: path.rtt.min(),
            cwnd: path.controller.window(),
            in_flight: path.in_flight(),
            rate: path.rate(),
            loss: path.loss.fraction(),
        };
        self.observer.on(now, &Record::PathMetrics(metrics));
    }

    /// Does the acknowledgement, which came another way, show no gap, and would the path's own way
    /// back tell as much, only later? Then it is left to that, by which the path's round trips and
    /// rates are known, unless that way is in doubt.
    fn tells_early(&self, now: Instant, index: usize, ack: &Ack) -> bool {
        let path = &self.paths[index];
        let overdue = path.overdue(now, self.peer_ack_delay());
        if overdue > 0 || !matches!(path.health, Health::Active) {
            return false;
        }
        let own = |at_us| path.one_way.by_own_way(at_us);
        let later = ack.arrivals.first().and_then(|latest| own(latest.at_us));
        let gapless = |range| path.ledger.leaves_no_gap(range);
        later.is_none_or(|later| later > now + EARLY) && ack.ranges.first().is_some_and(gapless)
    }

    /// The peer says once more what arrived on a path. What should have arrived before it wrote
    /// that is late or lost; on a path that loses packets it is sent again, sooner than the next
    /// that arrives there would show the gap.
    fn on_silence(&mut self, now: Instant, index: usize, ack: &Ack) {
        let path = &self.paths[index];
        let Some(latest) = ack.arrivals.first() else {
            return;
        };
        if path.loss.fraction() < LOSSY || !matches!(path.health, Health::Active) {
            return;
        }
        let from = latest.packet + 1;
        let missing = path.missing(from, latest.at_us.saturating_add(ack.delay_us));
        if missing > 0 {
            let flows = &self.flows;
            // Repair symbols that come anyway bring it back, and copies would only delay them.
            let is_coding = |id| {
                let flow: Option<&Flow> = flows.get(&id);
                flow.and_then(|f| f.scheduler.coding_interval()).is_some()
            };
            let symbols = self.paths[index]
                .ledger
                .rescue(from, missing, |id| !is_coding(id));
            // It may last as long again as it has.
            let silent = Duration::from_micros(ack.delay_us);
            let doubt = silent.min(self.paths[index].rtt.smoothed());
            self.send_rescued(now, index, symbols, EmissionKind::Copy, doubt);
        }
    }

    pub(super) fn on_packets_lost(&mut self, now: Instant, index: usize, lost: Vec<Settled>) {
        let id = self.paths[index].id;
        if let Some(newest) = lost.iter().map(|p| p.sent).max() {
            self.planning.widen(Scope::Concerned);
            self.on_losses(now, index, newest);
        }
        for packet in lost {
            self.on_frames_lost(now, id, packet);
        }
    }

    /// Adds to `flows` those that hold less now.
    fn on_packet_acked(
        &mut self,
        now: Instant,
        (path, via): (PathId, PathId),
        packet: &Settled,
        flows: &mut SmallVec<[FlowId; 8]>,
    ) {
        let (sent, arrived_us) = (packet.sent, packet.arrived_us);
        let own_way = via == path;
        self.observer.on(
            now,
            &Record::Acked {
                path,
                packet: packet.number,
                size: packet.size,
                after: now.since(packet.sent),
                arrived_us,
                spurious: packet.spurious,
            },
        );
        for &frame in &packet.frames {
            match frame {
                SentFrame::Data {
                    flow,
                    symbol,
                    fin,
                    kind,
                } => {
                    let feedback = Feedback {
                        symbol,
                        kind,
                        path,
                        outcome: Outcome::Acked,
                        sent,
                        arrived_us,
                        own_way,
                    };
                    self.on_symbol_acked(now, flow, feedback, fin);
                    if flows.last() != Some(&flow) {
                        flows.push(flow);
                    }
                }
                SentFrame::Repair { flow, symbol } => {
                    let feedback = Feedback {
                        symbol,
                        kind: EmissionKind::Repair,
                        path,
                        outcome: Outcome::Acked,
                        sent,
                        arrived_us,
                        own_way,
                    };
                    self.on_repair_settled(now, flow, &feedback);
                }
                SentFrame::Forward { flow: id, sequence } => {
                    if let Some(flow) = self.flows.get_mut(&id)
                        && let SendHalf::Packets(packets) = &mut flow.send
                    {
                        packets.on_forward_acked(sequence);
                    }
                    self.reap(id);
                }
                SentFrame::Control(control) => self.on_control_acked(control),
            }
        }
    }

    fn on_symbol_acked(&mut self, now: Instant, id: FlowId, feedback: Feedback, fin: bool) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let record = |delay| flow.delays.record(delay);
        let new = flow.send.on_acked(now, &feedback.symbol, fin, record);
        flow.counters.acked_bytes += new;
        if new > 0 {
            flow.unacked_since = (flow.send.held() > 0).then_some(now);
        }
        if new == 0 && feedback.kind != EmissionKind::Copy {
            flow.send.on_acked_late(&feedback.symbol);
        }
        // What the code brought back first still says how late its path is, and what comes when a
        // unit is decoded or over, how its path serves and when its bottleneck is free: the slower
        // path's symbols are often those that were not needed any more.
        if new > 0 || flow.coder.is_some() || in_units(flow.kind) {
            self.common.on_feedback(&feedback);
            flow.scheduler.on_feedback(now, &feedback);
            self.planning.wish(flow);
        }
        if let Some(coder) = &mut flow.coder {
            coder.on_settled(&feedback.symbol, &flow.send);
        }
    }

    fn on_control_acked(&mut self, control: Control) {
        match control {
            Control::OpenFlow(id) => {
                if let Some(flow) = self.flows.get_mut(&id) {
                    flow.announced = true;
                }
                // A copy of the same report may still be due.
                self.egress.control.remove(&control);
            }
            Control::ResetFlow(id) => {
                if let Some(flow) = self.flows.get_mut(&id) {
                    flow.reset_acked = true;
                }
                self.egress.control.remove(&control);
                self.reap(id);
            }
            Control::Finish(id) => {
                match self.flows.get_mut(&id).map(|flow| &mut flow.send) {
                    Some(SendHalf::Packets(packets)) => packets.on_finish_acked(),
                    Some(SendHalf::Units(units)) => units.on_finish_acked(),
                    Some(SendHalf::Stream(_)) | None => {}
                }
                self.egress.control.remove(&control);
                self.reap(id);
            }
            Control::PathAbandon(_) => {
                self.egress.control.remove(&control);
            }
            Control::UnitFate(id, unit) => {
                if let Some(units) = self.units_recv(id) {
                    units.on_verdict_heard(unit);
                }
            }
            Control::UnitShort(id, unit) => {
                if let Some(units) = self.units_recv(id) {
                    units.on_short_heard(unit);
                }
            }
            // The peer's word on the unit settles the matter.
            Control::CancelUnit(..)
            | Control::StopSending(_)
            | Control::FlowReport(_)
            | Control::Forward(_)
            | Control::MaxData
            | Control::MaxFlowData(_)
            | Control::MaxFlows
            | Control::CodeStatus(_)
            | Control::PathStatus(_)
            | Control::PathCost(_)
            | Control::PathQuiet(_) => {}
        }
    }

    pub(super) fn on_frames_lost(&mut self, now: Instant, path: PathId, packet: Settled) {
        self.observer.on(
            now,
            &Record::Lost {
                path,
                packet: packet.number,
                after: now.since(packet.sent),
            },
        );
        for frame in packet.frames {
            match frame {
                SentFrame::Data {
                    flow, symbol, kind, ..
                } => {
                    let feedback = Feedback {
                        symbol,
                        kind,
                        path,
                        outcome: Outcome::Lost,
                        sent: packet.sent,
                        arrived_us: None,
                        own_way: false,
                    };
                    self.on_symbol_lost(now, flow, feedback, packet.rescued);
                }
                SentFrame::Repair { flow, symbol } => {
                    let feedback = Feedback {
                        symbol,
                        kind: EmissionKind::Repair,
                        path,
                        outcome: Outcome::Lost,
                        sent: packet.sent,
                        arrived_us: None,
                        own_way: false,
                    };
                    self.on_repair_settled(now, flow, &feedback);
                }
                // Written from the state of the moment, so sending it twice does no harm.
                SentFrame::Forward { flow, .. } => self.say_again(Control::Forward(flow)),
                SentFrame::Control(control) => self.say_again(control),
            }
        }
    }

    fn on_symbol_lost(&mut self, now: Instant, id: FlowId, feedback: Feedback, rescued: bool) {
        let symbol = feedback.symbol;
        let source = feedback.kind == EmissionKind::Source;
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        if source
            && flow.reset.is_none()
            && let SendHalf::Packets(packets) = &mut flow.send
        {
            packets.on_source_lost(&symbol);
        }
        flow.send.on_lost(&symbol);
        if feedback.kind == EmissionKind::Repair {
            flow.scheduler.on_feedback(now, &feedback);
            self.planning.wish(flow);
            return self.settle_units(now, id);
        }
        if flow.reset.is_some() || flow.send.is_settled(&symbol) {
            if in_units(flow.kind) {
                flow.scheduler.on_feedback(now, &feedback);
                self.planning.wish(flow);
            }
            return self.settle_units(now, id);
        }
        flow.scheduler.on_feedback(now, &feedback);
        self.planning.wish(flow);
        // Another copy that waits or flies decides; its loss would come here too.
        let trusted = self.paths.iter();
        let trusted = trusted.filter(|p| matches!(p.health, Health::Active));
        let trusted: SmallVec<[PathId; 4]> = trusted.map(|p| p.id).collect();
        let waits = flow.queues.rely_on(&symbol, source, &trusted);
        // A rescued packet's symbols were copied when the path fell, and most arrived.
        let copied = rescued || self.paths.len() > 1;
        if waits || (copied && self.comes_soon(now, id, &symbol, source)) {
            return;
        }
        if self.waits_for_code(now, id, &symbol) {
            return;
        }
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        if flow.send.write_off(&symbol) {
            return;
        }
        flow.lost.push_back(symbol);
        self.activate(id);
    }

    /// Is a copy of the symbol on its way that arrives before a retransmission would? A path in
    /// doubt is nobody's only hope.
    fn comes_soon(&self, now: Instant, id: FlowId, symbol: &Symbol, source: bool) -> bool {
        let Some(flow) = self.flows.get(&id) else {
            return false;
        };
        let trusted = self.paths.iter();
        let trusted = trusted.filter(|p| matches!(p.health, Health::Active));
        let copies = trusted.filter_map(|p| {
            let sent = p.ledger.first_sent(id, symbol, source)?;
            Some(sent + p.rtt.smoothed() / 2)
        });
        copies.min().is_some_and(|copy| {
            let again = self.soonest_again(now, flow, symbol.len);
            again.is_none_or(|again| copy <= now + again)
        })
    }

    /// Expected time until `len` bytes of the flow that are sent again now have arrived, on the
    /// path that is the quickest for that; `None` if no path is usable.
    pub(super) fn soonest_again(&self, now: Instant, flow: &Flow, len: u32) -> Option<Duration> {
        let views: SmallVec<[PathView; 4]> = self.view_usable().collect();
        let arrivals = Arrivals::by(now, &views);
        let again = views.into_iter().map(|view| {
            let own = flow.queues.bytes(view.id);
            let queued = self.waiting.ahead(view.id, class_of(flow), own);
            let view = flow.view_again(&PathView { queued, ..view }, own);
            arrivals.after(&view, len)
        });
        again.min()
    }

    pub(super) fn say_again(&mut self, control: Control) {
        if !self.is_wanted(control) {
            return;
        }
        match control {
            Control::FlowReport(_) => self.egress.asides.insert(control),
            _ => self.egress.control.insert(control),
        };
    }

    /// Would the control frame still tell the peer something?
    fn is_wanted(&self, control: Control) -> bool {
        match control {
            Control::OpenFlow(id) => self.flows.get(&id).is_some_and(|f| !f.announced),
            Control::ResetFlow(id) => self.flows.get(&id).is_some_and(|f| !f.reset_acked),
            Control::MaxFlowData(id) if !self.is_ours(id) && !self.flows.contains_key(&id) => {
                self.starts.granted(id.index()).is_some()
            }
            Control::StopSending(id) | Control::MaxFlowData(id) | Control::FlowReport(id) => {
                self.flows.get(&id).is_some_and(|f| !f.recv.is_complete())
            }
            Control::Forward(id) => match self.flows.get(&id).map(|f| &f.send) {
                Some(SendHalf::Packets(packets)) => packets.must_forward(),
                _ => false,
            },
            Control::CancelUnit(id, unit) => match self.flows.get(&id).map(|f| &f.send) {
                Some(SendHalf::Units(units)) => units.cancel_frame(id, unit).is_some(),
                _ => false,
            },
            Control::UnitFate(id, unit) => match self.flows.get(&id).map(|f| &f.recv) {
                Some(RecvHalf::Units(units)) => units.verdict(unit).is_some(),
                _ => false,
            },
            Control::UnitShort(id, unit) => match self.flows.get(&id).map(|f| &f.recv) {
                Some(RecvHalf::Units(units)) => units.is_short(unit),
                _ => false,
            },
            Control::Finish(id) => self.flows.get(&id).is_some_and(|f| f.reset.is_none()),
            Control::MaxData | Control::MaxFlows => true,
            Control::PathStatus(id) | Control::PathCost(id) | Control::PathQuiet(id) => {
                self.path_index(id).is_some()
            }
            Control::PathAbandon(id) => self.paths.was_abandoned(id),
            Control::CodeStatus(id) => self.flows.get(&id).is_some_and(|f| f.decoder.is_some()),
        }
    }

    /// Tells the application that a flow that refused a write has room again.
    pub(super) fn notify_writable(&mut self, id: FlowId) {
        self.account(id);
        if self.flows.get(&id).is_some_and(|f| f.was_blocked)
            && self.writable(id) > 0
            && let Some(flow) = self.flows.get_mut(&id)
        {
            flow.was_blocked = false;
            self.events.push_back(Event::FlowWritable(id));
        }
    }
}

/// Do applications write blocks or objects, any symbols of which bring them back?
fn in_units(kind: FlowKind) -> bool {
    matches!(kind, FlowKind::Blocks | FlowKind::Objects)
}
