//! A trial by real processes: a server, a client, a relay for each link, and the stream.
//!
//! `marline sim validate`, which holds the simulator against real processes, and `marline repro
//! --processes`, which judges experiments by them, share this.

mod fit;
mod http;
mod quantiles;
mod stalls;
mod stream;

pub(super) use fit::{Trial, trials};
pub(super) use quantiles::Quantiles;

use crate::commands::{CliError, runtime};
use crate::control::client::ask;
use crate::control::protocol::{Outcome, Request};
use fit::LEAD;
use marline::identity::Identity;
use marline_base::Rate;
use marline_lab::process::{END_WITH_STDIN, POLL, Process, Relay, look};
use marline_proto::path::PathState;
use marline_proto::wire::FlowKind;
use serde::Serialize;
use stalls::Watch;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use stream::{Arrival, Plan, Sink, carry};

/// How long the paths may take to come up.
const UP: Duration = Duration::from_secs(15);
/// What the last messages may take beyond their lifetime.
const REST: Duration = Duration::from_millis(500);
/// What the last messages of a stream may take, which is never given up.
const STREAM: Duration = Duration::from_secs(5);

/// From when the redundancy of a stream is asked for to its end, or to when it is asked for again.
const ASK: Duration = Duration::from_millis(300);

/// How the bytes of a trial get through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Through {
    /// Written into a forward of the client, read behind the server.
    Forward,
    /// Downloaded by `curl` through the client's SOCKS5 proxy from a web server behind the server.
    Curl,
}

/// What a real run measured.
#[derive(Debug, Clone, Serialize)]
pub(in crate::commands) struct Real {
    /// Delay in order, of a stream that reports it.
    pub(in crate::commands) delay_ms: Option<Quantiles>,
    /// The same without messages that met a stall of the machine; of all, if those are more than
    /// half.
    pub(in crate::commands) calm_ms: Option<Quantiles>,
    /// Share of the messages that did not come.
    pub(in crate::commands) lost: f64,
    /// Share of those that came that [`calm_ms`](Self::calm_ms) leaves out.
    pub(in crate::commands) left_out: f64,
    /// Payload that came after the warm-up.
    pub(in crate::commands) goodput_mbps: f64,
    /// (bytes sent − source bytes) / source bytes at the sending end shortly before the end of the
    /// stream; `None` if that end did not report.
    pub(in crate::commands) redundancy: Option<f64>,
    /// Datagrams that left a relay later than they should have: 99th percentile, of the worst relay
    /// (milliseconds).
    pub(in crate::commands) relays_late_ms: f64,
    /// The same of messages that the sender wrote.
    pub(in crate::commands) sender_late_ms: f64,
}

/// What came through, and how late it was written.
struct Came {
    delay_ms: Option<Quantiles>,
    calm_ms: Option<Quantiles>,
    lost: f64,
    left_out: f64,
    goodput_mbps: f64,
    sender_late_ms: f64,
}

/// Runs the trial over links of this seed.
pub(in crate::commands) fn run(
    trial: &Trial,
    through: Through,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Real, CliError> {
    let folder = tempfile::Builder::new().prefix("marline-").tempdir();
    let folder = folder.map_err(|error| CliError::runtime(format!("no folder: {error}")))?;
    let folder = folder.path();
    let (_server, string) = server(trial, through, folder, stop)?;
    let addr = string.rsplit_once('@').map_or("", |(_, addr)| addr);
    let started = Instant::now();
    let mut relays = Vec::new();
    for (number, link) in trial.scenario.links.iter().enumerate() {
        // Links of one run draw differently.
        let seed = seed << 8 | number as u64;
        let flags = trial.flags(number);
        relays.push(Relay::start(&link.name, flags, addr, seed, folder, stop)?);
    }
    let addresses: Vec<SocketAddr> = relays.iter().map(|relay| relay.addr).collect();
    let failed = |error| CliError::runtime(format!("no socket for the stream: {error}"));
    let sink = match trial.workload().flow.kind {
        FlowKind::Packets => Sink::packets(),
        _ => Sink::stream(),
    };
    let sink = sink.map_err(failed)?;
    let target = match through {
        Through::Forward => Some(sink.addr().map_err(failed)?),
        Through::Curl => None,
    };
    let (_client, entry) = client(trial, &string, &addresses, target, folder, stop)?;
    come_up(trial, folder, stop)?;
    let begin = started + LEAD;
    if trial.is_timed() && Instant::now() > begin {
        return Err(CliError::runtime("the processes started too slowly")
            .hint("try again when the machine is less busy"));
    }
    until(begin, stop)?;
    let (begin, over) = (Instant::now(), AtomicBool::new(false));
    let (came, redundancy) = thread::scope(|scope| {
        let asked = scope.spawn(|| redundancy(trial, through, folder, begin, &over));
        let came = match through {
            Through::Forward => stream(trial, &sink, entry, stop),
            Through::Curl => http::download(trial, entry, stop),
        };
        over.store(true, Ordering::Relaxed);
        (came, asked.join().ok().flatten())
    });
    let came = came?;
    let mut relays_late_ms: f64 = 0.0;
    for relay in relays {
        relays_late_ms = relays_late_ms.max(relay.end(stop)?);
    }
    Ok(Real {
        delay_ms: came.delay_ms,
        calm_ms: came.calm_ms,
        lost: came.lost,
        left_out: came.left_out,
        goodput_mbps: came.goodput_mbps,
        redundancy,
        relays_late_ms,
        sender_late_ms: came.sender_late_ms,
    })
}

/// Carries the trial's stream through the forward.
fn stream(
    trial: &Trial,
    sink: &Sink,
    forward: SocketAddr,
    stop: &AtomicBool,
) -> Result<Came, CliError> {
    let Trial { scenario, .. } = trial;
    let plan = Plan {
        paced: trial.rate.zip(trial.messages()),
        size: trial.size,
        span: scenario.duration,
        begin: Instant::now(),
    };
    let patience = match (trial.rate, trial.workload().flow.lifetime) {
        // What is on its way at the end counts nowhere.
        (None, _) => Duration::ZERO,
        (_, Some(lifetime)) => lifetime + REST,
        (_, None) => STREAM,
    };
    let watch = Watch::start();
    let carried = carry(sink, forward, &plan, patience, stop);
    let stalls = watch.end(plan.begin);
    let (arrivals, mut late) = carried?;
    let (warmup, end) = (scenario.warmup, scenario.duration);
    let counts = warmup.as_nanos() as u64..end.as_nanos() as u64;
    let came = arrivals.iter().filter(|one| counts.contains(&one.received));
    let bytes = came.count() as u64 * u64::from(trial.size);
    let written = arrivals.iter().filter(|one| one.written >= counts.start);
    let came = written.clone().count();
    let lost = trial.messages().map_or(0.0, |messages| {
        let before = messages * counts.start / counts.end;
        1.0 - (came as f64 / (messages - before) as f64).min(1.0)
    });
    let delay = |one: &Arrival| one.received - one.written;
    let calm = written.clone();
    let calm = calm.filter(|one| !stalls.met(one.written, one.received));
    let mut calm: Vec<u64> = calm.map(delay).collect();
    let delays: Vec<u64> = written.map(delay).collect();
    // Of a machine that hardly ever runs, what is left would be chance.
    if calm.len() < came / 2 {
        calm.clone_from(&delays);
    }
    let left_out = 1.0 - calm.len() as f64 / came.max(1) as f64;
    // What waits before a backlogged stream is the sender's doing.
    let quantiles = |delays| trial.rate.and_then(|_| Quantiles::of(delays));
    if bytes == 0 {
        return Err(CliError::runtime("nothing came through"));
    }
    late.sort_unstable();
    Ok(Came {
        delay_ms: quantiles(delays),
        calm_ms: quantiles(calm),
        lost,
        left_out,
        goodput_mbps: Rate::from_bytes_over(bytes, end - warmup).as_mbps_f64(),
        sender_late_ms: Quantiles::of(late).map_or(0.0, |late| late.p99),
    })
}

/// The redundancy of what is sent, as the sending end last counted it before the stream was `over`.
fn redundancy(
    trial: &Trial,
    through: Through,
    folder: &Path,
    begin: Instant,
    over: &AtomicBool,
) -> Option<f64> {
    let (socket, first, asks) = match through {
        // When it ends is known: one question disturbs it least.
        Through::Forward => (CONTROL, trial.scenario.duration.saturating_sub(ASK), 1),
        Through::Curl => (SERVER_CONTROL, ASK, u32::MAX),
    };
    let (socket, runtime) = (folder.join(socket), runtime().ok()?);
    let (mut at, mut last) = (begin + first, None);
    for _ in 0..asks {
        if until(at, over).is_err() {
            break;
        }
        if let Ok(Outcome::Status { status }) = runtime.block_on(ask(&socket, Request::Status)) {
            let mut flows = status.sessions.iter().flat_map(|session| &session.flows);
            last = flows.next().map(|flow| flow.redundancy).or(last);
        }
        at = Instant::now() + ASK;
    }
    last
}

/// Sleeps until `at`.
fn until(at: Instant, stop: &AtomicBool) -> Result<(), CliError> {
    loop {
        look(stop)?;
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(POLL));
    }
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

/// The server and its connection string.
fn server(
    trial: &Trial,
    through: Through,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<(Process, String), CliError> {
    key(folder, "server")?;
    let client = key(folder, "client")?;
    let congestion = trial.config().congestion.to_string();
    let mut words = words(&[
        "server",
        END_WITH_STDIN,
        "--identity=server",
        "--listen=127.0.0.1:0",
        "--allow-target=127.0.0.0/8",
        "--control",
        SERVER_CONTROL,
        "--allow-client",
        &client,
        "--congestion",
        &congestion,
    ]);
    if through == Through::Curl {
        // It is the server that sends.
        words.push(format!("--scheduler=stream={}", trial.flow_scheduler()));
    }
    let mut server = Process::start("the server", folder, &words)?;
    let string = server.said("its connection string", stop, |line| {
        line.starts_with("marline://").then(|| line.to_owned())
    })?;
    Ok((server, string))
}

/// The client and where its forward to `target` listens, or else its proxy.
fn client(
    trial: &Trial,
    server: &str,
    relays: &[SocketAddr],
    target: Option<SocketAddr>,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<(Process, SocketAddr), CliError> {
    let congestion = trial.config().congestion.to_string();
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
    let entry = match target {
        Some(target) => format!(
            "--forward={protocol}:127.0.0.1:0={target},scheduler={},priority={}{more}",
            trial.flow_scheduler(),
            flow.priority
        ),
        None => "--socks=127.0.0.1:0".to_owned(),
    };
    let mut words = words(&[
        "client",
        END_WITH_STDIN,
        "--identity=client",
        "--control",
        CONTROL,
        "--server",
        server,
        "--congestion",
        &congestion,
        &entry,
    ]);
    if target.is_some() {
        words.push("--socks=off".to_owned());
    }
    for (number, path) in trial.paths().iter().enumerate() {
        let relay = relays[path.link];
        let standby = if path.standby { ",standby" } else { "" };
        let cost = path.cost;
        words.push(format!(
            "--path=127.0.0.1,server={relay},name=path-{number},cost={cost}{standby}"
        ));
    }
    let mut client = Process::start("the client", folder, &words)?;
    let entry = match target {
        Some(target) => client.said("its forward", stop, |line| {
            let (before, to) = line.split_once(" is carried to ")?;
            to.ends_with(&target.to_string()).then_some(())?;
            before.rsplit(' ').next()?.parse().ok()
        })?,
        None => client.said("its proxy", stop, |line| {
            line.split_once("SOCKS5 proxy at ")?.1.parse().ok()
        })?,
    };
    Ok((client, entry))
}

/// Control sockets.
const CONTROL: &str = "client.sock";
const SERVER_CONTROL: &str = "server.sock";

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
