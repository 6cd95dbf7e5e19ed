//! An application that says what rate it needs is told when the links carry less, and when they
//! carry it again.

use marline_base::Rate;
use marline_proto::wire::FlowKind;
use marline_proto::{Config, Event, FlowOptions};
use marline_sim::{Duration, End, Instant};

use crate::kit::{Lab, Messages, Outbox, ms, secs};

const DARK: Duration = secs(5);
const BACK: Duration = secs(9);

/// 10 Mb/s over links of `link`, one of which is dark from [`DARK`] to [`BACK`]; what was told, and
/// when after the start.
fn told(scheduler: &str, seed: u64, link: &str) -> Vec<(Duration, Event)> {
    let mut lab = Lab::new(seed, &Config::default());
    let first = lab.path(link);
    lab.path(link);
    lab.run_for(ms(500));
    let start = lab.now();
    let plan = Messages {
        size: 1_250,
        size_max: 1_250,
        count: 20_000,
        every: ms(1),
    };
    let options = FlowOptions {
        lifetime: Some(ms(300)),
        scheduler: Some(scheduler.parse().expect("a scheduler")),
        ..FlowOptions::new(FlowKind::Packets)
    };
    let flow = lab.open(End::Client, &options, Outbox::messages(start, plan));
    let session = lab.world.session(End::Client);
    session.set_target_rate(flow, Some(Rate::from_mbps(10)));
    for (until, dark) in [(DARK, true), (BACK, false), (secs(16), false)] {
        lab.run_until(start + until, |_| false);
        lab.dark(first, dark);
    }
    let since = |at: Instant| at.since(start);
    lab.targets
        .drain(..)
        .map(|(at, e)| (since(at), e))
        .collect()
}

#[test]
fn a_lost_link_is_told_with_the_rate_that_is_left_and_its_return_too() {
    for scheduler in ["edpf", "hedge"] {
        for seed in 0..3 {
            let told = told(scheduler, seed, "rate=6mbit,delay=20ms,queue=100ms");
            let context = format!("{scheduler}, seed {seed}: {told:?}");
            let [
                (below, Event::BelowTarget { capacity, .. }),
                ..,
                (met, Event::MeetsTarget { .. }),
            ] = told[..]
            else {
                panic!("{context}");
            };
            assert!(below > DARK && below < DARK + secs(1), "{context}");
            assert!(met > BACK && met < BACK + secs(5), "{context}");
            let mbps = capacity.as_mbps_f64();
            // What was acknowledged while the flow was held back, over 150 ms at first: a little
            // more than the 6 Mb/s of the link that is left, if some of it had left before.
            assert!((3.0..7.0).contains(&mbps), "{context}");
        }
    }
}

#[test]
fn links_that_carry_it_without_the_other_are_no_news() {
    for scheduler in ["edpf", "hedge"] {
        let told = told(scheduler, 1, "rate=15mbit,delay=20ms,queue=100ms");
        assert_eq!(told, [], "{scheduler}");
    }
}
