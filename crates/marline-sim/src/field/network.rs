//! Kinds of access networks, and what a recording of rates does not tell of them.

use marline_base::{Duration, Rng};
use marline_link::{Delay, LinkConfig, Loss, QueueLimit, Redraw};

/// What holds a rate also holds a delay: a radio frame of LTE is 10 ms (3GPP TS 36.211), a
/// transmission opportunity of WiFi with its contention some milliseconds.
pub const SLOT: Duration = Duration::from_millis(10);

/// Least queue (bytes): ten full packets, so that a link that is nearly dark still takes some.
const LEAST_QUEUE: u64 = 15_000;

/// What a link belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// A wireless LAN.
    Wifi,
    /// A phone network.
    Cellular,
    /// Satellites in low orbits.
    Leo,
    /// A wire.
    Fixed,
}

/// How a rate varies within a step in which a recording calls it constant. Shares are standard
/// deviations over means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grain {
    /// From tenth to tenth of a second.
    pub slow: f64,
    /// From slot to slot within that.
    pub fast: f64,
    /// Slots in which nothing is sent at all.
    pub idle: f64,
}

/// Round trips of an empty link, in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrip {
    /// Nothing is faster.
    pub least: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub sd: f64,
}

impl Network {
    /// What a column of rates is of, by its name.
    pub fn of_column(name: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if has(&["wifi", "wlan"]) {
            Self::Wifi
        } else if has(&["starlink", "leo", "sat"]) {
            Self::Leo
        } else if has(&["dsl", "cable", "fibre", "wired"]) {
            Self::Fixed
        } else {
            Self::Cellular
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wifi => "wifi",
            Self::Cellular => "lte",
            Self::Leo => "leo",
            Self::Fixed => "dsl",
        }
    }

    /// Where no round trips were recorded. The means and deviations are the bench's own choice:
    /// they lie among the idle round trips of `../shared/traces/delay`, 13 to 26 ms over WiFi, 28
    /// to 84 over LTE, 41 to 49 over Starlink; half of the mean is the way without any wait.
    pub const fn round_trip(self) -> RoundTrip {
        let (mean, sd) = match self {
            Self::Wifi => (20.0, 10.0),
            Self::Cellular => (50.0, 20.0),
            Self::Leo => (50.0, 15.0),
            Self::Fixed => (24.0, 1.0),
        };
        RoundTrip {
            least: mean / 2.0,
            mean,
            sd,
        }
    }

    /// Measured over 25 ms: 0.29 to 0.50 of the mean where an LTE phone stands still (`nyc-home*`);
    /// over 200 ms: 0.18 and 0.37 in cafes (`cafe-a-down`, `cafe-b-down`). A tenth of WiFi's slots
    /// is others': a guess. No finer recording of satellites is at hand: less than LTE, whose
    /// grants they do not have.
    pub const fn grain(self) -> Grain {
        let (slow, fast, idle) = match self {
            Self::Wifi => (0.25, 0.3, 0.1),
            Self::Cellular => (0.35, 0.5, 0.0),
            Self::Leo => (0.2, 0.3, 0.0),
            Self::Fixed => (0.0, 0.0, 0.0),
        };
        Grain { slow, fast, idle }
    }
}

impl RoundTrip {
    /// Robust against the few pings that stood in a queue or came late for other reasons: the
    /// median and a normal distribution's deviation by the 10th and 90th percentiles, 2.563 of it
    /// apart.
    pub(super) fn of(pings: &mut [f64]) -> Option<Self> {
        if pings.is_empty() {
            return None;
        }
        pings.sort_by(f64::total_cmp);
        let at = |share: f64| pings[(share * (pings.len() - 1) as f64).round() as usize];
        Some(Self {
            least: at(0.0).min(at(0.5) * 0.95),
            mean: at(0.5),
            sd: (at(0.9) - at(0.1)) / 2.563,
        })
    }

    /// Half of it, one way. Both ways vary independently, so that their variances add up.
    fn one_way(self) -> Delay {
        let time = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let (mean, sd) = (
            time(self.mean / 2.0),
            time(self.sd / core::f64::consts::SQRT_2),
        );
        match sd < Duration::from_micros(50) {
            true => Delay::Constant(mean),
            // The tail of round trips is to the right.
            false => Delay::Gamma {
                mean,
                sd,
                min: time(self.least / 2.0).min(mean.mul_f64(0.95)),
            },
        }
    }
}

/// A direction of a link without its capacity, which may queue `queue` of its `mean` rate (kb/s).
pub(super) fn direction(trip: RoundTrip, loss: f64, mean: f64, queue: Duration) -> LinkConfig {
    let room = mean * 1e3 / 8.0 * queue.as_secs_f64();
    LinkConfig {
        delay: trip.one_way(),
        redraw: Redraw::Every(SLOT),
        loss: Loss::Independent(loss),
        queue: QueueLimit::Bytes((room as u64).max(LEAST_QUEUE)),
        ..LinkConfig::default()
    }
}

/// A share of packets that is lost: 0.1 to 0.5 %, what links lose on which nothing is broken.
pub(super) fn loss(rng: &mut Rng) -> f64 {
    0.001 + 0.004 * rng.uniform()
}
