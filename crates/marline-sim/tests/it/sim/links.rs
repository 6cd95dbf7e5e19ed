//! What queues and links do to traffic, against queueing theory and arithmetic.

use marline_proto::congestion::registry::CONTROLLERS;
use marline_sim::Duration;
use marline_sim::scenario::{CellPlan, Change, CrossPlan, CrossSource, HandoverPlan, Setting};

use super::*;
use crate::kit::ms;

fn cross(name: &str, source: CrossSource) -> CrossPlan {
    CrossPlan {
        name: name.to_owned(),
        link: 0,
        from: End::Client,
        starts: Instant::ZERO,
        stops: None,
        source,
    }
}

/// Packets of 1000 bytes: 0.8 ms at 10 Mb/s.
fn poisson(name: &str, kbps: u64) -> CrossPlan {
    let rate = Rate::from_kbps(kbps);
    cross(name, CrossSource::Poisson { rate, size: 1_000 })
}

#[test]
fn poisson_packets_wait_as_in_an_md1_queue() {
    for load in [0.5, 0.8] {
        let mut scenario = scenario(vec![link("a", "rate=10mbit,delay=5ms")], Vec::new());
        scenario.duration = secs(600);
        scenario.warmup = secs(10);
        // Two sources make one Poisson process, and wait for each other.
        let half = (load * 10_000.0 / 2.0) as u64;
        scenario.cross = vec![poisson("one", half), poisson("two", half)];
        let run = run(&scenario, "min-rtt", 3);
        for name in ["one", "two"] {
            let wait = value(&run, &format!("cross.{name}.delay.mean_ms")) - 5.0 - 0.8;
            // Pollaczek and Khinchine, deterministic service: ρ S / (2 (1 − ρ)).
            let expected = load * 0.8 / (2.0 * (1.0 - load));
            let off = wait / expected - 1.0;
            assert!(off.abs() < 0.04, "load {load}: {wait} ms, not {expected}");
        }
    }
}

#[test]
fn cross_traffic_takes_its_share_and_no_more() {
    let links = vec![link("a", "rate=20mbit,delay=10ms,queue=40ms")];
    let mut scenario = scenario(links, vec![session("main", 1, vec![bulk("bulk")])]);
    let rate = Rate::from_mbps(8);
    scenario.cross = vec![cross("voice", CrossSource::Constant { rate, size: 1_000 })];
    let run = run(&scenario, "min-rtt", 1);
    let (others, ours) = (
        value(&run, "cross.voice.throughput_mbps"),
        value(&run, "path.a.throughput_mbps"),
    );
    assert!(others > 7.2 && others <= 8.01, "others {others} Mb/s");
    assert!(others + ours > 0.97 * 20.0, "{ours} and {others} Mb/s");
    assert!(others + ours < 1.01 * 20.0, "{ours} and {others} Mb/s");
}

#[test]
fn on_and_off_is_on_as_long_as_it_should_be() {
    let mut scenario = scenario(vec![link("a", "rate=100mbit,delay=5ms")], Vec::new());
    scenario.duration = secs(2_000);
    let source = CrossSource::OnOff {
        rate: Rate::from_mbps(8),
        size: 1_000,
        on: ms(300),
        off: ms(500),
    };
    scenario.cross = vec![cross("x", source)];
    let mbps = value(&run(&scenario, "min-rtt", 1), "cross.x.throughput_mbps");
    // 3 of 8 parts of the time; some 2500 periods, so a standard error of 2 %.
    assert!((mbps / 3.0 - 1.0).abs() < 0.06, "{mbps} Mb/s");
}

#[test]
fn every_controller_fills_a_link_with_a_queue_of_one_bdp() {
    for entry in CONTROLLERS {
        if ["fixed", "none"].contains(&entry.name) {
            continue;
        }
        // The last is a pipe of ten packets, which acknowledgements that wait for 5 ms would make
        // half as long again.
        for (rate, millis) in [(20, 20), (40, 5), (5, 50), (20, 5), (5, 10), (10, 5)] {
            let text = format!("rate={rate}mbit,delay={millis}ms,queue={}ms", 2 * millis);
            let sessions = vec![session("main", 1, vec![bulk("bulk")])];
            let mut scenario = scenario(vec![link("a", &text)], sessions);
            scenario.sessions[0].config.congestion = entry.name.parse().expect("a controller");
            scenario.duration = secs(40);
            scenario.warmup = secs(5);
            let run = run(&scenario, "min-rtt", 1);
            let all = f64::from(rate);
            let [mbps, goodput] =
                ["path.a.throughput_mbps", "bulk.goodput_mbps"].map(|name| value(&run, name));
            assert!(mbps > 0.95 * all, "{}, {text}: {mbps} Mb/s", entry.name);
            // The same in bytes that the link carried, and never more than its rate.
            let carried = value(&run, "link.a.carried_up_mbps");
            assert!(
                0.99 * mbps < carried && carried < 1.001 * all,
                "{}, {text}: {carried} Mb/s",
                entry.name
            );
            assert!(
                goodput > 0.93 * all,
                "{}, {text}: {goodput} Mb/s",
                entry.name
            );
        }
    }
}

#[test]
fn overhead_of_the_network_takes_capacity() {
    let links = || vec![link("a", "rate=20mbit,delay=20ms,queue=40ms")];
    let measured = |overhead| {
        let mut scenario = scenario(links(), vec![session("main", 1, vec![bulk("bulk")])]);
        scenario.links[0].overhead = overhead;
        let run = run(&scenario, "min-rtt", 1);
        ["path.a.throughput_mbps", "link.a.carried_up_mbps"].map(|name| value(&run, name))
    };
    let ([ours, all], [alone, _]) = (measured(100), measured(0));
    // 1200 of 1300 bytes are ours, of which the link carries as many as without.
    for share in [ours / alone, ours / all] {
        assert!((share * 1_300.0 / 1_200.0 - 1.0).abs() < 0.01, "{share}");
    }
}

#[test]
fn links_change_go_dark_and_return_as_planned() {
    let links = vec![link("a", "rate=20mbit,delay=10ms,queue=40ms")];
    let mut scenario = scenario(links, vec![session("main", 1, vec![bulk("bulk")])]);
    let slow = link("a", "rate=5mbit,delay=10ms,queue=40ms");
    let change = |at, setting| Change {
        at: Instant::ZERO + secs(at),
        link: 0,
        setting,
    };
    let dark = |dark| Setting::Dark {
        up: dark,
        down: dark,
    };
    scenario.changes = vec![
        change(8, dark(true)),
        change(9, dark(false)),
        change(
            13,
            Setting::Link {
                up: Box::new(slow.up),
                down: Box::new(slow.down),
            },
        ),
    ];
    let run = run(&scenario, "min-rtt", 1);
    let series = &run.series["path.a.throughput_mbps"];
    let mean = |from: f64, to: f64| {
        let index = |s: f64| (s / series.step_s).round() as usize;
        let part = &series.values[index(from)..index(to)];
        part.iter().sum::<f64>() / part.len() as f64
    };
    assert!(mean(4.0, 8.0) > 19.0, "before: {} Mb/s", mean(4.0, 8.0));
    assert!(mean(8.1, 9.0) < 0.1, "in the dark: {} Mb/s", mean(8.1, 9.0));
    assert!(mean(10.5, 13.0) > 18.0, "after: {} Mb/s", mean(10.5, 13.0));
    let slow = mean(15.0, 19.9);
    assert!(slow > 4.7 && slow < 5.01, "slower: {slow} Mb/s");
    assert_eq!(run.fractions["bulk.undelivered"].hits, 0);
}

#[test]
fn a_link_wanders_between_cells_and_nothing_is_lost() {
    let links = vec![link("a", "rate=20mbit,delay=10ms,queue=40ms")];
    let mut scenario = scenario(links, vec![session("main", 1, vec![bulk("bulk")])]);
    let slow = link("a", "rate=5mbit,delay=30ms,queue=40ms");
    scenario.handovers = vec![HandoverPlan {
        link: 0,
        every: secs(3),
        dark: Duration::from_millis(100),
        cells: vec![CellPlan {
            up: slow.up,
            down: slow.down,
        }],
    }];
    let goodput = |seed| value(&run(&scenario, "min-rtt", seed), "bulk.goodput_mbps");
    // Both cells were used in each run, and which one when is a matter of the seed alone.
    let all = [1, 2, 3].map(goodput);
    assert!(
        all.iter().all(|mbps| *mbps > 4.5 && *mbps < 19.0),
        "{all:?}"
    );
    assert_eq!(all, [1, 2, 3].map(goodput));
    assert!(all[0] != all[1] && all[1] != all[2], "{all:?}");
    // What the slow cell has of it when a run ends is late, not lost: it has time.
    let mut ends = scenario.clone();
    ends.sessions[0].workloads[0].stops = Some(Instant::ZERO + secs(14));
    for seed in 1..=3 {
        let run = run(&ends, "min-rtt", seed);
        assert_eq!(run.fractions["bulk.undelivered"].hits, 0);
    }
}

#[test]
fn paths_join_and_leave_as_planned() {
    let links = ["a", "b"].map(|n| link(n, "rate=10mbit,delay=10ms,queue=40ms"));
    let mut scenario = scenario(links.into(), vec![session("main", 2, vec![bulk("bulk")])]);
    scenario.warmup = Duration::ZERO;
    scenario.sessions[0].paths[1].joins = Instant::ZERO + secs(5);
    scenario.sessions[0].paths[1].leaves = Some(Instant::ZERO + secs(10));
    let run = run(&scenario, "edpf", 1);
    let carried = value(&run, "path.b.throughput_mbps") * 20.0 / 8.0;
    // 5 s of 10 Mb/s are 6.25 MB.
    assert!(
        carried > 5.0 && carried < 6.3,
        "path b carried {carried} MB"
    );
    let series = &run.series["path.b.throughput_mbps"].values;
    assert_eq!(
        series.len(),
        run.series["path.a.throughput_mbps"].values.len()
    );
    assert!(series[..49].iter().chain(&series[105..]).all(|v| *v == 0.0));
    assert_eq!(run.fractions["bulk.undelivered"].hits, 0);
}
