//! The first seconds of a live stream over paths of which little is known yet.

use super::*;
use crate::kit::ms;

/// Links, by the fastest and by their round trips (ms).
struct Pair {
    mbps: f64,
    trips: [u64; 2],
    more: &'static str,
}

impl Pair {
    fn of(mbps: f64, trips: [u64; 2]) -> Self {
        let more = "";
        Self { mbps, trips, more }
    }

    /// The 99th percentile (ms) of the in-order delay by `hedge` of five sixths of what they carry,
    /// in the first five seconds of the stream, which begins after so long; the mean of so many
    /// seeds.
    fn start(&self, after: u64, seeds: u64) -> f64 {
        let [a, b] = self.trips.map(|ms| {
            let (kbps, delay) = (1e3 * self.mbps, ms / 2);
            format!("rate={kbps}kbit,delay={delay}ms,queue=100p{}", self.more)
        });
        let rate = Rate::from_mbps(1).scaled(self.mbps / 0.6);
        let load = Load::Constant { rate, size: 1_000 };
        let mut live = over_packets(workload("live", load), true);
        live.starts = Instant::from_millis(after);
        live.flow.lifetime = Some(ms(300));
        let links = vec![link("a", &a), link("b", &b)];
        let scenario = Scenario {
            duration: ms(after) + secs(5),
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
}

/// The geometric mean of that over pairs of five rates about this one: which sample of a rate is
/// the largest in a start is luck, and one pair says little.
fn about(mbps: f64, trips: [u64; 2], after: u64) -> f64 {
    let rates = [0.8, 0.9, 1.0, 1.1, 1.2];
    let logs = rates.map(|part| Pair::of(part * mbps, trips).start(after, 1).ln());
    (logs.iter().sum::<f64>() / 5.0).exp()
}

/// The one path's capacity is known when its first queue grows, and the other one carries its share
/// by then.
#[test]
fn a_stream_begins_with_a_short_queue_only() {
    let p99 = [[20, 40], [20, 160]].map(|trips| about(6.0, trips, 1_000));
    // 31 and 105; 42 and 146 where nobody says what is needed, and 35 and 136 where a window that
    // was never filled is taken for a rate.
    assert!(p99[0] < 34.0 && p99[1] < 122.0, "{p99:?} ms");
}

/// Paths begin with what is needed of them, whether that is more than anybody would guess or less.
#[test]
fn a_stream_begins_at_its_own_rate() {
    let cases = [
        // 126, and 184 where it begins with its session.
        (24.0, 160, 1_000, 140.0),
        (24.0, 160, 0, 200.0),
        // 93 and 48; 112 and 79 where a window that was never filled is taken for a rate.
        (1.2, 160, 1_000, 102.0),
        (1.2, 80, 1_000, 60.0),
    ];
    for (mbps, trip, after, most) in cases {
        let p99 = about(mbps, [20, trip], after);
        assert!(p99 < most, "{mbps} Mb/s, {trip} ms: {p99} ms");
    }
}

/// No surplus is spent before the stream's rate is known.
#[test]
fn losses_in_the_first_second_are_mended_without_a_flood() {
    let pair = Pair {
        more: ",loss=2%,burst=4",
        ..Pair::of(6.0, [20, 20])
    };
    let p99 = pair.start(1_000, 24);
    // 41; 46 where nobody says what is needed.
    assert!(p99 < 43.5, "{p99} ms");
}
