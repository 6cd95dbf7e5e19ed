//! Blocks through Marline: a client and a server, each on a thread of its own.

use super::content::Content;
use super::notes::Notes;
use super::options::{Task, congestion};
use super::tally::Tally;
use super::{Ended, Options, RunError, relay};
use crate::demo::worker::Worker;
use marline::Path;
use marline::carrier::{Bind, QuicConfig};
use marline::endpoint::server::BindError;
use marline::endpoint::{
    Accepted, Blocks, Client, ClientOptions, Incoming, Server, ServerOptions, Session,
};
use marline::identity::{AllowList, Host, HostPort, Identity, PublicKey};
use marline_proto::FlowOptions;
use marline_proto::flow::BlockTerms;
use marline_proto::path::PathState;
use marline_proto::sched::Choice;
use marline_proto::wire::FlowKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// How long the session may take to come up, and its other paths after it.
const READY: Duration = Duration::from_secs(10);
const ALL_PATHS: Duration = Duration::from_secs(3);
/// What late blocks may take.
const REST: Duration = Duration::from_millis(500);
/// Time between two looks at what is still under way.
const LOOK: Duration = Duration::from_millis(10);

/// Everything by default but what a scheduler of blocks needs.
pub(super) fn config(scheduler: Choice) -> marline_proto::Config {
    marline_proto::Config {
        congestion: congestion(scheduler),
        blocks_scheduler: scheduler,
        ..marline_proto::Config::default()
    }
}

pub(super) async fn run(
    options: &Options,
    scheduler: Choice,
    tally: &Arc<Mutex<Tally>>,
) -> Result<Ended, RunError> {
    let (ours, theirs) = (Identity::generate()?, Identity::generate()?);
    let key = theirs.public_key();
    let content = Content::new(options.seed, options.load.size);
    let failed = |text: &str| RunError::Failed(text.to_owned());
    let (tell, told) = oneshot::channel();
    let _server = {
        let (content, tally) = (content.clone(), Arc::clone(tally));
        let client = ours.public_key();
        Worker::start("demo server", move |stop| async move {
            let server = match bind(theirs, client, scheduler) {
                Ok(server) => server,
                Err(error) => {
                    let _ = tell.send(Err(error));
                    return;
                }
            };
            let _ = tell.send(Ok(server.local_addrs()[0]));
            tokio::select! {
                () = stop.cancelled() => {}
                () = receive(&server, &content, &*tally) => stop.cancelled().await,
            }
        })?
    };
    let addr = told.await.map_err(|_| failed("the server ended"))??;
    let relays = [relay(options, 0, addr)?, relay(options, 1, addr)?];
    let entries: Vec<SocketAddr> = relays.iter().map(|relay| relay.addr()).collect();
    let mut client = {
        let (task, tally) = (options.task(), Arc::clone(tally));
        Worker::start("demo client", move |stop| async move {
            let ends = (key, ours);
            tokio::select! {
                () = stop.cancelled() => Err(RunError::Failed("the run was given up".into())),
                sent = deliver(ends, &entries, scheduler, &task, &*tally) => sent,
            }
        })?
    };
    let sent = client.result().await;
    let redundancy = sent.ok_or_else(|| failed("the client's thread ended"))??;
    Ok(Ended::new(redundancy, &relays))
}

/// A server that lets this client in.
pub(super) fn bind(
    identity: Identity,
    client: PublicKey,
    scheduler: Choice,
) -> Result<Server, BindError> {
    let anywhere = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let mut options = ServerOptions::new(vec![anywhere], identity, AllowList::from_keys([client]));
    options.session = config(scheduler);
    Server::bind(options)
}

/// Sends the blocks to the server of that key by way of these relays; the redundancy that they
/// took.
pub(super) async fn deliver(
    (server, identity): (PublicKey, Identity),
    entries: &[SocketAddr],
    scheduler: Choice,
    task: &Task,
    notes: &impl Notes,
) -> Result<f64, RunError> {
    let client = Client::start(client(server, identity, entries, scheduler))?;
    let sent = send(&client, entries.len(), scheduler, task, notes).await;
    client.stop("the demo is over").await;
    sent
}

fn client(
    server: PublicKey,
    identity: Identity,
    entries: &[SocketAddr],
    scheduler: Choice,
) -> ClientOptions {
    let path = |(index, entry): (usize, &SocketAddr)| Path {
        name: format!("link-{index}"),
        local: Bind::Address(Ipv4Addr::LOCALHOST.into()),
        server: Some(HostPort {
            host: Host::Ip(entry.ip()),
            port: entry.port(),
        }),
        ..Path::default()
    };
    ClientOptions {
        server,
        addresses: Vec::new(),
        identity,
        paths: entries.iter().enumerate().map(path).collect(),
        sysfs: marline::interfaces::Sysfs::default(),
        names: None,
        mark: None,
        session: config(scheduler),
        quic: QuicConfig::default(),
        takes_flows: false,
    }
}

/// Waits until all paths are up, or some time after the first is.
async fn all_paths(session: &Session, paths: usize) {
    let active = || {
        let stats = session.stats();
        stats
            .paths
            .iter()
            .filter(|path| path.state == PathState::Active)
            .count()
    };
    let all = async {
        while active() < paths {
            sleep(LOOK).await;
        }
    };
    if timeout(ALL_PATHS, all).await.is_err() {
        tracing::warn!("a link takes long to come up; the blocks begin without it");
    }
}

/// Writes blocks until the time is over, and waits for the last ones; the redundancy that they
/// took.
async fn send(
    client: &Client,
    paths: usize,
    scheduler: Choice,
    task: &Task,
    notes: &impl Notes,
) -> Result<f64, RunError> {
    client.connect(READY).await?;
    let session = client.session();
    let session = session.ok_or_else(|| RunError::Failed("the session is over".into()))?;
    all_paths(&session, paths).await;
    let flow = FlowOptions {
        scheduler: Some(scheduler),
        ..FlowOptions::new(FlowKind::Blocks)
    };
    let flow = session.open_blocks(flow);
    let flow = flow.map_err(|error| RunError::Failed(error.to_string()))?;
    let load = task.load;
    let content = Content::new(task.seed, load.size);
    let terms = BlockTerms {
        deadline: Some(load.deadline),
        reliability: Some(load.reliability),
    };
    let mut ticks = interval(load.every);
    // A block that is written late does not delay the next.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let begin = Instant::now();
    for number in 0.. {
        ticks.tick().await;
        if begin.elapsed() >= task.time {
            break;
        }
        let block = content.block(number);
        // Noted before, because it may be there before this thread goes on.
        notes.wrote(Instant::now());
        if let Err(error) = flow.try_write(&block, terms) {
            tracing::debug!(%error, number, "block not taken");
            notes.refused();
        }
        if session.is_closed().is_some() {
            return Err(RunError::Failed("the session ended too early".into()));
        }
    }
    let rest = async {
        while !notes.is_complete() {
            sleep(LOOK).await;
        }
    };
    // Blocks that are given up never come.
    let _ = timeout(load.deadline + REST, rest).await;
    Ok(redundancy(&session, &flow))
}

fn redundancy(session: &Session, flow: &Blocks) -> f64 {
    let stats = session.stats();
    let ours = stats.flows.iter().find(|stats| stats.id == flow.id());
    ours.map_or(0.0, |stats| stats.counters.redundancy())
}

/// Receives the blocks of one session until it is over.
pub(super) async fn receive(server: &Server, content: &Content, notes: &impl Notes) {
    let Some(session) = server.accept().await else {
        return;
    };
    let Ok((_, Accepted::Blocks(flow))) = session.handle().accept().await else {
        return;
    };
    while let Some(incoming) = flow.recv().await {
        if let Incoming::Piece(piece) = incoming {
            let at = Instant::now();
            notes.came(content.number(&piece.data), at);
        }
    }
}
