//! Flows beside each other, odd messages, and limits.

use marline_base::Duration;
use marline_proto::sched::registry::SCHEDULERS;
use marline_proto::wire::{FlowKind, PathId};
use marline_proto::{Config, FlowOptions, OpenError};
use marline_sim::End;

use super::{LINK, lab, lab_with};
use crate::kit::{Lab, Messages, Outbox, ms, secs};

#[test]
fn two_equal_streams_share_alike() {
    let mut lab = lab(2);
    let flows = [0, 1].map(|_| lab.stream(End::Client, 50_000_000));
    lab.run_for(secs(6));
    let read = flows.map(|flow| lab.inbox(End::Server, flow).read as f64);
    let ratio = read[0] / read[1];
    assert!((0.9..1.1).contains(&ratio), "{read:?}");
}

#[test]
fn an_urgent_flow_keeps_its_delay_beside_a_bulk_stream() {
    let mut lab = lab(2);
    lab.stream(End::Client, 50_000_000);
    let options = FlowOptions {
        priority: 0,
        ..FlowOptions::new(FlowKind::Packets)
    };
    lab.run_for(secs(1));
    let plan = Messages {
        size: 300,
        size_max: 300,
        count: 1_500,
        every: ms(2),
    };
    let outbox = Outbox::messages(lab.now(), plan);
    let flow = lab.open(End::Client, &options, outbox);
    lab.run_for(ms(3_500));
    let inbox = lab.inbox(End::Server, flow);
    assert_eq!(inbox.read, 1_500);
    // 15 ms away; what the bulk stream keeps in the links' queues cannot be jumped.
    let p95 = inbox.quantile(0.95);
    assert!(p95 < ms(50), "95 % within {p95:?}\n{lab}");
}

#[test]
fn a_priority_that_changes_holds_for_what_waits_already() {
    let mut lab = lab(2);
    let flows = [0, 1].map(|_| lab.stream(End::Client, 50_000_000));
    let read = |lab: &Lab| flows.map(|flow| lab.inbox(End::Server, flow).read as f64);
    lab.run_for(secs(2));
    let mut gains = |priority| {
        let client = &mut lab.world.client;
        client.set_priority(flows[1], priority).expect("in range");
        // What has left is on its way.
        lab.run_for(ms(500));
        let before = read(&lab);
        lab.run_for(secs(2));
        let after = read(&lab);
        [after[0] - before[0], after[1] - before[1]]
    };
    let urgent = gains(1);
    assert!(urgent[1] > 20.0 * urgent[0], "{urgent:?}");
    let equal = gains(3);
    let ratio = equal[0] / equal[1];
    assert!((0.8..1.25).contains(&ratio), "{equal:?}");
    let wrong = lab.world.client.set_priority(flows[1], 8);
    assert_eq!(wrong, Err(OpenError::Priority(8)));
}

/// What other flows send, in bytes, while the last of 30 kB of the least urgent flow are not there.
fn passed_by(scheduler: &str, kind: FlowKind) -> u64 {
    let mut lab = lab(2);
    let of = |priority| FlowOptions {
        priority,
        scheduler: Some(scheduler.parse().expect("it is in the registry")),
        ..FlowOptions::new(kind)
    };
    // As fast as the flow takes it, or three times what the links carry.
    let outbox = |lab: &Lab, bytes: u64| match kind {
        FlowKind::Stream => Outbox::stream(bytes),
        _ => {
            let plan = Messages {
                size: 1_000,
                size_max: 1_000,
                count: bytes / 1_000,
                every: Duration::from_micros(60),
            };
            Outbox::messages(lab.now(), plan)
        }
    };
    let endless = outbox(&lab, 500_000_000);
    let urgent = lab.open(End::Client, &of(0), endless);
    lab.run_for(secs(1));
    let read = |lab: &Lab, flow| match lab.flows(End::Server).contains(&flow) {
        true => lab.inbox(End::Server, flow).read,
        false => 0,
    };
    let unit = if kind == FlowKind::Stream { 1 } else { 1_000 };
    let before = read(&lab, urgent) * unit;
    let small = outbox(&lab, 30_000);
    let poor = lab.open(End::Client, &of(7), small);
    let done = |lab: &mut Lab| read(lab, poor) * unit >= 30_000;
    let limit = lab.now() + secs(5);
    lab.run_until(limit, |lab| done(lab));
    assert!(done(&mut lab), "{scheduler}: it starves\n{lab}");
    read(&lab, urgent) * unit - before
}

#[test]
fn the_least_urgent_flow_never_starves() {
    // One turn of 3000 bytes in each round of 32: ten of them and two rounds more, and what was
    // under way.
    let bound = 12 * 32 * 3_000 + 1_500_000;
    for entry in SCHEDULERS {
        for kind in [FlowKind::Stream, FlowKind::Packets] {
            if entry.kinds.contains(&kind) {
                let passed = passed_by(entry.name, kind);
                assert!(passed < bound, "{} {}: {passed}", entry.name, kind.name());
            }
        }
    }
}

#[test]
fn those_who_wait_have_their_turns_alike() {
    const TURN: u64 = 3_000;
    let mut lab = lab(2);
    let of = |priority| FlowOptions {
        priority,
        ..FlowOptions::new(FlowKind::Stream)
    };
    let urgent = lab.open(End::Client, &of(0), Outbox::stream(500_000_000));
    lab.run_for(secs(1));
    let before = lab.inbox(End::Server, urgent).read;
    let poor = [4, 5, 6, 7].map(|priority| {
        let three_turns = Outbox::stream(3 * TURN);
        lab.open(End::Client, &of(priority), three_turns)
    });
    let read = |lab: &Lab, flow| match lab.flows(End::Server).contains(&flow) {
        true => lab.inbox(End::Server, flow).read,
        false => 0,
    };
    // Nobody has had all before everybody has had something.
    let limit = lab.now() + secs(5);
    lab.run_until(limit, |lab| {
        poor.iter().any(|flow| read(lab, *flow) >= 3 * TURN)
    });
    assert!(poor.iter().all(|flow| read(&lab, *flow) > 0), "{lab}");
    lab.run_until(limit, |lab| {
        poor.iter().all(|flow| read(lab, *flow) >= 3 * TURN)
    });
    let passed = lab.inbox(End::Server, urgent).read - before;
    let bound = (4 * 3 + 2) * 32 * TURN + 1_500_000;
    assert!(passed < bound, "{passed}");
}

#[test]
fn messages_of_no_and_of_all_lengths_arrive_whole() {
    for (size, size_max, count) in [(0, 0, 500), (65_535, 65_535, 60), (0, 65_535, 200)] {
        for ordered in [true, false] {
            let lossy = format!("{LINK},loss=2%");
            let mut lab = lab_with(&Config::default(), &[&lossy, &lossy]);
            let options = FlowOptions {
                ordered,
                ..FlowOptions::new(FlowKind::Packets)
            };
            let plan = Messages {
                size,
                size_max,
                count,
                every: ms(1),
            };
            let outbox = Outbox::messages(lab.now(), plan);
            let flow = lab.open(End::Client, &options, outbox);
            lab.finish_within(secs(20));
            assert_eq!(lab.inbox(End::Server, flow).read, count);
        }
    }
}

#[test]
fn flows_are_limited_and_the_limit_moves_on() {
    let config = Config {
        max_flows: 8,
        ..Config::default()
    };
    let mut lab = lab_with(&config, &[LINK]);
    let options = FlowOptions::new(FlowKind::Stream);
    for round in 0..5 {
        for _ in 0..8 {
            lab.open(End::Client, &options, Outbox::stream(2_000));
        }
        let more = lab.world.client.open_flow(&options);
        assert_eq!(more, Err(OpenError::TooManyFlows), "round {round}");
        lab.run_for(ms(300));
    }
    lab.finish_within(secs(1));
    assert_eq!(lab.flows_closed.len(), 80, "each flow closed at each end");
}

#[test]
fn credit_runs_out_and_comes_back() {
    let config = Config {
        flow_window: 20_000,
        session_window: 30_000,
        ..Config::default()
    };
    let mut lab = lab_with(&config, &[LINK, LINK]);
    let flows = [0, 1].map(|_| lab.stream(End::Client, 200_000));
    lab.run_until(lab.now() + ms(1), |lab| !lab.flows(End::Server).is_empty());
    lab.run_for(ms(60));
    for flow in flows {
        if let Some(inbox) = lab.inbox_mut(End::Server, flow) {
            inbox.paused = true;
        }
    }
    lab.run_for(secs(3));
    let stats = lab.world.server.stats();
    let unread: u64 = stats.flows.iter().map(|f| f.unread).sum();
    // Two windows, which are as small as reserves here.
    assert!((1..=40_000).contains(&unread), "{unread} bytes unread");
    let sent = lab.sent_on(End::Client, PathId(0));
    lab.run_for(secs(3));
    let more = lab.sent_on(End::Client, PathId(0)) - sent;
    assert!(more < 1_000, "{more} bytes sent without credit");
    for flow in flows {
        if let Some(inbox) = lab.inbox_mut(End::Server, flow) {
            inbox.paused = false;
        }
    }
    lab.finish_within(secs(10));
}
