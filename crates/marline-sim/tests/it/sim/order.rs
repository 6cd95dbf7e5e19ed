//! Order of delivery and what it costs.

use super::*;
use crate::kit::ms;

#[test]
fn round_robin_over_unequal_delays_reorders_as_computed_by_hand() {
    let links = vec![
        link("near", "rate=100mbit,delay=10ms,queue=100ms"),
        link("far", "rate=100mbit,delay=30ms,queue=100ms"),
    ];
    // One message of 1000 bytes every 10 ms, on each path in turn.
    let mut live = over_packets(constant("live", 1, 1_000), true);
    live.load = Load::Constant {
        rate: Rate::from_kbps(800),
        size: 1_000,
    };
    let scenario = scenario(links, vec![session("main", 2, vec![live])]);
    let run = run(&scenario, "round-robin", 1);
    let near = |name: &str, expected: f64| {
        let value = value(&run, name);
        // Its transmission takes some 0.085 ms with headers.
        let off = value - expected;
        assert!(
            (0.0..0.12).contains(&off),
            "{name}: {value} ms, not {expected} ms"
        );
    };
    // A message on the far path takes 30 ms. One on the near path waits for the one before, which
    // left 10 ms earlier on the far path: 20 ms after its own write, of which it waits 10.
    near("live.in_order_delay.max_ms", 30.0);
    near("live.in_order_delay.min_ms", 20.0);
    near("live.in_order_delay.mean_ms", 25.0);
    let waits =
        ["min", "p50", "max"].map(|q| value(&run, &format!("live.out_of_order_wait.{q}_ms")));
    assert!(
        waits.iter().all(|w| (w - 10.0).abs() < 0.05),
        "{waits:?} ms, not 10"
    );
    let (units, waited) = (
        value(&run, "live.in_order_delay.count"),
        value(&run, "live.out_of_order_wait.count"),
    );
    assert!(
        (waited - units / 2.0).abs() <= 1.0,
        "{waited} of {units} waited"
    );
    assert_eq!(run.fractions["live.undelivered"].hits, 0);
}

#[test]
fn random_losses_are_recovered_without_loss_of_data() {
    for scheduler in ["min-rtt", "edpf", "round-robin", "redundant"] {
        let links = vec![
            link("a", "rate=10mbit,delay=10ms,loss=3%,queue=60ms"),
            link("b", "rate=10mbit,delay=30ms,loss=5%,queue=60ms"),
        ];
        let mut file = bulk("file");
        file.load = Load::Backlogged {
            size: 10_000,
            bytes: Some(5_000_000),
        };
        let live = over_packets(constant("live", 1, 1_000), true);
        let mut scenario = scenario(links, vec![session("main", 2, vec![file, live])]);
        scenario.warmup = ms(0);
        let run = run(&scenario, scheduler, 1);
        assert_eq!(
            value(&run, "file.in_order_delay.count"),
            500.0,
            "{scheduler}"
        );
        for name in ["file.undelivered", "live.undelivered"] {
            let fraction = run.fractions[name];
            assert_eq!(
                fraction.hits, 0,
                "{scheduler}: {name} of {}",
                fraction.trials
            );
            assert!(
                fraction.trials >= 500,
                "{scheduler}: {name} of {}",
                fraction.trials
            );
        }
        let lost = value(&run, "link.a.dropped_up");
        assert!(
            (lost - 0.03).abs() < 0.015,
            "{scheduler}: the link lost {lost}"
        );
        assert!(value(&run, "file.retransmissions") > 0.0 || scheduler == "redundant");
    }
}

#[test]
fn edpf_keeps_to_the_quicker_link_while_it_suffices() {
    let links = vec![
        link("near", "rate=10mbit,delay=10ms,queue=100ms"),
        link("far", "rate=10mbit,delay=30ms,queue=100ms"),
    ];
    let live = over_packets(constant("live", 5, 1_000), true);
    let scenario = scenario(links, vec![session("main", 2, vec![live])]);
    let run = run(&scenario, "edpf", 1);
    // Nothing is quicker than 10 ms and 0.8 ms for each of 1000 bytes and headers.
    let worst = value(&run, "live.in_order_delay.p999_ms");
    assert!((10.8..11.2).contains(&worst), "{worst} ms");
}
