//! What policing looks like at the ends of a path.
//!
//! A policer drops at once what exceeds its rate, and has no queue: much is lost for as long as
//! more is sent, what arrives has the same rate all the time, and round trips stay as short as ever
//! (Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016, section 3). A full
//! queue shows in the round trips. Losses at random look the same where an application sends at a
//! constant rate: whether TCP would do better there, only a trial shows.

use std::collections::VecDeque;
use std::time::Duration;

use marline_proto::stats::{PathCounters, PathStats};

/// Looks in a row that must agree, a second each: longer than a burst of losses, and than the
/// search for bandwidth at a path's begin, which may lose half of what it sends.
const LOOKS: usize = 5;
/// Packets a second below which nothing is concluded: a tenth of them is ten. It is 1 Mb/s.
const LEAST_PACKETS: u64 = 100;
/// The share of packets lost from which a path is suspicious, as one in this number: beyond what
/// links lose that work, and less than is lost at a policer, a quarter and more (`lab/modems.sh
/// policed`, BBR).
const LOST_PART: u64 = 10;
/// The quickest of the looks has at most this part more than the slowest. A policer's bucket lets
/// its rate through within a few percent; radio links vary by more.
const STEADY: (u64, u64) = (6, 5);
/// The smoothed round trip lies above the shortest by no more than half of that, or by this. A
/// queue that overflows holds 50 ms or more, nearly everywhere.
const NO_QUEUE: Duration = Duration::from_millis(20);

/// Which way a path is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

impl Way {
    const BOTH: [Self; 2] = [Self::Up, Self::Down];

    /// Bytes that have arrived this way.
    pub(super) fn delivered(self, counters: &PathCounters) -> u64 {
        match self {
            Self::Up => counters.acked_bytes,
            Self::Down => counters.received_bytes,
        }
    }

    /// Packets that were sent, and lost.
    fn packets(self, counters: &PathCounters) -> (u64, u64) {
        match self {
            Self::Up => (
                counters.sent_packets,
                counters
                    .lost_packets
                    .saturating_sub(counters.spurious_losses),
            ),
            Self::Down => (counters.numbered_packets, counters.missing_packets()),
        }
    }
}

/// What one look found.
#[derive(Clone, Copy, Debug)]
struct Look {
    packets: u64,
    lost: u64,
    /// Bytes a second.
    rate: u64,
}

/// The last looks at a path, at most [`LOOKS`] each way.
#[derive(Debug, Default)]
pub(super) struct Policing {
    last: Option<PathCounters>,
    looks: [VecDeque<Look>; 2],
}

impl Policing {
    /// Looks at how the path stands, `elapsed` after the last time. Returns the way in which it
    /// seems to be policed, and what arrives there (bytes a second).
    pub(super) fn look(&mut self, stats: &PathStats, elapsed: Duration) -> Option<(Way, u64)> {
        let now = stats.counters;
        let last = self.last.replace(now)?;
        let queue = stats.srtt.saturating_sub(stats.min_rtt);
        if queue > NO_QUEUE.max(stats.min_rtt / 2) {
            self.looks = Default::default();
            return None;
        }
        let ways = Way::BOTH.into_iter().zip(&mut self.looks);
        ways.filter_map(|(way, looks)| {
            let ((packets, lost), before) = (way.packets(&now), way.packets(&last));
            let bytes = way.delivered(&now).saturating_sub(way.delivered(&last));
            looks.push_back(Look {
                packets: packets.saturating_sub(before.0),
                lost: lost.saturating_sub(before.1),
                rate: rate(bytes, elapsed),
            });
            if looks.len() > LOOKS {
                looks.pop_front();
            }
            Some((way, steady_loss(looks)?))
        })
        .next()
    }
}

/// Bytes a second.
pub(super) fn rate(bytes: u64, time: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000 / time.as_millis().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// The mean rate if much is lost at a steady one.
fn steady_loss(looks: &VecDeque<Look>) -> Option<u64> {
    let busy = looks.iter().all(|look| look.packets >= LEAST_PACKETS);
    if looks.len() < LOOKS || !busy {
        return None;
    }
    let sum = |of: fn(&Look) -> u64| looks.iter().map(of).fold(0, u64::saturating_add);
    let (lost, packets) = (sum(|look| look.lost), sum(|look| look.packets));
    let rates = || looks.iter().map(|look| look.rate);
    let (slowest, quickest) = (rates().min()?, rates().max()?);
    let steady = quickest.saturating_mul(STEADY.1) <= slowest.saturating_mul(STEADY.0);
    (steady && lost.saturating_mul(LOST_PART) >= packets)
        .then(|| sum(|look| look.rate) / LOOKS as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_proto::path::{PathParams, PathState};
    use marline_proto::wire::{Params, PathId};
    use marline_proto::{Config, Session, Side};

    const SECOND: Duration = Duration::from_secs(1);

    /// How a path stands that has counted nothing.
    fn fresh() -> PathStats {
        let now = marline_base::Instant::ZERO;
        let (config, peer) = (Config::default(), Params::default());
        let mut session = Session::new(now, Side::Client, config, peer, 1).unwrap();
        session
            .add_path(now, PathId(0), &PathParams::default())
            .unwrap();
        let stats = session.path(PathId(0)).unwrap();
        assert_eq!(stats.state, PathState::Validating);
        PathStats {
            srtt: Duration::from_millis(42),
            min_rtt: Duration::from_millis(40),
            ..stats
        }
    }

    /// Seconds in which so many packets arrived of those sent; what is found after the last.
    fn found(way: Way, seconds: &[(u64, u64)], change: impl Fn(&mut PathStats)) -> Option<u64> {
        let mut policing = Policing::default();
        let mut stats = fresh();
        assert_eq!(policing.look(&stats, SECOND), None);
        let mut found = None;
        for &(arrived, sent) in seconds {
            let counters = &mut stats.counters;
            match way {
                Way::Up => {
                    counters.sent_packets += sent;
                    counters.lost_packets += sent - arrived;
                    counters.acked_bytes += 1_000 * arrived;
                }
                Way::Down => {
                    counters.numbered_packets += sent;
                    counters.received_packets += arrived;
                    counters.received_bytes += 1_000 * arrived;
                }
            }
            change(&mut stats);
            found = policing.look(&stats, SECOND);
        }
        found.map(|(found, rate)| {
            assert_eq!(found, way);
            rate
        })
    }

    #[test]
    fn much_loss_at_a_steady_rate_without_a_queue_is_policing() {
        for way in Way::BOTH {
            let policed = [(200, 600), (210, 300), (200, 250), (190, 260), (200, 240)];
            assert_eq!(found(way, &policed, |_| ()), Some(200_000));
            assert_eq!(found(way, &policed[1..], |_| ()), None, "not long enough");
        }
    }

    #[test]
    fn little_loss_a_rate_that_varies_and_an_idle_path_are_none() {
        for (what, seconds) in [
            ("few lost", [(200, 220); 5]),
            ("few packets", [(60, 99); 5]),
            (
                "a radio link",
                [(200, 300), (150, 300), (260, 300), (200, 300), (180, 300)],
            ),
            (
                "a pause",
                [(200, 300), (200, 300), (0, 0), (200, 300), (200, 300)],
            ),
        ] {
            assert_eq!(found(Way::Down, &seconds, |_| ()), None, "{what}");
        }
        assert_eq!(
            found(Way::Down, &[(200, 223); 5], |_| ()),
            Some(200_000),
            "a tenth"
        );
    }

    #[test]
    fn a_queue_explains_losses() {
        let seconds = [(200, 300); 5];
        let queue = |stats: &mut PathStats| stats.srtt = stats.min_rtt + NO_QUEUE * 2;
        assert_eq!(found(Way::Down, &seconds, queue), None);
        let far = |stats: &mut PathStats| {
            stats.min_rtt = Duration::from_millis(300);
            stats.srtt = Duration::from_millis(440);
        };
        assert_eq!(found(Way::Down, &seconds, far), Some(200_000));
    }

    #[test]
    fn rates_are_those_of_the_time_that_passed() {
        let mut policing = Policing::default();
        let mut stats = fresh();
        policing.look(&stats, SECOND);
        let mut found = None;
        for seconds in [1, 2, 1, 3, 1] {
            stats.counters.numbered_packets += 300 * seconds;
            stats.counters.received_packets += 200 * seconds;
            stats.counters.received_bytes += 200_000 * seconds;
            found = policing.look(&stats, SECOND * seconds as u32);
        }
        assert_eq!(found, Some((Way::Down, 200_000)));
        assert_eq!(rate(3_000, Duration::from_millis(1_500)), 2_000);
        assert_eq!(rate(u64::MAX, Duration::ZERO), u64::MAX);
    }
}
