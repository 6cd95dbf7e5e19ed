//! Round trips where another path's acknowledgements also tell what arrived.

use marline_proto::wire::{FlowKind, PathId};
use marline_proto::{Config, FlowOptions};
use marline_sim::End;

use crate::kit::{Lab, Messages, Outbox, ms, secs};

/// The first path's acknowledgements take 35 ms, the other's 5 after a longer way there: they always
/// speak first.
#[test]
fn a_path_s_round_trips_are_those_of_its_own_way_back() {
    let config = Config {
        packets_scheduler: "round-robin".parse().expect("in the registry"),
        ..Config::default()
    };
    let mut lab = Lab::new(1, &config);
    let link = |delay: u64| format!("rate=20mbit,delay={delay}ms,queue=200ms");
    let first = lab.path(&link(35));
    lab.path_with(&link(60), &link(5), Default::default());
    lab.messages(End::Client, 1_000, ms(1), 40_000);
    let mut round_trip = |after, path: PathId| {
        lab.run_for(after);
        let stats = lab.world.client.stats();
        let path = stats.paths.iter().find(|p| p.id == path);
        let told = path.expect("it is there").clone();
        // The next is asked of the longer way.
        lab.rewire(first, &link(39), false);
        (told.min_rtt, told.srtt)
    };
    let (least, smoothed) = round_trip(ms(3_000), first);
    assert!(
        least >= ms(70) && smoothed < ms(72),
        "{least:?} {smoothed:?}"
    );
    let (_, smoothed) = round_trip(ms(500), first);
    assert!(ms(77) < smoothed && smoothed < ms(80), "{smoothed:?}");
}

/// What a long path lost waits for the news of it, which goes back over the short one. Every third of these is lost, and
/// the path's own way back takes 70 ms longer: told once, a third of the losses would be heard of that much later.
#[test]
fn a_gap_on_a_long_path_is_known_although_the_news_of_it_is_lost() {
    let config = Config {
        packets_scheduler: "round-robin".parse().expect("in the registry"),
        ..Config::default()
    };
    let mut lab = Lab::new(3, &config);
    lab.path_with(
        "rate=40mbit,delay=10ms",
        "rate=40mbit,delay=10ms,loss=33%",
        Default::default(),
    );
    lab.path_with(
        "rate=40mbit,delay=80ms,loss=1%",
        "rate=40mbit,delay=80ms",
        Default::default(),
    );
    lab.run_for(secs(1));
    let plan = Messages {
        size: 1_000,
        size_max: 1_000,
        count: 20_000,
        every: ms(1),
    };
    let options = FlowOptions::new(FlowKind::Packets);
    let outbox = Outbox::messages(lab.now(), plan);
    let flow = lab.open(End::Client, &options, outbox);
    lab.finish_within(secs(40));
    // Each loss holds up some 20 ms of what follows it, or, when the news are late, 80: one in ten messages, or more.
    let late = lab.inbox(End::Server, flow).quantile(0.95);
    assert!(late < ms(125), "{late:?}");
}
