//! Datagrams go out.

use alloc::vec::Vec;

use marline_base::Instant;
use smallvec::SmallVec;

use super::Session;
use super::carry::{self, Written};
use super::flow::Awaits;
use super::share::{QUANTUM, Scope};
use super::turns::Ready;
use crate::flow::{Assigned, Due, Form, Symbol};
use crate::observe::Record;
use crate::path::{Control, EmissionKind, Health, Path, PathState, SentFrame, SentPacket};
use crate::sched::{Feedback, Outcome};
use crate::wire::{FlowId, Forward, Frame, Header, PathId};

/// A symbol is parted only if at least this much of it (bytes) fits the datagram: a part costs
/// a heading of some ten bytes.
const LEAST_SPLIT: u32 = 256;
/// A datagram is full when less than this (bytes) is left: a heading is worth no fewer. A
/// choice, not tuned.
const LEAST_ROOM: usize = 32;
/// After this many datagrams that only acknowledge, one asks for an acknowledgement itself: a side
/// that only receives must notice too when its way back is cut (RFC 9000 §13.2.4).
const ACKS_PER_PING: u32 = 16;

/// A datagram to hand to a path's carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The path.
    pub path: PathId,
    /// Its length (bytes).
    pub size: usize,
}

/// A datagram being written.
pub(super) struct Draft<'a> {
    pub(super) buf: &'a mut Vec<u8>,
    pub(super) max: usize,
    pub(super) frames: SmallVec<[SentFrame; 1]>,
    pub(super) eliciting: bool,
    pub(super) has_data: bool,
    pub(super) has_ack: bool,
}

impl Draft<'_> {
    pub(super) fn room(&self) -> usize {
        self.max.saturating_sub(self.buf.len())
    }
}

impl Session {
    /// Writes the next datagram that may leave now into `buf` (which is cleared), or returns
    /// `None` when nothing may.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        // Drivers ask far more often than there is something to send.
        match self.rests(now) {
            true => None,
            false => self.transmit(now, buf),
        }
    }

    fn transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        if self.ending.is_some() {
            return self.farewell(now, buf);
        }
        if self.has_to_plan() {
            self.plan(now);
        }
        for index in 0..self.paths.len() {
            if let Some(size) = self.unwatched_ping(now, index, buf) {
                let path = self.paths[index].id;
                return Some(Transmit { path, size });
            }
        }
        let acks = self.acks_are_due(now);
        let (ready, pacing) = self.turns(now, acks);
        let tried = !ready.is_empty();
        for Ready { index, sends, .. } in ready {
            if let Some(size) = self.compose(now, index, sends, acks, buf) {
                self.egress.last_path = index;
                if !acks {
                    self.rest_behind(now, index);
                }
                let path = self.paths[index].id;
                return Some(Transmit { path, size });
            }
        }
        if self.has_to_plan() {
            return None;
        }
        // A datagram that came to nothing may have changed what waits.
        let known = (!tried).then_some(pacing);
        self.timers.rest = Some(self.rest_until(now, known));
        None
    }

    /// A datagram has left on the path at `last`, and no acknowledgement was due: rests at once if
    /// nothing else can leave now, which the next call would only find out again. Nearly always a
    /// pacer lets one datagram go.
    fn rest_behind(&mut self, now: Instant, last: usize) {
        if !self.egress.control.is_empty() || self.has_to_plan() {
            return;
        }
        let mut pacing = None::<Instant>;
        // Most likely the same path sends again.
        for index in (last..self.paths.len()).chain(0..last) {
            let path = &self.paths[index];
            if path.probes > 0 && !path.blocked {
                return;
            }
            match self.sends_at(now, index) {
                Some(at) if at <= now => return,
                at => pacing = pacing.into_iter().chain(at).min(),
            }
        }
        self.timers.rest = Some(self.rest_until(now, Some(pacing)));
    }

    /// Writes a ping that counts neither as in flight nor as lost: one of the largest size that the
    /// carrier takes, if it is time to see whether such datagrams pass, or one that the peer asked
    /// for after a quiet time.
    fn unwatched_ping(&mut self, now: Instant, index: usize, buf: &mut Vec<u8>) -> Option<usize> {
        let path = &mut self.paths[index];
        if path.blocked || !matches!(path.health, Health::Active) {
            return None;
        }
        let packet = path.ledger.next_number();
        let least = path.quiet.is_due().then_some(0);
        let size = path.size.ping(now, packet).or(least)?;
        path.quiet.on_ping_sent();
        buf.clear();
        Header { packet }.encode(buf);
        Frame::Ping.encode(buf);
        let len = size.saturating_sub(buf.len());
        Frame::Padding { len }.encode(buf);
        let size = buf.len();
        let delivery = path.sampler.on_sent(now, path.ledger.in_flight());
        let sent = SentPacket::new(now, size as u32, false, delivery, SmallVec::new());
        path.on_sent(now, sent, true);
        let (path, in_flight) = (path.id, path.in_flight());
        self.timers.path = None;
        let record = Record::Sent {
            path,
            packet,
            size,
            in_flight,
        };
        self.observer.on(now, &record);
        Some(size)
    }

    fn farewell(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        loop {
            let path = self.ending.as_mut()?.farewells.pop();
            let Some(id) = path else {
                self.finish_ending();
                return None;
            };
            let Some(path) = self.paths.iter().find(|p| p.id == id) else {
                continue;
            };
            if path.blocked {
                continue;
            }
            buf.clear();
            let packet = path.ledger.next_number();
            Header { packet }.encode(buf);
            let frame = self.close_frame()?;
            frame.encode(buf);
            let size = buf.len();
            if let Some(path) = self.path_mut(id) {
                // A number is used once, also for the last words.
                let delivery = path.sampler.on_sent(now, path.ledger.in_flight());
                let sent = SentPacket::new(now, size as u32, false, delivery, SmallVec::new());
                path.on_sent(now, sent, true);
            }
            if self.ending.as_ref().is_some_and(|e| e.farewells.is_empty()) {
                self.finish_ending();
            }
            return Some(Transmit { path: id, size });
        }
    }

    /// Writes a datagram for the path at `index`, which [has to say](Self::has_to_say) something.
    fn compose(
        &mut self,
        now: Instant,
        index: usize,
        sends: bool,
        acks: bool,
        buf: &mut Vec<u8>,
    ) -> Option<usize> {
        let path = &mut self.paths[index];
        let id = path.id;
        let short = path.size.take_short_probe().filter(|_| path.probes > 0);
        let sends = sends && short.is_none();
        buf.clear();
        let packet = path.ledger.next_number();
        Header { packet }.encode(buf);
        let empty = buf.len();
        let mut draft = Draft {
            buf,
            max: short.unwrap_or(path.max_datagram),
            frames: SmallVec::new(),
            eliciting: false,
            has_data: false,
            has_ack: false,
        };
        if acks {
            self.write_acks(now, index, &mut draft);
            self.write_asides(&mut draft);
            // Whole messages need the room beside data.
            if draft.has_ack && !sends {
                self.write_testimony(now, index, &mut draft);
            }
        }
        if !self.egress.control.is_empty() && self.best_path() == Some(index) {
            self.write_control(&mut draft);
        }
        if sends {
            self.write_data(now, id, &mut draft);
            self.age();
        }
        let path = &mut self.paths[index];
        let silent = path.acks_alone >= ACKS_PER_PING && draft.has_ack;
        let asks = path.probes > 0 || silent && !draft.eliciting;
        if asks && draft.room() > 0 {
            Frame::Ping.encode(draft.buf);
            draft.eliciting = true;
        }
        let size = draft.buf.len();
        if size == empty {
            return None;
        }
        path.acks_alone = if draft.eliciting {
            0
        } else {
            path.acks_alone + 1
        };
        let (eliciting, frames) = (draft.eliciting, draft.frames);
        let more = eliciting && self.has_queued(id);
        let path = &mut self.paths[index];
        let in_flight = path.ledger.in_flight();
        // A window with no room for another symbol is full: schedulers queue no part of one.
        let full =
            path.in_flight() + size as u64 + u64::from(path.symbol()) > path.controller.window();
        let app_limited = !more && !full;
        if app_limited && eliciting {
            path.sampler.mark_app_limited(in_flight);
        }
        let delivery = path.sampler.on_sent(now, in_flight);
        let sent = SentPacket::new(now, size as u32, eliciting, delivery, frames);
        // The first of those whose feedback may become overdue.
        if path.ledger.oldest_unrescued().is_none() {
            self.timers.path = None;
        }
        if eliciting && self.observer.foresees() {
            let foreseen = path.foresee(now, size);
            self.observer.on_foreseen(now, &foreseen);
        }
        path.on_sent(now, sent, app_limited);
        let in_flight = path.ledger.in_flight();
        self.observer.on(
            now,
            &Record::Sent {
                path: id,
                packet,
                size,
                in_flight,
            },
        );
        Some(size)
    }

    #[inline]
    pub(super) fn has_queued(&self, id: PathId) -> bool {
        !self.waiting.is_empty(id)
    }

    /// When data may leave on the path, as far as that is known: window and pacer agree, or a
    /// probe must go. `None` while nothing waits for it, or only an input could change that.
    #[inline]
    pub(super) fn sends_at(&self, now: Instant, index: usize) -> Option<Instant> {
        let path = &self.paths[index];
        if path.blocked || !self.has_queued(path.id) {
            return None;
        }
        self.lets_go_at(now, path)
    }

    fn lets_go_at(&self, now: Instant, path: &Path) -> Option<Instant> {
        if path.probes > 0 {
            return Some(now);
        }
        let open = path.in_flight() < path.controller.window();
        (open && self.carries_data(path)).then(|| {
            let at = path.pacer.next_send(now, path.max_datagram as u64);
            at.unwrap_or(now)
        })
    }

    /// Is the path in a state to carry data without being asked for a probe?
    fn carries_data(&self, path: &Path) -> bool {
        match path.state() {
            PathState::Active | PathState::Standby => true,
            PathState::Validating | PathState::Dead => false,
            // Its probes carry copies; it carries more only where nothing better is left.
            PathState::Suspect => !self.has_active_path(),
        }
    }

    fn write_control(&mut self, draft: &mut Draft<'_>) {
        let due: SmallVec<[Control; 8]> = self.egress.control.iter().copied().take(64).collect();
        for control in due {
            let Some(len) = self.control_frame(control).map(|f| f.encoded_len()) else {
                self.egress.control.remove(&control);
                continue;
            };
            let opens = matches!(control, Control::OpenFlow(_));
            if let Some(flow) = control.flow()
                && !self.open_first(flow, if opens { 0 } else { len }, draft)
            {
                return;
            }
            let written = draft.frames.contains(&SentFrame::Control(control));
            if !written && len > draft.room() {
                return;
            }
            if !written && let Some(frame) = self.control_frame(control) {
                let sent = match frame {
                    Frame::Forward(Forward { flow, sequence }) => {
                        SentFrame::Forward { flow, sequence }
                    }
                    _ => SentFrame::Control(control),
                };
                frame.encode(draft.buf);
                draft.eliciting = true;
                draft.frames.push(sent);
                self.note_sent(control);
            }
            self.egress.control.remove(&control);
        }
    }

    /// Until the peer knows a flow, its opening precedes whatever is said of it in a datagram, so
    /// that nothing arrives for an unknown flow. False if that and `more` bytes do not fit.
    fn open_first(&mut self, id: FlowId, more: usize, draft: &mut Draft<'_>) -> bool {
        let control = SentFrame::Control(Control::OpenFlow(id));
        let known = self.flows.get(&id).is_none_or(|f| f.announced);
        if known || draft.frames.contains(&control) {
            return true;
        }
        let Some(open) = self.open_frame(id).map(Frame::OpenFlow) else {
            return true;
        };
        if open.encoded_len() + more > draft.room() {
            return false;
        }
        open.encode(draft.buf);
        draft.eliciting = true;
        draft.frames.push(control);
        self.egress.control.remove(&Control::OpenFlow(id));
        true
    }

    /// Fills the datagram with symbols that wait for the path, flow by flow in their turn.
    fn write_data(&mut self, now: Instant, path: PathId, draft: &mut Draft<'_>) {
        while draft.room() >= LEAST_ROOM {
            let Some((id, class)) = self.waiting.next(path) else {
                return;
            };
            let Some(flow) = self.flows.get_mut(&id) else {
                return;
            };
            // What a datagram holds already leaves room for what is small.
            if draft.has_data && flow.queues.first_len(path) >= draft.room() as u64 {
                return;
            }
            let Some(assigned) = flow.queues.pop(path) else {
                return;
            };
            let written = if assigned.kind == EmissionKind::Repair && flow.coder.is_some() {
                self.write_repair(now, path, id, assigned, draft)
            } else if flow.send.is_settled(&assigned.symbol) {
                if assigned.kind == EmissionKind::Source {
                    flow.send.on_skipped(&assigned.symbol);
                }
                self.waiting.account(flow);
                self.share.note_change(flow);
                continue;
            } else {
                let symbol = flow.send.trim(assigned.symbol);
                let assigned = Assigned { symbol, ..assigned };
                self.write_symbol(now, path, id, assigned, draft)
            };
            let Some(flow) = self.flows.get_mut(&id) else {
                continue;
            };
            let Some(written) = written else {
                self.waiting.account(flow);
                return;
            };
            if flow.deficit == 0 {
                flow.deficit = QUANTUM;
            }
            flow.deficit = flow.deficit.saturating_sub(u64::from(written).max(1));
            self.ageing.on_left(flow, class, u64::from(written));
            if flow.deficit == 0 && !flow.promoted && !self.share.is_last(flow) {
                self.waiting.withdraw(flow);
                self.share.move_back(flow, |_| {});
            }
            self.waiting.account(flow);
            if flow.awaits == Awaits::Nothing && flow.queues.is_all_empty() {
                // It is looked at with what is planned next.
                self.share.note_change(flow);
            }
            if flow.deficit == 0 && flow.promoted {
                self.demote();
            }
        }
    }

    /// Writes a symbol, or as much of it as fits; what does not fit goes back to its queue.
    /// Returns the bytes written, `None` if the datagram is full.
    fn write_symbol(
        &mut self,
        now: Instant,
        path: PathId,
        id: FlowId,
        assigned: Assigned,
        draft: &mut Draft<'_>,
    ) -> Option<u32> {
        if !self.open_first(id, LEAST_ROOM, draft) {
            self.flows.get_mut(&id)?.queues.unpop(path, assigned);
            return None;
        }
        let flow = self.flows.get_mut(&id)?;
        let symbol = assigned.symbol;
        let source = assigned.kind == EmissionKind::Source;
        let coder = flow.coder.as_ref();
        let mut form = coder.map_or(Form::Plain, |c| c.form(&symbol, source));
        let mut room = carry::data_room(flow, &symbol, form, draft.room());
        let fresh = !draft.has_data && !draft.has_ack;
        if assigned.kind == EmissionKind::Repair {
            if symbol.len > room && fresh {
                // The path takes shorter ones only.
                flow.send.on_dropped(&symbol);
                return Some(0);
            }
            flow.send.prepare(&symbol);
        }
        if matches!(form, Form::Again(..)) && room < symbol.len && fresh {
            // It will never fit as it was, so it goes in pieces.
            form = Form::Plain;
            room = carry::data_room(flow, &symbol, form, draft.room());
        }
        let splits =
            fresh && assigned.kind != EmissionKind::Repair && room >= LEAST_SPLIT.min(symbol.len);
        let (head, tail) = if symbol.len <= room {
            (symbol, None)
        } else if splits && let Some((head, tail)) = symbol.split(room) {
            (head, Some(tail))
        } else {
            flow.queues.unpop(path, assigned);
            return None;
        };
        if let Some(symbol) = tail {
            flow.queues.unpop(
                path,
                Assigned {
                    symbol,
                    kind: assigned.kind,
                },
            );
        }
        let fin = carry::write(flow, now, path, &head, form, draft.buf);
        if !flow.lost.is_empty() {
            self.share.note_change(flow);
        }
        draft.frames.push(SentFrame::Data {
            flow: id,
            symbol: head,
            fin,
            kind: assigned.kind,
        });
        flow.send
            .on_left(now, &head, path, assigned.kind == EmissionKind::Source);
        draft.eliciting = true;
        draft.has_data = true;
        let bytes = u64::from(head.len);
        match assigned.kind {
            EmissionKind::Source => flow.counters.source_bytes += bytes,
            EmissionKind::Copy => flow.counters.copy_bytes += bytes,
            EmissionKind::Retransmission => flow.counters.retransmitted_bytes += bytes,
            EmissionKind::Repair => {
                flow.counters.repair_bytes += bytes;
                flow.counters.repair_symbols += 1;
            }
        }
        self.tell_sent(now, path, id, head, assigned.kind);
        if assigned.kind == EmissionKind::Source {
            self.egress.last_symbol = Some((now, id, head));
            self.warm_up(now, path, id, head);
        }
        Some(head.len)
    }

    /// Writes a repair symbol. Returns its bytes, 0 if it need not leave any more, and `None` if
    /// the datagram is full.
    fn write_repair(
        &mut self,
        now: Instant,
        path: PathId,
        id: FlowId,
        assigned: Assigned,
        draft: &mut Draft<'_>,
    ) -> Option<u32> {
        let opens = self.open_first(id, LEAST_ROOM, draft);
        let due = Due::by_arrival(now, path, self.view_usable());
        let flow = self.flows.get_mut(&id)?;
        let opening = SentFrame::Control(Control::OpenFlow(id));
        let alone = !draft.has_ack && draft.frames.iter().all(|frame| *frame == opening);
        let room = if opens { draft.room() } else { 0 };
        let asked = assigned.symbol;
        let len =
            match carry::write_repair(flow, now, path, (&asked, &due), (room, alone), draft.buf) {
                Written::Left(len) => len,
                Written::Dropped => return Some(0),
                Written::Full => {
                    flow.queues.unpop(path, assigned);
                    return None;
                }
            };
        let symbol = Symbol { len, ..asked };
        draft.frames.push(SentFrame::Repair { flow: id, symbol });
        draft.eliciting = true;
        draft.has_data = true;
        flow.counters.repair_symbols += 1;
        flow.counters.repair_bytes += u64::from(len);
        self.tell_sent(now, path, id, symbol, EmissionKind::Repair);
        Some(len)
    }

    /// Tells the flow's scheduler and observers that a symbol left.
    fn tell_sent(
        &mut self,
        now: Instant,
        path: PathId,
        id: FlowId,
        symbol: Symbol,
        kind: EmissionKind,
    ) {
        self.note_traffic(now);
        if let Some(flow) = self.flows.get_mut(&id) {
            let feedback = Feedback {
                symbol,
                kind,
                path,
                sent: now,
                outcome: Outcome::Sent,
                arrived_us: None,
                own_way: false,
            };
            flow.scheduler.on_feedback(now, &feedback);
            self.planning.wish(flow);
            // A scheduler that codes may want to follow up, as soon as a queue is empty.
            if flow.coder.is_some() {
                let is_empty = flow.queues.is_empty(path);
                if is_empty || flow.awaits == Awaits::Nothing {
                    self.share.note_change(flow);
                }
                if is_empty {
                    self.planning.widen(Scope::Changed);
                }
            }
        }
        let emitted = Record::Emitted {
            flow: id,
            symbol,
            path,
            kind,
        };
        self.observer.on(now, &emitted);
    }
}
