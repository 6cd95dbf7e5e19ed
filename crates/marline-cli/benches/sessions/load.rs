//! The clients: sessions of the library, with a thread for each core.

use super::Failure;
use super::session::{add, params, session};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use marline::carrier::{Bind, CarrierChoice, Dial, SocketSpec};
use marline::endpoint::{Packets, Session, Stream};
use marline::identity::{Identity, PublicKey};
use marline_apps::live::{LiveDefaults, LiveIn};
use marline_apps::proxy::{Host, Protocol, Target};
use marline_proto::wire::{FlowKind, PathId};
use marline_proto::{FlowOptions, Side};
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, interval_at, sleep};

/// Source addresses, one for each path.
const SOURCES: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2)];
/// Sessions that a thread opens at once.
const AT_ONCE: usize = 8;
/// Bytes of a stream that are written at once.
pub(crate) const PIECE: usize = 128 << 10;

/// What all threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    epoch: Instant,
    pub(crate) sent: AtomicU64,
    /// Records that the session did not take.
    pub(crate) refused: AtomicU64,
    /// Records count that are made from this time until that one (nanoseconds since the epoch).
    from: AtomicU64,
    until: AtomicU64,
    /// Bytes of streams that have arrived.
    pub(crate) arrived: AtomicU64,
    pub(crate) stop: AtomicBool,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self {
            epoch: Instant::now(),
            sent: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            from: AtomicU64::new(u64::MAX),
            until: AtomicU64::new(u64::MAX),
            arrived: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        }
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Records count from now on.
    pub(crate) fn count(&self, span: Duration) {
        let now = self.now();
        let until = now + span.as_nanos() as u64;
        self.until.store(until, Ordering::Relaxed);
        self.from.store(now, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    pub(crate) fn counts(&self, at: u64) -> bool {
        (self.from.load(Ordering::Relaxed)..self.until.load(Ordering::Relaxed)).contains(&at)
    }
}

/// What each session sends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// Records of this length (bytes) to the server's live entry, one after each such time.
    Records(usize, Duration),
    /// A stream to a TCP port behind the server, a piece after each such time.
    Bytes(SocketAddr, Duration),
}

/// What becomes of the sessions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Phase {
    Idle,
    Sending,
    Over,
}

/// One session with a path from each source.
async fn open(addr: SocketAddr, key: PublicKey, client: &Identity) -> Result<Session, Failure> {
    let dial = |source: Ipv4Addr| Dial {
        carrier: CarrierChoice::Quic,
        socket: SocketSpec {
            bind: Bind::Address(IpAddr::V4(source)),
            ..SocketSpec::default()
        },
        ..Dial::new(addr, key)
    };
    let dialled = dial(SOURCES[0]).connect(client).await?;
    let opened = dialled.open(PathId(0), params()).await?;
    let (driver, handle) = session(Side::Client, &opened.params)?;
    add(&handle, PathId(0), opened.carrier)?;
    tokio::spawn(driver);
    for (number, source) in (1..).zip(&SOURCES[1..]) {
        let dialled = dial(*source).connect(client).await?;
        let joined = dialled.join(&opened.key, PathId(number)).await?;
        add(&handle, PathId(number), joined)?;
    }
    Ok(handle)
}

/// Transport packets without content (PID 0x1fff), each with the time (nanoseconds since the
/// epoch).
fn record(bytes: usize, now: u64) -> Bytes {
    let mut record = BytesMut::with_capacity(bytes + 188);
    while record.len() < bytes {
        record.put_slice(&[0x47, 0x1f, 0xff, 0x10]);
        record.put_u64(now);
        record.put_bytes(0, 176);
    }
    record.truncate(bytes);
    record.freeze()
}

/// Sends at a pace, beginning `after` the others.
async fn send(
    flow: Packets,
    (bytes, pace): (usize, Duration),
    after: Duration,
    shared: Arc<Shared>,
    mut phase: watch::Receiver<Phase>,
) {
    let mut turns = interval_at(tokio::time::Instant::now() + after, pace);
    turns.set_missed_tick_behavior(MissedTickBehavior::Burst);
    loop {
        tokio::select! {
            _ = turns.tick() => {
                let now = shared.now();
                let taken = flow.try_send(record(bytes, now)).is_ok();
                if shared.counts(now) {
                    let count = if taken { &shared.sent } else { &shared.refused };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
            _ = phase.wait_for(|phase| *phase == Phase::Over) => return,
        }
    }
}

/// Writes a piece in each turn; turns that were missed because the stream took none are made up
/// for.
async fn write(mut stream: Stream, pace: Duration, mut phase: watch::Receiver<Phase>) {
    let piece = vec![0; PIECE];
    let mut turns = interval(pace);
    let all = async {
        loop {
            turns.tick().await;
            if stream.write_all(&piece).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = all => {}
        _ = phase.wait_for(|phase| *phase == Phase::Over) => {}
    }
}

/// Holds sessions on a thread of its own; says how many are open, one by one.
pub(crate) fn hold(
    clients: &[Identity],
    (addr, key): (SocketAddr, PublicKey),
    what: What,
    shared: &Arc<Shared>,
    opened: &mpsc::UnboundedSender<Result<(), Failure>>,
    phase: &watch::Receiver<Phase>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut sessions = Vec::new();
        for some in clients.chunks(AT_ONCE) {
            let opening = some
                .iter()
                .cloned()
                .map(|client| tokio::spawn(async move { open(addr, key, &client).await }));
            for session in opening.collect::<Vec<_>>() {
                let session = session.await?;
                let _ = opened.send(session.map(|session| sessions.push(session)));
            }
        }
        let mut phase = phase.clone();
        phase.wait_for(|phase| *phase != Phase::Idle).await?;
        let mut senders = Vec::new();
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let live = LiveIn::at(listen, &LiveDefaults::default()).options();
        for (number, session) in sessions.iter().enumerate() {
            let (shared, phase) = (Arc::clone(shared), phase.clone());
            senders.push(match what {
                What::Records(bytes, pace) => {
                    let flow = session.open_packets(live.clone())?;
                    let after = pace.mul_f64(number as f64 / sessions.len() as f64);
                    tokio::spawn(send(flow, (bytes, pace), after, shared, phase))
                }
                What::Bytes(sink, pace) => {
                    let target = Target::new(Protocol::Tcp, Host::Ip(sink.ip()), sink.port())?;
                    let stream = session.open_stream(FlowOptions {
                        target: target.encode(),
                        ..FlowOptions::new(FlowKind::Stream)
                    })?;
                    tokio::spawn(write(stream, pace, phase))
                }
            });
        }
        for sender in senders {
            sender.await?;
        }
        // Its sessions stay until the server is gone.
        while !shared.stopped() {
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    })
}
