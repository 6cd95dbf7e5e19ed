//! Round-trip time and retransmission time-out (RFC 6298), with the bounds of Linux.

use marline_base::{Duration, Instant};

/// §2.1: time-out before there is a sample.
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// `TCP_RTO_MIN`: least distance of the time-out from the smoothed round-trip time. RFC 6298 §2.4
/// bounds the time-out as a whole, by a second; every Linux uses this since 2001.
const MIN_MARGIN: Duration = Duration::from_millis(200);
/// `TCP_RTO_MAX`.
const MAX_RTO: Duration = Duration::from_secs(120);
/// `tcp_min_rtt_wlen`: a minimum is forgotten after one to two of these.
const MIN_WINDOW: Duration = Duration::from_secs(300);

/// Smoothed, varying and smallest round-trip time of a connection.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
    /// Smallest sample of the running window and of the one before it.
    min: [Option<Duration>; 2],
    window_start: Instant,
}

impl Rtt {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            smoothed: None,
            variation: Duration::ZERO,
            min: [None; 2],
            window_start: now,
        }
    }

    /// A sample for the time-out: of the oldest segment newly acknowledged, the wait of a delayed
    /// acknowledgement included (§2.2, §2.3).
    pub(super) fn sample(&mut self, rtt: Duration) {
        match &mut self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(rtt)) / 4;
                *smoothed = (*smoothed * 7 + rtt) / 8;
            }
        }
    }

    /// A sample for the minimum: of the newest segment, which nothing held up at the receiver.
    pub(super) fn sample_min(&mut self, now: Instant, rtt: Duration) {
        if now.since(self.window_start) > MIN_WINDOW {
            self.min = [None, self.min[0]];
            self.window_start = now;
        }
        self.min[0] = Some(self.min[0].map_or(rtt, |min| min.min(rtt)));
    }

    pub(super) const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    pub(super) fn min(&self) -> Option<Duration> {
        self.min.into_iter().flatten().min()
    }

    /// §2.3, doubled `backoff` times (§5.5).
    pub(super) fn timeout(&self, backoff: u32) -> Duration {
        let rto = self.smoothed.map_or(INITIAL_RTO, |srtt| {
            srtt + (4 * self.variation).max(MIN_MARGIN)
        });
        rto.saturating_mul(1 << backoff.min(20)).min(MAX_RTO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn time_out_follows_rfc_6298() {
        let mut rtt = Rtt::new(Instant::ZERO);
        assert_eq!(rtt.timeout(0), ms(1_000));
        rtt.sample(ms(160));
        // 160 + 4 · 80
        assert_eq!(rtt.timeout(0), ms(480));
        rtt.sample(ms(80));
        // Variation (3 · 80 + 80) / 4 = 80, smoothed (7 · 160 + 80) / 8 = 150.
        assert_eq!(rtt.smoothed(), Some(ms(150)));
        assert_eq!(rtt.timeout(0), ms(470));
        assert_eq!(rtt.timeout(2), ms(1_880));
        assert_eq!(rtt.timeout(30), MAX_RTO);
    }

    #[test]
    fn a_steady_round_trip_keeps_the_margin() {
        let mut rtt = Rtt::new(Instant::ZERO);
        for _ in 0..100 {
            rtt.sample(ms(40));
        }
        assert_eq!(rtt.timeout(0), ms(240));
    }

    #[test]
    fn the_minimum_ages() {
        let mut rtt = Rtt::new(Instant::ZERO);
        rtt.sample_min(Instant::ZERO, ms(10));
        rtt.sample_min(Instant::from_millis(301_000), ms(30));
        assert_eq!(rtt.min(), Some(ms(10)));
        rtt.sample_min(Instant::from_millis(602_000), ms(30));
        assert_eq!(rtt.min(), Some(ms(30)));
    }
}
