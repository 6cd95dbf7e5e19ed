//! Few sessions that send much, alike, to a server of one worker and to one of two.

use super::crowd::{Crowd, Site};
use super::load::{PIECE, Phase, Shared, What};
use super::server::{Server, spent};
use super::{Failure, Plan, WARM_UP};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Pairs of runs.
const PAIRS: usize = 3;

/// What the busiest thread takes bounds what the server carries where each has a core.
pub(crate) fn bulk(plan: &Plan) -> Result<(), Failure> {
    println!("| workers | Mb/s | server, µs for a Mb | its busiest thread | CPU of its threads |");
    println!("| --- | --- | --- | --- | --- |");
    let mut ratios = Vec::new();
    for _ in 0..PAIRS {
        let [one, two] = ["1", "2"].map(|workers| run(plan, workers));
        ratios.push(one? / two?);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "two workers carry {:.2} times what one does by what the busiest thread takes for a Mb \
         (median of {PAIRS} pairs, {:.2} to {:.2}; goal 1.7 with two clients)",
        ratios[PAIRS / 2],
        ratios[0],
        ratios[PAIRS - 1]
    );
    Ok(())
}

/// CPU (µs) that the busiest thread takes for a Mb.
fn run(plan: &Plan, workers: &str) -> Result<f64, Failure> {
    let plan = Plan {
        workers: Some(workers.to_owned()),
        ..plan.clone()
    };
    let sink = TcpListener::bind("127.0.0.1:0")?;
    let at = sink.local_addr()?;
    let site = Site::new(plan.sessions)?;
    let server = Server::start(&plan, site.folder(), at)?;
    thread::scope(|scope| {
        let mut crowd = site.start(scope, &server, What::Bytes(at, plan.pace(PIECE)))?;
        crowd.opened()?;
        crowd.turn(Phase::Sending);
        for _ in 0..plan.sessions {
            let (stream, _) = sink.accept()?;
            let shared = Arc::clone(&crowd.shared);
            scope.spawn(move || receive(stream, &shared));
        }
        measure(&plan, &server, crowd)
    })
}

fn receive(mut stream: TcpStream, shared: &Shared) -> Result<(), Failure> {
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut buffer = vec![0; 1 << 20];
    while !shared.stopped() {
        if let Ok(len) = stream.read(&mut buffer) {
            shared.arrived.fetch_add(len as u64, Ordering::Relaxed);
        }
    }
    Ok(())
}

fn measure(plan: &Plan, server: &Server, crowd: Crowd<'_>) -> Result<f64, Failure> {
    thread::sleep(WARM_UP);
    let arrived = || crowd.shared.arrived.load(Ordering::Relaxed);
    let (start, before, from) = (Instant::now(), server.cpu()?, arrived());
    thread::sleep(plan.span);
    let (all, threads) = spent(&before, &server.cpu()?);
    let megabits = (arrived() - from) as f64 * 8e-6;
    let span = start.elapsed().as_secs_f64();
    crowd.end()?;
    let busiest = threads.iter().copied().fold(0.0, f64::max);
    let cores: Vec<String> = threads
        .iter()
        .map(|cpu| format!("{:.2}", cpu / span))
        .collect();
    println!(
        "| {} | {:.0} | {:.0} | {:.0} | {} |",
        plan.workers.as_deref().unwrap_or("auto"),
        megabits / span,
        all * 1e6 / megabits,
        busiest * 1e6 / megabits,
        cores.join(" + ")
    );
    Ok(busiest * 1e6 / megabits)
}
