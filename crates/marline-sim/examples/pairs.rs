//! One bulk stream over pairs of links, bonded and alone: goodput as a ratio to the better link.
//!
//! ```sh
//! cargo run --release -p marline-sim --example pairs [SCHEDULER [CONTROLLER [PAIR]]]
//! ```
#![expect(clippy::print_stdout, reason = "an example prints its table")]

use std::error::Error;

use bytes::Bytes;
use marline_proto::flow::Chunk;
use marline_proto::path::PathParams;
use marline_proto::wire::FlowKind;
use marline_proto::{Config, FlowOptions};
use marline_sim::{Cable, Duration, Instant, Rate, World, WorldConfig};

const WARM_UP: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(20);

const PAIRS: &[(&str, &str, &str)] = &[
    (
        "baseline",
        "rate=50mbit,delay=20ms",
        "rate=50mbit,delay=20ms",
    ),
    ("rtt-40", "rate=50mbit,delay=20ms", "rate=50mbit,delay=40ms"),
    ("rtt-70", "rate=50mbit,delay=20ms", "rate=50mbit,delay=70ms"),
    (
        "rtt-120",
        "rate=50mbit,delay=20ms",
        "rate=50mbit,delay=120ms",
    ),
    (
        "rtt-320",
        "rate=50mbit,delay=20ms",
        "rate=50mbit,delay=320ms",
    ),
    (
        "jitter-5",
        "rate=50mbit,delay=20ms,jitter=5ms",
        "rate=50mbit,delay=20ms,jitter=5ms",
    ),
    (
        "jitter-20",
        "rate=50mbit,delay=20ms,jitter=20ms",
        "rate=50mbit,delay=20ms,jitter=20ms",
    ),
    (
        "loss-0.5",
        "rate=50mbit,delay=20ms,loss=0.5%",
        "rate=50mbit,delay=20ms,loss=0.5%",
    ),
    (
        "loss-2",
        "rate=50mbit,delay=20ms,loss=2%",
        "rate=50mbit,delay=20ms,loss=2%",
    ),
    (
        "rate-4:1",
        "rate=50mbit,delay=20ms",
        "rate=12mbit,delay=20ms",
    ),
    (
        "rate-10:1",
        "rate=100mbit,delay=20ms",
        "rate=10mbit,delay=20ms",
    ),
    (
        "two-lte",
        "rate=40mbit,delay=30ms,jitter=5ms,loss=0.5%",
        "rate=25mbit,delay=45ms,jitter=8ms,loss=0.5%",
    ),
    (
        "fibre-lte",
        "rate=300mbit,delay=8ms",
        "rate=30mbit,delay=40ms,jitter=8ms,loss=0.5%",
    ),
    (
        "lte-starlink",
        "rate=40mbit,delay=35ms,jitter=8ms",
        "rate=100mbit,delay=50ms,jitter=25ms,loss=1%",
    ),
    (
        "lte-geo",
        "rate=40mbit,delay=35ms",
        "rate=20mbit,delay=320ms,jitter=20ms,loss=0.5%",
    ),
    (
        "congested",
        "rate=20mbit,delay=50ms,jitter=20ms,loss=2%",
        "rate=15mbit,delay=60ms,jitter=25ms,loss=2%",
    ),
];

/// Goodput of a stream that never runs dry, after a warm-up.
fn goodput(config: &Config, links: &[&str]) -> Result<f64, Box<dyn Error>> {
    let mut world = World::new(WorldConfig {
        client: config.clone(),
        server: config.clone(),
        seed: 1,
    });
    for link in links {
        // 1 BDP or 200 ms of queue.
        let link = format!("{link},queue=200ms").parse()?;
        world.add_path(&Cable::symmetric(link), &PathParams::default())?;
    }
    let flow = world
        .client
        .open_flow(&FlowOptions::new(FlowKind::Stream))?;
    let data = Bytes::from(vec![7; 1 << 16]);
    let (mut read, mut warm) = (0_u64, 0_u64);
    let end = Instant::ZERO + WARM_UP + TIME;
    while world.step(end) {
        let now = world.now();
        while world.client.write(now, flow, &data).is_ok() {}
        while world.server.poll_event().is_some() {}
        while world.client.poll_event().is_some() {}
        while let Chunk::Data(bytes) = world.server.read(now, flow, 1 << 20) {
            read += bytes.len() as u64;
        }
        if now < Instant::ZERO + WARM_UP {
            warm = read;
        }
    }
    if std::env::var_os("VERBOSE").is_some() {
        for p in world.client.stats().paths {
            println!(
                "  {} {:?} srtt {:?} min {:?} cwnd {} in flight {} rate {} loss {:.3} {:?}",
                p.id, p.state, p.srtt, p.min_rtt, p.cwnd, p.in_flight, p.rate, p.loss, p.counters
            );
        }
        for f in world.client.stats().flows {
            println!("  {:?}", f.counters);
        }
    }
    Ok(Rate::from_bytes_over(read - warm, TIME).as_mbps_f64())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut config = Config::default();
    if let Some(scheduler) = args.next() {
        config.stream_scheduler = scheduler.parse()?;
    }
    if let Some(congestion) = args.next() {
        config.congestion = congestion.parse()?;
    }
    let only = args.next();
    let only = only.as_deref();
    println!(
        "{} with {}, Mb/s",
        config.stream_scheduler, config.congestion
    );
    println!(
        "{:14} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "pair", "A", "B", "both", "/better", "/sum"
    );
    for (name, a, b) in PAIRS.iter().filter(|p| only.is_none_or(|only| only == p.0)) {
        let alone = [goodput(&config, &[a])?, goodput(&config, &[b])?];
        let both = goodput(&config, &[a, b])?;
        let (better, sum) = (alone[0].max(alone[1]), alone[0] + alone[1]);
        println!(
            "{name:14} {:7.1} {:7.1} {both:7.1} {:7.2} {:7.2}",
            alone[0],
            alone[1],
            both / better,
            both / sum
        );
    }
    Ok(())
}
