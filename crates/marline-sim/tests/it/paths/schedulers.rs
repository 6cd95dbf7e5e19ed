//! What each scheduler does that can be seen from outside.

use marline_proto::wire::{FlowId, FlowKind, PathId};
use marline_proto::{Config, FlowOptions};
use marline_sim::End;

use super::{lab, lab_with};
use crate::kit::{Lab, Messages, Outbox, ms, secs};

fn live(lab: &mut Lab, scheduler: &'static str) -> FlowId {
    let options = FlowOptions {
        scheduler: Some(scheduler.parse().expect("a scheduler")),
        ordered: false,
        ..FlowOptions::new(FlowKind::Packets)
    };
    let plan = Messages {
        size: 1_000,
        size_max: 1_000,
        count: 2_000,
        every: ms(2),
    };
    let outbox = Outbox::messages(lab.now(), plan);
    lab.open(End::Client, &options, outbox)
}

#[test]
fn redundant_sends_everything_on_both() {
    let mut lab = lab(2);
    let flow = live(&mut lab, "redundant");
    lab.finish_within(secs(10));
    assert_eq!(lab.inbox(End::Server, flow).read, 2_000);
    for path in [PathId(0), PathId(1)] {
        let sent = lab.sent_on(End::Client, path);
        assert!(
            sent >= 2_000_000,
            "path {} carried {sent} of 2 000 000 bytes",
            path.0
        );
    }
}

#[test]
fn redundant_hides_the_loss_of_either_path() {
    let link = "rate=20mbit,delay=15ms,loss=5%,queue=100ms";
    let mut lab = lab_with(&Config::default(), &[link, link]);
    let flow = live(&mut lab, "redundant");
    lab.finish_within(secs(10));
    let p99 = lab.inbox(End::Server, flow).quantile(0.99);
    assert!(p99 < ms(25), "99 % within {p99:?}");
}

#[test]
fn round_robin_halves_and_min_rtt_prefers() {
    let links = [
        "rate=20mbit,delay=15ms,queue=100ms",
        "rate=20mbit,delay=30ms,queue=100ms",
    ];
    let share = |scheduler| {
        let mut lab = lab_with(&Config::default(), &links);
        live(&mut lab, scheduler);
        lab.finish_within(secs(10));
        let sent = [0, 1].map(|p| lab.sent_on(End::Client, PathId(p)) as f64);
        sent[1] / (sent[0] + sent[1])
    };
    let (in_turn, preferred) = (share("round-robin"), share("min-rtt"));
    assert!((0.45..0.55).contains(&in_turn), "{in_turn}");
    assert!(preferred < 0.05, "{preferred}");
}

#[test]
fn a_stream_without_credit_is_relieved_of_the_slow_path() {
    // The quick path has up to 150 kB in flight, two bandwidth-delay products. With 300 kB of
    // credit the slow path is used, and what it holds for 300 ms then holds up everything.
    let config = Config {
        flow_window: 300_000,
        ..Config::default()
    };
    let links = [
        "rate=20mbit,delay=15ms,queue=100ms",
        "rate=20mbit,delay=150ms,queue=100ms",
    ];
    let time = |scheduler: &str| {
        let config = Config {
            stream_scheduler: scheduler.parse().expect("a scheduler"),
            ..config.clone()
        };
        let mut lab = lab_with(&config, &links);
        let flow = lab.stream(End::Client, 2_000_000);
        lab.finish_within(secs(120));
        let inbox = lab.inbox(End::Server, flow);
        inbox
            .last_at
            .since(inbox.first_at.expect("something arrived"))
    };
    let plain = time("min-rtt");
    let relieved = time("min-rtt:opportunistic=on:penalise=on");
    let blest = time("blest");
    assert!(relieved < plain, "{relieved:?} instead of {plain:?}");
    assert!(blest < plain, "{blest:?} instead of {plain:?}");
}
