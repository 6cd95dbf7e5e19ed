//! Flows beside each other, odd messages, and limits.

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
    assert!((1..=30_000).contains(&unread), "{unread} bytes unread");
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
