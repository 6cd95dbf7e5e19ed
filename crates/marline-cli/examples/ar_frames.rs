//! A remote renderer that asks how much it may encode:
//! `cargo run --release -p marline-cli --example ar_frames`.
//!
//! Forty frames a second over two emulated links whose capacity is drawn anew every 25 ms; a frame
//! is worth nothing 35 ms after it was rendered. Before each the renderer asks [`Blocks::capacity`]
//! for the largest block that is on time with a probability of 98 % and encodes that much, as an
//! encoder with a target size per frame does. What it promises and what became of it is printed
//! once a second.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use bytes::Bytes;
use marline::endpoint::{Accepted, Blocks, Client, ClientOptions, Server, ServerOptions};
use marline::identity::{AllowList, ConnectionString, Identity};
use marline_lab::emulate::{Emulator, EmulatorConfig};
use marline_proto::FlowOptions;
use marline_proto::congestion::Congestion;
use marline_proto::flow::{BlockTerms, Fate};
use marline_proto::wire::FlowKind;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, sleep};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const EVERY: Duration = Duration::from_millis(25);
const DEADLINE: Duration = Duration::from_millis(35);
const RELIABILITY: f64 = 0.98;
/// What the renderer makes while nothing is known of the links, and at most (bytes).
const FIRST: u64 = 20_000;
const BEST: u64 = 400_000;
const SECONDS: u64 = 15;
const LINK: &str = "rate=40mbit,rate-sd=8mbit,rate-every=25ms,delay=12.5ms,queue=200ms";

/// What happened within a second.
#[derive(Default)]
struct Second {
    frames: AtomicU64,
    bytes: AtomicU64,
    on_time: AtomicU64,
    late: AtomicU64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let own = Identity::generate()?;
    let allow = AllowList::from_keys([own.public_key()]);
    let anywhere = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let server = Server::bind(ServerOptions::new(
        vec![anywhere],
        Identity::generate()?,
        allow,
    ))?;
    let (address, key) = (server.local_addrs()[0], server.public_key());
    tokio::spawn(async move {
        while let Some(session) = server.accept().await {
            while let Ok((_, flow)) = session.handle().accept().await {
                if let Accepted::Blocks(frames) = flow {
                    // A display would show them.
                    while frames.recv().await.is_some() {}
                }
            }
        }
    });
    let link =
        || Ok::<_, Box<dyn Error + Send + Sync>>(EmulatorConfig::new(address, LINK.parse()?));
    let links = [Emulator::start(link()?)?, Emulator::start(link()?)?];
    let string = ConnectionString::new(key, vec![address.to_string().parse()?])?;
    let path = |link: &Emulator| format!("any,server={}", link.addr()).parse();
    let paths = links.iter().map(path).collect::<Result<_, _>>()?;
    let mut options = ClientOptions::new(&string, own, paths);
    // The plan bounds what is sent.
    options.session.congestion = Congestion::none();
    let client = Client::start(options)?;
    client.connect(Duration::from_secs(10)).await?;
    sleep(Duration::from_millis(500)).await;
    let session = client.session().ok_or("the session is over")?;
    let frames = session.open_blocks(FlowOptions {
        scheduler: Some("hop-leap".parse()?),
        ..FlowOptions::new(FlowKind::Blocks)
    })?;
    let second = Second::default();
    tokio::select! {
        result = render(&frames, &second) => result?,
        () = settle(&frames, &second) => {}
        () = show(&second) => {}
    }
    client.stop("the example ends").await;
    Ok(())
}

/// Renders frames, each as large as may be.
async fn render(frames: &Blocks, second: &Second) -> Outcome<()> {
    let terms = BlockTerms {
        deadline: Some(DEADLINE),
        reliability: Some(RELIABILITY),
    };
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let fits = frames.capacity(DEADLINE, RELIABILITY);
        let size = fits.unwrap_or(FIRST).clamp(1, BEST);
        let frame = Bytes::from(vec![0; size as usize]);
        // Refused, if the links have become worse since the question: the next frame is another
        // one.
        if frames.try_write(&frame, terms).is_ok() {
            second.frames.fetch_add(1, Ordering::Relaxed);
            second.bytes.fetch_add(size, Ordering::Relaxed);
        }
    }
}

/// Learns what became of them.
async fn settle(frames: &Blocks, second: &Second) {
    while let Some(settled) = frames.settled().await {
        let count = match settled.fate {
            Fate::OnTime => &second.on_time,
            _ => &second.late,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Prints a line a second.
async fn show(second: &Second) {
    println!("second  frames  mean kB  Mb/s  on time  late");
    let mut ticks = interval(Duration::from_secs(1));
    ticks.tick().await;
    for number in 1..=SECONDS {
        ticks.tick().await;
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        let (frames, bytes) = (take(&second.frames), take(&second.bytes));
        println!(
            "{number:>6}  {frames:>6}  {:>7.1}  {:>4.1}  {:>7}  {:>4}",
            bytes as f64 / 1e3 / frames.max(1) as f64,
            bytes as f64 * 8e-6,
            take(&second.on_time),
            take(&second.late),
        );
    }
}
