//! What a path in doubt holds goes to the others.

use alloc::vec::Vec;

use marline_base::{Duration, Instant};
use smallvec::SmallVec;

use super::Session;
use super::again::Arrivals;
use super::share::Scope;
use super::spill::paid;
use crate::flow::{Assigned, Symbol};
use crate::path::{EmissionKind, Health, Rescued, SentFrame};
use crate::sched::PathView;
use crate::wire::{FlowId, PathId};

/// Packets that are rescued from a path that came under suspicion, or is slow, at most: 100
/// Mb/s for a second. What is more is sent again when it is lost.
pub(super) const MAX_RESCUE: usize = 8_192;

impl Session {
    /// Nothing on this path is counted on any more: what is in flight on it is sent again, and what
    /// waits for it goes back to where it came from.
    pub(super) fn evacuate(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        let id = path.id;
        let frames = path.ledger.open_packets().flat_map(|p| &p.frames);
        let repairs = frames.filter_map(|frame| match frame {
            SentFrame::Data {
                flow,
                symbol,
                kind: EmissionKind::Repair,
                ..
            } => Some((*flow, *symbol)),
            _ => None,
        });
        let repairs: Vec<(FlowId, Symbol)> = repairs.collect();
        let symbols = path.ledger.rescue_all(MAX_RESCUE);
        let doubt = self.paths[index].rtt.smoothed();
        self.send_rescued(now, index, symbols, EmissionKind::Retransmission, doubt);
        self.unassign(now, id);
        self.drop_repairs(now, repairs);
    }

    /// Repair symbols of units are not counted on any more: what they would have made up for is
    /// due.
    pub(super) fn drop_repairs(&mut self, now: Instant, repairs: Vec<(FlowId, Symbol)>) {
        let mut flows = SmallVec::<[FlowId; 4]>::new();
        for (id, symbol) in repairs {
            if let Some(flow) = self.flows.get_mut(&id) {
                flow.send.on_dropped(&symbol);
                flows.push(id);
            }
        }
        flows.dedup();
        for id in flows {
            self.settle_units(now, id);
        }
    }

    /// Sends what packets of the path at `index` hold again, on the paths that should deliver it
    /// first. As copies they may be dropped when their path falls too; as retransmissions they
    /// count on nothing else to arrive.
    ///
    /// The path itself is the last to turn to, but better than one that is slower by the `doubt`
    /// there is in it.
    pub(super) fn send_rescued(
        &mut self,
        now: Instant,
        index: usize,
        symbols: Vec<Rescued>,
        kind: EmissionKind,
        doubt: Duration,
    ) {
        let own = self.paths[index].id;
        let mut views: Vec<PathView> = self.view_usable().collect();
        // What another brings besides is worth money only by much. Nothing comes of a path that is
        // given up.
        let cost = match kind {
            EmissionKind::Copy => self.paths[index].cost.rank(),
            _ => views.iter().map(|view| view.cost).min().unwrap_or(0),
        };
        let arrivals = Arrivals::by(now, &views);
        let arrival = |view: &PathView, len| {
            let doubted = if view.id == own {
                doubt
            } else {
                Duration::ZERO
            };
            arrivals.after(view, len) + doubted + paid(view, cost)
        };
        for rescued in symbols {
            let Rescued {
                flow: id, symbol, ..
            } = rescued;
            let comes = rescued.again && self.flies(id, &symbol);
            let Some(flow) = self.flows.get_mut(&id) else {
                continue;
            };
            // What was rescued before waits as a copy, if it waits.
            let source = rescued.source || rescued.again;
            if comes || flow.send.is_settled(&symbol) || flow.queues.holds(&symbol, source) {
                continue;
            }
            if let Some(view) = views.iter_mut().min_by_key(|v| arrival(v, symbol.len)) {
                view.queued += u64::from(symbol.len);
                flow.queues.push_urgent(view.id, Assigned { symbol, kind });
            }
            self.activate_queued(id);
        }
    }

    /// Does a copy of a symbol fly on a path that is not in doubt?
    fn flies(&self, id: FlowId, symbol: &Symbol) -> bool {
        let mut trusted = self
            .paths
            .iter()
            .filter(|p| matches!(p.health, Health::Active));
        trusted.any(|p| p.ledger.first_sent(id, symbol, true).is_some())
    }

    /// Takes back what waits for a path.
    pub(super) fn unassign(&mut self, now: Instant, id: PathId) {
        let mut repairs = Vec::new();
        let flows: Vec<FlowId> = self.flows.ids().collect();
        for flow in flows {
            let Some(flow) = self.flows.get_mut(&flow) else {
                continue;
            };
            let mut sources = Vec::new();
            for assigned in flow.queues.take_path(id) {
                match assigned.kind {
                    EmissionKind::Source => sources.push(assigned.symbol),
                    EmissionKind::Copy => {}
                    EmissionKind::Repair => match &mut flow.coder {
                        Some(coder) => coder.cancel(&assigned.symbol),
                        None => repairs.push((flow.id, assigned.symbol)),
                    },
                    EmissionKind::Retransmission => {
                        flow.lost.push_back(assigned.symbol);
                    }
                }
            }
            flow.give_back(sources);
            self.waiting.account(flow);
        }
        self.drop_repairs(now, repairs);
        self.planning.widen(Scope::All);
    }
}
