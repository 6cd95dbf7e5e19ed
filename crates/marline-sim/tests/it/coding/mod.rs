//! Coded flows in whole sessions: what is lost comes back without a round trip.

mod capture;
mod delay;
mod faults;
mod hostile;
mod interval;
mod memory;

use marline_proto::path::PathParams;
use marline_proto::sched::Choice;
use marline_proto::stats::FlowCounters;
use marline_proto::wire::{FlowId, FlowKind};
use marline_proto::{Config, FlowOptions};
use marline_sim::{Duration, End, Instant};

use crate::kit::{Lab, Outbox, ms, secs, tau};

/// Pieces of a live stream before its windows have grown: they do not count.
const SETTLED: u64 = 2_000;
const PIECES: u64 = 8_000;

fn options(kind: FlowKind, scheduler: Choice) -> FlowOptions {
    FlowOptions {
        scheduler: Some(scheduler),
        ..FlowOptions::new(kind)
    }
}

fn lab_over(seed: u64, config: &Config, up: &[&str], down: &str) -> Lab {
    let mut lab = Lab::new(seed, config);
    for link in up {
        lab.path_with(link, down, PathParams::default());
    }
    lab.run_for(secs(1));
    lab
}

fn counters(lab: &mut Lab, end: End, flow: FlowId) -> FlowCounters {
    let session = lab.world.session(end);
    session.flow_counters(flow).expect("the flow is open")
}

/// Opens a live stream of pieces of 1000 bytes, one each millisecond, that stays open.
fn open_live(lab: &mut Lab, scheduler: &str, pieces: u64) -> FlowId {
    let mut outbox = Outbox::trickle(lab.now(), 1_000 * pieces, 1_000, ms(1));
    outbox.finish = false;
    let options = options(FlowKind::Stream, tau(scheduler));
    lab.open(End::Client, &options, outbox)
}

/// The same, run until all has arrived; the sender's counters.
fn live(lab: &mut Lab, scheduler: &str) -> (FlowId, FlowCounters) {
    let flow = open_live(lab, scheduler, PIECES);
    lab.run_for(ms(PIECES) + secs(2));
    assert_eq!(lab.inbox(End::Server, flow).read, 1_000 * PIECES, "{lab}");
    (flow, counters(lab, End::Client, flow))
}

/// In-order delays of the pieces of a live stream beyond the first piece's, before which nothing
/// waited; ascending.
fn delays(lab: &Lab, flow: FlowId) -> Vec<Duration> {
    let inbox = lab.inbox(End::Server, flow);
    let mut delays = Vec::new();
    let mut piece = 0;
    for (at, read) in &inbox.progress {
        while (piece + 1) * 1_000 <= *read {
            delays.push(at.since(Instant::from_millis(piece)));
            piece += 1;
        }
    }
    // The first piece may have been lost: the quickest tells when they left.
    let quickest = delays.iter().min().copied().unwrap_or_default();
    let mut delays = delays.split_off(delays.len().min(SETTLED as usize));
    delays.iter_mut().for_each(|delay| *delay -= quickest);
    delays.sort_unstable();
    delays
}

fn quantile(delays: &[Duration], q: f64) -> Duration {
    delays[(delays.len() as f64 * q) as usize]
}
