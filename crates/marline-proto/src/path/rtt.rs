//! Round-trip time of one path (RFC 9002 §5).

use marline_base::{Duration, Instant};

/// Assumed before the first sample (RFC 9002 §6.2.2 says 333 ms; links that Marline is for are
/// faster, and a probe too many costs little).
pub(crate) const INITIAL_RTT: Duration = Duration::from_millis(200);
/// Timer granularity (RFC 9002 §6.1.2).
pub(crate) const GRANULARITY: Duration = Duration::from_millis(1);
/// A minimum older than this is replaced, so that a route that grew longer is noticed.
const MIN_WINDOW: Duration = Duration::from_secs(10);
/// Round trips that are longer than the shortest by more than this, and by more than this number of
/// mean deviations of them, have met a queue.
const LEAST_QUEUE: Duration = Duration::from_millis(5);
const ALIKE: u32 = 4;

/// Smoothed, varying and smallest round-trip time.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    latest: Duration,
    smoothed: Duration,
    variation: Duration,
    /// Four times the variation, which timers want for every datagram.
    slack: Duration,
    sampled: bool,
    /// Sampled, measured by the carrier's handshake, or guessed by what another path's way back
    /// brought.
    known: bool,
    /// Smallest sample of the running window and of the one before it.
    min: [Duration; 2],
    /// Largest excess of a sample over the smoothed time then, in the same windows.
    swing: [Duration; 2],
    window_start: Instant,
}

impl Rtt {
    pub(crate) fn new(initial: Option<Duration>) -> Self {
        let rtt = initial.unwrap_or(INITIAL_RTT);
        Self {
            latest: rtt,
            smoothed: rtt,
            variation: rtt / 2,
            slack: rtt * 2,
            sampled: false,
            known: initial.is_some(),
            min: [Duration::MAX; 2],
            swing: [Duration::ZERO; 2],
            window_start: Instant::ZERO,
        }
    }

    /// Takes a sample; `ack_delay` is what the peer says it waited, at most its promise. Returns
    /// the sample without that delay.
    pub(crate) fn sample(&mut self, now: Instant, rtt: Duration, ack_delay: Duration) -> Duration {
        if now.since(self.window_start) > MIN_WINDOW {
            self.min = [Duration::MAX, self.min[0]];
            self.swing = [Duration::ZERO, self.swing[0]];
            self.window_start = now;
        }
        self.min[0] = self.min[0].min(rtt);
        self.latest = rtt;
        // §5.3: the delay is taken off only where the sample stays plausible.
        let adjusted = match rtt.checked_sub(ack_delay) {
            Some(less) if less >= self.min() => less,
            _ => rtt,
        };
        if self.sampled {
            let excess = adjusted.saturating_sub(self.smoothed);
            self.swing[0] = self.swing[0].max(excess);
            let deviation = self.smoothed.abs_diff(adjusted);
            self.variation = (self.variation * 3 + deviation) / 4;
            self.smoothed = (self.smoothed * 7 + adjusted) / 8;
        } else {
            self.sampled = true;
            self.known = true;
            self.smoothed = adjusted;
            self.variation = adjusted / 2;
        }
        self.slack = self.variation * 4;
        adjusted
    }

    /// A round trip of which another path was the way back: better than nothing, and forgotten with
    /// the first sample. It is no minimum: where that way is quicker, the path would hold less than
    /// its pipe.
    pub(crate) fn guess(&mut self, rtt: Duration) {
        if !self.known {
            self.known = true;
            (self.latest, self.smoothed) = (rtt, rtt);
            self.variation = rtt / 2;
            self.slack = self.variation * 4;
        }
    }

    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    pub(crate) fn variation(&self) -> Duration {
        self.variation
    }

    /// Four times the mean deviation (RFC 9002 §6.2.1).
    pub(crate) fn slack(&self) -> Duration {
        self.slack
    }

    /// By how much a round trip of the last 10 to 20 s exceeded the smoothed time at most.
    pub(crate) fn swing(&self) -> Duration {
        self.swing[0].max(self.swing[1])
    }

    pub(crate) fn latest(&self) -> Duration {
        self.latest
    }

    /// Smallest sample of the last 10 to 20 s; the smoothed time before the first sample.
    pub(crate) fn min(&self) -> Duration {
        let min = self.min[0].min(self.min[1]);
        if min == Duration::MAX {
            self.smoothed
        } else {
            min
        }
    }

    /// Do packets stand in a queue? Then round trips are longer than the shortest, and alike; where
    /// delay is drawn again for each they are longer, too, but differ. What the way back takes
    /// beyond its shortest, `back_queueing`, is a queue of others.
    pub(crate) fn shows_queue(&self, back_queueing: Duration) -> bool {
        let beyond = self.smoothed.saturating_sub(self.min() + back_queueing);
        beyond > LEAST_QUEUE.max(self.variation * ALIKE)
    }

    pub(crate) fn has_sample(&self) -> bool {
        self.sampled
    }

    /// There is more than a guess.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    /// Probe timeout before backoff (RFC 9002 §6.2.1).
    pub(crate) fn probe_timeout(&self, max_ack_delay: Duration) -> Duration {
        self.smoothed + self.slack.max(GRANULARITY) + max_ack_delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn follows_rfc_9002_section_5_3() {
        let mut rtt = Rtt::new(None);
        rtt.sample(Instant::from_millis(1), ms(80), ms(0));
        assert_eq!((rtt.smoothed(), rtt.variation()), (ms(80), ms(40)));
        // 7/8·80 + 1/8·(100 − 4) = 82; 3/4·40 + 1/4·16 = 34.
        rtt.sample(Instant::from_millis(2), ms(100), ms(4));
        assert_eq!((rtt.smoothed(), rtt.variation()), (ms(82), ms(34)));
        assert_eq!(rtt.probe_timeout(ms(5)), ms(82 + 136 + 5));
        // A delay that would take the sample below the minimum is not believed.
        rtt.sample(Instant::from_millis(3), ms(82), ms(5));
        assert_eq!(rtt.smoothed(), ms(82));
        assert_eq!(rtt.latest(), ms(82));
    }

    #[test]
    fn a_guess_is_forgotten_with_the_first_sample() {
        let mut rtt = Rtt::new(None);
        rtt.guess(ms(90));
        rtt.guess(ms(70));
        assert_eq!((rtt.smoothed(), rtt.min()), (ms(90), ms(90)));
        assert!(rtt.is_known() && !rtt.has_sample());
        rtt.sample(Instant::from_millis(1), ms(160), ms(0));
        assert_eq!((rtt.smoothed(), rtt.variation()), (ms(160), ms(80)));
        assert_eq!(rtt.min(), ms(160));
        rtt.guess(ms(90));
        assert_eq!(rtt.smoothed(), ms(160));
    }

    #[test]
    fn an_old_minimum_is_forgotten() {
        let mut rtt = Rtt::new(None);
        rtt.sample(Instant::ZERO, ms(20), ms(0));
        for second in 1..40 {
            rtt.sample(Instant::from_millis(second * 1000), ms(50), ms(0));
            let expected = if second < 22 { ms(20) } else { ms(50) };
            assert_eq!(rtt.min(), expected, "at second {second}");
        }
    }

    #[test]
    fn the_largest_swing_is_remembered_for_ten_to_twenty_seconds() {
        let mut rtt = Rtt::new(None);
        for (at, sample) in [(0, 50), (1, 90), (2, 50), (10_500, 50), (19_000, 50)] {
            rtt.sample(Instant::from_millis(at), ms(sample), ms(0));
        }
        // 90 − 50; what follows, and the first sample, are no jump.
        assert_eq!(rtt.swing(), ms(40));
        rtt.sample(Instant::from_millis(21_000), ms(50), ms(0));
        assert_eq!(rtt.swing(), ms(0));
    }
    #[test]
    fn long_round_trips_show_a_queue_only_if_they_are_alike() {
        let after = |later: &[u64], returning: u64| {
            let mut rtt = Rtt::new(None);
            for (at, &trip) in [20].iter().chain(later).enumerate() {
                rtt.sample(Instant::from_millis(at as u64), ms(trip), ms(0));
            }
            rtt.shows_queue(ms(returning))
        };
        assert!(!after(&[20; 40], 0));
        assert!(!after(&[24; 40], 0), "the time that a few packets take");
        assert!(after(&[50; 40], 0));
        assert!(!after(&[50; 40], 28), "a queue of the way back");
        // Drawn again between 20 and 80: longer by 30 in the mean, but they deviate by 30 from it.
        assert!(!after(&[80, 20].repeat(40), 0));
    }
}
