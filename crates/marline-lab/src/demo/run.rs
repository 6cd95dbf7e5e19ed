//! The runs, one after the other.

use super::body::Body;
use super::download::{self, DownloadError, Downloaded};
use super::live::{self, Arrival, Clock, Seen, Sent};
use super::options::Scheduling;
use super::plan::{Plan, RunPlan};
use super::report::{DownloadFigures, Figures, LiveSetup, Report, RunReport};
use super::session::{self, SessionError};
use super::worker::Worker;
use super::{Progress, Watch, origin, verdict};
use crate::emulate::{EmulateError, Emulator, EmulatorConfig};
use marline_apps::live::LATENCY;
use marline_base::Rng;
use marline_proto::sched::AUTO;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout_at};

/// Time between two calls of [`Watch::progress`].
const PROGRESS: Duration = Duration::from_millis(100);
/// How long the last live messages may take to come: the entry's budget, and the way.
const LAST: Duration = LATENCY.saturating_add(Duration::from_millis(500));
/// Receive buffer of the live stream's socket, as far as the system allows: a message that
/// everything waited for lets seconds of messages go at once.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("cannot open a socket on loopback: {0}")]
    Socket(io::Error),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    #[error(transparent)]
    Link(#[from] EmulateError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Download(#[from] DownloadError),
    #[error("{0} ended before its time")]
    Ended(&'static str),
}

/// Runs everything that `plan` says. A run that fails is reported as such, and the next begins.
///
/// Dropping the future stops all threads and closes all sockets.
pub async fn run(plan: &Plan, watch: &mut impl Watch) -> Report {
    let body = Body::new(plan.options.seed, plan.body_length());
    let mut runs = Vec::new();
    for run in &plan.runs {
        watch.begin(run);
        let result = one(plan, run, &body, watch).await;
        let (error, figures) = match result {
            Ok(figures) => (None, Some(figures)),
            Err(error) => (Some(error.to_string()), None),
        };
        let report = RunReport {
            name: run.name.clone(),
            links: run.link_names(),
            scheduler: run.scheduler.to_string(),
            error,
            figures,
        };
        watch.end(&report);
        runs.push(report);
    }
    Report {
        version: 1,
        seed: plan.options.seed,
        seconds: plan.options.time.as_secs_f64(),
        links: plan.link_reports(),
        dark: plan.dark(),
        live: LiveSetup {
            bits_per_second: live::BITS_PER_SECOND,
            message_bytes: live::MESSAGE_BYTES,
        },
        sentence: verdict::sentence(&runs, AUTO),
        runs,
    }
}

/// What the threads of a run show of themselves.
#[derive(Debug, Default)]
struct Counters {
    downloaded: AtomicU64,
    sent: AtomicU64,
    seen: Seen,
}

async fn one(
    plan: &Plan,
    run: &RunPlan<Scheduling>,
    body: &Body,
    watch: &mut impl Watch,
) -> Result<Figures, RunError> {
    let origin = listen().map_err(RunError::Socket)?;
    let receiver = receiver().map_err(RunError::Socket)?;
    let [origin_addr, live_addr] = [origin.local_addr(), receiver.local_addr()];
    let targets = session::Targets {
        origin: origin_addr.map_err(RunError::Socket)?,
        live: live_addr.map_err(RunError::Socket)?,
    };
    let keys = session::Keys::new()?;
    let server = session::Server::start(&keys, targets, run.scheduler).await?;
    let links = links(plan, run, server.addr())?;
    let names = run.link_names().into_iter().map(str::to_owned);
    let entries: Vec<(String, SocketAddr)> = names.zip(links.iter().map(Emulator::addr)).collect();
    let client =
        session::Client::start(&keys, &entries, run.scheduler, watch.observers(run)).await?;
    let (shown, board) = client.shown();
    watch.client(shown, board);

    let counters = Arc::new(Counters::default());
    watch.traffic();
    let begin = Instant::now();
    let end = begin + plan.options.time;
    let mut programs = {
        let (body, counters) = (body.clone(), Arc::clone(&counters));
        let socks = client.socks();
        Worker::start("demo programs", move |stop| async move {
            let downloads = download::run(targets.origin, socks, &body, end, &counters.downloaded);
            tokio::select! {
                () = stop.cancelled() => None,
                () = serve_origin(origin, body.clone()) => None,
                downloaded = downloads => Some(downloaded),
            }
        })
        .map_err(RunError::Thread)?
    };
    let mut stream = {
        let counters = Arc::clone(&counters);
        let entry = client.live();
        Worker::start("demo live stream", move |stop| async move {
            tokio::select! {
                () = stop.cancelled() => None,
                noted = live_stream(receiver, entry, end, &counters) => Some(noted),
            }
        })
        .map_err(RunError::Thread)?
    };

    let traffic = async {
        let downloaded = programs.result().await.flatten();
        let downloaded = downloaded.ok_or(RunError::Ended("the download"))??;
        let noted = stream.result().await.flatten();
        let noted = noted.ok_or(RunError::Ended("the live stream"))?;
        Ok::<_, RunError>((downloaded, noted.map_err(RunError::Socket)?))
    };
    let better = run.links.iter().position(|link| *link == plan.better);
    let better = better.and_then(|index| links.get(index));
    let darkness = async {
        if let Some(link) = better {
            sleep_until(begin + plan.dark_at).await;
            link.set_dark(true);
            sleep_until(begin + plan.dark_at + plan.dark_for).await;
            link.set_dark(false);
        }
        std::future::pending::<()>().await;
    };
    let progress = async {
        let mut ticks = interval(PROGRESS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            let elapsed = begin.elapsed();
            let dark = plan.dark_at..plan.dark_at + plan.dark_for;
            watch.progress(&Progress {
                elapsed,
                downloaded: counters.downloaded.load(Ordering::Relaxed),
                sent: counters.sent.load(Ordering::Relaxed),
                delay: Duration::from_nanos(counters.seen.delay.load(Ordering::Relaxed)),
                dark: better.is_some() && dark.contains(&elapsed),
            });
        }
    };
    let (downloaded, noted) = tokio::select! {
        done = traffic => done?,
        () = darkness => return Err(RunError::Ended("the darkness")),
        () = progress => return Err(RunError::Ended("the progress display")),
    };
    let ours = client.stop().await?;
    let redundancy = session::redundancy(&[ours, server.stop().await?]);
    Ok(Figures {
        download: download_figures(&downloaded, plan.options.time),
        live: live::figures(noted.arrivals, noted.sent, noted.damaged),
        redundancy,
    })
}

fn download_figures(downloaded: &Downloaded, time: Duration) -> DownloadFigures {
    DownloadFigures {
        goodput_mbps: downloaded.bytes as f64 * 8.0 / 1e6 / time.as_secs_f64(),
        bytes: downloaded.bytes,
        bodies: downloaded.bodies,
        sha256_ok: downloaded.intact,
    }
}

/// One emulator a link in use, all with the draws of the demo's seed, so that every run meets the
/// same links.
fn links(
    plan: &Plan,
    run: &RunPlan<Scheduling>,
    server: SocketAddr,
) -> Result<Vec<Emulator>, EmulateError> {
    let start = |link: &usize| {
        let mut config = EmulatorConfig::new(server, plan.options.links[*link].clone());
        let rng = Rng::new(plan.options.seed);
        config.seed = rng.stream(&format!("link {link}")).next_u64();
        Emulator::start(config)
    };
    run.links.iter().map(start).collect()
}

fn listen() -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn receiver() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER)?;
    Ok(socket)
}

/// Returns when the listener cannot be used.
async fn serve_origin(listener: TcpListener, body: Body) {
    match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => origin::serve(listener, body).await,
        Err(error) => tracing::error!(%error, "the web server cannot listen"),
    }
}

/// What the two ends of the live stream noted.
#[derive(Debug)]
struct Noted {
    sent: Sent,
    arrivals: Vec<Arrival>,
    damaged: u64,
}

/// Sends until `end`, and receives until the last message has come or cannot come any more.
async fn live_stream(
    receiver: UdpSocket,
    entry: SocketAddr,
    end: Instant,
    counters: &Counters,
) -> io::Result<Noted> {
    let receiver = tokio::net::UdpSocket::from_std(receiver)?;
    let sender = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    sender.connect(entry).await?;
    let clock = Clock::start();
    let (mut arrivals, mut damaged) = (Vec::new(), 0);
    let messages = (end - Instant::now()).as_nanos() / live::INTERVAL.as_nanos();
    // Every message twice: more can only be a fault.
    let limit = usize::try_from(messages * 2).unwrap_or(usize::MAX).max(16);
    let receiving = live::receive(
        receiver,
        clock,
        limit,
        &mut arrivals,
        &mut damaged,
        &counters.seen,
    );
    let sending = async {
        let sent = live::send(&sender, clock, end, &counters.sent).await;
        let mut ticks = interval(Duration::from_millis(5));
        let complete = async {
            while counters.seen.next.load(Ordering::Relaxed) < sent.messages {
                ticks.tick().await;
            }
        };
        // Given up by now: what is missing is lost.
        let _ = timeout_at(end + LAST, complete).await;
        sent
    };
    let sent = tokio::select! {
        sent = sending => sent,
        () = receiving => Sent::default(),
    };
    Ok(Noted {
        sent,
        arrivals,
        damaged,
    })
}
