//! Snapshots for status and metrics.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::Session;
use super::flow::Flow;
use crate::flow::{RecvHalf, SendHalf, Unsettled};
use crate::path::Path;
use crate::stats::{Carried, Delays, FlowCounters, FlowStats, GivenUp, PathStats, SessionStats};
use crate::wire::{FlowId, PathId};

impl Session {
    /// How the session, its paths and its flows stand now.
    pub fn stats(&self) -> SessionStats {
        SessionStats {
            credit: self.credit.stats(),
            paths: self.paths.iter().map(|p| self.path_stats(p)).collect(),
            flows: self.flows.values().map(|f| self.flow_stats(f)).collect(),
            closed_flows: self.numbers.closed(),
            carried: self.carried(),
        }
    }

    /// What all flows carried, closed ones included.
    fn carried(&self) -> Carried {
        let mut carried = self.numbers.carried();
        for flow in self.flows.values() {
            carried.add(&self.counters_of(flow));
        }
        carried
    }

    /// How one path stands now, if there is one of that id.
    pub fn path(&self, id: PathId) -> Option<PathStats> {
        let path = self.paths.iter().find(|p| p.id == id)?;
        Some(self.path_stats(path))
    }

    /// What an open flow has counted; `None` once it is closed.
    pub fn flow_counters(&self, id: FlowId) -> Option<FlowCounters> {
        Some(self.counters_of(self.flows.get(&id)?))
    }

    /// How long what an open flow sent took until this end knew that the peer has it; `None` once
    /// it is closed.
    pub fn flow_delays(&self, id: FlowId) -> Option<&Delays> {
        Some(&*self.flows.get(&id)?.delays)
    }

    /// Messages, blocks or pieces of objects that the peer is not known to have and that are not
    /// given up, in the order in which they were written; none once the flow is closed. After the
    /// session's end that is what was under way then: an application may send it over the next
    /// session, where some of it may come a second time.
    pub fn unsettled(&self, id: FlowId) -> Vec<Unsettled> {
        match self.flows.get(&id).map(|flow| &flow.send) {
            Some(SendHalf::Packets(packets)) => packets.unsettled().collect(),
            Some(SendHalf::Units(units)) => units.unsettled().collect(),
            Some(SendHalf::Stream(_)) | None => Vec::new(),
        }
    }

    /// Bytes of an open flow that have arrived and wait for earlier ones, or for the rest of their
    /// message. It takes time in proportion to the pieces that wait.
    pub fn out_of_order(&self, id: FlowId) -> u64 {
        self.flows.get(&id).map_or(0, |flow| match &flow.recv {
            RecvHalf::Stream(stream) => stream.out_of_order(),
            RecvHalf::Packets(packets) => packets.out_of_order(),
            RecvHalf::Units(units) => units.out_of_order(),
        })
    }

    /// Where the messages were that an open flow of messages gave up at the end of their lifetime.
    pub fn given_up(&self, id: FlowId) -> Option<GivenUp> {
        match &self.flows.get(&id)?.send {
            SendHalf::Packets(packets) => Some(packets.expired_where().clone()),
            SendHalf::Stream(_) | SendHalf::Units(_) => None,
        }
    }

    fn path_stats(&self, path: &Path) -> PathStats {
        PathStats {
            id: path.id,
            state: path.state(),
            reason: String::from(path.why()),
            since: path.since(),
            heard: path.last_progress,
            cost: path.cost.rank(),
            srtt: path.rtt.smoothed(),
            rtt_var: path.rtt.variation(),
            min_rtt: path.rtt.min(),
            queueing: path.one_way.queueing(),
            spacing: path.one_way.spacing(),
            loss: path.loss.fraction(),
            law: path.calibration(),
            cwnd: path.controller.window(),
            in_flight: path.in_flight(),
            queued: self.queued_on(path.id),
            tracked: path.ledger.tracked(),
            rate: path.rate(),
            congestion: path.controller.view().name,
            max_datagram: path.max_datagram,
            counters: path.counters,
        }
    }

    pub(super) fn counters_of(&self, flow: &Flow) -> FlowCounters {
        let mut counters = flow.counters;
        if let Some(decoder) = &flow.decoder {
            (counters.received_repairs, counters.recovered_symbols) = decoder.counts();
        }
        if let RecvHalf::Packets(packets) = &flow.recv {
            let counts = packets.counts();
            counters.delivered_messages = counts.delivered;
            counters.skipped_messages = counts.skipped;
            counters.late_messages = counts.late;
            counters.dropped_messages = counts.dropped;
            counters.duplicate_messages = counts.duplicates;
            counters.reordered_messages = counts.reordered;
        }
        if let SendHalf::Packets(packets) = &flow.send {
            counters.acked_late_bytes = packets.acked_late();
            counters.repaired_symbols = packets.repaired();
        }
        if let RecvHalf::Units(units) = &flow.recv {
            counters.units.delivered = units.delivered;
            counters.units.late = units.late;
            counters.units.missing = units.lost;
            counters.units.rebuilt_symbols = units.rebuilt_symbols;
        }
        if let SendHalf::Units(units) = &flow.send
            && self.is_closing()
        {
            // The peer will not say any more what became of them.
            counters.units.cancelled += units.given_up();
        }
        counters
    }

    fn flow_stats(&self, flow: &Flow) -> FlowStats {
        FlowStats {
            id: flow.id,
            kind: flow.kind,
            scheduler: flow.choice,
            priority: flow.priority,
            unsent: match &flow.send {
                SendHalf::Stream(stream) => stream.unsent(),
                SendHalf::Packets(packets) => packets.unsent(),
                SendHalf::Units(units) => units.unsent(),
            },
            unacked: match &flow.send {
                SendHalf::Stream(stream) => stream.unacked(),
                SendHalf::Packets(packets) => packets.held(),
                SendHalf::Units(units) => units.held(),
            },
            unread: flow.received(),
            delays: flow.delays.clone(),
            outlook: flow.scheduler.outlook().map(Box::new),
            // A scheduler does not know whether the peer decodes.
            coding_interval: flow
                .coder
                .as_ref()
                .and_then(|_| flow.scheduler.coding_interval()),
            spill: flow.spill,
            counters: self.counters_of(flow),
        }
    }
}
