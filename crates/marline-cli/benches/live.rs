//! Live entries by real processes over two emulated links: in-order delay on static, jittery and
//! lossy links, and a handover: `cargo bench -p marline-cli --bench live [-- SECONDS SCHEDULER...
//! only=LINKS seeds=COUNT]`, where `LINKS` is a part of the name of those that are wanted, and each
//! run with another seed has other losses.
//!
//! 10 Mb/s of MPEG transport packets, seven a datagram, with the default budget of 300 ms; the
//! first four seconds, in which the rates of the paths are sought, count nowhere. A busy machine
//! adds to all delays.

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]

#[path = "../tests/it/real/harness/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    clippy::print_stderr,
    reason = "the tests by real processes need the rest"
)]
mod harness;

mod cells;

use cells::{CELLS, Cell, INTERVAL, WARM_UP, quantile};
use harness::{Live, transport};
use marline_lab::emulate::Direction;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

/// Where a datagram's number stands: in the payload of its first packet.
const NUMBER: std::ops::Range<usize> = 4..12;

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
    let back = Cell::way_back(cell.links[0]);
    if back != cell.links[0] {
        let calm = back.parse().unwrap();
        live.links[0].reconfigure(Direction::Down, calm).unwrap();
    }
    let count = (span.as_nanos() / INTERVAL.as_nanos()) as usize;
    let start = Instant::now();
    let (sent, arrived) = thread::scope(|scope| {
        let sender = live.sender();
        let sent = scope.spawn(move || send(&sender, start, count));
        let arrived = scope.spawn(|| receive(&target, start, count));
        if cell.handover {
            Cell::hand_over(&live.links[0], start, span);
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
    let times = arrived.iter().map(|(_, at)| *at);
    let times: Vec<Duration> = times.filter(|at| *at >= WARM_UP).collect();
    let gap = times.windows(2).map(|pair| pair[1] - pair[0]).max();
    // What chance took on each link: a few bursts more or less decide the 99th percentile of so
    // short a run.
    let dropped = live.links.each_ref().map(|link| {
        let counted = link.stats().up.link;
        100.0 * counted.dropped_total() as f64 / counted.offered.max(1) as f64
    });
    println!(
        "| {} | {scheduler} | {} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {} | {:.1} | {:.1}, {:.1} | {} |",
        cell.name,
        count - warm,
        count - warm - delays.len(),
        quantile(&delays, 0.5),
        quantile(&delays, 0.99),
        quantile(&delays, 1.0),
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
