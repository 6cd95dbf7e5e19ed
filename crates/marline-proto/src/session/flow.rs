//! One flow with both halves, its scheduler and what it counts.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;
use marline_base::{Duration, Instant, Rate};
use smallvec::SmallVec;

use super::again::Arrivals;
use crate::flow::{Assigned, CodeRecv, CodeSend, Queues, RecvHalf, SendHalf, Symbol};
use crate::path::{EmissionKind, WHOLE_MARGIN};
use crate::sched::{
    Blocked, Choice, Coding, Common, PathView, Plan, Scheduler, SymbolSource, Unit,
};
use crate::stats::{Delays, FlowCounters, Spill};
use crate::wire::{DeliveryOrder, FlowId, FlowKind, PathId};

/// What both sides know of a flow from its opening.
#[derive(Clone, Debug)]
pub(super) struct FlowSpec {
    pub(super) kind: FlowKind,
    pub(super) order: DeliveryOrder,
    pub(super) priority: u8,
    pub(super) lifetime: Option<Duration>,
    /// Bound of what waits for a path on this side (bytes).
    pub(super) queue: Option<u64>,
    pub(super) target: Bytes,
}

/// What must happen until a flow's scheduler can have something to do again, unless the flow itself
/// changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Awaits {
    /// Nothing else.
    #[default]
    Nothing,
    /// A path has room.
    Room,
    /// Anything that changes a path: the scheduler decides by more than room.
    Event,
}

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) id: FlowId,
    pub(super) kind: FlowKind,
    pub(super) order: DeliveryOrder,
    pub(super) priority: u8,
    pub(super) lifetime: Option<Duration>,
    pub(super) target: Bytes,
    pub(super) scheduler: Box<dyn Scheduler>,
    /// What the scheduler was made from.
    pub(super) choice: Choice,
    /// Rate that the application needs, if it said so.
    pub(super) needed_rate: Option<Rate>,
    pub(super) send: SendHalf,
    pub(super) recv: RecvHalf,
    /// The code of what is sent, if the scheduler codes and the peer decodes.
    pub(super) coder: Option<Box<CodeSend>>,
    /// The code of what is received, once anything coded arrived.
    pub(super) decoder: Option<Box<CodeRecv>>,
    pub(super) queues: Queues,
    /// Symbols to be sent again that no path was found for yet.
    pub(super) lost: VecDeque<Symbol>,
    /// Source symbols taken back from paths, oldest first: the head of the backlog.
    pub(super) returned: VecDeque<Symbol>,
    /// The peer knows that the flow exists (or it has said so).
    pub(super) announced: bool,
    /// We gave the sending half up, with this code.
    pub(super) reset: Option<u64>,
    /// The peer acknowledged that we gave up.
    pub(super) reset_acked: bool,
    /// We asked the peer to stop sending, with this code.
    pub(super) stopped: Option<u64>,
    /// The application knows that there is something to read, and has not read up since.
    pub(super) readable_announced: bool,
    /// Since when something waits to be read and nothing was.
    pub(super) unread_since: Option<Instant>,
    /// Since when something is to be sent and nothing was acknowledged.
    pub(super) unacked_since: Option<Instant>,
    /// Bytes received and not read, and written and not acknowledged, as the session counted them
    /// last.
    pub(super) accounted: (u64, u64),
    /// Bytes that the application has read and keeps for somebody who does not take them.
    pub(super) retained: u64,
    /// It may use dear paths, and why.
    pub(super) spill: Option<Spill>,
    /// Which costs paths hold it up to, ascending.
    pub(super) held_up: SmallVec<[HeldUp; 1]>,
    /// A write was refused for want of room.
    pub(super) was_blocked: bool,
    /// The application read the end, or will not read.
    pub(super) end_read: bool,
    /// Stream bytes ever given to a path when the flow was reset.
    pub(super) final_size: u64,
    /// Its entry in the session's timer table.
    pub(super) timer: Option<Instant>,
    /// Its place among the flows that may have something to send; `None` if it is not one.
    pub(super) turn: Option<u64>,
    /// It changed since its scheduler planned last, and what that awaits otherwise (`share`).
    pub(super) changed: bool,
    pub(super) awaits: Awaits,
    /// The pass in which it did so.
    pub(super) planned_in: u64,
    /// Its entry in the session's table of schedulers' wishes.
    pub(super) wish: Option<Instant>,
    /// Bytes of send opportunity left in this round (deficit round robin).
    pub(super) deficit: u64,
    /// It goes before all that is more urgent for one turn, because it has waited for long.
    pub(super) promoted: bool,
    /// What the session had sent (bytes) when something of the flow left last, or it began to wait.
    pub(super) served_at: u64,
    pub(super) delays: Box<Delays>,
    pub(super) counters: FlowCounters,
}

/// Paths up to a cost hold a flow up.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldUp {
    pub(super) cost: u32,
    pub(super) since: Instant,
    /// Since when little waits.
    pub(super) low: Option<Instant>,
}

impl Flow {
    /// Has the flow anything for its scheduler to place?
    pub(super) fn has_backlog(&self, symbol: u32, credit: u64) -> bool {
        self.reset.is_none()
            && (!self.lost.is_empty()
                || !self.returned.is_empty()
                || self.send.next_len(symbol, credit).is_some())
    }

    /// Has the flow anything for its scheduler to do, if only because credit is used up or because
    /// the peer is not known to have all that was coded?
    pub(super) fn has_work(&self, symbol: u32, credit: u64) -> bool {
        let blocked = || self.scheduler.minds_credit() && self.send.blocked(credit).is_some();
        let repairs = || self.coder.as_ref().is_some_and(|c| c.has_unknown());
        let codes = || self.scheduler.codes() && self.send.has_emitted();
        let more = || blocked() || repairs() || codes();
        self.has_backlog(symbol, credit) || (self.reset.is_none() && more())
    }

    /// What its scheduler awaits once it has planned, unless the flow changes.
    pub(super) fn awaits(&self, symbol: u32, credit: u64) -> Awaits {
        let has_backlog = self.has_backlog(symbol, credit);
        if !self.scheduler.awaits_room() || !self.lost.is_empty() {
            Awaits::Event
        } else if has_backlog {
            Awaits::Room
        } else if self.has_work(symbol, credit) {
            Awaits::Event
        } else {
            Awaits::Nothing
        }
    }

    /// Places lost symbols on the path that should deliver them first, then lets the scheduler
    /// plan. Returns how many bytes of the session's credit were used.
    pub(super) fn plan(
        &mut self,
        now: Instant,
        views: &mut [PathView],
        credit: u64,
        common: &mut Common,
    ) -> u64 {
        if views.is_empty() || self.reset.is_some() {
            return 0;
        }
        self.send_lost(now, views);
        let ids: SmallVec<[PathId; 4]> = views.iter().map(|v| v.id).collect();
        let mut source = Backlog {
            ids: &ids,
            send: &mut self.send,
            coder: self.coder.as_deref_mut(),
            queues: &mut self.queues,
            returned: &mut self.returned,
            credit,
            spent: 0,
            needed_rate: self.needed_rate,
        };
        let mut plan = Plan::new(now, views, &mut source).among(common);
        self.scheduler.plan(&mut plan);
        source.spent
    }

    /// Places each lost symbol on the path that should deliver it first, and a copy on the next one
    /// if the scheduler wants to be sure: what is lost twice is late for certain.
    fn send_lost(&mut self, now: Instant, views: &mut [PathView]) {
        if self.lost.is_empty() {
            return;
        }
        let arrivals = Arrivals::by(now, views);
        while let Some(symbol) = self.lost.pop_front() {
            if self.send.is_settled(&symbol) {
                continue;
            }
            let Some((arrival, path)) = self.best_again(arrivals, views, symbol, None) else {
                continue;
            };
            let latest = arrival + views[path].srtt;
            self.send_again(&mut views[path], symbol, EmissionKind::Retransmission);
            if let Some((arrival, other)) = self.best_again(arrivals, views, symbol, Some(path))
                && arrival <= latest
                && self.scheduler.insures(now, &symbol)
            {
                self.send_again(&mut views[other], symbol, EmissionKind::Copy);
            }
        }
    }

    /// Where the symbol arrives first if it is sent again now, and when; not on the path at `but`.
    fn best_again(
        &self,
        arrivals: Arrivals,
        views: &[PathView],
        symbol: Symbol,
        but: Option<usize>,
    ) -> Option<(Duration, usize)> {
        let others = views.iter().enumerate().filter(|(i, _)| Some(*i) != but);
        let after = others.map(|(i, v)| {
            let v = self.view_again(v, v.queued_own);
            (arrivals.after(&v, symbol.len), i)
        });
        after.min()
    }

    fn send_again(&mut self, view: &mut PathView, symbol: Symbol, kind: EmissionKind) {
        view.queued += u64::from(symbol.len);
        view.queued_own += u64::from(symbol.len);
        self.queues.push_urgent(view.id, Assigned { symbol, kind });
    }

    /// The path as what is sent again meets it: it leaves before all that waits to leave for the
    /// first time; `own` bytes of that on the path are the flow's. A scheduler that queues ahead
    /// has a quick path's queue as long as the slow ones'.
    pub(super) fn view_again(&self, view: &PathView, own: u64) -> PathView {
        let others = view.queued.saturating_sub(own);
        PathView {
            queued: others + self.queues.urgent_bytes(view.id),
            ..*view
        }
    }

    /// Bytes that the scheduler could place now, were there room.
    pub(super) fn unsent(&self, credit: u64) -> u64 {
        let returned: u64 = self.returned.iter().map(|s| u64::from(s.len)).sum();
        match self.reset {
            None => returned + self.send.unsent(credit),
            Some(_) => 0,
        }
    }

    /// Bytes written that have not left for the first time.
    pub(super) fn waiting(&self) -> u64 {
        let unsent = match &self.send {
            SendHalf::Stream(stream) => stream.unsent(),
            SendHalf::Packets(packets) => packets.unsent(),
            SendHalf::Units(units) => units.unsent(),
        };
        let returned: u64 = self.returned.iter().map(|s| u64::from(s.len)).sum();
        unsent + returned + self.queues.source_bytes()
    }

    /// Bytes that were given up before they left.
    pub(super) fn never_left(&self) -> u64 {
        match &self.send {
            SendHalf::Packets(packets) => packets.never_left(),
            SendHalf::Stream(_) | SendHalf::Units(_) => 0,
        }
    }

    /// Bytes that the peer acknowledged, those included that had been given up by then.
    pub(super) fn carried(&self) -> u64 {
        let late = match &self.send {
            SendHalf::Packets(packets) => packets.acked_late(),
            SendHalf::Stream(_) | SendHalf::Units(_) => 0,
        };
        self.counters.acked_bytes + late
    }

    /// Is the rate at which the application writes the rate that it needs? It is not where a writer
    /// is held back until the paths have room.
    pub(super) fn is_live(&self) -> bool {
        let held_back = match &self.send {
            SendHalf::Packets(packets) => packets.holds_back(),
            SendHalf::Stream(_) | SendHalf::Units(_) => true,
        };
        self.lifetime.is_some() && !held_back
    }

    /// Nothing of it waits, or all paths cost the same.
    pub(super) fn costs_alike(&mut self) {
        self.spill = None;
        self.held_up.clear();
    }

    /// Source symbols did not leave: they are the head of the backlog again.
    pub(super) fn give_back(&mut self, symbols: Vec<Symbol>) {
        give_back(&mut self.send, &mut self.returned, symbols);
    }

    /// Both halves are over and the peer knows.
    pub(super) fn is_over(&self) -> bool {
        let sent = match self.reset {
            Some(_) => self.reset_acked,
            None => self.send.is_done(),
        };
        sent && self.recv.is_complete()
    }
}

impl Backlog<'_> {
    /// The longest symbol to cut next, where paths take symbols of `max` bytes.
    fn longest(&self, max: u32) -> u32 {
        let whole = self.next_whole().filter(|len| *len <= max + WHOLE_MARGIN);
        let max = whole.map_or(max, |len| len.max(max));
        let coded = self.coder.as_ref().map(|c| c.longest_piece());
        coded.map_or(max, |coded| coded.min(max))
    }

    /// Length of the next symbol if it may be a whole message.
    fn next_whole(&self) -> Option<u32> {
        let SendHalf::Packets(packets) = &*self.send else {
            return None;
        };
        match self.returned.front() {
            Some(symbol) => (packets.total(symbol) == symbol.len).then_some(symbol.len),
            None => packets.next_whole(),
        }
    }
}

fn give_back(send: &mut SendHalf, returned: &mut VecDeque<Symbol>, symbols: Vec<Symbol>) {
    if let SendHalf::Units(units) = send {
        return units.give_back(symbols);
    }
    returned.extend(symbols);
    // A few runs in order, one a path: this sort merges them.
    returned
        .make_contiguous()
        .sort_by_key(|s| (s.unit, s.offset));
}

struct Backlog<'a> {
    ids: &'a [PathId],
    send: &'a mut SendHalf,
    coder: Option<&'a mut CodeSend>,
    queues: &'a mut Queues,
    returned: &'a mut VecDeque<Symbol>,
    credit: u64,
    spent: u64,
    needed_rate: Option<Rate>,
}

impl SymbolSource for Backlog<'_> {
    fn next_len(&self, max: u32) -> Option<u32> {
        let max = self.longest(max);
        match self.returned.front() {
            Some(symbol) => Some(symbol.len.min(max)),
            None => self.send.next_len(max, self.credit - self.spent),
        }
    }

    fn unsent(&self) -> u64 {
        let returned: u64 = self.returned.iter().map(|s| u64::from(s.len)).sum();
        returned + self.send.unsent(self.credit - self.spent)
    }

    fn unit(&self) -> Option<Unit> {
        match (self.returned.front(), &*self.send) {
            (_, SendHalf::Stream(_)) => None,
            (_, SendHalf::Units(units)) => units.next_unit(self.credit - self.spent),
            (Some(symbol), SendHalf::Packets(packets)) => packets.unit(symbol.unit, symbol.offset),
            (None, SendHalf::Packets(packets)) => packets.next_unit(),
        }
    }

    fn units(&self) -> Vec<Unit> {
        match &*self.send {
            SendHalf::Units(units) => units.views(self.credit - self.spent),
            _ => self.unit().into_iter().collect(),
        }
    }

    fn repair_of(&mut self, unit: u64, index: usize, max: u32) -> Option<Symbol> {
        let SendHalf::Units(units) = &mut *self.send else {
            return None;
        };
        let symbol = units.repair(unit, max)?;
        let kind = EmissionKind::Repair;
        self.queues.push(self.ids[index], Assigned { symbol, kind });
        Some(symbol)
    }

    fn needed_rate(&self) -> Option<Rate> {
        self.needed_rate
    }

    fn fits_all(&self) -> bool {
        self.coder.is_some() || matches!(self.send, SendHalf::Units(_))
    }

    fn send_window(&self) -> u64 {
        self.send.send_window(self.credit - self.spent)
    }

    fn blocked(&self) -> Option<Blocked> {
        let waits = !self.returned.is_empty();
        (!waits).then(|| self.send.blocked(self.credit - self.spent))?
    }

    fn coding(&self) -> Option<Coding> {
        self.coder.as_ref().map(|coder| coder.view())
    }

    fn repair(&mut self, index: usize) -> Option<Symbol> {
        let coder = self.coder.as_deref_mut()?;
        // What waits will have left before the repair symbol does.
        if !coder.has_unknown() && !self.queues.has_sources() {
            return None;
        }
        let symbol = coder.reserve()?;
        let kind = EmissionKind::Repair;
        self.queues.push(self.ids[index], Assigned { symbol, kind });
        Some(symbol)
    }

    fn send(&mut self, index: usize, max: u32) -> Symbol {
        let max = self.longest(max);
        let symbol = match self.returned.pop_front() {
            Some(symbol) => match symbol.split(max) {
                Some((head, tail)) => {
                    self.returned.push_front(tail);
                    head
                }
                None => symbol,
            },
            None => {
                let (left, before) = (self.credit - self.spent, self.send.spent());
                let symbol = self.send.cut(max, left).unwrap_or(Symbol {
                    unit: 0,
                    offset: 0,
                    len: 0,
                });
                self.spent += self.send.spent() - before;
                if let Some(coder) = &mut self.coder {
                    coder.expect(symbol.len);
                }
                symbol
            }
        };
        let kind = EmissionKind::Source;
        self.queues.push(self.ids[index], Assigned { symbol, kind });
        symbol
    }

    fn copy(&mut self, index: usize, symbol: Symbol) {
        let kind = EmissionKind::Copy;
        self.queues.push(self.ids[index], Assigned { symbol, kind });
    }

    fn take_back(&mut self) -> Vec<u64> {
        let mut all = Vec::new();
        let taken = |id: &PathId| self.queues.take_sources(*id, &mut all);
        let bytes = self.ids.iter().map(taken).collect();
        give_back(self.send, self.returned, all);
        bytes
    }
}
