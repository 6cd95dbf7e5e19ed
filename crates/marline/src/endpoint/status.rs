//! A session's own figures in the words of `marline status`.

use std::time::Duration;

use marline_proto::path::forecast::{Calibration, Decile};
use marline_proto::sched::PathOutlook;
use marline_proto::stats::{Delays, FlowStats, PathStats, SessionStats, UnitCounters};
use marline_proto::wire::PathId;

use super::Handle;
use crate::carrier::CarrierKind;
use crate::control::forecast::{CalibrationStatus, DecileStatus, ForecastStatus};
use crate::control::status::{
    FlowStatus, PathState, PathStatus, Quantiles, SessionStatus, UnitsStatus,
};

/// Milliseconds.
fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn path_state(state: marline_proto::path::PathState) -> PathState {
    use marline_proto::path::PathState as Proto;
    match state {
        Proto::Validating => PathState::Validating,
        Proto::Active => PathState::Active,
        Proto::Standby => PathState::Standby,
        Proto::Suspect => PathState::Suspect,
        Proto::Dead => PathState::Dead,
    }
}

/// A path under the number and name that this end gives it.
pub(super) fn path(
    number: u64,
    name: &str,
    path: &PathStats,
    carrier: Option<CarrierKind>,
    forecast: Option<ForecastStatus>,
) -> PathStatus {
    // Before anything was acknowledged the session's figures are what it assumes.
    let measured = path.counters.acked_bytes > 0;
    PathStatus {
        id: number,
        name: name.to_owned(),
        state: path_state(path.state),
        reason: path.reason.clone(),
        cost: path.cost,
        rtt_ms: measured.then(|| ms(path.srtt)),
        rtt_min_ms: measured.then(|| ms(path.min_rtt)),
        loss: measured.then_some(path.loss),
        cwnd_bytes: path.cwnd,
        in_flight_bytes: path.in_flight,
        queue_bytes: path.queued,
        rate_bps: measured.then(|| path.rate.as_bps()),
        sent_bytes: path.counters.sent_bytes,
        received_bytes: path.counters.received_bytes,
        sent_packets: path.counters.sent_packets,
        lost_packets: path.counters.lost_packets,
        received_packets: path.counters.received_packets,
        carrier: carrier.map(|kind| kind.as_str().to_owned()),
        budget: None,
        forecast,
    }
}

/// A path that the session does not have, and why.
pub(super) fn absent_path(
    number: u64,
    name: &str,
    cost: u32,
    state: PathState,
    reason: &str,
) -> PathStatus {
    PathStatus {
        id: number,
        name: name.to_owned(),
        state,
        reason: reason.to_owned(),
        cost,
        rtt_ms: None,
        rtt_min_ms: None,
        loss: None,
        cwnd_bytes: 0,
        in_flight_bytes: 0,
        queue_bytes: 0,
        rate_bps: None,
        sent_bytes: 0,
        received_bytes: 0,
        sent_packets: 0,
        lost_packets: 0,
        received_packets: 0,
        carrier: None,
        budget: None,
        forecast: None,
    }
}

fn calibration(calibration: &Calibration) -> CalibrationStatus {
    let total = calibration.total();
    let rates = total.rates();
    let decile = |(tenth, decile): (usize, &Decile)| {
        let (promised, kept) = decile.rates()?;
        Some(DecileStatus {
            from: tenth as f64 / 10.0,
            promises: decile.promises,
            promised,
            kept,
        })
    };
    let deciles = calibration.deciles().iter().enumerate();
    CalibrationStatus {
        promises: total.promises,
        promised: rates.map(|(promised, _)| promised),
        kept: rates.map(|(_, kept)| kept),
        deciles: deciles.filter_map(decile).collect(),
    }
}

/// What is expected of a path, by the flow that has said most of it.
pub(super) fn forecast(stats: &SessionStats, path: PathId) -> Option<ForecastStatus> {
    let of_flow = |flow: &FlowStats| {
        let outlook = flow.outlook.as_ref()?;
        let of_path = outlook.paths.iter().find(|outlook| outlook.path == path)?;
        Some((flow.id.0, of_path.clone()))
    };
    let known = stats.flows.iter().filter_map(of_flow);
    let (flow, outlook) = known.max_by_key(|(_, outlook)| outlook.calibration.total().promises)?;
    let PathOutlook { capacity, mode, .. } = outlook;
    Some(ForecastStatus {
        flow,
        mean_bps: capacity.mean as u64,
        sd_bps: capacity.sd as u64,
        mode: mode.to_owned(),
        outage: capacity.outage,
        calibration: calibration(&outlook.calibration),
    })
}

fn quantiles(delays: &Delays) -> Option<Quantiles> {
    let at = |q| delays.quantile(q).map(ms);
    Some(Quantiles {
        p50: at(0.5)?,
        p95: at(0.95)?,
        p99: at(0.99)?,
        worst: ms(delays.worst()),
    })
}

fn flow(flow: &FlowStats) -> FlowStatus {
    let counters = &flow.counters;
    FlowStatus {
        id: flow.id.0,
        kind: flow.kind.name().to_owned(),
        scheduler: flow.scheduler.to_string(),
        priority: flow.priority,
        sent_bytes: counters.written_bytes,
        delivered_bytes: counters.read_bytes,
        backlog_bytes: flow.unsent,
        delay_ms: quantiles(&flow.delays),
        redundancy: counters.redundancy(),
        retransmitted_bytes: counters.retransmitted_bytes,
        coding_interval: flow.coding_interval,
        repair_bytes: counters.repair_bytes,
        repairs_sent: counters.repair_symbols,
        repairs_used: counters.repairs_used,
        repairs_wasted: counters.repairs_wasted,
        repairs_received: counters.received_repairs,
        symbols_recovered: counters.recovered_symbols,
        lost_messages: counters.expired_messages
            + counters.skipped_messages
            + counters.dropped_messages,
        units: flow.kind.has_units().then(|| units(&counters.units)),
        calibration: flow
            .outlook
            .as_ref()
            .map(|outlook| calibration(&outlook.units)),
    }
}

fn units(counters: &UnitCounters) -> UnitsStatus {
    UnitsStatus {
        sent: counters.written,
        complete: counters.acked,
        complete_late: counters.acked_late,
        lost: counters.lost,
        cancelled: counters.cancelled,
        delivered: counters.delivered,
        delivered_late: counters.late,
        missing: counters.missing,
        rebuilt_symbols: counters.rebuilt_symbols,
    }
}

/// A session with the given paths.
pub(super) fn session(
    number: u64,
    peer: String,
    handle: &Handle,
    stats: &SessionStats,
    paths: Vec<PathStatus>,
) -> SessionStatus {
    let state = match (handle.is_closed(), handle.has_working_path()) {
        (Some(_), _) => "closing",
        (None, true) => "established",
        (None, false) => "stalled",
    };
    SessionStatus {
        id: number,
        peer,
        state: state.to_owned(),
        paths,
        flows: stats.flows.iter().map(flow).collect(),
        flows_opened: stats.closed_flows + stats.flows.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_proto::stats::FlowCounters;
    use marline_proto::wire::{FlowId, FlowKind};

    #[test]
    fn a_flow_tells_what_its_code_does() {
        let stats = FlowStats {
            id: FlowId(4),
            kind: FlowKind::Stream,
            scheduler: "mend".parse().unwrap(),
            priority: 3,
            unsent: 0,
            unacked: 0,
            unread: 0,
            delays: Box::default(),
            outlook: None,
            coding_interval: Some(9),
            counters: FlowCounters {
                source_bytes: 100_000,
                repair_symbols: 11,
                repair_bytes: 12_500,
                repairs_used: 7,
                repairs_wasted: 3,
                received_repairs: 5,
                recovered_symbols: 2,
                ..FlowCounters::default()
            },
        };
        let status = flow(&stats);
        assert_eq!(
            (status.coding_interval, status.redundancy),
            (Some(9), 0.125)
        );
        assert_eq!((status.repairs_sent, status.repair_bytes), (11, 12_500));
        assert_eq!((status.repairs_used, status.repairs_wasted), (7, 3));
        assert_eq!((status.repairs_received, status.symbols_recovered), (5, 2));
    }
}
