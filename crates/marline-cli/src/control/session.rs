//! A client's and a server's own figures in the words of `marline status`.

use std::time::Duration;

use marline_proto::path::forecast::{Calibration, Decile};
use marline_proto::sched::PathOutlook;
use marline_proto::stats::{Delays, FlowStats, SessionStats, UnitCounters};
use marline_proto::wire::PathId;

use marline::Path;
use marline::endpoint::client::{AddPathError, UnknownPath};
use marline::endpoint::{Client, PathInfo, Server, SessionInfo, SessionState};

use super::forecast::{CalibrationStatus, DecileStatus, ForecastStatus};
use super::status::{FlowStatus, PathStatus, Quantiles, Role, SessionStatus, UnitsStatus};
use super::{Manage, Problem, Status};

/// Milliseconds.
fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn path(info: &PathInfo, forecast: Option<ForecastStatus>) -> PathStatus {
    let stats = info.stats.as_ref();
    // Before anything was acknowledged the session's figures are what it assumes.
    let measured = stats.filter(|stats| stats.counters.acked_bytes > 0);
    let counters = stats.map(|stats| &stats.counters);
    PathStatus {
        id: info.number,
        name: info.name.clone(),
        state: info.state,
        reason: info.reason.clone(),
        cost: info.cost,
        rtt_ms: measured.map(|path| ms(path.srtt)),
        rtt_min_ms: measured.map(|path| ms(path.min_rtt)),
        loss: measured.map(|path| path.loss),
        cwnd_bytes: stats.map_or(0, |path| path.cwnd),
        in_flight_bytes: stats.map_or(0, |path| path.in_flight),
        queue_bytes: stats.map_or(0, |path| path.queued),
        rate_bps: measured.map(|path| path.rate.as_bps()),
        sent_bytes: counters.map_or(0, |counters| counters.sent_bytes),
        received_bytes: counters.map_or(0, |counters| counters.received_bytes),
        sent_packets: counters.map_or(0, |counters| counters.sent_packets),
        lost_packets: counters.map_or(0, |counters| counters.lost_packets),
        received_packets: counters.map_or(0, |counters| counters.received_packets),
        carrier: info.carrier.map(|kind| kind.as_str().to_owned()),
        budget: None,
        forecast,
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
fn forecast(stats: &SessionStats, path: PathId) -> Option<ForecastStatus> {
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

fn session(info: &SessionInfo) -> SessionStatus {
    let stats = info.stats.as_ref();
    let expected = |path: &PathInfo| forecast(stats?, path.stats.as_ref()?.id);
    let paths = info.paths.iter();
    SessionStatus {
        id: info.number,
        peer: info.peer.to_string(),
        state: match info.state {
            SessionState::Established => "established",
            SessionState::Stalled => "stalled",
            SessionState::Closing => "closing",
            _ => "connecting",
        }
        .to_owned(),
        paths: paths.map(|info| path(info, expected(info))).collect(),
        flows: stats.map_or_else(Vec::new, |stats| stats.flows.iter().map(flow).collect()),
        flows_opened: stats.map_or(0, |stats| stats.closed_flows + stats.flows.len() as u64),
    }
}

fn status(role: Role, uptime: Duration, sessions: &[SessionInfo]) -> Status {
    Status {
        role,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_s: uptime.as_secs_f64(),
        sessions: sessions.iter().map(session).collect(),
        live: Vec::new(),
        tunnel: None,
    }
}

impl Manage for Client {
    async fn status(&self) -> Status {
        status(Role::Client, self.uptime(), &[self.info()])
    }

    async fn add_path(&self, spec: Path) -> Result<(), Problem> {
        Client::add_path(self, spec).map_err(|error| {
            let hint = match error {
                AddPathError::NameTaken(_) => "give this one another name: `...,name=NAME`",
                AddPathError::TooMany => "remove one: `marline paths remove NAME`",
                _ => "give an interface or address of this host, or `any`",
            };
            Problem::new(error.to_string()).hint(hint)
        })
    }

    async fn remove_path(&self, name: &str) -> Result<(), Problem> {
        Client::remove_path(self, name).map_err(unknown)
    }

    async fn set_standby(&self, name: &str, standby: bool) -> Result<(), Problem> {
        Client::set_standby(self, name, standby).map_err(unknown)
    }
}

fn unknown(path: UnknownPath) -> Problem {
    let hint = match path.known.is_empty() {
        true => "there is none at all; add one: `marline paths add LOCAL`".to_owned(),
        false => format!("there are: {}", path.known.join(", ")),
    };
    Problem::new(path.to_string()).hint(hint)
}

impl Manage for Server {
    async fn status(&self) -> Status {
        status(Role::Server, self.uptime(), &self.sessions())
    }

    async fn add_path(&self, _: Path) -> Result<(), Problem> {
        Err(not_here())
    }

    async fn remove_path(&self, _: &str) -> Result<(), Problem> {
        Err(not_here())
    }

    async fn set_standby(&self, _: &str, _: bool) -> Result<(), Problem> {
        Err(not_here())
    }
}

fn not_here() -> Problem {
    Problem::new("this is a server; a session's paths are its client's matter")
        .hint("run `marline paths` where the client runs, or name its `--control`")
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
