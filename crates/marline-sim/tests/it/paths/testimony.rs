//! Round trips where another path's acknowledgements also tell what arrived.

use marline_proto::sched::Choice;
use marline_proto::wire::{FlowKind, PathId};
use marline_proto::{Config, FlowOptions};
use marline_sim::End;

use crate::kit::{Lab, Messages, Outbox, ms};

/// The first path's acknowledgements take 35 ms, the other's 5 after a longer way there: they always
/// speak first.
#[test]
fn a_path_s_round_trips_are_those_of_its_own_way_back() {
    let mut lab = Lab::new(1, &Config::default());
    let link = |delay: u64| format!("rate=20mbit,delay={delay}ms,queue=200ms");
    let first = lab.path(&link(35));
    lab.path_with(&link(60), &link(5), Default::default());
    let options = FlowOptions {
        scheduler: Some("round-robin".parse::<Choice>().expect("in the registry")),
        ..FlowOptions::new(FlowKind::Packets)
    };
    let plan = Messages {
        size: 1_000,
        size_max: 1_000,
        count: 40_000,
        every: ms(1),
    };
    let outbox = Outbox::messages(lab.now(), plan);
    lab.open(End::Client, &options, outbox);
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
