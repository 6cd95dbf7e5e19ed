//! Coded flows: source symbols and their combinations arrive, and what was lost waits for the code
//! instead of being sent again.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use marline_base::{Duration, Instant};
use marline_fec::stream::Limits;
use smallvec::SmallVec;

use super::Session;
use super::flow::Flow;
use crate::config::CODE_SYMBOL;
use crate::flow::{CodeRecv, CodeSend, Flying, Symbol};
use crate::observe::Record;
use crate::path::{Control, EmissionKind, Health};
use crate::sched::{Feedback, Outcome};
use crate::wire::{
    CODED_LENGTH, CodeStatus, Content, FlowId, Frame, Packet, PacketPart, PathId, RepairSymbol,
    SourceSymbol, Stream, close_code,
};

/// The shortest source symbols that are worth a code (bytes). A choice, not tuned.
const LEAST_SYMBOL: u64 = 256;
/// Least time that a status may take longer than a round trip: hosts have other things to do
/// (`path/timers.rs`).
const LEAST_PATIENCE: Duration = Duration::from_millis(10);

/// What decides whether a repair symbol in flight is worth waiting for.
struct Horizon {
    /// When a symbol that is sent again now would arrive.
    again: Instant,
    /// Half a round trip of each path that can be counted on.
    ways: SmallVec<[(PathId, Duration); 4]>,
    /// When the receiver should have reported what came out of repair symbols that left by now.
    until: Instant,
}

impl Horizon {
    fn is_soon(&self, path: PathId, sent: Instant) -> bool {
        let mut ways = self.ways.iter();
        ways.any(|(id, half)| *id == path && sent + *half <= self.again)
    }
}

impl Session {
    /// Caps the redundancy that a flow spends on repair symbols, whatever its scheduler asks for:
    /// their bytes over the bytes of source symbols. [`Config::repair_budget`] until then. Does
    /// nothing if there is no such flow or it is not coded.
    ///
    /// [`Config::repair_budget`]: crate::Config::repair_budget
    pub fn set_repair_budget(&mut self, id: FlowId, budget: f64) {
        if let Some(flow) = self.flows.get_mut(&id)
            && let Some(coder) = &mut flow.coder
        {
            coder.set_budget(budget.clamp(0.0, crate::config::MAX_REPAIR_BUDGET));
        }
    }

    /// Codes the flow's sending half if its scheduler wants that and the peer decodes.
    pub(super) fn start_coding(&mut self, id: FlowId) {
        let peer = self.peer;
        let takes = peer.code_window > 0 && peer.code_symbol >= LEAST_SYMBOL;
        // Units have a code of their own.
        let codes = |flow: &Flow| flow.scheduler.codes() && !flow.kind.has_units();
        let wanted = |s: &Self| s.flows.get(&id).is_some_and(codes);
        if !takes || !wanted(self) {
            return;
        }
        let coded = self.flows.values().filter(|f| f.coder.is_some()).count();
        let limits = Limits {
            window: peer.code_window.min(self.config.code_window.into()) as u16,
            symbol: peer.code_symbol.min(CODE_SYMBOL) as u16,
        };
        let budget = self.config.most_repairs();
        if coded as u64 >= peer.code_flows || limits.window == 0 || budget <= 0.0 {
            return;
        }
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.coder = Some(Box::new(CodeSend::new(limits, budget)));
        }
    }

    pub(super) fn on_source_symbol(
        &mut self,
        now: Instant,
        via: PathId,
        datagram: &Bytes,
        symbol: &SourceSymbol<'_>,
    ) {
        if !self.agreed(symbol.content.len()) {
            return;
        }
        let Ok(content) = Content::decode(symbol.content) else {
            return self.is_nonsense(symbol.flow);
        };
        self.on_frame(now, via, datagram, frame_of(symbol.flow, &content));
        let taken = self
            .decoder(now, symbol.flow)
            .map(|decoder| decoder.source(symbol.symbol, symbol.content));
        if let Some(Err(broken)) = taken {
            let reason = format!("flow {}: {}", symbol.flow.0, broken.0);
            return self.fail(close_code::PROTOCOL, reason);
        }
        self.take_recovered(now, via, symbol.flow);
    }

    pub(super) fn on_repair_symbol(
        &mut self,
        now: Instant,
        via: PathId,
        repair: &RepairSymbol<'_>,
    ) {
        let id = repair.flow;
        if !self.agreed(repair.payload.len() - CODED_LENGTH) {
            return;
        }
        if !self.flows.contains_key(&id)
            && self.is_ours(id)
            && id.index() >= self.numbers.unopened()
        {
            let reason = format!("a repair symbol for flow {}, which was never opened", id.0);
            return self.fail(close_code::PROTOCOL, reason);
        }
        let decoder = self.decoder(now, id);
        let taken = decoder.map(|decoder| decoder.repair(repair));
        if let Some(Err(broken)) = taken {
            let reason = format!("flow {}: {}", id.0, broken.0);
            return self.fail(close_code::PROTOCOL, reason);
        }
        self.take_recovered(now, via, id);
    }

    /// Were symbols of this length agreed on? If not, the session ends.
    fn agreed(&mut self, len: usize) -> bool {
        let agreed = self.config.code_window > 0 && len as u64 <= CODE_SYMBOL;
        if !agreed {
            let reason = format!("a coded symbol of {len} bytes, which was not agreed on");
            self.fail(close_code::PROTOCOL, reason);
        }
        agreed
    }

    fn is_nonsense(&mut self, id: FlowId) {
        let reason = format!("a symbol of flow {} came out as nonsense", id.0);
        self.fail(close_code::PROTOCOL, reason);
    }

    /// The decoder of a flow that still expects something, for what arrives now; the flow gets one
    /// if there may be one more.
    fn decoder(&mut self, now: Instant, id: FlowId) -> Option<&mut CodeRecv> {
        let delay = self.peer_ack_delay();
        let active = self.paths.iter();
        let active = active.filter(|path| matches!(path.health, Health::Active));
        let slowest = active.map(|path| path.rtt.probe_timeout(delay)).max();
        let flow = self.flows.get(&id)?;
        if flow.decoder.is_none() {
            let open = self.ending.is_none() && !flow.recv.is_complete() && flow.stopped.is_none();
            let decoders = self.flows.values().filter(|f| f.decoder.is_some()).count();
            if !open || decoders as u64 >= self.most_decoders() {
                return None;
            }
            let limits = Limits {
                window: self.config.code_window,
                symbol: CODE_SYMBOL as u16,
            };
            self.flows.get_mut(&id)?.decoder = Some(Box::new(CodeRecv::new(limits)));
        }
        let decoder = self.flows.get_mut(&id)?.decoder.as_deref_mut()?;
        if let Some(probe_timeout) = slowest {
            decoder.on_time(now, probe_timeout);
        }
        Some(decoder)
    }

    /// Delivers what came out of the code of a flow.
    fn take_recovered(&mut self, now: Instant, via: PathId, id: FlowId) {
        let mut recovered = false;
        while let Some(flow) = self.flows.get_mut(&id)
            && let Some(bytes) = flow.decoder.as_mut().and_then(|d| d.poll())
        {
            recovered = true;
            let Ok(content) = Content::decode(&bytes) else {
                return self.is_nonsense(id);
            };
            if self.observer.listens() {
                let symbol = symbol_of(&content);
                self.observer
                    .on(now, &Record::Repaired { flow: id, symbol });
                self.on_frame(now, via, &bytes, frame_of(id, &content));
                self.tell_progress(now, id, Some(symbol));
            } else {
                self.on_frame(now, via, &bytes, frame_of(id, &content));
            }
            if self.ending.is_some() {
                return;
            }
        }
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let Some(decoder) = &mut flow.decoder else {
            return;
        };
        if flow.recv.is_complete() || flow.stopped.is_some() {
            decoder.close();
        }
        if recovered {
            self.egress.control.insert(Control::CodeStatus(id));
            self.timers.wake();
        } else if decoder.has_changed() {
            self.egress.asides.insert(Control::CodeStatus(id));
        }
    }

    /// A CODE_STATUS was written.
    pub(super) fn note_sent(&mut self, control: Control) {
        if let Control::CodeStatus(id) = control
            && let Some(flow) = self.flows.get_mut(&id)
            && let Some(decoder) = &mut flow.decoder
        {
            decoder.on_reported(decoder.status(id));
            self.egress.asides.remove(&control);
        }
    }

    pub(super) fn on_code_status(&mut self, now: Instant, status: &CodeStatus) {
        let id = status.flow;
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let Some(coder) = &mut flow.coder else {
            return;
        };
        let Ok(known) = coder.on_status(status) else {
            let reason = String::from("a status of symbols that were never sent");
            return self.fail(close_code::PROTOCOL, reason);
        };
        for sent in known {
            let record = |delay| flow.delays.record(delay);
            let new = flow.send.on_acked(now, &sent.symbol, sent.fin, record);
            flow.counters.acked_bytes += new;
            if new == 0 {
                continue;
            }
            let feedback = Feedback {
                symbol: sent.symbol,
                kind: EmissionKind::Source,
                path: sent.path,
                sent: sent.sent,
                outcome: Outcome::Recovered,
                arrived_us: None,
                own_way: false,
            };
            flow.scheduler.on_feedback(now, &feedback);
        }
        self.planning.wish(flow);
        if let Some(coder) = &mut flow.coder {
            coder.release(&flow.send);
            (flow.counters.repairs_used, flow.counters.repairs_wasted) = coder.worth();
        }
        self.give_up_code(now, id);
        self.retime(id);
        self.notify_writable(id);
        self.reap(id);
        self.plan_for(id);
    }

    /// The fate of a repair symbol is known.
    pub(super) fn on_repair_settled(&mut self, now: Instant, id: FlowId, feedback: &Feedback) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let number = feedback.symbol.unit;
        let Some(coder) = &mut flow.coder else {
            return;
        };
        let lost = feedback.outcome == Outcome::Lost;
        if lost {
            coder.on_repair_lost(number);
        } else {
            coder.on_repair_acked(number);
        }
        self.common.on_feedback(feedback);
        flow.scheduler.on_feedback(now, feedback);
        self.planning.wish(flow);
        if lost {
            self.give_up_code(now, id);
            self.retime(id);
        }
    }

    /// Does a symbol that was lost wait for the code, because what the receiver holds or what is on
    /// its way brings it back before a retransmission would?
    pub(super) fn waits_for_code(&mut self, now: Instant, id: FlowId, symbol: &Symbol) -> bool {
        if self.flows.get(&id).is_none_or(|f| f.coder.is_none()) {
            return false;
        }
        let Some(horizon) = self.code_horizon(now, id, symbol.len) else {
            return false;
        };
        let Some(flow) = self.flows.get_mut(&id) else {
            return false;
        };
        let Some(coder) = &mut flow.coder else {
            return false;
        };
        let soon = |f: &Flying| horizon.is_soon(f.path, f.sent);
        let waits = coder.waits(symbol, horizon.until, soon);
        if waits {
            // It may have taken the equation that an older one waited for.
            let gone = coder.give_up(now, soon);
            if !gone.is_empty() {
                flow.lost.extend(gone);
                self.activate(id);
            }
        }
        self.retime(id);
        waits
    }

    /// Sends again what waited for the code of a flow in vain.
    pub(super) fn give_up_code(&mut self, now: Instant, id: FlowId) {
        let waits = |s: &Self| {
            let coder = s.flows.get(&id)?.coder.as_ref()?;
            coder.deadline()
        };
        if waits(self).is_none() {
            return;
        }
        let Some(horizon) = self.code_horizon(now, id, CODE_SYMBOL as u32) else {
            return;
        };
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let Some(coder) = &mut flow.coder else {
            return;
        };
        let gone = coder.give_up(now, |f| horizon.is_soon(f.path, f.sent));
        if !gone.is_empty() {
            flow.lost.extend(gone);
            self.activate(id);
        }
    }

    /// The same for all flows: a path is not to be counted on any more.
    pub(super) fn give_up_codes(&mut self, now: Instant) {
        let coded = self.flows.values().filter(|f| f.coder.is_some());
        let coded: Vec<FlowId> = coded.map(|flow| flow.id).collect();
        for id in coded {
            self.give_up_code(now, id);
            self.retime(id);
        }
    }

    fn code_horizon(&self, now: Instant, id: FlowId, len: u32) -> Option<Horizon> {
        let flow = self.flows.get(&id)?;
        let ack_delay = self.peer_ack_delay();
        let active = self.paths.iter();
        let active = active.filter(|p| matches!(p.health, Health::Active));
        let mut until = now;
        let mut ways = SmallVec::new();
        for path in active {
            let late = (path.rtt.variation() * 4).max(LEAST_PATIENCE) + ack_delay;
            until = until.max(now + path.rtt.smoothed() + late);
            ways.push((path.id, path.rtt.smoothed() / 2));
        }
        let again = self.soonest_again(now, flow, len);
        let again = now + again.unwrap_or(Duration::from_secs(1));
        Some(Horizon { again, ways, until })
    }
}

/// The frame that brings the same as a source symbol's content.
fn frame_of<'a>(flow: FlowId, content: &Content<'a>) -> Frame<'a> {
    match *content {
        Content::Stream { offset, fin, data } => Frame::Stream(Stream {
            flow,
            offset,
            fin,
            data,
        }),
        Content::Packet { sequence, data } => Frame::Packet(Packet {
            flow,
            sequence,
            data,
        }),
        Content::Part {
            sequence,
            offset,
            total,
            data,
        } => Frame::PacketPart(PacketPart {
            flow,
            sequence,
            offset,
            total,
            data,
        }),
    }
}

/// The symbol that a content brings.
pub(super) fn symbol_of(content: &Content<'_>) -> Symbol {
    let (unit, offset) = match *content {
        Content::Stream { offset, .. } => (0, offset),
        Content::Packet { sequence, .. } => (sequence, 0),
        Content::Part {
            sequence, offset, ..
        } => (sequence, offset),
    };
    let len = content.data().len() as u32;
    Symbol { unit, offset, len }
}
