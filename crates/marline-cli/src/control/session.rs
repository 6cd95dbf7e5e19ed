//! A client's and a server's own figures in the words of `marline status`.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use marline_proto::sched::PathOutlook;
use marline_proto::stats::{Carried, FlowStats, SessionStats};
use marline_proto::wire::PathId;

use marline::Path;
use marline::endpoint::client::{AddPathError, RemovePathError, UnknownPath};
use marline::endpoint::{Client, PathInfo, Server, SessionInfo, SessionState};
use marline::identity::PublicKey;

use super::forecast::{CalibrationStatus, ForecastStatus};
use super::status::{CarriedStatus, ClientStatus, FlowStatus, PathStatus, Role, SessionStatus};
use super::{Manage, Problem, Status};

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
        calibration: CalibrationStatus::of(&outlook.calibration),
    })
}

impl CarriedStatus {
    fn of(carried: &Carried) -> Self {
        CarriedStatus {
            sent_bytes: carried.written_bytes,
            acked_bytes: carried.acked_bytes,
            delivered_bytes: carried.read_bytes,
        }
    }
}

fn session(info: &SessionInfo) -> SessionStatus {
    let stats = info.stats.as_ref();
    let expected = |path: &PathInfo| forecast(stats?, path.stats.as_ref()?.id);
    let path = |info: &PathInfo| PathStatus {
        forecast: expected(info),
        ..PathStatus::of(info)
    };
    let flows = |stats: &SessionStats| stats.flows.iter().map(FlowStatus::of).collect();
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
        paths: info.paths.iter().map(path).collect(),
        flows: stats.map_or_else(Vec::new, flows),
        carried: stats
            .map(|stats| CarriedStatus::of(&stats.carried))
            .unwrap_or_default(),
        flows_opened: stats.map_or(0, |stats| stats.closed_flows + stats.flows.len() as u64),
    }
}

fn status(role: Role, uptime: Duration, sessions: &[SessionInfo]) -> Status {
    Status {
        role,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_s: uptime.as_secs_f64(),
        sessions: sessions.iter().map(session).collect(),
        clients: Vec::new(),
        published: Vec::new(),
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
        Client::remove_path(self, name).map_err(|error| match error {
            RemovePathError::Unknown(path) => unknown(path),
            error => Problem::new(error.to_string()).hint(
                "remove that one, or start with `except=INTERFACE` beside what says which fit",
            ),
        })
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
        let seen: HashMap<PublicKey, SystemTime> = self.last_seen().into_iter().collect();
        let clients = self.allowed().clients().into_iter();
        let clients = clients.map(|client| ClientStatus {
            key: client.key.to_string(),
            last_seen: seen.get(&client.key).and_then(|at| {
                let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
                Some(since.as_secs())
            }),
            name: client.name,
        });
        Status {
            clients: clients.collect(),
            ..status(Role::Server, self.uptime(), &self.sessions())
        }
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
            spill: None,
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
        let status = FlowStatus::of(&stats);
        assert_eq!(
            (status.coding_interval, status.redundancy),
            (Some(9), 0.125)
        );
        assert_eq!((status.repairs_sent, status.repair_bytes), (11, 12_500));
        assert_eq!((status.repairs_used, status.repairs_wasted), (7, 3));
        assert_eq!((status.repairs_received, status.symbols_recovered), (5, 2));
    }
}
