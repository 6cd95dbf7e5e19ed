//! An application is told when the links carry less than it says it needs, or than a live stream is
//! written at, and when they carry it again.

use marline_base::Rate;
use marline_proto::wire::FlowKind;
use marline_proto::{Config, Event, FlowOptions};
use marline_sim::{Duration, End, Instant};

use crate::kit::{Lab, Messages, Outbox, ms, secs};

const DARK: Duration = secs(5);
const BACK: Duration = secs(9);
const END: Duration = secs(18);

/// 10 Mb/s, evenly.
const STEADY: Messages = Messages {
    size: 1_250,
    size_max: 1_250,
    count: 20_000,
    every: ms(1),
};
/// 10 Mb/s in 25 frames a second, some of them half as long again as others.
const FRAMES: Messages = Messages {
    size: 40_000,
    size_max: 60_000,
    count: 500,
    every: ms(40),
};

fn live(scheduler: &str, lifetime: Duration) -> FlowOptions {
    FlowOptions {
        lifetime: Some(lifetime),
        scheduler: Some(scheduler.parse().expect("a scheduler")),
        ..FlowOptions::new(FlowKind::Packets)
    }
}

/// A flow over two like links.
struct Flow {
    lab: Lab,
    start: Instant,
}

impl Flow {
    fn open(seed: u64, link: &str, options: &FlowOptions, plan: Messages) -> Self {
        Self::with_target(seed, link, options, plan, None)
    }

    /// `target` is what its application says that it needs.
    fn with_target(
        seed: u64,
        link: &str,
        options: &FlowOptions,
        plan: Messages,
        target: Option<Rate>,
    ) -> Self {
        let mut lab = Lab::new(seed, &Config::default());
        lab.path(link);
        lab.path(link);
        lab.run_for(ms(500));
        let start = lab.now();
        let flow = lab.open(End::Client, options, Outbox::messages(start, plan));
        if target.is_some() {
            lab.world.session(End::Client).set_needed_rate(flow, target);
        }
        Self { lab, start }
    }

    /// What was told until so long after the start, and when after it.
    fn told(&mut self, until: Duration) -> Vec<(Duration, Event)> {
        self.lab.run_until(self.start + until, |_| false);
        let since = |at: Instant| at.since(self.start);
        let told = self.lab.targets.drain(..);
        told.map(|(at, event)| (since(at), event)).collect()
    }

    /// The same when the first link is dark from [`DARK`] to [`BACK`].
    fn told_of_a_lost_link(mut self) -> Vec<(Duration, Event)> {
        let first = self.lab.world.client.stats().paths[0].id;
        let mut told = self.told(DARK);
        self.lab.dark(first, true);
        told.extend(self.told(BACK));
        self.lab.dark(first, false);
        told.extend(self.told(END));
        told
    }
}

/// The capacity of the link that is left is told soon, and that the other is back.
fn assert_told(told: &[(Duration, Event)], mbps: std::ops::Range<f64>, context: &str) {
    let context = format!("{context}: {told:?}");
    let [
        (below, Event::BelowNeededRate { capacity, .. }),
        ..,
        (met, Event::MeetsNeededRate { .. }),
    ] = told
    else {
        panic!("{context}");
    };
    assert!(*below > DARK && *below < DARK + secs(1), "{context}");
    assert!(*met > BACK && *met < BACK + secs(6), "{context}");
    assert!(mbps.contains(&capacity.as_mbps_f64()), "{context}");
}

const TIGHT: &str = "rate=6mbit,delay=20ms,queue=100ms";

#[test]
fn a_lost_link_is_told_with_the_rate_that_is_left_and_its_return_too() {
    let said = Some(Rate::from_mbps(10));
    for scheduler in ["edpf", "hedge"] {
        for (seed, target) in (0..3).flat_map(|seed| [(seed, said), (seed, None)]) {
            let flow = Flow::with_target(seed, TIGHT, &live(scheduler, ms(300)), STEADY, target);
            let context = format!("{scheduler}, seed {seed}, {target:?}");
            // What was acknowledged while the flow was held back, over 150 ms at first: a little
            // more than the 6 Mb/s of the link that is left, if some of it had left before.
            assert_told(&flow.told_of_a_lost_link(), 3.0..7.0, &context);
        }
    }
}

/// What waits never comes to much, for it is given up; so are messages that nobody can have
/// acknowledged yet.
#[test]
fn short_lifetimes_hide_nothing() {
    let said = Some(Rate::from_mbps(10));
    for (lifetime, target) in [50, 150].into_iter().flat_map(|l| [(l, said), (l, None)]) {
        for (seed, plan) in (0..2).flat_map(|seed| [(seed, STEADY), (seed, FRAMES)]) {
            let options = live("hedge", ms(lifetime));
            // A frame has left in time over both.
            let link = "rate=8mbit,delay=20ms,queue=100ms";
            let flow = Flow::with_target(seed, link, &options, plan, target);
            let context = format!("{lifetime} ms, {target:?}, seed {seed}, {plan:?}");
            assert_told(&flow.told_of_a_lost_link(), 5.0..9.0, &context);
        }
    }
}

#[test]
fn links_that_carry_it_without_the_other_are_no_news() {
    let said = Some(Rate::from_mbps(10));
    for (scheduler, target) in [
        ("edpf", said),
        ("hedge", said),
        ("edpf", None),
        ("hedge", None),
    ] {
        let link = "rate=15mbit,delay=20ms,queue=100ms";
        let flow = Flow::with_target(1, link, &live(scheduler, ms(300)), STEADY, target);
        assert_eq!(flow.told_of_a_lost_link(), [], "{scheduler}, {target:?}");
    }
}

#[test]
fn a_live_stream_that_gets_what_it_writes_hears_nothing() {
    for (link, lifetimes) in [
        ("rate=10mbit,delay=20ms,queue=100ms", [50, 150, 300]),
        // With losses, a round trip must fit.
        (
            "rate=10mbit,delay=20ms,queue=100ms,loss=2%,burst=4",
            [150, 300, 600],
        ),
    ] {
        for lifetime in lifetimes {
            for (seed, plan) in (0..3).flat_map(|seed| [(seed, STEADY), (seed, FRAMES)]) {
                let mut flow = Flow::open(seed, link, &live("hedge", ms(lifetime)), plan);
                let context = format!("{link}, {lifetime} ms, seed {seed}, {plan:?}");
                assert_eq!(flow.told(END), [], "{context}");
            }
        }
    }
}

/// Whoever is held back until there is room has no rate of its own.
#[test]
fn bulk_hears_nothing_of_what_it_would_like() {
    let plain = live("hedge", ms(300));
    let for_ever = FlowOptions {
        lifetime: None,
        ..plain.clone()
    };
    let bounded = FlowOptions {
        queue: Some(50_000),
        ..plain
    };
    for options in [for_ever, bounded] {
        let mut flow = Flow::open(1, "rate=3mbit,delay=20ms,queue=100ms", &options, STEADY);
        assert_eq!(flow.told(secs(8)), [], "{options:?}");
    }
    let mut lab = Lab::new(1, &Config::default());
    lab.path(TIGHT);
    lab.stream(End::Client, 10_000_000);
    lab.run_for(secs(8));
    assert_eq!(lab.targets, []);
}
