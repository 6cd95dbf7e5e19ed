//! A trial by real processes: a server, a client, a relay for each link, and the stream.

use super::compare::Quantiles;
use super::fit::{LEAD, Trial};
use super::stream::{Plan, Sink, carry};
use super::until;
use crate::cli::{CliError, runtime};
use crate::control::client::ask;
use crate::control::protocol::{Outcome, Request};
use crate::control::status::PathState;
use crate::identity::Identity;
use crate::process::{POLL, Process, Relay, look};
use marline_proto::Config;
use marline_proto::wire::FlowKind;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

/// How long the paths may take to come up.
const UP: Duration = Duration::from_secs(15);
/// What the last messages may take beyond their lifetime.
const REST: Duration = Duration::from_millis(500);
/// What the last messages of a stream may take, which is never given up.
const STREAM: Duration = Duration::from_secs(5);

/// What a real run measured.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Real {
    pub(super) delay_ms: Quantiles,
    /// Share of the messages that did not come.
    pub(super) lost: f64,
    /// Datagrams that left a relay later than they should have: 99th percentile, of the worst relay
    /// (milliseconds).
    pub(super) relays_late_ms: f64,
    /// The same of messages that the sender wrote.
    pub(super) sender_late_ms: f64,
}

/// Runs the trial over links of this seed.
pub(super) fn run(trial: &Trial, seed: u64, stop: &AtomicBool) -> Result<Real, CliError> {
    let folder = tempfile::Builder::new().prefix("marline-").tempdir();
    let folder = folder.map_err(|error| CliError::runtime(format!("no folder: {error}")))?;
    let folder = folder.path();
    let (_server, string) = server(trial, folder, stop)?;
    let addr = string.rsplit_once('@').map_or("", |(_, addr)| addr);
    let started = Instant::now();
    let mut relays = Vec::new();
    for link in 0..trial.scenario.links.len() {
        let name = &trial.scenario.links[link].name;
        // Links of one run draw differently.
        let seed = seed << 8 | link as u64;
        relays.push(Relay::start(
            name,
            trial.flags(link),
            addr,
            seed,
            folder,
            stop,
        )?);
    }
    let sink = match trial.workload().flow.kind {
        FlowKind::Packets => Sink::packets(),
        _ => Sink::stream(),
    };
    let failed = |error| CliError::runtime(format!("no socket for the stream: {error}"));
    let sink = sink.map_err(failed)?;
    let target = sink.addr().map_err(failed)?;
    let addresses: Vec<SocketAddr> = relays.iter().map(|relay| relay.addr).collect();
    let (_client, forward) = client(trial, &string, &addresses, target, folder, stop)?;
    come_up(trial, folder, stop)?;
    let begin = started + LEAD;
    if trial.is_timed() && Instant::now() > begin {
        return Err(CliError::runtime("the processes started too slowly")
            .hint("try again when the machine is less busy"));
    }
    until(begin, stop)?;
    let plan = Plan {
        rate: trial.rate,
        size: trial.size,
        messages: trial.messages(),
        begin: Instant::now(),
    };
    let patience = trial.workload().flow.lifetime;
    let patience = patience.map_or(STREAM, |lifetime| lifetime + REST);
    let (mut arrivals, mut late) = carry(&sink, forward, &plan, patience, stop)?;
    let mut relays_late_ms: f64 = 0.0;
    for relay in relays {
        relays_late_ms = relays_late_ms.max(relay.end(stop)?);
    }
    let warmup = trial.scenario.warmup.as_nanos() as u64;
    arrivals.retain(|arrival| arrival.written >= warmup);
    let written =
        plan.messages - plan.messages * warmup / trial.scenario.duration.as_nanos() as u64;
    let delays = arrivals.iter().map(|one| one.received - one.written);
    let Some(delay_ms) = Quantiles::of(delays.collect()) else {
        return Err(CliError::runtime("nothing came through"));
    };
    late.sort_unstable();
    let late = Quantiles::of(late).map_or(0.0, |late| late.p99);
    Ok(Real {
        delay_ms,
        lost: 1.0 - (arrivals.len() as f64 / written as f64).min(1.0),
        relays_late_ms,
        sender_late_ms: late,
    })
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn key(folder: &Path, name: &str) -> Result<String, CliError> {
    let identity = Identity::generate().map_err(CliError::runtime)?;
    let saved = identity.save_new(&folder.join(name));
    saved.map_err(CliError::runtime)?;
    Ok(identity.public_key().to_string())
}

fn congestion(config: &Config) -> String {
    match config.fixed_rate {
        Some(rate) => format!("{}={}bit", config.congestion, rate.as_bps()),
        None => config.congestion.to_owned(),
    }
}

/// The server and its connection string.
fn server(trial: &Trial, folder: &Path, stop: &AtomicBool) -> Result<(Process, String), CliError> {
    key(folder, "server")?;
    let client = key(folder, "client")?;
    let congestion = congestion(trial.config());
    let words = words(&[
        "server",
        "--identity=server",
        "--listen=127.0.0.1:0",
        "--allow-target=127.0.0.0/8",
        "--control=off",
        "--allow-client",
        &client,
        "--congestion",
        &congestion,
    ]);
    let mut server = Process::start("the server", folder, &words)?;
    let string = server.said("its connection string", stop, |line| {
        line.starts_with("marline://").then(|| line.to_owned())
    })?;
    Ok((server, string))
}

/// The client and where its forward listens.
fn client(
    trial: &Trial,
    server: &str,
    relays: &[SocketAddr],
    target: SocketAddr,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<(Process, SocketAddr), CliError> {
    let congestion = congestion(trial.config());
    let flow = &trial.workload().flow;
    let (protocol, more) = match (flow.kind, flow.lifetime) {
        (FlowKind::Packets, None) => ("udp", ",ordered".to_owned()),
        (FlowKind::Packets, Some(lifetime)) => {
            let lifetime = humantime::format_duration(lifetime).to_string();
            (
                "udp",
                format!(",ordered,lifetime={}", lifetime.replace(' ', "")),
            )
        }
        _ => ("tcp", String::new()),
    };
    let forward = format!(
        "{protocol}:127.0.0.1:0={target},scheduler={},priority={}{more}",
        trial.flow_scheduler(),
        flow.priority
    );
    let mut words = words(&[
        "client",
        "--identity=client",
        "--socks=off",
        "--control",
        CONTROL,
        "--server",
        server,
        "--congestion",
        &congestion,
        "--forward",
        &forward,
    ]);
    for (number, path) in trial.paths().iter().enumerate() {
        let relay = relays[path.link];
        let standby = if path.standby { ",standby" } else { "" };
        let cost = path.cost;
        words.push(format!(
            "--path=127.0.0.1,server={relay},name=path-{number},cost={cost}{standby}"
        ));
    }
    let mut client = Process::start("the client", folder, &words)?;
    let forward = client.said("its forward", stop, |line| {
        let (before, to) = line.split_once(" is carried to ")?;
        to.ends_with(&target.to_string()).then_some(())?;
        before.rsplit(' ').next()?.parse().ok()
    })?;
    Ok((client, forward))
}

const CONTROL: &str = "client.sock";

/// Waits until every path is ready to carry data.
fn come_up(trial: &Trial, folder: &Path, stop: &AtomicBool) -> Result<(), CliError> {
    let runtime = runtime()?;
    let end = Instant::now() + UP;
    while Instant::now() < end {
        look(stop)?;
        // It may not have come so far as to listen.
        let answer = runtime.block_on(ask(&folder.join(CONTROL), Request::Status));
        if let Ok(Outcome::Status { status }) = answer {
            let paths = status.sessions.iter().flat_map(|session| &session.paths);
            let ready = |state| matches!(state, PathState::Active | PathState::Standby);
            if paths.filter(|path| ready(path.state)).count() == trial.paths().len() {
                return Ok(());
            }
        }
        thread::sleep(POLL);
    }
    Err(CliError::runtime("the paths did not come up in time"))
}
