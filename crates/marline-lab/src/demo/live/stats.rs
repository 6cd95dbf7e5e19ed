//! What the receiver's notes say.

use super::Sent;
use marline_base::nearest_rank;
use serde::Serialize;

/// One message that came. Times in nanoseconds of the shared clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::demo) struct Arrival {
    pub(in crate::demo) sequence: u64,
    pub(in crate::demo) sent: u64,
    pub(in crate::demo) received: u64,
}

/// How the live stream fared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveFigures {
    /// Messages sent.
    pub sent: u64,
    /// Different ones that came, whole.
    pub received: u64,
    /// Messages that never came.
    pub lost: u64,
    /// Datagrams that came and were no message that was sent. Anything but 0 is a failure.
    pub damaged: u64,
    /// In-order delay of the messages that came; `None` if none came.
    pub delay_ms: Option<Delays>,
    /// Longest time in which the receiver received nothing while it should have, milliseconds.
    pub longest_stall_ms: f64,
}

/// Quantiles of the in-order delay, milliseconds: from the sending of a message until it and every
/// message before it have come or been given up. Exact, by nearest rank.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Delays {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub worst: f64,
}

/// The figures of what was `sent`.
///
/// The session hands messages over in order and gives lost ones up itself, so what came after a gap
/// was delayed by it already.
pub(in crate::demo) fn figures(
    mut arrivals: Vec<Arrival>,
    sent: Sent,
    damaged: u64,
) -> LiveFigures {
    let longest_stall_ms = millis(longest_silence(&arrivals, sent));
    // The first copy of a message counts; a message from beyond what was sent cannot be one.
    arrivals.retain(|arrival| arrival.sequence < sent.messages);
    arrivals.sort_unstable_by_key(|arrival| (arrival.sequence, arrival.received));
    arrivals.dedup_by_key(|arrival| arrival.sequence);
    let mut released = 0;
    let mut delays: Vec<u64> = arrivals
        .iter()
        .map(|arrival| {
            released = arrival.received.max(released);
            released.saturating_sub(arrival.sent)
        })
        .collect();
    delays.sort_unstable();
    let received = delays.len() as u64;
    LiveFigures {
        sent: sent.messages,
        received,
        lost: sent.messages - received,
        damaged,
        delay_ms: delay_ms(&delays),
        longest_stall_ms,
    }
}

/// Of ascending delays (ns).
fn delay_ms(delays: &[u64]) -> Option<Delays> {
    let at = |percent| nearest_rank(delays, percent).map(millis);
    Some(Delays {
        p50: at(50)?,
        p95: at(95)?,
        p99: at(99)?,
        worst: at(100)?,
    })
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// Between two arrivals, from the first sending to the first arrival, and from the last arrival to
/// the last sending.
fn longest_silence(arrivals: &[Arrival], sent: Sent) -> u64 {
    let mut times: Vec<u64> = arrivals.iter().map(|arrival| arrival.received).collect();
    times.push(sent.first);
    if times.iter().all(|time| *time < sent.last) {
        times.push(sent.last);
    }
    times.sort_unstable();
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sent(messages: u64, last: u64) -> Sent {
        Sent {
            messages,
            first: 0,
            last,
        }
    }

    /// Messages sent every 10 ms, and when they came.
    fn came(at_ms: &[(u64, u64)]) -> Vec<Arrival> {
        at_ms
            .iter()
            .map(|&(sequence, received)| Arrival {
                sequence,
                sent: sequence * 10 * MS,
                received: received * MS,
            })
            .collect()
    }

    #[test]
    fn a_late_message_delays_those_behind_it() {
        // 1 overtakes 0, which therefore sets the delay of both: 35 − 0 and 35 − 10.
        let arrivals = came(&[(1, 25), (0, 35), (2, 36)]);
        let live = figures(arrivals, sent(3, 20 * MS), 0);
        let delays = live.delay_ms.unwrap();
        assert_eq!((delays.p50, delays.worst), (25.0, 35.0));
        assert_eq!((live.received, live.lost), (3, 0));
        assert_eq!(live.longest_stall_ms, 25.0);
    }

    #[test]
    fn quantiles_are_exact() {
        let arrivals = (0..100).map(|n| Arrival {
            sequence: n,
            sent: n * 1000 * MS,
            received: n * 1000 * MS + (n + 1) * MS,
        });
        let delays = figures(arrivals.collect(), sent(100, 99_000 * MS), 0)
            .delay_ms
            .unwrap();
        let expected = Delays {
            p50: 50.0,
            p95: 95.0,
            p99: 99.0,
            worst: 100.0,
        };
        assert_eq!(delays, expected);
    }

    #[test]
    fn the_lost_are_counted_and_copies_are_not() {
        let arrivals = came(&[(0, 5), (0, 6), (2, 25), (9, 95)]);
        let live = figures(arrivals, sent(5, 40 * MS), 1);
        assert_eq!((live.sent, live.received, live.lost), (5, 2, 3));
        assert_eq!(live.damaged, 1);
        assert_eq!(live.delay_ms.unwrap().worst, 5.0);
    }

    #[test]
    fn silence_counts_to_the_last_sending() {
        let live = figures(came(&[(0, 5), (1, 15)]), sent(100, 990 * MS), 0);
        assert_eq!(live.longest_stall_ms, 975.0);
        let live = figures(came(&[(0, 5), (1, 15)]), sent(2, 10 * MS), 0);
        assert_eq!(live.longest_stall_ms, 10.0);
        let live = figures(Vec::new(), sent(100, 990 * MS), 0);
        assert_eq!(live.longest_stall_ms, 990.0);
        assert_eq!((live.lost, live.delay_ms), (100, None));
    }
}
