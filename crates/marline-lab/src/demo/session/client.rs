use super::counted::Counted;
use super::{Keys, LOOK, SessionError, config};
use crate::demo::Scheduling;
use crate::demo::worker::Worker;
use marline::Path;
use marline::carrier::{Bind, CarrierChoice};
use marline::endpoint::{self, ClientOptions, Session};
use marline::identity::{self, HostPort};
use marline_apps::live::{Board, Inlets, LiveDefaults, LiveIn};
use marline_apps::proxy::socks5::SocksOptions;
use marline_apps::proxy::{AsObjects, Tasks, socks5};
use marline_proto::observe::Observers;
use marline_proto::path::PathState;
use marline_proto::sched::{Choice, Need};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;

/// How long the session may take to come up.
const READY: Duration = Duration::from_secs(10);
/// How long the traffic waits for paths beside the first.
const ALL_PATHS: Duration = Duration::from_secs(3);
/// How long the server may take to learn that it is over.
const GOODBYE: Duration = Duration::from_millis(500);

/// Where programs find the client, and what shows how it fares.
#[derive(Debug)]
struct Front {
    socks: SocketAddr,
    live: SocketAddr,
    client: endpoint::Client,
    board: Board,
}

/// A client with a session.
#[derive(Debug)]
pub(in crate::demo) struct Client {
    worker: Worker<Counted>,
    front: Front,
}

impl Client {
    /// Starts a client with a path by each of `entries`, a link's name and where it is entered, a
    /// SOCKS5 proxy, and a live entry. Returns when all paths are up, or when one is and the others
    /// take long.
    pub(in crate::demo) async fn start(
        keys: &Keys,
        entries: &[(String, SocketAddr)],
        scheduling: Scheduling,
        observers: Observers,
    ) -> Result<Self, SessionError> {
        let path = |(name, entry): &(String, SocketAddr)| Path {
            name: name.clone(),
            local: Bind::Address(Ipv4Addr::LOCALHOST.into()),
            server: Some(HostPort {
                host: identity::Host::Ip(entry.ip()),
                port: entry.port(),
            }),
            // The emulated links carry UDP.
            carrier: CarrierChoice::Quic,
            ..Path::default()
        };
        let options = ClientOptions {
            server: keys.server.public_key(),
            addresses: Vec::new(),
            identity: keys.client.clone(),
            paths: entries.iter().map(path).collect(),
            sysfs: marline::interfaces::Sysfs::default(),
            names: None,
            mark: None,
            session: marline_proto::Config {
                observers,
                ..config(scheduling)
            },
            quic: marline::carrier::QuicConfig::default(),
            takes_flows: false,
        };
        let (tell, told) = oneshot::channel();
        let worker = Worker::start("demo client", move |stop| {
            run(options, scheduling.of(Need::live()), tell, stop)
        })?;
        let front = told.await.map_err(|_| SessionError::Ended("client"))??;
        Ok(Client { worker, front })
    }

    /// Where the SOCKS5 proxy listens.
    pub(in crate::demo) fn socks(&self) -> SocketAddr {
        self.front.socks
    }

    /// Where the live entry listens.
    pub(in crate::demo) fn live(&self) -> SocketAddr {
        self.front.live
    }

    /// What shows how the session fares, and its live entry.
    pub(in crate::demo) fn shown(&self) -> (&endpoint::Client, &Board) {
        (&self.front.client, &self.front.board)
    }

    /// Ends the session and says what its flows sent.
    pub(in crate::demo) async fn stop(self) -> Result<Counted, SessionError> {
        let counted = self.worker.stop().await;
        counted.ok_or(SessionError::Ended("client"))
    }
}

async fn run(
    options: ClientOptions,
    of_live: Choice,
    tell: oneshot::Sender<Result<Front, SessionError>>,
    stop: CancellationToken,
) -> Counted {
    let mut counted = Counted::default();
    let paths = options.paths.len();
    let client = match endpoint::Client::start(options) {
        Ok(client) => client,
        Err(error) => {
            let _ = tell.send(Err(error.into()));
            return counted;
        }
    };
    let tasks = Tasks::new();
    let started = tokio::select! {
        () = stop.cancelled() => None,
        started = start(&client, paths, of_live, &tasks) => Some(started),
    };
    // A task that this does not reach has given the run up, and then `stop` is cancelled too.
    match started {
        None => {}
        Some(Err(error)) => drop(tell.send(Err(error))),
        Some(Ok((front, session))) => {
            let _ = tell.send(Ok(front));
            let mut looks = interval(LOOK);
            while !stop.is_cancelled() {
                tokio::select! {
                    () = stop.cancelled() => {}
                    _ = looks.tick() => {}
                }
                counted.look(&session.stats());
            }
        }
    }
    tasks.cut();
    let goodbye = client.stop("the demonstration is over");
    let _ = timeout(GOODBYE, goodbye).await;
    counted
}

/// Waits for the session and serves programs.
async fn start(
    client: &endpoint::Client,
    paths: usize,
    of_live: Choice,
    tasks: &Tasks,
) -> Result<(Front, Session), SessionError> {
    client.connect(READY).await?;
    let session = client.session().ok_or(SessionError::Ended("session"))?;
    let all = async {
        let mut looks = interval(LOOK / 10);
        let up = |session: &Session| {
            let stats = session.stats();
            let active = |path: &&marline_proto::stats::PathStats| path.state == PathState::Active;
            stats.paths.iter().filter(active).count()
        };
        while up(&session) < paths {
            looks.tick().await;
        }
    };
    if timeout(ALL_PATHS, all).await.is_err() {
        tracing::warn!("a link takes long to come up; the traffic begins without it");
    }
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = TcpListener::bind(any_port).await?;
    let mut entry = LiveIn::at(any_port, &LiveDefaults::default());
    entry.scheduler = Some(of_live);
    let inlets = Inlets::bind(&[entry])
        .await
        .map_err(|refused| refused.error)?;
    let [live] = inlets.local_addrs()?[..] else {
        return Err(SessionError::Ended("live entry"));
    };
    let front = Front {
        socks: listener.local_addr()?,
        live,
        client: client.clone(),
        board: inlets.board(),
    };
    inlets.serve(client, tasks);
    let objects = AsObjects::Off;
    tasks.spawn(socks5::serve(
        listener,
        client.clone(),
        SocksOptions {
            objects,
            ..SocksOptions::default()
        },
        tasks.clone(),
    ));
    Ok((front, session))
}
