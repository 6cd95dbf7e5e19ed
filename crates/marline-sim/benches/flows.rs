//! What a packet costs beside many streams: `cargo bench -p marline-sim --bench flows
//! [-- [instructions] [ROUNDS] [NAME…]]`.
//!
//! One client, one server, two paths of 200 Mb/s, and 1, 200 or 2000 streams. What one half second
//! costs at both ends, application included, is divided by the packets that arrive in it; sessions
//! and streams begin half a second before, which does not count. Printed are nanoseconds of this
//! thread's time, or with `instructions` what `valgrind` (callgrind) counts, which is the same from
//! run to run and on a busy machine; and by how much that is more than with one stream. More than
//! 1.3 times as many instructions with 200 streams that are all `full`, or 1.6 with 2000, are an
//! error.
//!
//! Shapes: of `full` every stream has always something to send. Of `sparse` one after the other
//! writes a packet, half of what the paths carry. Of `blocked` nobody reads but the first stream,
//! so that all others wait for credit.

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]

use std::process::Command;
use std::time::Duration as CpuTime;

use bytes::Bytes;
use marline_proto::flow::Chunk;
use marline_proto::path::PathParams;
use marline_proto::wire::{FlowId, FlowKind};
use marline_proto::{Config, Event, FlowOptions};
use marline_sim::{Cable, Duration, End, Instant, World, WorldConfig};
use rustix::time::{ClockId, clock_gettime};

type Failure = Box<dyn std::error::Error>;

const LINK: &str = "rate=200mbit,delay=10ms,queue=20ms";
/// When it is measured.
const FROM: Duration = Duration::from_millis(500);
const TIME: Duration = Duration::from_millis(500);
/// Numbers of streams; what the others cost is compared with the first.
const FLOWS: [usize; 3] = [1, 200, 2_000];
/// Most instructions of a packet beside as many full streams, as parts of those beside one. It was
/// 13 with 200 where each acknowledgement visited all of them.
const LIMITS: [f64; 3] = [1.0, 1.3, 1.6];
const SCHEDULERS: [&str; 3] = ["auto", "edpf", "min-rtt"];
/// What a stream is written in.
static CHUNK: [u8; 64 << 10] = [0; 64 << 10];
/// Half of what both links carry, in packets of this length, a millisecond.
const PACKET: usize = 1_250;
const PACKETS: usize = 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Full,
    Sparse,
    Blocked,
}

const SHAPES: [(&str, Shape); 3] = [
    ("full", Shape::Full),
    ("sparse", Shape::Sparse),
    ("blocked", Shape::Blocked),
];

struct Case {
    shape: Shape,
    scheduler: &'static str,
    flows: usize,
}

fn cpu() -> CpuTime {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    CpuTime::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Writes all that the stream takes.
fn fill(world: &mut World, id: FlowId) {
    let now = world.now();
    let data = Bytes::from_static(&CHUNK);
    while world.client.write(now, id, &data).is_ok() {}
}

fn read(world: &mut World, id: FlowId) {
    let now = world.now();
    while let Chunk::Data(_) = world.server.read(now, id, usize::MAX) {}
}

impl Case {
    fn on_event(&self, world: &mut World, first: FlowId, end: End, event: Event) {
        match (end, event) {
            (End::Client, Event::FlowWritable(id)) if self.shape != Shape::Sparse => {
                fill(world, id);
            }
            (End::Server, Event::FlowReadable(id))
                if self.shape != Shape::Blocked || id == first =>
            {
                read(world, id);
            }
            _ => {}
        }
    }

    /// Runs until then and returns the packets that arrived at the server in all.
    fn run(&self, world: &mut World, flows: &[FlowId], until: Duration) -> u64 {
        let (until, mut now) = (Instant::ZERO + until, world.now());
        while now < until {
            now = match self.shape {
                Shape::Full | Shape::Blocked => until,
                Shape::Sparse => now + Duration::from_millis(1),
            };
            if self.shape == Shape::Sparse {
                let tick = (now.as_nanos() / 1_000_000) as usize;
                for n in tick * PACKETS..(tick + 1) * PACKETS {
                    let id = flows[n % flows.len()];
                    let data = Bytes::from_static(&CHUNK[..PACKET]);
                    // One that has no room is passed over.
                    let _ = world.client.write(world.now(), id, &data);
                }
            }
            world.run_until(now, |world, end, event| {
                self.on_event(world, flows[0], end, event);
            });
        }
        let paths = world.server.stats().paths;
        paths.iter().map(|p| p.counters.received_packets).sum()
    }

    fn begin(&self) -> Result<(World, Vec<FlowId>), Failure> {
        let mut config = Config {
            max_flows: 4_096,
            ..Config::default()
        };
        if self.scheduler != "auto" {
            config.stream_scheduler = self.scheduler.parse()?;
        }
        let mut world = World::new(WorldConfig {
            client: config.clone(),
            server: config,
            seed: 1,
        });
        for _ in 0..2 {
            world.add_path(&Cable::symmetric(LINK.parse()?), &PathParams::default())?;
        }
        let options = FlowOptions::new(FlowKind::Stream);
        let flows = (0..self.flows).map(|_| world.client.open_flow(&options));
        let flows = flows.collect::<Result<Vec<_>, _>>()?;
        if self.shape != Shape::Sparse {
            flows.iter().for_each(|id| fill(&mut world, *id));
        }
        Ok((world, flows))
    }

    /// Packets, and nanoseconds for each.
    fn time(&self) -> Result<(u64, f64), Failure> {
        let (mut world, flows) = self.begin()?;
        let before = self.run(&mut world, &flows, FROM);
        let begun = cpu();
        let packets = self.run(&mut world, &flows, FROM + TIME) - before;
        let nanos = (cpu() - begun).as_nanos() as f64;
        Ok((packets, nanos / packets as f64))
    }

    /// Packets, and instructions for each: of a run less one that ends where it is measured from.
    fn instructions(&self, name: &str) -> Result<(u64, f64), Failure> {
        let count = |until: Duration| -> Result<(u64, u64), Failure> {
            let output = Command::new("valgrind")
                .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
                .arg(std::env::current_exe()?)
                .args(["run", name, &until.as_millis().to_string()])
                .output()?;
            let log = String::from_utf8_lossy(&output.stderr);
            let told = log
                .lines()
                .find_map(|line| line.split("Collected : ").nth(1));
            let told = told.ok_or_else(|| format!("valgrind says:\n{log}"))?;
            let packets = String::from_utf8_lossy(&output.stdout).trim().parse()?;
            Ok((packets, told.trim().parse()?))
        };
        let ((packets, count), (before, begun)) = (count(FROM + TIME)?, count(FROM)?);
        let packets = packets - before;
        Ok((packets, (count - begun) as f64 / packets as f64))
    }
}

/// All cases with their names.
fn cases() -> impl Iterator<Item = (String, Case)> {
    let kinds = SHAPES.iter();
    let kinds = kinds.flat_map(|shape| SCHEDULERS.map(|scheduler| (shape, scheduler)));
    kinds.flat_map(|((word, shape), scheduler)| {
        FLOWS.map(|flows| {
            let case = Case {
                shape: *shape,
                scheduler,
                flows,
            };
            (format!("{word}-{scheduler}-{flows}"), case)
        })
    })
}

fn main() -> Result<(), Failure> {
    let args = std::env::args().skip(1).filter(|a| a != "--bench");
    let mut args: Vec<String> = args.collect();
    if let [word, name, millis] = &args[..]
        && word == "run"
    {
        let found = cases().find(|(known, _)| known == name);
        let (_, case) = found.ok_or("there is no such case")?;
        let (mut world, flows) = case.begin()?;
        let until = Duration::from_millis(millis.parse()?);
        println!("{}", case.run(&mut world, &flows, until));
        return Ok(());
    }
    let counts = args.iter().any(|a| a == "instructions");
    args.retain(|a| a != "instructions");
    let rounds = args
        .iter()
        .find_map(|a| a.parse::<usize>().ok())
        .unwrap_or(5);
    args.retain(|a| a.parse::<usize>().is_err());
    let unit = if counts { "instructions" } else { "ns" };
    println!(
        "{:<22} {:>8} {:>13} {:>6}",
        "case",
        "packets",
        format!("{unit}/packet"),
        "ratio"
    );
    let wanted = |name: &str| args.is_empty() || args.iter().any(|a| name.starts_with(a.as_str()));
    let (mut alone, mut exceeded) = (0.0, false);
    for (name, case) in cases().filter(|(name, _)| wanted(name)) {
        let (packets, cost) = if counts {
            case.instructions(&name)?
        } else {
            let runs = (0..rounds.max(1)).map(|_| case.time());
            let mut runs = runs.collect::<Result<Vec<_>, _>>()?;
            runs.sort_by(|a, b| a.1.total_cmp(&b.1));
            runs[runs.len() / 2]
        };
        if case.flows == 1 {
            alone = cost;
        }
        let limit = FLOWS.iter().position(|flows| *flows == case.flows);
        let limit = limit.map_or(f64::INFINITY, |i| LIMITS[i]);
        exceeded |= counts && alone > 0.0 && case.shape == Shape::Full && cost > limit * alone;
        println!("{name:<22} {packets:>8} {cost:>13.0} {:>6.2}", cost / alone);
    }
    if exceeded {
        return Err("packets beside many streams cost more than they may".into());
    }
    Ok(())
}
