//! An encoder that makes what the links carry:
//! `cargo run --release -p marline-cli --example adaptive_encoder [-- SECONDS]`.
//!
//! A client and a server in one process, between them two emulated links that lose packets, and one
//! of which loses most of its capacity for a while. The encoder says what rate it makes
//! ([`Packets::set_needed_rate`]) and awaits reports ([`Packets::rate_report`]): at a lower
//! capacity it goes 15 % below it at once; after two quiet seconds it tries 15 % more, up to what
//! it can make. Real encoders change their bit rate the same way; this one only makes datagrams of
//! the right size at the right times. It fails if the encoder did not follow the links down and up
//! again.

#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use bytes::Bytes;
use marline::endpoint::{
    Accepted, Client, ClientOptions, Packets, RateReport, Server, ServerOptions,
};
use marline::identity::{AllowList, ConnectionString, Identity};
use marline_apps::proxy::Tunnel;
use marline_base::Rate;
use marline_lab::emulate::{Direction, Emulator, EmulatorConfig};
use marline_proto::FlowOptions;
use marline_proto::wire::FlowKind;
use std::cell::Cell;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, interval, sleep, sleep_until};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const DATAGRAM: usize = 1316;
/// What the encoder can make at most, and at least.
const BEST: Rate = Rate::from_mbps(9);
const WORST: Rate = Rate::from_kbps(500);
const FIRST: &str = "rate=6mbit,delay=15ms,loss=1%,queue=100ms";
const SECOND: &str = "rate=6mbit,delay=25ms,loss=1%,queue=100ms";
/// The second link while it has lost most of its capacity, and what both carry then.
const NARROW: &str = "rate=1mbit,delay=25ms,loss=1%,queue=100ms";
const LEFT: Rate = Rate::from_mbps(7);
/// How long the whole lasts unless it is said. The second link is narrow from two ninths of it to
/// five.
const SECONDS: u64 = 36;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let seconds = std::env::args().nth(1);
    let seconds = seconds.map_or(Ok(SECONDS), |word| word.parse())?;
    let (server, client_key) = serve()?;
    let [first, second] = [link(&server, FIRST)?, link(&server, SECOND)?];
    let client = connect(&server, client_key, [&first, &second]).await?;
    let received = Arc::new(AtomicU64::new(0));
    tokio::spawn(count(server.clone(), Arc::clone(&received)));

    // In order; nothing is waited for longer than 300 ms. The scheduler knows a target: what the
    // links carry beyond it goes into copies and repair symbols, against losses.
    let flow = client
        .open_packets(FlowOptions {
            lifetime: Some(Duration::from_millis(300)),
            ordered: true,
            scheduler: Some("hedge".parse()?),
            target: Bytes::from_static(b"video"),
            ..FlowOptions::new(FlowKind::Packets)
        })
        .await?;
    let encoder = Encoder::new(BEST);
    let outcome = tokio::select! {
        () = encode(&flow, &encoder) => Err("the flow ended".into()),
        () = adapt(&flow, &encoder) => Err("the flow ended".into()),
        () = show(&flow, &encoder, &received) => Err("the flow ended".into()),
        outcome = change(&second, &encoder, Duration::from_secs(seconds)) => outcome,
    };
    client.stop("the example ends").await;
    server.stop("the example ends").await;
    outcome
}

/// The bit rate of the moment, and the lowest and highest since somebody asked.
struct Encoder {
    rate: Cell<Rate>,
    range: Cell<(Rate, Rate)>,
}

impl Encoder {
    fn new(rate: Rate) -> Self {
        Encoder {
            rate: Cell::new(rate),
            range: Cell::new((rate, rate)),
        }
    }

    fn set(&self, rate: Rate) {
        self.rate.set(rate);
        let (lowest, highest) = self.range.get();
        self.range.set((lowest.min(rate), highest.max(rate)));
    }

    fn take_range(&self) -> (Rate, Rate) {
        let rate = self.rate.get();
        self.range.replace((rate, rate))
    }
}

/// Makes datagrams at the bit rate of the moment.
async fn encode(flow: &Packets, encoder: &Encoder) {
    let mut due = Instant::now();
    loop {
        sleep_until(due).await;
        due += encoder.rate.get().time_for(DATAGRAM as u64);
        if flow.send(Bytes::from(vec![0; DATAGRAM])).await.is_err() {
            return;
        }
    }
}

/// Chooses the bit rate.
async fn adapt(flow: &Packets, encoder: &Encoder) {
    loop {
        let rate = encoder.rate.get();
        flow.set_needed_rate(Some(rate));
        let next = tokio::select! {
            report = flow.rate_report() => match report {
                Some(RateReport::Below { capacity }) => {
                    println!("   reported: the links carry {:.1} Mb/s", capacity.as_mbps_f64());
                    capacity.min(rate).scaled(0.85).max(WORST)
                }
                Some(RateReport::Met) => rate,
                None => return,
            },
            () = sleep(Duration::from_secs(2)) => rate.scaled(1.15).min(BEST),
        };
        encoder.set(next);
    }
}

/// Prints a line a second. What is added against losses falls to nothing while the links carry no
/// more than the encoder makes.
async fn show(flow: &Packets, encoder: &Encoder, received: &AtomicU64) {
    let mut seconds = interval(Duration::from_secs(1));
    seconds.tick().await;
    println!("second  encoder Mb/s  received Mb/s  given up  added Mb/s");
    let (mut before, mut added_before) = (0, 0);
    for second in 1.. {
        seconds.tick().await;
        let Some(counters) = flow.counters() else {
            return;
        };
        let all = received.load(Ordering::Relaxed);
        let added = counters.copy_bytes + counters.repair_bytes;
        println!(
            "{second:>6}  {:>12.1}  {:>13.1}  {:>8}  {:>10.1}",
            encoder.rate.get().as_mbps_f64(),
            (all - before) as f64 * 8e-6,
            counters.expired_messages,
            (added - added_before) as f64 * 8e-6,
        );
        (before, added_before) = (all, added);
    }
}

/// Changes the second link, and sees how the encoder follows.
async fn change(link: &Emulator, encoder: &Encoder, span: Duration) -> Outcome<()> {
    let start = Instant::now();
    let turn = |config: &str| -> Outcome<()> {
        println!("       second link: {config}");
        Ok(link.reconfigure(Direction::Up, config.parse()?)?)
    };
    sleep_until(start + span * 2 / 9).await;
    turn(NARROW)?;
    encoder.take_range();
    sleep_until(start + span * 5 / 9).await;
    turn(SECOND)?;
    let (lowest, _) = encoder.take_range();
    sleep_until(start + span).await;
    let (_, highest) = encoder.take_range();
    println!("       the encoder went down to {lowest} and up again to {highest}");
    if lowest > LEFT {
        return Err(format!("it never made less than the {LEFT} that the links carried").into());
    }
    if highest <= lowest {
        return Err("it made no more when the links carried more".into());
    }
    Ok(())
}

/// Counts the bytes that arrive.
async fn count(server: Server, received: Arc<AtomicU64>) {
    let Some(mut session) = server.accept().await else {
        return;
    };
    while let Ok((_, flow)) = session.accept().await {
        if let Accepted::Packets(flow) = flow {
            while let Some(message) = flow.recv().await {
                received.fetch_add(message.len() as u64, Ordering::Relaxed);
            }
        }
    }
}

/// A server on a free port, and the key of the one client that it lets in.
fn serve() -> Outcome<(Server, Identity)> {
    let client = Identity::generate()?;
    let allow = AllowList::from_keys([client.public_key()]);
    let listen = vec!["127.0.0.1:0".parse()?];
    let server = Server::bind(ServerOptions::new(listen, Identity::generate()?, allow))?;
    Ok((server, client))
}

fn link(server: &Server, config: &str) -> Outcome<Emulator> {
    let target = server.local_addrs()[0];
    Ok(Emulator::start(EmulatorConfig::new(
        target,
        config.parse()?,
    ))?)
}

/// A client with a path through each link, once both are in use.
async fn connect(server: &Server, key: Identity, links: [&Emulator; 2]) -> Outcome<Client> {
    let address = server.local_addrs()[0].to_string().parse()?;
    let string = ConnectionString::new(server.public_key(), vec![address])?;
    let path = |link: &Emulator| format!("any,server={}", link.addr()).parse();
    let paths = links.map(path).into_iter().collect::<Result<_, _>>()?;
    let client = Client::start(ClientOptions::new(&string, key, paths))?;
    client.connect(Duration::from_secs(10)).await?;
    sleep(Duration::from_millis(500)).await;
    Ok(client)
}
