//! Round trips where another path's acknowledgements also tell what arrived.

use marline_proto::Config;
use marline_proto::wire::PathId;
use marline_sim::End;

use crate::kit::{Lab, ms};

/// The first path's acknowledgements take 35 ms, the other's 5 after a longer way there: they
/// always speak first.
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
