//! Packets of one path that overtake each other, and many of them.

use super::lossy::live_over;
use super::*;

/// What comes late lies below hundreds of gaps: it is remembered, and acknowledged before what was
/// told long ago.
#[test]
fn what_comes_late_is_acknowledged_however_many_packets_are_under_way() {
    let jittery = "rate=50mbit,delay=40ms,jitter=40ms,jitter-dist=uniform,overtake=yes,queue=100ms";
    let links = vec![link("a", jittery)];
    let scenario = scenario(links, vec![session("main", 1, vec![bulk("bulk")])]);
    let run = run(&scenario, "min-rtt", 1);
    let goodput = value(&run, "bulk.goodput_mbps");
    // 46; with the newest 32 ranges told and 64 known, 28.
    assert!(goodput > 40.0, "{goodput} Mb/s");
}

/// The largest packet that an acknowledgement tells is a quick one. A window of its round trip
/// would hold a sixth of what the path does.
#[test]
fn round_trips_are_those_of_all_packets() {
    let links = r#"
        rate = "15800kbit"
        delay = "25ms"
        jitter = "22ms"
        jitter-dist = "normal"
        overtake = "yes"
        [links.b]
        rate = "3500kbit"
        delay = "25ms"
        loss = "1%"
        burst = 4
    "#;
    let text = live_over(11, links);
    let sets = ["workloads.live.lifetime=500ms", "warmup=5s"];
    let lost = (1..=4).map(|seed| value(&run_of(&text, &sets, seed), "live.undelivered"));
    let lost: Vec<f64> = lost.collect();
    // With the round trips of the quick ones 96 % in one run of three.
    assert!(lost.iter().all(|lost| *lost < 0.001), "{lost:?}");
}
