//! A demo of objects: pages of a hundred objects from a server to a client over the two links, over
//! each alone and over both with each scheduler.

mod page;
mod report;

pub use page::{OBJECTS, URGENT};
pub use report::{Delays, Figures, Report, RunReport};

use super::plan::RunPlan;
use super::worker::Worker;
use crate::emulate::{EmulateError, Emulator, EmulatorConfig};
use bytes::Bytes;
use marline::Path;
use marline::endpoint::server::BindError;
use marline::endpoint::{
    Accepted, Client, ClientOptions, ConnectError, Object, Server, ServerOptions,
};
use marline::identity::{AllowList, HostPort, Identity, NoRandomness};
use marline_base::Rng;
use marline_link::LinkConfig;
use marline_proto::FlowOptions;
use marline_proto::flow::ObjectOptions;
use marline_proto::sched::Choice;
use marline_proto::sched::{Entry, registry};
use marline_proto::wire::FlowKind;
use page::{Item, page};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// The schedulers when none are given.
pub const DEFAULT_SCHEDULERS: &str = "sos,sos-fec,sos-rateless,edpf,min-rtt";
/// Pages of a run that count; one before them does not, because the links are not known yet.
pub const PAGES: u64 = 5;
/// Time between pages.
const PAUSE: Duration = Duration::from_millis(300);
/// How long the session may take to come up, and its other paths after it.
const READY: Duration = Duration::from_secs(10);
const ALL_PATHS: Duration = Duration::from_secs(1);
/// How long all pages of a run may take.
const LONGEST: Duration = Duration::from_secs(120);

/// What a demo of objects does.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Link A and link B, each the same in both directions.
    pub links: [LinkConfig; 2],
    /// The schedulers to bond with.
    pub schedulers: Vec<Choice>,
    /// Seed of everything random in the links and the pages.
    pub seed: u64,
}

/// The schedulers that serve objects.
pub fn schedulers() -> impl Iterator<Item = &'static Entry> {
    let all = registry::all();
    all.filter(|entry| entry.kinds.contains(&FlowKind::Objects))
}

#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    #[error(transparent)]
    Keys(#[from] NoRandomness),
    #[error(transparent)]
    Link(#[from] EmulateError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Config(#[from] marline_proto::ConfigError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("{0}")]
    Failed(String),
}

/// Runs all of it; `tell` is called with each run as it ends. A run that fails is reported as such.
pub async fn run(options: &Options, mut tell: impl FnMut(&RunReport)) -> Report {
    let plans = RunPlan::all(
        &options.schedulers,
        registry::default_for(FlowKind::Objects),
    );
    let mut runs = Vec::new();
    for plan in plans {
        let result = one(options, &plan).await;
        let (error, figures) = match result {
            Ok(figures) => (None, Some(figures)),
            Err(error) => (Some(error.to_string()), None),
        };
        let report = RunReport {
            links: plan.link_names(),
            scheduler: plan.scheduler.to_string(),
            name: plan.name,
            error,
            figures,
        };
        tell(&report);
        runs.push(report);
    }
    Report {
        version: 1,
        seed: options.seed,
        pages: PAGES,
        objects: OBJECTS,
        urgent: URGENT,
        links: super::plan::link_reports(&options.links),
        runs,
    }
}

/// What an end noted of each object: when it was written or whole, its SHA-256, and whether it is
/// urgent.
#[derive(Debug, Clone, Copy)]
struct Noted {
    at: Instant,
    hash: [u8; 32],
    urgent: bool,
}

async fn one(options: &Options, plan: &RunPlan<Choice>) -> Result<Figures, RunError> {
    let (ours, theirs) = (Identity::generate()?, Identity::generate()?);
    let anywhere = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let allow = AllowList::from_keys([ours.public_key()]);
    let key = theirs.public_key();
    let (tell, told) = oneshot::channel();
    let (seed, scheduler) = (options.seed, plan.scheduler);
    let paths = plan.links.len();
    let mut server = Worker::start("demo server", move |stop| async move {
        let mut options = ServerOptions::new(vec![anywhere], theirs, allow);
        options.session.objects_scheduler = scheduler;
        let server = match Server::bind(options) {
            Ok(server) => server,
            Err(error) => {
                let _ = tell.send(Err(error));
                return Err("the server did not start".to_owned());
            }
        };
        let _ = tell.send(Ok(server.local_addrs()[0]));
        tokio::select! {
            () = stop.cancelled() => Err("the run was given up".to_owned()),
            sent = send(&server, seed, paths) => sent,
        }
    })
    .map_err(RunError::Thread)?;
    let failed = |text: &str| RunError::Failed(text.to_owned());
    let addr = told.await.map_err(|_| failed("the server ended"))??;
    let mut links = Vec::new();
    for link in &plan.links {
        let mut config = EmulatorConfig::new(addr, options.links[*link].clone());
        let rng = Rng::new(options.seed);
        config.seed = rng.stream(&format!("link {link}")).next_u64();
        links.push(Emulator::start(config)?);
    }
    let entries: Vec<SocketAddr> = links.iter().map(Emulator::addr).collect();
    let mut client = Worker::start("demo client", move |stop| async move {
        tokio::select! {
            () = stop.cancelled() => Err(RunError::Failed("the run was given up".into())),
            got = receive(key, ours, &entries) => got,
        }
    })
    .map_err(RunError::Thread)?;
    let both = async {
        let sent = server
            .result()
            .await
            .unwrap_or_else(|| Err("the server's thread ended".into()));
        let (sent, redundancy) = sent.map_err(RunError::Failed)?;
        let got = client
            .result()
            .await
            .ok_or(failed("the client's thread ended"))??;
        Ok::<_, RunError>((sent, redundancy, got))
    };
    let all = timeout(LONGEST, both).await;
    let (sent, redundancy, got) = all.map_err(|_| failed("the pages took too long"))??;
    Ok(figures(&sent, &got, redundancy))
}

/// Sends all pages over the first flow of the first session; what was noted, and the redundancy
/// that it took.
async fn send(
    server: &Server,
    seed: u64,
    paths: usize,
) -> Result<(BTreeMap<u64, Noted>, f64), String> {
    let session = server.accept().await.ok_or("the server is closed")?;
    let handle = session.handle();
    let all = async {
        while handle.stats().paths.len() < paths {
            sleep(Duration::from_millis(10)).await;
        }
    };
    if timeout(ALL_PATHS, all).await.is_err() {
        tracing::warn!("a link takes long to come up; the pages begin without it");
    }
    let (_, accepted) = handle.accept().await.map_err(|e| e.to_string())?;
    let Accepted::Objects(flow) = accepted else {
        return Err("the client opened something else".to_owned());
    };
    let mut sent = BTreeMap::new();
    for number in 0..=PAGES {
        let mut open = 0;
        for Item { options, data } in page(seed, number) {
            let hash = Sha256::digest(&data).into();
            let at = Instant::now();
            let object = flow
                .send(&data, &options)
                .await
                .map_err(|e| e.to_string())?;
            let urgent = options.urgency == 1;
            sent.insert(object, Noted { at, hash, urgent });
            open += 1;
        }
        while open > 0 {
            flow.settled().await.ok_or("the session ended too early")?;
            open -= 1;
        }
        sleep(PAUSE).await;
    }
    let stats = handle.stats();
    let redundancy = stats.flows.iter().find(|f| f.id == flow.id());
    let redundancy = redundancy.map_or(0.0, |f| f.counters.redundancy());
    flow.finish();
    // The client ends it.
    handle.closed().await;
    Ok((sent, redundancy))
}

/// Asks for the pages and receives objects until all have come or the flow is over.
async fn receive(
    key: marline::identity::PublicKey,
    identity: Identity,
    entries: &[SocketAddr],
) -> Result<BTreeMap<u64, Noted>, RunError> {
    let path = |(index, entry): (usize, &SocketAddr)| Path {
        name: format!("link-{index}"),
        local: marline::carrier::Bind::Address(Ipv4Addr::LOCALHOST.into()),
        server: Some(HostPort {
            host: marline::identity::Host::Ip(entry.ip()),
            port: entry.port(),
        }),
        ..Path::default()
    };
    let client = Client::start(ClientOptions {
        server: key,
        addresses: Vec::new(),
        identity,
        paths: entries.iter().enumerate().map(path).collect(),
        sysfs: marline::interfaces::Sysfs::default(),
        names: None,
        mark: None,
        session: marline_proto::Config::default(),
        quic: marline::carrier::QuicConfig::default(),
        takes_flows: false,
    })?;
    client.connect(READY).await?;
    let failed = |text: &str| RunError::Failed(text.to_owned());
    let session = client.session().ok_or(failed("the session is over"))?;
    let flow = session.open_objects(FlowOptions::new(FlowKind::Objects));
    let flow = flow.map_err(|error| failed(&error.to_string()))?;
    // The server learns of a flow with its first object, and this one is the request.
    let request = Bytes::from_static(b"pages");
    let asked = flow.send(&request, &ObjectOptions::default()).await;
    asked.map_err(|error| failed(&error.to_string()))?;
    let mut got = BTreeMap::new();
    while (got.len() as u64) < (PAGES + 1) * OBJECTS {
        match flow.recv().await {
            Some(Object::Whole { number, data }) => {
                let at = Instant::now();
                let hash = Sha256::digest(&data).into();
                let urgent = false;
                if got.insert(number, Noted { at, hash, urgent }).is_some() {
                    return Err(failed("an object came twice"));
                }
            }
            Some(Object::Gone { number, fate }) => {
                return Err(failed(&format!("object {number} did not come: {fate:?}")));
            }
            None => return Err(failed("the session ended too early")),
        }
    }
    // The server is still to learn of the last ones.
    sleep(PAUSE * 2).await;
    client.stop("the pages are complete").await;
    Ok(got)
}

/// Figures of all pages but the first.
fn figures(sent: &BTreeMap<u64, Noted>, got: &BTreeMap<u64, Noted>, redundancy: f64) -> Figures {
    let counted = sent.iter().skip(OBJECTS as usize);
    let pairs = counted.filter_map(|(number, sent)| Some((sent, got.get(number)?)));
    let pairs: Vec<(&Noted, &Noted)> = pairs.collect();
    let delays = |urgent: bool| {
        let of = pairs.iter().filter(|(sent, _)| sent.urgent || !urgent);
        let delay = |(sent, got): &(&Noted, &Noted)| {
            got.at.saturating_duration_since(sent.at).as_secs_f64() * 1e3
        };
        Delays::of(of.map(delay).collect())
    };
    Figures {
        received: pairs.len() as u64,
        sha256_ok: pairs.iter().all(|(sent, got)| sent.hash == got.hash),
        all: delays(false),
        urgent: delays(true),
        redundancy,
    }
}
