//! BBR's model of the path: bottleneck bandwidth and round-trip propagation time (§4.1).

use alloc::collections::VecDeque;

use marline_base::{Duration, Instant, Rate};

use super::Event;

/// §4.1.1.2 `BtlBwFilterLen`, in packet-timed round trips.
const BANDWIDTH_ROUNDS: u64 = 10;

/// §4.1.2.1 `RTpropFilterLen`.
const MIN_RTT_TIME: Duration = Duration::from_secs(10);

/// Windowed maximum: the samples that no later one exceeds, oldest and highest first. At most one
/// a round is kept, so no more than eleven in all.
#[derive(Debug, Default)]
struct MaxBandwidth {
    candidates: VecDeque<(u64, Rate)>,
}

impl MaxBandwidth {
    fn update(&mut self, round: u64, rate: Rate) {
        match self.candidates.back() {
            // As long-lived as the new one, and no lower.
            Some(&(last, highest)) if last == round && highest >= rate => {}
            _ => {
                while self
                    .candidates
                    .back()
                    .is_some_and(|&(_, lower)| lower <= rate)
                {
                    self.candidates.pop_back();
                }
                self.candidates.push_back((round, rate));
            }
        }
        while self
            .candidates
            .front()
            .is_some_and(|&(old, _)| round - old > BANDWIDTH_ROUNDS)
        {
            self.candidates.pop_front();
        }
    }

    fn get(&self) -> Option<Rate> {
        self.candidates.front().map(|&(_, rate)| rate)
    }
}

#[derive(Debug)]
pub(super) struct Model {
    max_bandwidth: MaxBandwidth,
    min_rtt: Option<Duration>,
    /// When the smallest round-trip time was last measured or confirmed.
    min_rtt_at: Instant,
}

impl Model {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            max_bandwidth: MaxBandwidth::default(),
            min_rtt: None,
            min_rtt_at: now,
        }
    }

    /// Bottleneck bandwidth, `BtlBw`.
    pub(super) fn bandwidth(&self) -> Option<Rate> {
        self.max_bandwidth.get()
    }

    /// Round-trip propagation time, `RTprop`.
    pub(super) const fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// §4.1.1.3 `BBRUpdateBtlBw`. An app-limited sample counts only if it raises the estimate; the
    /// estimate does not age while such samples are all there is.
    pub(super) fn update_bandwidth(&mut self, event: &Event, round: u64) {
        let Some(sample) = event.sample else { return };
        let raises = self
            .bandwidth()
            .is_none_or(|bandwidth| sample.rate >= bandwidth);
        if raises || !sample.app_limited {
            self.max_bandwidth.update(round, sample.rate);
        }
    }

    /// §4.1.2.3 `BBRUpdateRTprop`. True if the estimate had not been confirmed for ten seconds.
    pub(super) fn update_min_rtt(&mut self, event: &Event) -> bool {
        let expired = event.now > self.min_rtt_at + MIN_RTT_TIME;
        if let Some(rtt) = event.ack.rtt
            && (expired || self.min_rtt.is_none_or(|min_rtt| rtt <= min_rtt))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = event.now;
        }
        expired
    }

    /// PROBE_RTT has measured: the estimate is good for ten more seconds.
    pub(super) const fn confirm_min_rtt(&mut self, now: Instant) {
        self.min_rtt_at = now;
    }

    /// Bandwidth-delay product times `gain` (bytes); `None` before both are known.
    pub(super) fn flight(&self, gain: f64) -> Option<u64> {
        let bytes = self.bandwidth()?.bytes_in(self.min_rtt?);
        Some((bytes as f64 * gain) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(megabits: u64) -> Rate {
        Rate::from_mbps(megabits)
    }

    #[test]
    fn maximum_lasts_ten_rounds() {
        let mut filter = MaxBandwidth::default();
        filter.update(1, mbps(20));
        for round in 2..=11 {
            filter.update(round, mbps(10));
            filter.update(round, mbps(5));
            assert_eq!(filter.get(), Some(mbps(20)), "round {round}");
        }
        filter.update(12, mbps(5));
        assert_eq!(filter.get(), Some(mbps(10)));
        filter.update(13, mbps(30));
        assert_eq!(filter.get(), Some(mbps(30)));
        assert_eq!(filter.candidates.len(), 1);
    }

    #[test]
    fn falling_samples_keep_one_candidate_a_round() {
        let mut filter = MaxBandwidth::default();
        for round in 0..100 {
            for step in 0..100 {
                filter.update(round, mbps(100_000 - 100 * round - step));
                assert!(filter.candidates.len() <= 11);
            }
        }
        assert_eq!(filter.get(), Some(mbps(100_000 - 8_900)));
    }
}
