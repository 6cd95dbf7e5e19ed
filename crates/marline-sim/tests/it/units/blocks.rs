//! Every block's fate is told right, on both sides.

use marline_proto::congestion::Congestion;
use marline_proto::flow::Fate;
use marline_proto::sched::Choice;
use marline_proto::sched::registry::SCHEDULERS;
use marline_proto::wire::{FlowId, FlowKind};
use marline_proto::{Config, FlowOptions};
use marline_sim::End;

use super::lab::Units;
use crate::kit::{Lab, Messages, Outbox, ms, secs};

/// A scheduler that promises nothing, and so refuses nothing.
fn plain() -> Option<Choice> {
    "edpf".parse().ok()
}

fn blocks(seed: u64, scheduler: Option<Choice>, links: &[&str]) -> Units {
    let mut units = Units::over(seed, &Config::default(), FlowKind::Blocks, scheduler, links);
    // It takes some packets to know the other's clock and what the links carry.
    for _ in 0..40 {
        units.block(6_000, None).expect("there is room");
        units.run_for(ms(15));
    }
    units
}

/// The clocks of both ends are compared over the smallest round trip, whose halves differ by what a
/// full and an empty packet take to be sent, and by what jitter hides.
const DOUBT: marline_sim::Duration = ms(2);

/// What was said of the blocks is true.
fn check_truth(units: &Units) -> [usize; 3] {
    let mut counts = [0; 3];
    for (number, written) in &units.written {
        let (fate, after) = units.settled[number];
        let Some(deadline) = written.deadline else {
            continue;
        };
        let delay = units.whole.get(number).map(|w| w.at.since(written.at));
        match (fate, delay) {
            (Fate::OnTime, Some(delay)) => {
                assert!(delay <= deadline + DOUBT, "{number} took {delay:?}");
                counts[0] += 1;
            }
            (Fate::Late, Some(delay)) => {
                assert!(delay + DOUBT >= deadline, "{number} took {delay:?}");
                counts[1] += 1;
            }
            (Fate::Lost, None) => {
                assert!(after >= deadline, "{number} was given up after {after:?}");
                counts[2] += 1;
            }
            other => panic!("{number}: {other:?}"),
        }
        if let Some(delay) = delay {
            let error = delay.abs_diff(after);
            assert!(error <= DOUBT, "{number} took {delay:?}, told {after:?}");
        }
    }
    counts
}

#[test]
fn fates_are_true_with_every_scheduler() {
    let links = [
        "rate=20mbit,delay=20ms,jitter=2ms,loss=3%,queue=100ms",
        "rate=10mbit,delay=30ms,loss=1%,queue=100ms",
    ];
    let fit = SCHEDULERS
        .iter()
        .filter(|entry| entry.kinds.contains(&FlowKind::Blocks));
    let (mut tried, mut all) = (0, [0; 3]);
    for entry in fit {
        // What is refused has no fate.
        let refuses = entry.options.iter().any(|option| option.key == "refuse");
        let choice = match refuses {
            true => format!("{}:refuse=off", entry.name)
                .parse()
                .expect("its option"),
            false => Choice::from(entry),
        };
        let mut units = blocks(1, Some(choice), &links);
        for n in 0..80 {
            units
                .block(20_000 + 500 * n, Some(ms(60)))
                .expect("there is room");
            units.run_for(ms(25));
        }
        units.finish_within(secs(10));
        units.check_fates();
        let counts = check_truth(&units);
        assert!(counts[0] >= 20, "{}: {counts:?}", entry.name);
        all = core::array::from_fn(|i| all[i] + counts[i]);
        tried += 1;
    }
    assert!(tried >= 10, "only {tried} schedulers serve blocks");
    assert!(all.iter().all(|n| *n > 0), "{all:?}");
}

#[test]
fn fates_are_true_while_paths_die_and_acknowledgements_are_lost() {
    let mut all = [0; 3];
    for seed in 0..6 {
        let links = [
            "rate=20mbit,delay=20ms,loss=2%,queue=100ms",
            "rate=20mbit,delay=20ms,jitter=2ms,overtake=yes,queue=100ms",
        ];
        let mut units = blocks(seed, plain(), &links);
        for n in 0..150_u64 {
            units.block(30_000, Some(ms(50))).expect("there is room");
            units.run_for(ms(20));
            match n {
                20 => units.lab.world.set_dark(units.path(0), false, true),
                40 => units.lab.dark(units.path(1), true),
                60 => units.lab.dark(units.path(0), true),
                75 => units.lab.dark(units.path(1), false),
                90 => units.lab.dark(units.path(0), false),
                _ => {}
            }
        }
        units.finish_within(secs(30));
        units.check_fates();
        let counts = check_truth(&units);
        all = core::array::from_fn(|i| all[i] + counts[i]);
        let [sent, received] = units.counters();
        let whole = units.whole.len() as u64;
        // The flow is closed, and its counters with it.
        assert_eq!((sent.acked, received.delivered), (0, 0));
        assert!(whole > 50);
    }
    assert!(all[0] > 300 && all[2] > 60, "{all:?}");
}

#[test]
fn a_sender_drops_at_the_deadline_what_it_did_not_send() {
    // A quarter more than the link carries for two seconds, then half of it: what was too much must
    // not be in the way of what follows.
    let mut units = blocks(2, plain(), &["rate=10mbit,delay=10ms,queue=200ms"]);
    for _ in 0..60 {
        let deadline = Some(ms(120));
        units.block(50_000, deadline).expect("there is room");
        units.run_for(ms(33));
    }
    // Until both ends have heard of the last of them.
    units.run_for(ms(300));
    let [sent, received] = units.counters();
    assert!(sent.lost > 10 && sent.acked > 45, "{sent:?}");
    assert_eq!(received.missing, sent.lost);
    for _ in 0..10 {
        let deadline = Some(ms(120));
        units.block(50_000, deadline).expect("there is room");
        units.run_for(ms(80));
    }
    units.finish_within(secs(5));
    units.check_fates();
    check_truth(&units);
    let in_time = (100..110).filter(|n| units.settled[n].0 == Fate::OnTime);
    assert!(in_time.count() >= 8, "{:?}", units.settled);
}

#[test]
fn late_blocks_are_dropped_if_the_reader_wants_that() {
    // 20 kB take 16 ms on this link; what is under way at the deadline still arrives.
    let config = Config {
        congestion: Congestion::none(),
        ..Config::default()
    };
    for drop in [false, true] {
        let link = "rate=10mbit,delay=20ms,queue=400ms";
        let mut units = Units::over(3, &config, FlowKind::Blocks, None, &[link]);
        units.block(1_000, None).expect("there is room");
        units.run_for(ms(300));
        let flow = units.flow;
        units.lab.world.server.drop_late_blocks(flow, drop);
        units.block(20_000, Some(ms(30))).expect("there is room");
        units.run_for(secs(1));
        assert_eq!(units.settled[&1].0, Fate::Late);
        assert_eq!(units.whole.contains_key(&1), !drop);
        let [sent, received] = units.counters();
        assert_eq!((sent.acked_late, received.late), (1, 1));
    }
}

#[test]
fn a_block_can_be_cancelled() {
    let mut units = blocks(4, plain(), &["rate=2mbit,delay=10ms"]);
    let number = units.block(100_000, None).expect("there is room");
    units.run_for(ms(50));
    let (now, flow) = (units.now(), units.flow);
    units.lab.world.client.cancel_block(now, flow, number, 9);
    units.run_for(ms(200));
    assert_eq!(units.settled[&number].0, Fate::Cancelled(9));
    assert_eq!(units.gone[&number], Fate::Cancelled(9));
    units.finish_within(secs(2));
}

/// Blocks of these sizes, one a millisecond, until all are written and settled.
fn written(
    seed: u64,
    ends: [Config; 2],
    link: &str,
    [size, size_max]: [usize; 2],
    count: u64,
) -> (Lab, FlowId) {
    let [client, server] = ends;
    let mut lab = Lab::with(seed, client, server);
    lab.path(link);
    let options = FlowOptions {
        scheduler: plain(),
        ..FlowOptions::new(FlowKind::Blocks)
    };
    let plan = Messages {
        size,
        size_max,
        count,
        every: ms(1),
    };
    let outbox = Outbox::blocks(lab.now(), plan, None);
    let flow = lab.open(End::Client, &options, outbox);
    lab.finish_within(secs(20));
    (lab, flow)
}

#[test]
fn blocks_that_found_no_room_are_written_when_there_is_some() {
    let narrow = Config {
        send_buffer: 100_000,
        ..Config::default()
    };
    let ends = [narrow, Config::default()];
    let (lab, flow) = written(5, ends, "rate=2mbit,delay=10ms", [30_000, 70_000], 20);
    let outbox = lab.outbox(End::Client, flow);
    assert!(outbox.refused > 10 && outbox.is_written(), "{outbox:?}");
}

/// Credit comes back in steps; a block that needs all of it must not wait for the last step.
#[test]
fn the_longest_block_is_sent_whatever_was_sent_before() {
    let receiver = Config {
        flow_window: 3_000,
        ..Config::default()
    };
    // Some are longer than the receiver takes, and are refused.
    let ends = [Config::default(), receiver];
    let (lab, flow) = written(7, ends, "rate=8mbit,delay=10ms", [1_000, 2_700], 400);
    assert!(lab.inbox(End::Server, flow).read > 200, "{lab}");
}
