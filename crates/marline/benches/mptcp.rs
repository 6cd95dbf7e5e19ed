//! The kernel's MPTCP over the links of the benchmark `live`: in-order delay of 10 Mb/s of records on static, jittery and
//! lossy links, and a handover: `cargo bench -p marline --bench mptcp [-- SECONDS only=LINKS seeds=COUNT cc=CONTROL,...]`,
//! where `LINKS` is a part of the name of those that are wanted, each run with another seed has other losses, and
//! `CONTROL` is a congestion control of the kernel's (by default `cubic`).
//!
//! One connection with two subflows, between two network namespaces with a `marline link` by TUN devices for each path.
//! Records have 1316 bytes; each counts from when it was due, wherever it waits then, until it is read in its order. The
//! first four seconds count nowhere. Needs root, Linux with MPTCP, and `ip`. A busy machine adds to all delays.

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
#[path = "mptcp/site.rs"]
mod site;

use cells::{CELLS, Cell, INTERVAL, WARM_UP, quantile};
use marline::emulate::Emulator;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use site::Site;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const RECORD: usize = 1316;
/// A receiver that gets nothing for so long has lost the connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one run had, in milliseconds and percent.
struct Run {
    p50: f64,
    p99: f64,
    worst: f64,
    gap: f64,
    /// Longest wait of a record for room in the kernel's buffer, in that of the sender.
    queued: f64,
    /// By the links of what was offered to them.
    dropped: [f64; 2],
    /// Of all bytes, those that the second link carried.
    second: f64,
    /// 99th percentile of how late the links were.
    late: f64,
    /// Subflows at the end.
    subflows: usize,
}

fn main() {
    // Cargo adds --bench.
    let words = std::env::args().skip(1).filter(|word| word != "--bench");
    let (mut seconds, mut only, mut seeds) = (20, String::new(), 3);
    let mut controls = "cubic".to_owned();
    for word in words {
        match word.split_once('=') {
            Some(("only", part)) => part.clone_into(&mut only),
            Some(("seeds", count)) => seeds = count.parse().expect("seeds= is a count"),
            Some(("cc", names)) => names.clone_into(&mut controls),
            _ => seconds = word.parse().expect("SECONDS is a count"),
        }
    }
    println!(
        "| links | control | p50 | p99 | worst | longest gap | longest wait at the sender | dropped by the links % | by the second link % | links late, p99 | subflows at the end | before: p50 / p99 |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for cell in CELLS.iter().filter(|cell| cell.name.contains(&only)) {
        for control in controls.split(',') {
            let run = |seed| run(cell, control, seed, Duration::from_secs(seconds));
            let runs: Option<Vec<Run>> = (1..=seeds).map(run).collect();
            let Some(runs) = runs.filter(|runs| !runs.is_empty()) else {
                return;
            };
            println!(
                "| {} | {control} | {} | {} |",
                cell.name,
                row(&runs),
                cell.mptcp
            );
        }
    }
}

/// The means of medians and 99th percentiles with their ranges, the worst of the rest, and all of what chance decided.
fn row(runs: &[Run]) -> String {
    let all = |value: fn(&Run) -> f64| runs.iter().map(value);
    let most = |value| all(value).fold(f64::NAN, f64::max);
    let mean = |value| {
        let least = all(value).fold(f64::NAN, f64::min);
        let mean = all(value).sum::<f64>() / runs.len() as f64;
        format!("{mean:.0} ({least:.0}–{:.0})", most(value))
    };
    let each = |show: fn(&Run) -> String| runs.iter().map(show).collect::<Vec<_>>().join("; ");
    [
        mean(|run| run.p50),
        mean(|run| run.p99),
        format!("{:.0}", most(|run| run.worst)),
        format!("{:.0}", most(|run| run.gap)),
        format!("{:.0}", most(|run| run.queued)),
        each(|run| format!("{:.1}, {:.1}", run.dropped[0], run.dropped[1])),
        each(|run| format!("{:.0}", run.second)),
        format!("{:.1}", most(|run| run.late)),
        each(|run| run.subflows.to_string()),
    ]
    .join(" | ")
}

fn run(cell: &Cell, control: &str, seed: u64, span: Duration) -> Option<Run> {
    let site = Site::new(cell, seed, control)?;
    let [near, far] = site.connect();
    let count = (span.as_nanos() / INTERVAL.as_nanos()) as usize;
    let start = Instant::now();
    let (queued, subflows, arrived) = thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let queued = send(&near, start, count);
            // Before the end of the connection is told, which ends them.
            let subflows = site.subflows();
            near.shutdown(Shutdown::Write).unwrap();
            (queued, subflows)
        });
        let receiving = scope.spawn(|| receive(&far, start, count));
        if cell.handover {
            Cell::hand_over(&site.links[0], start, span);
        }
        let (queued, subflows) = sending.join().unwrap();
        (queued, subflows, receiving.join().unwrap())
    });
    let due = |number: usize| INTERVAL * number as u32;
    let counted = arrived.iter().enumerate();
    let counted = counted.filter(|(number, _)| due(*number) >= WARM_UP);
    let mut delays: Vec<Duration> = counted
        .map(|(number, at)| at.saturating_sub(due(number)))
        .collect();
    delays.sort();
    let late: Vec<Duration> = arrived.into_iter().filter(|at| *at >= WARM_UP).collect();
    let gap = late.windows(2).map(|pair| pair[1] - pair[0]).max();
    let lateness = |link: &Emulator<_>| link.stats().lateness.p99.as_secs_f64() * 1e3;
    let [late, also] = site.links.each_ref().map(lateness);
    let stats = site.links.each_ref().map(|link| link.stats().up);
    let [first, second] = stats.map(|up| up.sent_bytes as f64);
    Some(Run {
        p50: quantile(&delays, 0.5),
        p99: quantile(&delays, 0.99),
        worst: quantile(&delays, 1.0),
        gap: gap.map_or(f64::NAN, |gap| gap.as_secs_f64() * 1e3),
        queued: queued.as_secs_f64() * 1e3,
        dropped: stats
            .map(|up| 100.0 * up.link.dropped_total() as f64 / up.link.offered.max(1) as f64),
        second: 100.0 * second / (first + second),
        late: late.max(also),
        subflows,
    })
}

/// Makes each record when it is due, whether or not the kernel has room, and hands over what it has room for. Returns the
/// longest time that a record waited for room.
fn send(mut socket: &TcpStream, start: Instant, count: usize) -> Duration {
    socket.set_nonblocking(true).unwrap();
    let (mut made, mut queue, mut longest) = (0, Vec::new(), Duration::ZERO);
    loop {
        let due = INTERVAL * made as u32;
        if made < count && due <= start.elapsed() {
            let mut record = [0; RECORD];
            record[..8].copy_from_slice(&(made as u64).to_be_bytes());
            queue.extend(record);
            made += 1;
        }
        match socket.write(&queue) {
            // None of nothing, too.
            Ok(taken) => drop(queue.drain(..taken)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("the connection broke: {error}"),
        }
        if made == count && queue.is_empty() {
            return longest;
        }
        let waiting = queue.len().div_ceil(RECORD);
        if waiting > 0 {
            let oldest = INTERVAL * (made - waiting) as u32;
            longest = longest.max(start.elapsed().saturating_sub(oldest));
        }
        let next = match made < count {
            true => (INTERVAL * made as u32).saturating_sub(start.elapsed()),
            false => PATIENCE,
        };
        // Room counts only where something waits for it.
        let fd = PollFd::new(socket, PollFlags::OUT);
        let limit = Timespec::try_from(next).unwrap();
        poll(&mut [fd][usize::from(queue.is_empty())..], Some(&limit)).unwrap();
    }
}

/// Returns when each record had arrived with all before it.
fn receive(mut socket: &TcpStream, start: Instant, count: usize) -> Vec<Duration> {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut arrived = Vec::with_capacity(count);
    let (mut buffer, mut filled) = (vec![0; 64 * RECORD], 0);
    loop {
        let length = socket.read(&mut buffer[filled..]).expect("records arrive");
        let now = start.elapsed();
        if length == 0 {
            assert_eq!((arrived.len(), filled), (count, 0));
            return arrived;
        }
        filled += length;
        let whole = filled / RECORD * RECORD;
        for record in buffer[..whole].chunks(RECORD) {
            let number = u64::from_be_bytes(record[..8].try_into().unwrap());
            assert_eq!(number as usize, arrived.len());
            arrived.push(now);
        }
        buffer.copy_within(whole..filled, 0);
        filled -= whole;
    }
}
