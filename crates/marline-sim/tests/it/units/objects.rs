//! Every object arrives once, byte for byte, or is cancelled for a reason.

use marline_proto::flow::{Fate, ObjectOptions};
use marline_proto::sched::Choice;
use marline_proto::sched::registry::SCHEDULERS;
use marline_proto::wire::FlowKind;
use marline_proto::{Config, FlowOptions};
use marline_sim::{End, Rng};

use super::lab::{Units, bytes};
use crate::kit::{Lab, Messages, Outbox, ms, secs};

const BAD: &str = "rate=8mbit,delay=15ms,jitter=8ms,overtake=yes,loss=5%,dup=2%,queue=100ms";
const WORSE: &str = "rate=4mbit,delay=40ms,loss=15%,queue=200ms,outage=random:1s+200ms";

fn objects(seed: u64, scheduler: Option<Choice>, links: &[&str]) -> Units {
    Units::over(
        seed,
        &Config::default(),
        FlowKind::Objects,
        scheduler,
        links,
    )
}

#[test]
fn they_arrive_once_with_every_scheduler() {
    let fit = SCHEDULERS
        .iter()
        .filter(|entry| entry.kinds.contains(&FlowKind::Objects));
    let mut tried = 0;
    for entry in fit {
        let mut units = objects(1, Some(Choice::from(entry)), &[BAD, WORSE]);
        let mut rng = Rng::new(7).stream(entry.name);
        for _ in 0..60 {
            let options = ObjectOptions {
                urgency: rng.below(8) as u8,
                incremental: rng.chance(0.3),
                ..ObjectOptions::default()
            };
            let len = [0, 1, 900, 5_000, 60_000][rng.below(5) as usize];
            units.object(len, &options).expect("there is room");
            units.run_for(ms(10));
        }
        units.finish_within(secs(60));
        units.check_fates();
        assert_eq!(units.whole.len(), 60, "{}", entry.name);
        tried += 1;
    }
    assert!(tried >= 10, "only {tried} schedulers serve objects");
}

#[test]
fn they_arrive_while_paths_die_and_acknowledgements_are_lost() {
    for seed in 0..6 {
        let mut units = objects(seed, None, &[BAD, WORSE, "rate=10mbit,delay=30ms"]);
        let mut rng = Rng::new(seed);
        for n in 0..200_u64 {
            let len = 1 + rng.below(30_000) as usize;
            units
                .object(len, &ObjectOptions::default())
                .expect("there is room");
            units.run_for(ms(5));
            let path = units.path(n % 3);
            match n {
                // Acknowledgements of one path are lost, another dies for good, a third for a
                // while.
                30 => units.lab.world.set_dark(path, false, true),
                60 => units.lab.dark(path, true),
                91 => units.lab.dark(path, true),
                121 => units.lab.dark(path, false),
                _ => {}
            }
        }
        units.finish_within(secs(60));
        units.check_fates();
        assert_eq!(units.whole.len(), 200);
    }
}

#[test]
fn small_ones_do_not_wait_for_each_other() {
    // 2000 objects a second; one in fifty loses its only packet and takes a round trip more.
    let mut units = objects(3, None, &["rate=20mbit,delay=25ms,loss=2%,queue=300ms"]);
    for _ in 0..4_000 {
        let sent = units.object(400, &ObjectOptions::default());
        sent.expect("there is room");
        units.run_for(ms(1) / 2);
    }
    units.finish_within(secs(10));
    units.check_fates();
    // The first half second is slow start's. In order, 2 % of losses would make nearly every object
    // wait for an earlier one's retransmission.
    let quantile = |q| units.quantile(1_000.., q);
    let (half, most) = (quantile(0.5), quantile(0.95));
    assert!(half < ms(28), "{half:?}");
    assert!(most < ms(35), "{most:?}");
    assert!(quantile(1.0) > ms(70), "something was lost");
}

#[test]
fn an_object_larger_than_all_windows_arrives_in_pieces() {
    let config = Config {
        flow_window: 200_000,
        session_window: 300_000,
        send_buffer: 150_000,
        ..Config::default()
    };
    let link = "rate=50mbit,delay=10ms,loss=1%";
    let mut units = Units::over(5, &config, FlowKind::Objects, None, &[link]);
    let now = units.now();
    let (flow, total) = (units.flow, 2_000_000);
    let options = ObjectOptions {
        size: Some(total),
        ..ObjectOptions::default()
    };
    let opened = units.lab.world.client.open_object(now, flow, &options);
    let object = opened.expect("there is room");
    let mut written = 0;
    while written < total {
        let len = (total - written).min(20_000);
        let data = bytes(object, written, len as usize);
        let now = units.now();
        let client = &mut units.lab.world.client;
        match client.write_object(now, flow, object, &data, written + len == total) {
            Ok(()) => written += len,
            Err(_) => units.run_for(ms(1)),
        }
        assert!(units.now() < secs_in(20), "{units:?}");
    }
    units.run_for(secs(2));
    assert_eq!(units.read.get(&object), Some(&(total as usize)));
    assert_eq!(units.settled[&object].0, Fate::OnTime);
}

fn secs_in(n: u64) -> marline_sim::Instant {
    marline_sim::Instant::ZERO + secs(n)
}

#[test]
fn a_reader_that_pauses_holds_the_writer_and_nothing_is_lost() {
    let config = Config {
        flow_window: 60_000,
        ..Config::default()
    };
    let mut units = Units::over(
        2,
        &config,
        FlowKind::Objects,
        None,
        &["rate=20mbit,delay=5ms"],
    );
    units.paused = true;
    for _ in 0..100 {
        units
            .object(5_000, &ObjectOptions::default())
            .expect("there is room");
    }
    units.run_for(secs(2));
    let unread = units.lab.world.server.stats().flows[0].unread;
    assert!((50_000..=60_000).contains(&unread), "{unread} bytes unread");
    units.paused = false;
    units.finish_within(secs(5));
    units.check_fates();
    assert_eq!(units.whole.len(), 100);
}

#[test]
fn either_side_gives_an_object_up_and_both_know_why() {
    let mut units = objects(4, None, &[BAD]);
    let slow = ObjectOptions {
        incremental: true,
        ..ObjectOptions::default()
    };
    for _ in 0..4 {
        units.object(300_000, &slow).expect("there is room");
    }
    units.run_for(ms(250));
    let (now, flow) = (units.now(), units.flow);
    units.lab.world.client.cancel_object(now, flow, 1, 77);
    units.lab.world.server.refuse_object(now, flow, 2, 88);
    units.finish_within(secs(30));
    let fates: Vec<Fate> = units.settled.values().map(|(fate, _)| *fate).collect();
    let expected = [
        Fate::OnTime,
        Fate::Cancelled(77),
        Fate::Refused(88),
        Fate::OnTime,
    ];
    assert_eq!(fates, expected);
    // Who refuses needs not be told.
    assert_eq!(units.gone.get(&1), Some(&Fate::Cancelled(77)));
    assert_eq!(units.gone.len(), 1);
    assert!(units.whole.contains_key(&0) && units.whole.contains_key(&3));
}

#[test]
fn urgency_orders_a_backlog_and_can_change() {
    let mut units = objects(6, None, &["rate=8mbit,delay=10ms,queue=300ms"]);
    let with = |urgency| ObjectOptions {
        urgency,
        ..ObjectOptions::default()
    };
    for urgency in [5, 5, 5, 1] {
        units
            .object(100_000, &with(urgency))
            .expect("there is room");
    }
    let flow = units.flow;
    let changed = units.lab.world.client.reprioritise(flow, 2, 0, false);
    changed.expect("it is under way");
    units.finish_within(secs(5));
    let at = |number| units.whole[&number].at;
    assert!(
        at(2) < at(3) && at(3) < at(0) && at(0) < at(1),
        "{:?}",
        units.whole
    );
}

#[test]
fn an_idle_class_never_starves() {
    // Urgent objects come faster than the link carries them; the other one has 16 symbols for
    // each of its own, and then it is there.
    let mut units = objects(8, None, &["rate=8mbit,delay=10ms,queue=100ms"]);
    let with = |urgency| ObjectOptions {
        urgency,
        ..ObjectOptions::default()
    };
    units.object(9_000, &with(0)).expect("there is room");
    let poor = units.object(9_000, &with(7)).expect("there is room");
    for _ in 0..400 {
        units.object(9_000, &with(0)).expect("there is room");
        units.run_for(ms(3));
    }
    // 8 symbols of 16 each of 1200 bytes at 8 Mb/s: 154 ms, and what was before it.
    let delay = units.whole[&poor].at.since(units.written[&poor].at);
    assert!(delay < ms(260), "{delay:?}");
    assert!(units.whole.len() < 400, "the link is overloaded");
}

/// The memory of a session may be less than one object takes.
#[test]
fn an_object_alone_is_sent_however_little_memory_there_is() {
    let config = Config {
        session_window: 1_024,
        flow_window: 3_000,
        send_buffer: 10_000,
        ..Config::default()
    };
    let mut lab = Lab::new(6, &config);
    lab.path("rate=2mbit,delay=10ms");
    let plan = Messages {
        size: 2_000,
        size_max: 2_000,
        count: 10,
        every: ms(1),
    };
    let outbox = Outbox::objects(lab.now(), plan);
    let flow = lab.open(End::Client, &FlowOptions::new(FlowKind::Objects), outbox);
    lab.finish_within(secs(20));
    assert!(lab.outbox(End::Client, flow).is_written());
}
