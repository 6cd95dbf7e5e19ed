//! Live entries by real processes over two emulated links: in-order delay on static, jittery and lossy links, and a
//! handover: `cargo bench -p marline --bench live [-- SECONDS SCHEDULER... only=LINKS seeds=COUNT]`, where `LINKS` is a part
//! of the name of those that are wanted, and each run with another seed has other losses.
//!
//! 10 Mb/s of MPEG transport packets, seven a datagram, with the default budget of 300 ms; the first four seconds,
//! in which the rates of the paths are sought, count nowhere. A busy machine adds to all delays.

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]

#[path = "../tests/it/real/harness/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    clippy::print_stderr,
    reason = "the tests by real processes need the rest"
)]
mod harness;

use harness::{Live, transport};
use marline::emulate::Direction;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

/// 10 Mb/s of datagrams of 1316 bytes.
const INTERVAL: Duration = Duration::from_nanos(1316 * 8 * 100);
const WARM_UP: Duration = Duration::from_secs(4);
/// Where a datagram's number stands: in the payload of its first packet.
const NUMBER: std::ops::Range<usize> = 4..12;

/// A pair of links, and what kernel MPTCP with CUBIC had on it (p50 and p99, ms), where that was measured.
struct Cell {
    name: &'static str,
    links: [&'static str; 2],
    mptcp: &'static str,
    handover: bool,
}

const fn cell(name: &'static str, links: [&'static str; 2], mptcp: &'static str) -> Cell {
    Cell {
        name,
        links,
        mptcp,
        handover: false,
    }
}

const NEAR: &str = "rate=6mbit,delay=10ms,queue=100p";
const NEAR_LOSSY: &str = "rate=6mbit,delay=10ms,queue=100p,loss=2%,burst=4";
/// On the way of the data only, as in Figure 7 of the OLS paper.
const JITTER: &str = ",jitter=40ms,jitter-dist=uniform";
const JITTERY: &str = "rate=8mbit,delay=40ms,jitter=40ms,jitter-dist=uniform,queue=100p";
const JITTERY_LOSSY: &str =
    "rate=8mbit,delay=40ms,jitter=40ms,jitter-dist=uniform,queue=100p,loss=2%,burst=4";
const GOOD: &str = "rate=20mbit,delay=25ms,queue=200ms";

const CELLS: [Cell; 12] = [
    cell("6+6, RTT 20/20", [NEAR, NEAR], "12 / 14"),
    cell(
        "6+6, RTT 20/40",
        [NEAR, "rate=6mbit,delay=20ms,queue=100p"],
        "22 / 23",
    ),
    cell(
        "6+6, RTT 20/80",
        [NEAR, "rate=6mbit,delay=40ms,queue=100p"],
        "49 / 50",
    ),
    cell(
        "6+6, RTT 20/160",
        [NEAR, "rate=6mbit,delay=80ms,queue=100p"],
        "88 / 90",
    ),
    cell(
        "8+8, RTT 80±40/160",
        [JITTERY, "rate=8mbit,delay=80ms,queue=100p"],
        "80 / 83",
    ),
    cell("2 % in bursts, 20/20", [NEAR_LOSSY, NEAR_LOSSY], "-"),
    cell(
        "2 % in bursts, 20/40",
        [
            NEAR_LOSSY,
            "rate=6mbit,delay=20ms,queue=100p,loss=2%,burst=4",
        ],
        "-",
    ),
    cell(
        "2 % in bursts, 20/80",
        [
            NEAR_LOSSY,
            "rate=6mbit,delay=40ms,queue=100p,loss=2%,burst=4",
        ],
        "-",
    ),
    cell(
        "2 % in bursts, 20/160",
        [
            NEAR_LOSSY,
            "rate=6mbit,delay=80ms,queue=100p,loss=2%,burst=4",
        ],
        "-",
    ),
    cell(
        "2 % in bursts, 80±40/160",
        [
            JITTERY_LOSSY,
            "rate=8mbit,delay=80ms,queue=100p,loss=2%,burst=4",
        ],
        "-",
    ),
    cell(
        "20+20, RTT 50/50, 2 % in bursts",
        [
            "rate=20mbit,delay=25ms,queue=200ms,loss=2%,burst=4",
            "rate=20mbit,delay=25ms,queue=200ms,loss=2%,burst=4",
        ],
        "-",
    ),
    Cell {
        name: "20+20, RTT 50/50, handover",
        links: [GOOD, GOOD],
        mptcp: "-",
        handover: true,
    },
];

fn main() {
    // Cargo adds --bench.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let seconds = words
        .next()
        .map_or(12, |word| word.parse().expect("SECONDS is a count"));
    let (mut schedulers, mut only, mut seeds) = (Vec::new(), String::new(), 1);
    for word in words {
        match word.split_once('=') {
            Some(("only", part)) => part.clone_into(&mut only),
            Some(("seeds", count)) => seeds = count.parse().expect("seeds= is a count"),
            _ => schedulers.push(word),
        }
    }
    if schedulers.is_empty() {
        schedulers = vec!["auto".to_owned(), "hedge".to_owned()];
    }
    println!(
        "| links | scheduler | sent | lost | p50 | p99 | worst | longest gap | TS breaks | redundancy % | dropped by the links % | MPTCP-CUBIC p50 / p99 |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for cell in CELLS.iter().filter(|cell| cell.name.contains(&only)) {
        for seed in 1..=seeds {
            for scheduler in &schedulers {
                run(cell, scheduler, seed, Duration::from_secs(seconds));
            }
        }
    }
}

fn run(cell: &Cell, scheduler: &str, seed: u64, span: Duration) {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    let room = socket2::SockRef::from(&target).set_recv_buffer_size(1 << 22);
    room.unwrap();
    let options = format!(",scheduler={scheduler}");
    let live = Live::with_seed(seed, cell.links, target.local_addr().unwrap(), &options);
    if cell.links[0].contains(JITTER) {
        let calm = cell.links[0].replace(JITTER, "").parse().unwrap();
        live.links[0].reconfigure(Direction::Down, calm).unwrap();
    }
    let count = (span.as_nanos() / INTERVAL.as_nanos()) as usize;
    let start = Instant::now();
    let (sent, arrived) = thread::scope(|scope| {
        let sender = live.sender();
        let sent = scope.spawn(move || send(&sender, start, count));
        let arrived = scope.spawn(|| receive(&target, start, count));
        if cell.handover {
            // Dark for three seconds, and then three times as far away.
            thread::sleep((span / 3).saturating_sub(start.elapsed()));
            live.links[0].set_dark(true);
            thread::sleep(Duration::from_secs(3));
            for direction in Direction::BOTH {
                let config = "rate=20mbit,delay=75ms,queue=200ms".parse().unwrap();
                live.links[0].reconfigure(direction, config).unwrap();
            }
            live.links[0].set_dark(false);
        }
        (sent.join().unwrap(), arrived.join().unwrap())
    });
    let [client, server] = live.status();
    let warm = sent.partition_point(|at| *at < WARM_UP);
    let mut at: Vec<Option<Duration>> = vec![None; count];
    for (number, time) in &arrived {
        at[*number].get_or_insert(*time);
    }
    // The entry hands over in order: what arrives has waited for all before it.
    let mut delays: Vec<Duration> = at[warm..]
        .iter()
        .zip(&sent[warm..])
        .filter_map(|(at, sent)| Some(at.as_ref()?.saturating_sub(*sent)))
        .collect();
    delays.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let quantile = |q: f64| {
        let index = (delays.len() as f64 * q) as usize;
        delays
            .get(index.min(delays.len().saturating_sub(1)))
            .map_or(f64::NAN, |d| ms(*d))
    };
    let times = arrived.iter().map(|(_, at)| *at);
    let times: Vec<Duration> = times.filter(|at| *at >= WARM_UP).collect();
    let gap = times.windows(2).map(|pair| pair[1] - pair[0]).max();
    // What chance took on each link: a few bursts more or less decide the 99th percentile of so short a run.
    let dropped = live.links.each_ref().map(|link| {
        let counted = link.stats().up.link;
        100.0 * counted.dropped_total() as f64 / counted.offered.max(1) as f64
    });
    println!(
        "| {} | {scheduler} | {} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {} | {:.1} | {:.1}, {:.1} | {} |",
        cell.name,
        count - warm,
        count - warm - delays.len(),
        quantile(0.5),
        quantile(0.99),
        quantile(1.0),
        gap.map_or(f64::NAN, ms),
        server.received.output.continuity_errors,
        client.sent.redundancy * 100.0,
        dropped[0],
        dropped[1],
        cell.mptcp,
    );
}

/// Returns when each datagram was sent.
fn send(socket: &UdpSocket, start: Instant, count: usize) -> Vec<Duration> {
    (0..count)
        .map(|number| {
            let mut datagram = transport(number as u64);
            datagram[NUMBER].copy_from_slice(&(number as u64).to_be_bytes());
            let due = INTERVAL * number as u32;
            thread::sleep(due.saturating_sub(start.elapsed()));
            let now = start.elapsed();
            socket.send(&datagram).unwrap();
            now
        })
        .collect()
}

/// Returns which datagram arrived when, until the last has arrived or nothing has for long.
fn receive(socket: &UdpSocket, start: Instant, count: usize) -> Vec<(usize, Duration)> {
    socket
        .set_read_timeout(Some(Duration::from_secs(3)))
        .unwrap();
    let mut arrived = Vec::new();
    let mut buffer = [0; 2048];
    while arrived.last().is_none_or(|(number, _)| number + 1 < count)
        && let Ok((length, _)) = socket.recv_from(&mut buffer)
    {
        assert_eq!(length, 1316);
        let number = u64::from_be_bytes(buffer[NUMBER].try_into().unwrap());
        arrived.push((number as usize, start.elapsed()));
    }
    arrived
}
