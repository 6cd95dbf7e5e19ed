//! An encoder that makes what the links carry: `cargo run --release -p marline --example adaptive_encoder`.
//!
//! A client and a server in one process, between them two emulated links whose capacity falls and comes back. The encoder
//! says what rate it makes ([`Packets::set_target`]) and listens ([`Packets::target_news`]): told of a lower capacity it
//! goes 15 % below it at once; after two quiet seconds it tries 15 % more, up to what it can make. Real encoders change
//! their bit rate the same way; this one only makes datagrams of the right size at the right times.

#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use bytes::Bytes;
use marline::emulate::{Direction, Emulator, EmulatorConfig};
use marline::endpoint::{Client, ClientOptions, Packets, Server, ServerOptions, TargetNews};
use marline::identity::{AllowList, ConnectionString, Identity};
use marline::proxy::{Accept, IncomingFlow, Listen, OpenOptions, Tunnel};
use marline_base::Rate;
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
/// What the second link carries from when on; the first always carries 6 Mb/s.
const CHANGES: [(u64, &str); 4] = [
    (0, "rate=6mbit,delay=25ms,queue=100ms"),
    (8, "rate=1mbit,delay=25ms,queue=100ms"),
    (20, "rate=6mbit,delay=25ms,queue=100ms"),
    (36, "the end"),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let (server, client_key) = serve()?;
    let [first, second] = [
        link(&server, "rate=6mbit,delay=15ms,queue=100ms")?,
        link(&server, CHANGES[0].1)?,
    ];
    let client = connect(&server, client_key, [&first, &second]).await?;
    let received = Arc::new(AtomicU64::new(0));
    tokio::spawn(count(server.clone(), Arc::clone(&received)));

    // In order, and never later than 300 ms.
    let flow = client
        .open_packets(OpenOptions {
            lifetime: Some(Duration::from_millis(300)),
            ordered: true,
            ..OpenOptions::new(Bytes::from_static(b"video"))
        })
        .await?;
    let bit_rate = AtomicU64::new(BEST.as_bps());
    tokio::select! {
        () = encode(&flow, &bit_rate) => {}
        () = adapt(&flow, &bit_rate) => {}
        () = show(&flow, &bit_rate, &received) => {}
        result = change(&second) => result?,
    }
    client.stop("the example ends").await;
    server.stop("the example ends").await;
    Ok(())
}

/// Makes datagrams at the bit rate of the moment.
async fn encode(flow: &Packets, bit_rate: &AtomicU64) {
    let mut due = Instant::now();
    loop {
        sleep_until(due).await;
        let rate = Rate::from_bps(bit_rate.load(Ordering::Relaxed));
        due += rate.time_for(DATAGRAM as u64);
        if flow.send(Bytes::from(vec![0; DATAGRAM])).await.is_err() {
            return;
        }
    }
}

/// Chooses the bit rate.
async fn adapt(flow: &Packets, bit_rate: &AtomicU64) {
    loop {
        let rate = Rate::from_bps(bit_rate.load(Ordering::Relaxed));
        flow.set_target(Some(rate));
        let next = tokio::select! {
            news = flow.target_news() => match news {
                Some(TargetNews::Below { capacity }) => {
                    println!("       told: the links carry {:.1} Mb/s", capacity.as_mbps_f64());
                    capacity.min(rate).scaled(0.85).max(WORST)
                }
                Some(TargetNews::Met) => rate,
                None => return,
            },
            () = sleep(Duration::from_secs(2)) => rate.scaled(1.15).min(BEST),
        };
        bit_rate.store(next.as_bps(), Ordering::Relaxed);
    }
}

/// Prints a line a second.
async fn show(flow: &Packets, bit_rate: &AtomicU64, received: &AtomicU64) {
    let mut seconds = interval(Duration::from_secs(1));
    seconds.tick().await;
    println!("second  encoder Mb/s  received Mb/s  given up  copies Mb/s");
    let (mut before, mut copied) = (0, 0);
    for second in 1.. {
        seconds.tick().await;
        let Some(counters) = flow.counters() else {
            return;
        };
        let all = received.load(Ordering::Relaxed);
        println!(
            "{second:>6}  {:>12.1}  {:>13.1}  {:>8}  {:>11.1}",
            bit_rate.load(Ordering::Relaxed) as f64 / 1e6,
            (all - before) as f64 * 8e-6,
            counters.expired_messages,
            (counters.copy_bytes - copied) as f64 * 8e-6,
        );
        (before, copied) = (all, counters.copy_bytes);
    }
}

/// Changes the second link, and ends with the last change.
async fn change(link: &Emulator) -> Outcome<()> {
    let start = Instant::now();
    for (at, config) in &CHANGES[1..] {
        sleep_until(start + Duration::from_secs(*at)).await;
        println!("       second link: {config}");
        let Ok(config) = config.parse() else { break };
        link.reconfigure(Direction::Up, config)?;
    }
    Ok(())
}

/// Counts the bytes that arrive.
async fn count(server: Server, received: Arc<AtomicU64>) {
    let Some(mut session) = server.accept().await else {
        return;
    };
    while let Some(incoming) = session.accept().await {
        if let IncomingFlow::Packets(flow) = incoming.flow {
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
    client.ready(Duration::from_secs(10)).await?;
    sleep(Duration::from_millis(500)).await;
    Ok(client)
}
