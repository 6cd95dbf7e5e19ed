//! Does a path deliver more slowly than it was filled, and how slowly?
//!
//! A path's rate is the most that it delivered in some round trips, and where the rate drops, these
//! grow as long as the queue that nobody expected. The last acknowledgements say it at once:
//! packets come back much farther apart than they left.

use alloc::collections::VecDeque;

use marline_base::{Duration, Instant, Rate};

/// Acknowledgements that are remembered: four stretches between them, half a round trip at least.
/// A moment without any, as jitter makes, fills one or two.
const MARKS: usize = 5;
/// They are a round trip divided by this apart, and at least this time: many may be read at once.
const PART: u32 = 8;
const APART: Duration = Duration::from_millis(1);
/// A path is slow if packets come back farther apart than they left by this factor. Radio links do
/// with two for moments all the time, and copies that come after such a moment only fill the other
/// path (`marline repro field wifi-cell --cell load=live`).
const SLOW: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    /// When the newest packet left that was acknowledged by then.
    sent: Instant,
    /// Bytes that had been delivered by then.
    delivered: u64,
}

/// The last acknowledgements of a path.
#[derive(Debug, Default)]
pub(super) struct Pace {
    marks: VecDeque<Mark>,
}

impl Pace {
    /// With this acknowledgement `delivered` bytes are there in all; their newest packet left at
    /// `sent`. Round trips take `trip`.
    pub(super) fn on_ack(&mut self, at: Instant, sent: Instant, delivered: u64, trip: Duration) {
        let apart = APART.max(trip / PART);
        if self.marks.back().is_some_and(|last| at < last.at + apart) {
            return;
        }
        if self.marks.len() == MARKS {
            self.marks.pop_front();
        }
        let sent = self.marks.back().map_or(sent, |last| sent.max(last.sent));
        self.marks.push_back(Mark {
            at,
            sent,
            delivered,
        });
    }

    /// What the path delivers now, if it has been slow in each of the last stretches. Only what
    /// comes says so: a silent path may be dark, or have become longer.
    pub(super) fn slow(&self) -> Option<Rate> {
        let (first, last) = (self.marks.front()?, self.marks.back()?);
        let mut stretches = self.marks.iter().zip(self.marks.iter().skip(1));
        let slow = self.marks.len() == MARKS
            && stretches.all(|(from, to)| to.at.since(from.at) > to.sent.since(from.sent) * SLOW);
        let bytes = last.delivered - first.delivered;
        slow.then(|| Rate::from_bytes_over(bytes, last.at.since(first.at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIP: Duration = Duration::from_millis(40);

    /// Packets of 1000 bytes: when each left, and when it was acknowledged (ms).
    fn after(packets: impl IntoIterator<Item = (u64, u64)>) -> Option<Rate> {
        let mut pace = Pace::default();
        for (n, (sent, at)) in (1..).zip(packets) {
            let [sent, at] = [sent, at].map(Instant::from_millis);
            pace.on_ack(at, sent, 1_000 * n, TRIP);
        }
        pace.slow()
    }

    #[test]
    fn the_last_acknowledgements_show_what_comes_now() {
        // A packet each millisecond, and then one comes every 10 ms.
        let trickle = |acks| {
            let even = (0..3_000).map(|n| (n, n + 40));
            even.chain((1..=acks).map(|n| (2_999 + n, 3_039 + 10 * n)))
        };
        assert_eq!(after(trickle(0)), None);
        assert_eq!(after(trickle(3)), None, "too few to say");
        let slow = Rate::from_bytes_over(4_000, Duration::from_millis(40));
        assert_eq!(after(trickle(6)), Some(slow));
    }

    #[test]
    fn a_path_that_became_longer_is_not_slow() {
        for more in 0..50 {
            let longer = (0..100).map(|n| (n, n + 40));
            let longer = longer.chain((100..100 + more).map(|n| (n, n + 140)));
            assert_eq!(after(longer), None, "{more}");
        }
    }

    #[test]
    fn who_sends_little_gets_little_back() {
        assert_eq!(after((0..100).map(|n| (50 * n, 50 * n + 40))), None);
    }
}
