//! A live stream over two links of which the better one goes dark: nobody should notice.

use marline_proto::wire::FlowKind;
use marline_proto::{Config, FlowOptions};
use marline_sim::{Duration, End};

use crate::kit::{Inbox, Lab, Messages, Outbox, ms, secs};

/// Longest time without anything new at the receiver.
const SILENCE: Duration = ms(100);
/// In-order delay of 99 of 100 messages.
const P99: Duration = ms(60);
const MESSAGES: u64 = 20_000;

/// 8 Mb/s in pieces of 1000 bytes for 20 s over links of 20 Mb/s, RTT 30 and 50 ms; the better
/// one is dark from 8 to 11 s. Checks the receiver with `judge`.
fn handover(seed: u64, options: &FlowOptions, judge: impl FnOnce(&Lab, &Inbox)) {
    let mut lab = Lab::new(seed, &Config::default());
    let better = lab.path("rate=20mbit,delay=15ms,jitter=1ms,queue=100ms");
    lab.path("rate=20mbit,delay=25ms,jitter=1ms,queue=100ms");
    lab.run_for(ms(500));
    let start = lab.now();
    let plan = Messages {
        size: 1_000,
        size_max: 1_000,
        count: MESSAGES,
        every: ms(1),
    };
    let outbox = match options.kind {
        FlowKind::Packets => Outbox::messages(start, plan),
        _ => Outbox::trickle(start, 1_000 * MESSAGES, 1_000, ms(1)),
    };
    let flow = lab.open(End::Client, options, outbox);
    lab.run_until(start + secs(8), |_| false);
    lab.dark(better, true);
    lab.run_until(start + secs(11), |_| false);
    lab.dark(better, false);
    lab.finish_within(secs(12));
    judge(&lab, lab.inbox(End::Server, flow));
}

fn check(lab: &Lab, name: &str, inbox: &Inbox, mut delays: Vec<Duration>) {
    assert_eq!(delays.len() as u64, MESSAGES, "{name}: messages were lost");
    delays.sort_unstable();
    let p99 = delays[delays.len() * 99 / 100];
    let silence = inbox.silence;
    assert!(
        silence <= SILENCE && p99 <= P99,
        "{name}: silent for {silence:?}, 99 % within {p99:?}\n{:?}",
        lab.states
    );
}

#[test]
fn a_dark_link_is_not_noticed_by_live_messages() {
    for scheduler in ["edpf", "min-rtt", "redundant", "round-robin"] {
        for seed in 0..3 {
            let options = FlowOptions {
                scheduler: Some(scheduler.parse().expect("a scheduler")),
                ..FlowOptions::new(FlowKind::Packets)
            };
            handover(seed, &options, |lab, inbox| {
                let delays = inbox.delays.iter().map(|(_, d)| *d).collect();
                check(lab, scheduler, inbox, delays);
            });
        }
    }
}

#[test]
fn a_dark_link_is_not_noticed_by_a_live_stream() {
    for scheduler in ["edpf", "min-rtt", "redundant", "round-robin"] {
        for seed in 0..3 {
            let options = FlowOptions {
                scheduler: Some(scheduler.parse().expect("a scheduler")),
                ..FlowOptions::new(FlowKind::Stream)
            };
            handover(seed, &options, |lab, inbox| {
                let (mut delays, start) = (Vec::new(), ms(500));
                for (at, read) in &inbox.progress {
                    for piece in delays.len() as u64..read / 1_000 {
                        let written = marline_sim::Instant::ZERO + start + ms(piece);
                        delays.push(at.since(written));
                    }
                }
                check(lab, scheduler, inbox, delays);
            });
        }
    }
}
