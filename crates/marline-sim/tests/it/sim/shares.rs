//! What several users of one link get of it.

use super::*;

#[test]
fn two_equal_sessions_halve_the_link_that_they_share() {
    let links = vec![link("shared", "rate=20mbit,delay=10ms,queue=40ms")];
    let sessions = vec![
        session("one", 1, vec![bulk("first")]),
        session("two", 1, vec![bulk("second")]),
    ];
    let scenario = Scenario {
        duration: secs(60),
        warmup: secs(10),
        ..scenario(links, sessions)
    };
    for seed in 1..4 {
        let run = run(&scenario, "min-rtt", seed);
        let [a, b] = ["first", "second"].map(|w| value(&run, &format!("{w}.goodput_mbps")));
        let jain = (a + b).powi(2) / (2.0 * (a * a + b * b));
        assert!(
            jain > 0.9,
            "seed {seed}: {a} and {b} Mb/s, Jain's index {jain}"
        );
        // 1200 of 1200 bytes a datagram are counted on the link, some 1180 as goodput.
        assert!(a + b > 0.93 * 20.0, "seed {seed}: {a} and {b} Mb/s");
    }
}
