//! Many sessions that are idle, and then send at a steady pace.

use super::crowd::{Crowd, Site};
use super::load::{Phase, Shared, What};
use super::server::{Server, spent};
use super::{Failure, Plan, WARM_UP};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Time for what connecting has left behind to be over: late packets, searches for packet sizes.
const SETTLE: Duration = Duration::from_secs(10);

/// Memory of idle sessions, then records from all of them.
pub(crate) fn steady(plan: &Plan) -> Result<(), Failure> {
    let sink = UdpSocket::bind("127.0.0.1:0")?;
    socket2::SockRef::from(&sink).set_recv_buffer_size(8 << 20)?;
    sink.set_read_timeout(Some(Duration::from_millis(100)))?;
    let site = Site::new(plan.sessions)?;
    let server = Server::start(plan, site.folder(), sink.local_addr()?)?;
    thread::sleep(Duration::from_secs(1));
    let begun = server.resident()?;
    thread::scope(|scope| {
        let crowd = site.start(
            scope,
            &server,
            What::Records(plan.record, plan.pace(plan.record)),
        )?;
        let shared = Arc::clone(&crowd.shared);
        let delays = scope.spawn(move || receive(&sink, plan.record, &shared));
        let shared = Arc::clone(&crowd.shared);
        let result = measure(plan, &server, crowd, begun);
        let mut delays = delays.join().map_err(|_| "the sink panicked")?;
        result?;
        if plan.mbit > 0.0 {
            delays.sort_unstable();
            let sent = shared.sent.load(Ordering::Relaxed);
            let [p50, p99, worst] = [0.5, 0.99, 1.0].map(|share| quantile(&delays, share));
            println!(
                "records: {sent} sent, {} arrived, {} not taken by their sessions; delay p50 \
                 {p50:.2} ms, p99 {p99:.2} ms, worst {worst:.1} ms",
                delays.len(),
                shared.refused.load(Ordering::Relaxed),
            );
        }
        Ok(())
    })
}

/// Delays (ns) of what comes from the server while records count.
fn receive(sink: &UdpSocket, record: usize, shared: &Shared) -> Vec<u64> {
    let (mut delays, mut buffer) = (Vec::new(), [0; 1 << 16]);
    while !shared.stopped() {
        let Ok(len) = sink.recv(&mut buffer) else {
            continue;
        };
        let sent = buffer[4..12].iter();
        let sent = sent.fold(0, |all, byte| all << 8 | u64::from(*byte));
        if len == record && shared.counts(sent) {
            delays.push(shared.now().saturating_sub(sent));
        }
    }
    delays
}

/// The value that a share of them does not exceed, in milliseconds.
fn quantile(sorted: &[u64], share: f64) -> f64 {
    let index = (sorted.len().saturating_sub(1) as f64 * share) as usize;
    sorted
        .get(index)
        .map_or(f64::NAN, |nanos| *nanos as f64 * 1e-6)
}

fn measure(plan: &Plan, server: &Server, mut crowd: Crowd<'_>, begun: f64) -> Result<(), Failure> {
    let (start, before) = (Instant::now(), server.cpu()?);
    crowd.opened()?;
    let count = plan.sessions as f64;
    let (connecting, _) = spent(&before, &server.cpu()?);
    println!(
        "{count} sessions of two paths in {:.1} s, {:.2} ms of the server's CPU each",
        start.elapsed().as_secs_f64(),
        connecting * 1e3 / count
    );
    thread::sleep(SETTLE);
    let idle = server.resident()?;
    println!(
        "memory: {:.1} MiB before, {:.1} MiB now, {:.1} KiB a session",
        begun / 1024.0,
        idle / 1024.0,
        (idle - begun) / count
    );
    let before = server.cpu()?;
    thread::sleep(SETTLE);
    let (resting, _) = spent(&before, &server.cpu()?);
    println!(
        "idle: {:.2} % of a core",
        resting * 100.0 / SETTLE.as_secs_f64()
    );
    if plan.mbit <= 0.0 {
        return crowd.end();
    }
    crowd.turn(Phase::Sending);
    thread::sleep(WARM_UP);
    crowd.shared.count(plan.span);
    let (start, before) = (Instant::now(), server.cpu()?);
    thread::sleep(plan.span);
    let (spent, threads) = spent(&before, &server.cpu()?);
    let span = start.elapsed().as_secs_f64();
    let threads: Vec<String> = threads
        .iter()
        .map(|cpu| format!("{:.2}", cpu / span))
        .collect();
    println!(
        "{} Mb/s each for {span:.0} s: the server took {:.2} cores ({} by thread), {:.0} µs for a \
         Mb; memory {:.1} KiB a session",
        plan.mbit,
        spent / span,
        threads.join(" + "),
        spent * 1e6 / (span * plan.mbit * count),
        (server.resident()? - begun) / count
    );
    crowd.turn(Phase::Over);
    thread::sleep(SETTLE);
    let after = (server.resident()? - begun) / count;
    println!(
        "{} s after the last record: {after:.1} KiB a session",
        SETTLE.as_secs()
    );
    Ok(())
}
