//! The kernel's MPTCP over the links of the benchmark `live`: in-order delay of 10 Mb/s of records
//! on static, jittery and lossy links, and a handover: `cargo bench -p marline-cli --bench mptcp
//! [-- SECONDS only=LINKS seeds=COUNT cc=CONTROL,... warm=SECONDS]`, where `LINKS` is a part of the
//! name of those that are wanted, each run with another seed has other losses, and `CONTROL` is a
//! congestion control of the kernel's (by default `cubic`).
//!
//! One connection with two subflows, between two network namespaces with a `marline link` by TUN
//! devices for each path. Records have 1316 bytes; each counts from when it was due, wherever it
//! waits then, until it is read in its order. The first seconds count nowhere (`warm`, by default
//! four as in `live`). Needs root, Linux with MPTCP, and `ip`. A busy machine adds to all delays.

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
use marline_lab::emulate::Emulator;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use site::Site;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const RECORD: usize = 1316;
/// After the last record is due, the rest is waited for so long. What has not come then counts as
/// if it came then.
const PATIENCE: Duration = Duration::from_secs(10);

/// What one run had, in milliseconds and percent.
struct Run {
    p50: f64,
    p99: f64,
    worst: f64,
    gap: f64,
    /// Of the records, those that had not come at the end.
    missing: f64,
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
    let (mut controls, mut warm) = ("cubic".to_owned(), WARM_UP);
    for word in words {
        match word.split_once('=') {
            Some(("only", part)) => part.clone_into(&mut only),
            Some(("seeds", count)) => seeds = count.parse().expect("seeds= is a count"),
            Some(("cc", names)) => names.clone_into(&mut controls),
            Some(("warm", seconds)) => {
                warm = Duration::from_secs(seconds.parse().expect("warm= is a count"));
            }
            _ => seconds = word.parse().expect("SECONDS is a count"),
        }
    }
    println!(
        "| links | control | p50 | p99 | worst | not come % | longest gap | longest wait at the sender | dropped by the links % | by the second link % | links late, p99 | subflows at the end | before: p50 / p99 |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for cell in CELLS.iter().filter(|cell| cell.name.contains(&only)) {
        for control in controls.split(',') {
            let run = |seed| run(cell, control, seed, Duration::from_secs(seconds), warm);
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

/// The means of medians and 99th percentiles with their ranges, the worst of the rest, and all of
/// what chance decided.
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
        mean(|run| run.missing),
        format!("{:.0}", most(|run| run.gap)),
        format!("{:.0}", most(|run| run.queued)),
        each(|run| format!("{:.1}, {:.1}", run.dropped[0], run.dropped[1])),
        each(|run| format!("{:.0}", run.second)),
        format!("{:.1}", most(|run| run.late)),
        each(|run| run.subflows.to_string()),
    ]
    .join(" | ")
}

fn run(cell: &Cell, control: &str, seed: u64, span: Duration, warm: Duration) -> Option<Run> {
    let site = Site::new(cell, seed, control)?;
    let [near, far] = site.connect();
    let start = Instant::now();
    let (queued, subflows, arrived) = thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let queued = send(&near, start, span);
            // Before the end of the connection is told, which ends them.
            let subflows = site.subflows();
            near.shutdown(Shutdown::Write).unwrap();
            (queued, subflows)
        });
        let receiving = scope.spawn(|| receive(&far, start, span));
        if cell.handover {
            Cell::hand_over(&site.links[0], start, span);
        }
        let (queued, subflows) = sending.join().unwrap();
        (queued, subflows, receiving.join().unwrap())
    });
    let count = records(span);
    let first = records(warm);
    let (end, came) = (span + PATIENCE, arrived.len());
    let ats = arrived.iter().copied().chain(std::iter::repeat(end));
    let counted = ats.enumerate().take(count).skip(first);
    let mut delays: Vec<Duration> = counted
        .map(|(number, at)| at.saturating_sub(INTERVAL * number as u32))
        .collect();
    delays.sort();
    let mut late: Vec<Duration> = arrived.into_iter().filter(|at| *at >= warm).collect();
    if came < count {
        late.push(end);
    }
    let gap = late
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .max();
    let lateness = |link: &Emulator<_>| link.stats().lateness.p99.as_secs_f64() * 1e3;
    let [late, also] = site.links.each_ref().map(lateness);
    let stats = site.links.each_ref().map(|link| link.stats().up);
    let [first, second] = stats.map(|up| up.sent_bytes as f64);
    Some(Run {
        p50: quantile(&delays, 0.5),
        p99: quantile(&delays, 0.99),
        worst: quantile(&delays, 1.0),
        missing: 100.0 * (count - came) as f64 / count as f64,
        gap: gap.map_or(f64::NAN, |gap| gap.as_secs_f64() * 1e3),
        queued: queued.as_secs_f64() * 1e3,
        dropped: stats
            .map(|up| 100.0 * up.link.dropped_total() as f64 / up.link.offered.max(1) as f64),
        second: 100.0 * second / (first + second),
        late: late.max(also),
        subflows,
    })
}

/// Records that are due before this time.
fn records(time: Duration) -> usize {
    (time.as_nanos() / INTERVAL.as_nanos()) as usize
}

/// Makes each record when it is due, whether or not the kernel has room, and hands over what it has
/// room for, until all is handed over or the patience is at its end. Returns the longest time that
/// a record waited for room.
fn send(mut socket: &TcpStream, start: Instant, span: Duration) -> Duration {
    socket.set_nonblocking(true).unwrap();
    let count = records(span);
    let (mut made, mut queue, mut longest) = (0, Vec::new(), Duration::ZERO);
    loop {
        let now = start.elapsed();
        if made < count && INTERVAL * made as u32 <= now {
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
        let waiting = queue.len().div_ceil(RECORD);
        if waiting > 0 {
            let oldest = INTERVAL * (made - waiting) as u32;
            longest = longest.max(now.saturating_sub(oldest));
        }
        let next = match (made < count, waiting) {
            (true, _) => INTERVAL * made as u32,
            (false, 0) => return longest,
            (false, _) if now >= span + PATIENCE => return longest,
            (false, _) => span + PATIENCE,
        };
        // Room counts only where something waits for it.
        let fd = PollFd::new(socket, PollFlags::OUT);
        let limit = Timespec::try_from(next.saturating_sub(start.elapsed())).unwrap();
        poll(&mut [fd][usize::from(waiting == 0)..], Some(&limit)).unwrap();
    }
}

/// Returns when each record had arrived with all before it, of those that came before the patience
/// was at its end.
fn receive(mut socket: &TcpStream, start: Instant, span: Duration) -> Vec<Duration> {
    let mut arrived = Vec::with_capacity(records(span));
    let (mut buffer, mut filled) = (vec![0; 64 * RECORD], 0);
    loop {
        let left = (span + PATIENCE).saturating_sub(start.elapsed());
        if left.is_zero() {
            return arrived;
        }
        socket.set_read_timeout(Some(left)).unwrap();
        let length = match socket.read(&mut buffer[filled..]) {
            Ok(0) => return arrived,
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return arrived,
            Err(error) => panic!("the connection broke: {error}"),
        };
        let now = start.elapsed();
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
