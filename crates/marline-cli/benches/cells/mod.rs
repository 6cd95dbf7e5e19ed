//! Pairs of links for benchmarks of live streams, and what kernel MPTCP had on them.

use marline_lab::emulate::{Direction, Emulator};
use std::thread;
use std::time::{Duration, Instant};

/// 10 Mb/s of datagrams or records of 1316 bytes.
pub(crate) const INTERVAL: Duration = Duration::from_nanos(1316 * 8 * 100);
/// Counts nowhere: the rates of the links are sought in it.
pub(crate) const WARM_UP: Duration = Duration::from_secs(4);

/// A pair of links, and what kernel MPTCP with CUBIC had on it (p50 and p99, ms; docs/LIVE.md).
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    pub(crate) links: [&'static str; 2],
    pub(crate) mptcp: &'static str,
    pub(crate) handover: bool,
}

const fn cell(name: &'static str, links: [&'static str; 2], mptcp: &'static str) -> Cell {
    Cell {
        name,
        links,
        mptcp,
        handover: false,
    }
}

const NEAR: &str = "rate=6mbit,delay=10ms,queue=100p";
const NEAR_LOSSY: &str = "rate=6mbit,delay=10ms,queue=100p,loss=2%,burst=4";
/// On the way of the data only, as in Figure 7 of the OLS paper.
const JITTER: &str = ",jitter=40ms,jitter-dist=uniform";
const JITTERY: &str = "rate=8mbit,delay=40ms,jitter=40ms,jitter-dist=uniform,queue=100p";
const JITTERY_LOSSY: &str =
    "rate=8mbit,delay=40ms,jitter=40ms,jitter-dist=uniform,queue=100p,loss=2%,burst=4";
const GOOD: &str = "rate=20mbit,delay=25ms,queue=200ms";

pub(crate) const CELLS: [Cell; 12] = [
    cell("6+6, RTT 20/20", [NEAR, NEAR], "12 / 14"),
    cell(
        "6+6, RTT 20/40",
        [NEAR, "rate=6mbit,delay=20ms,queue=100p"],
        "22 / 23",
    ),
    cell(
        "6+6, RTT 20/80",
        [NEAR, "rate=6mbit,delay=40ms,queue=100p"],
        "49 / 50",
    ),
    cell(
        "6+6, RTT 20/160",
        [NEAR, "rate=6mbit,delay=80ms,queue=100p"],
        "88 / 90",
    ),
    cell(
        "8+8, RTT 80±40/160",
        [JITTERY, "rate=8mbit,delay=80ms,queue=100p"],
        "80 / 83",
    ),
    cell(
        "2 % in bursts, 20/20",
        [NEAR_LOSSY, NEAR_LOSSY],
        "11018 / 15907",
    ),
    cell(
        "2 % in bursts, 20/40",
        [
            NEAR_LOSSY,
            "rate=6mbit,delay=20ms,queue=100p,loss=2%,burst=4",
        ],
        "9360 / 14441",
    ),
    cell(
        "2 % in bursts, 20/80",
        [
            NEAR_LOSSY,
            "rate=6mbit,delay=40ms,queue=100p,loss=2%,burst=4",
        ],
        "12539 / 17699",
    ),
    cell(
        "2 % in bursts, 20/160",
        [
            NEAR_LOSSY,
            "rate=6mbit,delay=80ms,queue=100p,loss=2%,burst=4",
        ],
        "11601 / 16480",
    ),
    cell(
        "2 % in bursts, 80±40/160",
        [
            JITTERY_LOSSY,
            "rate=8mbit,delay=80ms,queue=100p,loss=2%,burst=4",
        ],
        "15107 / 21545",
    ),
    cell(
        "20+20, RTT 50/50, 2 % in bursts",
        [
            "rate=20mbit,delay=25ms,queue=200ms,loss=2%,burst=4",
            "rate=20mbit,delay=25ms,queue=200ms,loss=2%,burst=4",
        ],
        "11052 / 16238",
    ),
    Cell {
        name: "20+20, RTT 50/50, handover",
        links: [GOOD, GOOD],
        mptcp: "32 / 817",
        handover: true,
    },
];

impl Cell {
    /// The way of a link back to the sender.
    pub(crate) fn way_back(link: &str) -> String {
        link.replace(JITTER, "")
    }

    /// Waits for a third of `span` from `start` on; then `link` is dark for three seconds, and
    /// three times as long afterwards.
    pub(crate) fn hand_over<At>(link: &Emulator<At>, start: Instant, span: Duration) {
        thread::sleep((span / 3).saturating_sub(start.elapsed()));
        link.set_dark(true);
        thread::sleep(Duration::from_secs(3));
        for direction in Direction::BOTH {
            let config = "rate=20mbit,delay=75ms,queue=200ms".parse().unwrap();
            link.reconfigure(direction, config).unwrap();
        }
        link.set_dark(false);
    }
}

/// The value at this quantile of sorted times, in milliseconds.
pub(crate) fn quantile(sorted: &[Duration], q: f64) -> f64 {
    let index = (sorted.len() as f64 * q) as usize;
    let value = sorted.get(index.min(sorted.len().saturating_sub(1)));
    value.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}
