//! Objects over two links of which the better one goes dark in the middle of one: with every scheduler they take
//! no longer than it takes to notice that and to bring them over the other link.

use marline_proto::Config;
use marline_proto::flow::ObjectOptions;
use marline_proto::sched::Choice;
use marline_proto::sched::registry::SCHEDULERS;
use marline_proto::wire::FlowKind;
use marline_sim::Duration;

use super::lab::Units;
use crate::kit::{ms, secs};

/// Two links, and objects that ask for 8 Mb/s.
#[derive(Debug)]
struct Case {
    /// Of the better one.
    link: fn(delay: &str) -> String,
    other: &'static str,
    /// Length of the objects (bytes), and how long one takes over the other link alone.
    len: usize,
    alone: Duration,
    /// Round trip of the other link.
    round_trip: Duration,
}

const CASES: [Case; 2] = [
    Case {
        link: |delay| format!("rate=20mbit,delay={delay},jitter=1ms,queue=100ms"),
        other: "rate=20mbit,delay=25ms,jitter=1ms,queue=100ms",
        len: 30_000,
        alone: ms(40),
        round_trip: ms(50),
    },
    Case {
        link: |delay| format!("rate=20mbit,delay={delay},queue=100ms"),
        other: "rate=10mbit,delay=60ms,queue=200ms",
        len: 200_000,
        alone: ms(225),
        round_trip: ms(120),
    },
];

/// What the dark link is after 3 s.
#[derive(Clone, Copy, Debug)]
enum After {
    AsBefore,
    Dark,
    /// 150 instead of 15 ms long.
    Longer,
}

/// Longest delay of what was written before the darkness was over, and of what was written later.
fn delays(seed: u64, choice: Choice, case: &Case, after: After) -> [Duration; 2] {
    let links = [&(case.link)("15ms"), case.other];
    let config = Config::default();
    let mut units = Units::over(seed, &config, FlowKind::Objects, Some(choice), &links);
    units.run_for(ms(500));
    let every = Duration::from_micros(case.len as u64);
    let mut due = units.now();
    let mut write = |units: &mut Units, time: Duration| {
        let until = units.now() + time;
        while due < until {
            units.run_until(due);
            let sent = units.object(case.len, &ObjectOptions::default());
            sent.expect("there is room");
            due += every;
        }
        units.run_until(until);
    };
    let dark = units.path(0);
    write(&mut units, secs(1) + ms(7 * seed));
    units.lab.dark(dark, true);
    write(&mut units, secs(3));
    let over = units.now();
    match after {
        After::AsBefore => units.lab.dark(dark, false),
        After::Longer => {
            units.lab.rewire(dark, &(case.link)("150ms"), true);
            units.lab.dark(dark, false);
        }
        After::Dark => {}
    }
    write(&mut units, ms(1_500));
    units.finish_within(secs(30));
    units.check_fates();
    assert_eq!(units.whole.len(), units.written.len(), "all arrived");
    [false, true].map(|later| {
        let whole = units
            .whole
            .iter()
            .map(|(n, whole)| (units.written[n].at, whole.at));
        let of = whole.filter(|(written, _)| (*written >= over) == later);
        of.map(|(written, at)| at.since(written))
            .max()
            .unwrap_or_default()
    })
}

/// Silence is noticed within two round trips. The first time it may be taken for a burst, because of
/// acknowledgements that fell with their link and were told by the other one. What was in flight comes behind what
/// the other link carries already, and that link's window grows for a round trip or two.
const ROUND_TRIPS: u32 = 4;

fn check(after: After) {
    let all = SCHEDULERS.iter();
    for entry in all.filter(|entry| entry.kinds.contains(&FlowKind::Objects)) {
        for case in &CASES {
            for seed in 3..7 {
                let most = case.alone + case.round_trip * ROUND_TRIPS;
                // What is lost on the link that came back longer takes another round trip of that.
                let later = match after {
                    After::Longer => most + ms(300),
                    After::AsBefore | After::Dark => most,
                };
                let took = delays(seed, Choice::from(entry), case, after);
                assert!(
                    took[0] <= most && took[1] <= later,
                    "{}, seed {seed}: {took:?} with {case:?}",
                    entry.name
                );
            }
        }
    }
}

#[test]
fn a_link_that_is_dark_for_a_while_delays_no_object_for_long() {
    check(After::AsBefore);
}

#[test]
fn a_link_that_stays_dark_delays_no_object_for_long() {
    check(After::Dark);
}

#[test]
fn a_link_that_comes_back_longer_delays_no_object_for_long() {
    check(After::Longer);
}
