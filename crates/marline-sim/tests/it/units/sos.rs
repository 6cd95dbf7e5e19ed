//! What SOS promises of whole sessions, each with a test that fails if it is silently off.

use marline_proto::Config;
use marline_proto::flow::ObjectOptions;
use marline_proto::wire::FlowKind;
use marline_sim::Duration;

use super::lab::Units;
use crate::kit::{ms, secs};

fn objects(seed: u64, scheduler: &str, links: &[&str]) -> Units {
    let scheduler = Some(scheduler.parse().expect("in the registry"));
    let config = Config::default();
    Units::over(seed, &config, FlowKind::Objects, scheduler, links)
}

/// Repair symbols that the writer sent.
fn repairs(units: &Units) -> u64 {
    let client = &units.lab.world.client;
    client
        .flow_counters(units.flow)
        .map_or(0, |counters| counters.repair_symbols)
}

/// Objects of `len` bytes every so often until all are settled; returns how many repair symbols
/// left before the last was.
fn stream_of(units: &mut Units, count: u64, len: usize, every: Duration) -> u64 {
    for _ in 0..count {
        let sent = units.object(len, &ObjectOptions::default());
        sent.expect("there is room");
        units.run_for(every);
    }
    let repaired = repairs(units);
    units.finish_within(secs(30));
    units.check_fates();
    assert_eq!(units.whole.len() as u64, count);
    repaired
}

/// Objects of 24 kB over two lossy links: quantile of the delay, and repair symbols.
fn over_loss(seed: u64, scheduler: &str) -> (Duration, u64) {
    let link = "rate=20mbit,delay=40ms,loss=4%,queue=200ms";
    let mut units = objects(seed, scheduler, &[link, link]);
    let repairs = stream_of(&mut units, 150, 24_000, ms(40));
    (units.quantile(20..150, 0.8), repairs)
}

#[test]
fn coded_symbols_spare_objects_the_round_trip_of_a_loss() {
    for seed in 0..2 {
        // More than half of the objects lose a packet: 0.96^20.
        let (plain, none) = over_loss(seed, "sos");
        assert!(plain > ms(100) && none == 0, "{plain:?} {none}");
        let (coded, some) = over_loss(seed, "sos-rateless");
        assert!(coded < ms(75) && some > 0, "{coded:?} {some}");
    }
}

#[test]
fn repair_symbols_use_the_luck_of_paths() {
    let shaky = "service=1ms,service-sd=4ms,service-dist=gamma,delay=10ms,queue=600kB";
    let steady = "service=2ms,delay=10ms,queue=600kB";
    let run = |scheduler: &str| {
        let mut units = objects(4, scheduler, &[shaky, steady]);
        let repairs = stream_of(&mut units, 120, 24_000, ms(60));
        let delays = units
            .whole
            .range(20..)
            .map(|(n, w)| w.at.since(units.written[n].at));
        let sum: Duration = delays.sum();
        (sum / 100, repairs)
    };
    let (plain, none) = run("sos-fec:gamma=1");
    let (lucky, some) = run("sos-fec:gamma=0");
    assert!(none == 0 && some > 100, "{none} {some}");
    assert!(lucky < plain, "{lucky:?} {plain:?}");
}

#[test]
fn coded_symbols_do_not_delay_the_objects_that_follow() {
    let links = [
        "rate=20mbit,delay=12ms,jitter=4ms,queue=200ms",
        "rate=15mbit,delay=25ms,jitter=4ms,queue=200ms",
    ];
    for (seed, len) in [(1, 30_000), (2, 60_000), (3, 90_000), (4, 110_000)] {
        let run = |scheduler| {
            let mut units = objects(seed, scheduler, &links);
            stream_of(&mut units, 200, len, ms(40));
            units.quantile(40..200, 0.9)
        };
        let (plain, coded) = (run("sos"), run("sos-rateless"));
        assert!(coded <= plain.mul_f64(1.03), "{len}: {coded:?}, {plain:?}");
    }
}

#[test]
fn a_farther_and_jittery_path_is_left_alone_by_what_the_near_one_brings_sooner() {
    // The near path alone takes 36 ms; the other has its first symbol there in 40, its last in 60.
    let links = [
        "rate=20mbit,delay=12ms,queue=200ms",
        "rate=15mbit,delay=40ms,jitter=10ms,queue=200ms",
    ];
    for scheduler in ["sos", "sos-rateless"] {
        for seed in 1..3 {
            let mut units = objects(seed, scheduler, &links);
            stream_of(&mut units, 200, 60_000, ms(40));
            let late = units.quantile(40..200, 0.9);
            assert!(late < ms(38), "{scheduler}: {late:?}");
        }
    }
}

/// Delay of a small urgent object that comes while many large ones wait.
fn urgent(scheduler: &str, urgency: u8) -> Duration {
    let links = [
        "rate=10mbit,delay=10ms,queue=200ms",
        "rate=6mbit,delay=20ms,queue=200ms",
    ];
    let mut units = objects(2, scheduler, &links);
    let bulk = ObjectOptions {
        urgency: 5,
        ..ObjectOptions::default()
    };
    for _ in 0..20 {
        units.object(200_000, &bulk).expect("there is room");
    }
    units.run_for(ms(500));
    let options = ObjectOptions {
        urgency,
        ..ObjectOptions::default()
    };
    let number = units.object(10_000, &options).expect("there is room");
    units.finish_within(secs(30));
    units.check_fates();
    units.whole[&number].at.since(units.written[&number].at)
}

#[test]
fn urgent_objects_pass_what_waits() {
    for scheduler in ["sos", "sos-fec", "sos-rateless"] {
        let first = urgent(scheduler, 0);
        let last = urgent(scheduler, 5);
        assert!(first < ms(120), "{scheduler}: {first:?}");
        assert!(last > ms(1_000), "{scheduler}: {last:?}");
    }
}

#[test]
fn the_least_urgent_are_never_starved() {
    // 32 Mb/s of urgent objects over links that carry 14. What came before them and is least urgent
    // has one symbol in sixteen: its 18 take at most 288 of the flow's, 230 ms, after what had left
    // (100 ms), and 15 ms to arrive.
    for scheduler in ["sos", "sos-fec", "sos-rateless"] {
        let link = "rate=7mbit,delay=15ms,queue=100ms";
        let mut units = objects(6, scheduler, &[link, link]);
        let of = |urgency| ObjectOptions {
            urgency,
            ..ObjectOptions::default()
        };
        for _ in 0..40 {
            units.object(20_000, &of(0)).expect("there is room");
            units.run_for(ms(20));
        }
        let last = units.object(24_000, &of(7)).expect("there is room");
        for _ in 0..200 {
            units.object(20_000, &of(0)).expect("there is room");
            units.run_for(ms(5));
        }
        units.finish_within(secs(30));
        units.check_fates();
        let took = units.whole[&last].at.since(units.written[&last].at);
        assert!(took < ms(400), "{scheduler}: {took:?}");
    }
}

#[test]
fn a_larger_object_uses_both_paths_and_a_small_one_the_near_path() {
    let links = [
        "rate=10mbit,delay=10ms,queue=200ms",
        "rate=10mbit,delay=60ms,queue=200ms",
    ];
    for scheduler in ["sos", "sos-fec", "sos-rateless"] {
        let mut units = objects(3, scheduler, &links);
        // Until the paths are known.
        for _ in 0..10 {
            units
                .object(300_000, &ObjectOptions::default())
                .expect("there is room");
            units.run_for(ms(250));
        }
        units.run_for(ms(500));
        for _ in 0..10 {
            units
                .object(6_000, &ObjectOptions::default())
                .expect("there is room");
            units.run_for(ms(100));
        }
        let large = units
            .object(500_000, &ObjectOptions::default())
            .expect("there is room");
        units.finish_within(secs(30));
        units.check_fates();
        // Five packets of 1 ms each after 10 ms.
        assert!(
            units.quantile(10..20, 0.9) < ms(25),
            "{:?}",
            units.quantile(10..20, 0.9)
        );
        // 400 ms and more over one path alone.
        let took = units.whole[&large].at.since(units.written[&large].at);
        assert!(took < ms(330), "{scheduler}: {took:?}");
    }
}
