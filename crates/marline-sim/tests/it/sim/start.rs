//! The first seconds of a live stream over paths of which little is known yet.

use super::*;

/// The 99th percentile (ms) of the in-order delay by `hedge` of 10 Mb/s in their first five seconds, which begin after
/// a second, over links of 6 Mb/s whose round trips take so long (ms); the mean of so many seeds.
fn start(trips: [u64; 2], losses: &str, seeds: u64) -> f64 {
    let [a, b] = trips.map(|ms| format!("rate=6mbit,delay={}ms,queue=100p{losses}", ms / 2));
    let mut live = over_packets(constant("live", 10, 1_000), true);
    live.starts = Instant::from_millis(1_000);
    live.flow.lifetime = Some(marline_base::Duration::from_millis(300));
    let links = vec![link("a", &a), link("b", &b)];
    let scenario = Scenario {
        duration: secs(6),
        warmup: secs(0),
        ..scenario(links, vec![session("main", 2, vec![live])])
    };
    let p99 = |seed| {
        let run = run(&scenario, "hedge", seed);
        assert_eq!(run.fractions["live.undelivered"].hits, 0, "seed {seed}");
        value(&run, "live.in_order_delay.p99_ms")
    };
    (1..=seeds).map(p99).sum::<f64>() / seeds as f64
}

/// The one path's capacity is known when its first queue grows, and the other one is warmed up meanwhile by a part of
/// what that carries.
#[test]
fn a_stream_begins_with_a_short_queue_only() {
    let p99 = start([20, 40], "", 1);
    // 32; with copies of all to the path that is warmed up 49, with the queue unseen until it no longer grows 90.
    assert!(p99 < 37.0, "{p99} ms");
    let p99 = start([20, 160], "", 1);
    // 136; 161 and 159.
    assert!(p99 < 147.0, "{p99} ms");
}

/// No surplus is spent before the stream's rate is known.
#[test]
fn losses_in_the_first_second_are_mended_without_a_flood() {
    let p99 = start([20, 20], ",loss=2%,burst=4", 24);
    // 48; with a target that is measured up from nothing 55.
    assert!(p99 < 51.5, "{p99} ms");
}
