//! Simulated packets per second of CPU time: `cargo bench -p marline-sim --bench packets
//! [-- ROUNDS [NAME]]`.
//!
//! Every run is one client that sends as fast as two paths take it and one server that reads: real
//! sessions, whole datagrams, acknowledgements on the way back. `delivered` counts datagrams that
//! arrive at the server, `simulated` all that either side puts on a link, acknowledgements among
//! them; both are told by second of CPU time. That is the time of this thread, so that other
//! programs on the machine disturb little; the median of the rounds is told with the quickest and
//! the slowest. Goals: a million packets a second through `min-rtt` over two constant links, and
//! the run like HOP's in less than a second.

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]

use std::time::Duration as CpuTime;

use bytes::Bytes;
use marline_proto::flow::Chunk;
use marline_proto::path::PathParams;
use marline_proto::wire::{FlowId, FlowKind};
use marline_proto::{Config, Event, FlowOptions};
use marline_sim::{Cable, Duration, End, Instant, World, WorldConfig};
use rustix::time::{ClockId, clock_gettime};

/// Rounds without an argument.
const ROUNDS: usize = 5;
/// What a stream is written in.
static CHUNK: [u8; 64 << 10] = [0; 64 << 10];
/// A message that fits one datagram.
const MESSAGE: usize = 1_100;

struct Case {
    name: &'static str,
    link: &'static str,
    time: Duration,
    flows: usize,
    kind: FlowKind,
    scheduler: &'static str,
}

const CONSTANT: &str = "rate=50mbit,delay=10ms,queue=20ms";
const FAST: &str = "rate=500mbit,delay=10ms,queue=20ms";
const HOP: &str = "rate=40mbit,rate-sd=8mbit,rate-every=25ms,rate-min=8mbit,delay=10ms,queue=50ms";

const CASES: &[Case] = &[
    Case {
        name: "stream",
        link: CONSTANT,
        time: Duration::from_secs(40),
        flows: 1,
        kind: FlowKind::Stream,
        scheduler: "min-rtt",
    },
    Case {
        name: "packets",
        link: CONSTANT,
        time: Duration::from_secs(40),
        flows: 1,
        kind: FlowKind::Packets,
        scheduler: "min-rtt",
    },
    Case {
        name: "fast-stream",
        link: FAST,
        time: Duration::from_secs(4),
        flows: 1,
        kind: FlowKind::Stream,
        scheduler: "min-rtt",
    },
    Case {
        name: "edpf",
        link: CONSTANT,
        time: Duration::from_secs(40),
        flows: 1,
        kind: FlowKind::Stream,
        scheduler: "edpf",
    },
    Case {
        name: "200-streams",
        link: FAST,
        time: Duration::from_secs(1),
        flows: 200,
        kind: FlowKind::Stream,
        scheduler: "min-rtt",
    },
    Case {
        name: "200-edpf",
        link: FAST,
        time: Duration::from_secs(1),
        flows: 200,
        kind: FlowKind::Stream,
        scheduler: "edpf",
    },
    Case {
        name: "hop-30s",
        link: HOP,
        time: Duration::from_secs(30),
        flows: 1,
        kind: FlowKind::Packets,
        scheduler: "min-rtt",
    },
];

fn cpu() -> CpuTime {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    CpuTime::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Writes all that the flow takes.
fn fill(world: &mut World, id: FlowId, kind: FlowKind) {
    let now = world.now();
    let client = &mut world.client;
    match kind {
        FlowKind::Stream => while client.write(now, id, &Bytes::from_static(&CHUNK)).is_ok() {},
        _ => {
            let message = Bytes::from_static(&CHUNK[..MESSAGE]);
            while client.send(now, id, message.clone()).is_ok() {}
        }
    }
}

fn on_event(world: &mut World, end: End, event: Event, kind: FlowKind) {
    match (end, event) {
        (End::Client, Event::FlowWritable(id)) => fill(world, id, kind),
        (End::Server, Event::FlowReadable(id)) => match kind {
            FlowKind::Stream => {
                while let Chunk::Data(_) = world.server.read(world.now(), id, usize::MAX) {}
            }
            _ => while let Chunk::Data(_) = world.server.receive(world.now(), id) {},
        },
        _ => {}
    }
}

/// What a run delivered, and what it cost.
struct Measured {
    packets: u64,
    /// On links, both ways.
    datagrams: u64,
    bytes: u64,
    cpu: CpuTime,
}

impl Case {
    fn world(&self) -> World {
        let config = Config {
            stream_scheduler: self.scheduler.parse().expect("a scheduler"),
            packets_scheduler: self.scheduler.parse().expect("a scheduler"),
            ordered_scheduler: self.scheduler.parse().expect("a scheduler"),
            ..Config::default()
        };
        World::new(WorldConfig {
            client: config.clone(),
            server: config,
            seed: 1,
        })
    }

    fn run(&self) -> Result<Measured, Box<dyn std::error::Error>> {
        let before = cpu();
        let mut world = self.world();
        let cable = Cable::symmetric(self.link.parse()?);
        for _ in 0..2 {
            world.add_path(&cable, &PathParams::default())?;
        }
        for _ in 0..self.flows {
            let id = world.client.open_flow(&FlowOptions::new(self.kind))?;
            fill(&mut world, id, self.kind);
        }
        let kind = self.kind;
        world.run_until(Instant::ZERO + self.time, |world, end, event| {
            on_event(world, end, event, kind);
        });
        let stats = world.server.stats();
        let received = stats.paths.iter().map(|p| p.counters);
        Ok(Measured {
            packets: received.clone().map(|c| c.received_packets).sum(),
            datagrams: world.datagrams(),
            bytes: stats.flows.iter().map(|f| f.counters.read_bytes).sum(),
            cpu: cpu() - before,
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let rounds = args
        .iter()
        .find_map(|a| a.parse().ok())
        .unwrap_or(ROUNDS)
        .max(1);
    let only = args.iter().find(|a| a.parse::<usize>().is_err());
    println!(
        "{:<12} {:>9} {:>7} {:>8} {:>10} {:>17} {:>10} {:>10}",
        "case",
        "delivered",
        "Mb/s",
        "CPU s",
        "ns/deliv.",
        "(least-most)",
        "deliv. M/s",
        "simul. M/s"
    );
    for case in CASES.iter().filter(|c| only.is_none_or(|o| o == c.name)) {
        let mut runs = (0..rounds)
            .map(|_| case.run())
            .collect::<Result<Vec<_>, _>>()?;
        runs.sort_by_key(|r| r.cpu);
        let per_packet = |r: &Measured| r.cpu.as_nanos() as f64 / r.packets.max(1) as f64;
        let median = &runs[rounds / 2];
        println!(
            "{:<12} {:>9} {:>7.0} {:>8.3} {:>10.0} {:>17} {:>10.3} {:>10.3}",
            case.name,
            median.packets,
            median.bytes as f64 * 8e-6 / case.time.as_secs_f64(),
            median.cpu.as_secs_f64(),
            per_packet(median),
            format!(
                "({:.0}-{:.0})",
                per_packet(&runs[0]),
                per_packet(&runs[rounds - 1])
            ),
            1e3 / per_packet(median),
            median.datagrams as f64 * 1e-6 / median.cpu.as_secs_f64()
        );
    }
    Ok(())
}
