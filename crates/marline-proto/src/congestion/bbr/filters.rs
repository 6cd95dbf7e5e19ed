//! BBR's model of the path: bottleneck bandwidth and round-trip propagation time (§4.1).

use alloc::collections::VecDeque;

use marline_base::{Duration, Instant, Rate};

use super::Event;
use super::probe_rtt::Manner;

/// §4.1.1.2 `BtlBwFilterLen`, in packet-timed round trips.
const BANDWIDTH_ROUNDS: u64 = 10;
/// In the gentle manner a sample also lasts for this number of rounds that the application did not
/// limit. Otherwise, where it limits most, the first sample that it does not is the only one left,
/// and one that follows a burst of losses is a tenth of the rate. Not ten: what jitter raised would
/// stay.
const FILLED_ROUNDS: u64 = 3;

/// §4.1.2.1 `RTpropFilterLen`.
const MIN_RTT_TIME: Duration = Duration::from_secs(10);

/// A round whose mean exceeds the smallest by no more than this part of it has seen no queue worth
/// a probe, which would take half of the path from a live stream.
const CONFIRMS: u32 = 8;

/// A cycle in which even the quickest packet took longer than the smallest round-trip time by this
/// part of it, although the queue was drained for as long as the model says that it takes, speaks
/// against the model: the path has grown longer.
const DOUBTS: u32 = 4;

/// This number of such cycles in a row is answered by a probe; twice as many after each probe that
/// changed nothing, for a queue of others looks the same.
const PATIENCE: u32 = 2;
const MOST_PATIENCE: u32 = 64;

/// A queue stands where round trips exceed the smallest by this part of it, and by this time.
const STANDS: u32 = 4;
const LEAST_QUEUE: Duration = Duration::from_millis(5);

/// One over the weight of a sample in the mean round-trip time of lately (RFC 6298 §2).
const LATELY: u32 = 8;

/// Samples of the round-trip time whose mean is worth something: to a quarter of their
/// deviation.
const LEAST_SAMPLES: u32 = 16;

/// Windowed maximum: the samples that no later one exceeds, oldest and highest first. At most one
/// a round is kept, so no more than eleven in all.
#[derive(Debug, Default)]
struct MaxBandwidth {
    candidates: VecDeque<Candidate>,
    /// Rounds with a sample that the application did not limit: the last one, and how many there
    /// were.
    filled: (u64, u64),
    /// A sample lasts for this number of them at least.
    least_filled: u64,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    round: u64,
    /// Filled rounds until then.
    filled: u64,
    rate: Rate,
}

impl MaxBandwidth {
    fn update(&mut self, round: u64, rate: Rate, app_limited: bool) {
        if !app_limited && self.filled.0 != round {
            self.filled = (round, self.filled.1 + 1);
        }
        let filled = self.filled.1;
        match self.candidates.back() {
            // As long-lived as the new one, and no lower.
            Some(last) if last.round == round && last.rate >= rate => {}
            _ => {
                let is_lower = |last: &Candidate| last.rate <= rate;
                while self.candidates.back().is_some_and(is_lower) {
                    self.candidates.pop_back();
                }
                self.candidates.push_back(Candidate {
                    round,
                    filled,
                    rate,
                });
            }
        }
        let least = self.least_filled;
        let is_over =
            |old: &Candidate| round - old.round > BANDWIDTH_ROUNDS && filled - old.filled >= least;
        while self.candidates.len() > 1 && self.candidates.front().is_some_and(is_over) {
            self.candidates.pop_front();
        }
    }

    fn get(&self) -> Option<Rate> {
        self.candidates.front().map(|highest| highest.rate)
    }
}

#[derive(Debug)]
pub(super) struct Model {
    max_bandwidth: MaxBandwidth,
    min_rtt: Option<Duration>,
    /// When the smallest round-trip time was last measured or confirmed.
    min_rtt_at: Instant,
    /// Sum and count of the samples since the last mean, if the smallest mean is sought.
    mean: Option<(Duration, u32)>,
    /// The smallest round-trip time is a mean already.
    averaged: bool,
    /// Mean round-trip time of lately.
    lately: Option<Duration>,
    doubt: Doubt,
}

/// Do rounds without a queue of ours still reach the smallest round-trip time?
#[derive(Debug)]
struct Doubt {
    /// The queue was drained in this cycle; the smallest round-trip time since then.
    drained: Option<Option<Duration>>,
    /// Cycles in a row that speak against the estimate, and how many of them are too many.
    cycles: u32,
    patience: u32,
    /// The estimate that is being probed.
    before: Option<Duration>,
}

impl Model {
    pub(super) fn new(now: Instant, manner: Manner) -> Self {
        Self {
            max_bandwidth: MaxBandwidth {
                least_filled: match manner {
                    Manner::FourPackets => 0,
                    Manner::HalfPipe => FILLED_ROUNDS,
                },
                ..MaxBandwidth::default()
            },
            min_rtt: None,
            min_rtt_at: now,
            mean: match manner {
                Manner::FourPackets => None,
                Manner::HalfPipe => Some((Duration::ZERO, 0)),
            },
            averaged: false,
            lately: None,
            doubt: Doubt {
                drained: None,
                cycles: 0,
                patience: PATIENCE,
                before: None,
            },
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
            self.max_bandwidth
                .update(round, sample.rate, sample.app_limited);
        }
    }

    /// The sample of the round-trip time that this acknowledgement brings. Where packets are
    /// delayed at random, the luckiest of thousands says little about the others, and a window made
    /// of it starves the path; the mean of a round (or of several, if they are short) does not, and
    /// rounds without a queue are found by taking the smallest.
    fn rtt_sample(&mut self, event: &Event) -> Option<Duration> {
        let Some((sum, count)) = &mut self.mean else {
            return event.ack.rtt;
        };
        let mean = (event.round_start && *count >= LEAST_SAMPLES).then(|| *sum / *count);
        if mean.is_some() {
            (*sum, *count) = (Duration::ZERO, 0);
        }
        if let Some(rtt) = event.ack.rtt {
            *sum += rtt;
            *count += 1;
        }
        if self.averaged {
            return mean;
        }
        // The mean of what there is stands in for the first one: a lucky first sample would starve
        // the path meanwhile.
        self.averaged = mean.is_some();
        self.min_rtt = None;
        mean.or((*count > 0).then(|| *sum / *count))
    }

    /// §4.1.2.3 `BBRUpdateRTprop`. True if the estimate had not been confirmed for ten seconds.
    pub(super) fn update_min_rtt(&mut self, event: &Event) -> bool {
        if let Some(rtt) = event.ack.rtt {
            let before = self.lately.unwrap_or(rtt);
            self.lately = Some((before * (LATELY - 1) + rtt) / LATELY);
        }
        let sample = self.rtt_sample(event);
        if let (Some(mean), Some(min_rtt)) = (sample, self.min_rtt)
            && self.averaged
            && mean <= min_rtt + min_rtt / CONFIRMS
        {
            // The estimate itself stays, so that many such rounds cannot make it creep.
            self.min_rtt = Some(min_rtt.min(mean));
            self.min_rtt_at = event.now;
        }
        if let (Some(quickest), Some(rtt)) = (&mut self.doubt.drained, event.ack.rtt) {
            *quickest = Some(quickest.map_or(rtt, |q| q.min(rtt)));
        }
        let expired =
            event.now > self.min_rtt_at + MIN_RTT_TIME || self.doubt.cycles >= self.doubt.patience;
        if let Some(rtt) = sample
            && (expired || self.min_rtt.is_none_or(|min_rtt| rtt <= min_rtt))
        {
            if expired {
                self.doubt.before = self.min_rtt;
                self.doubt.cycles = 0;
            }
            self.min_rtt = Some(rtt);
            self.min_rtt_at = event.now;
        }
        expired
    }

    /// Does a queue stand before the bottleneck, ours or that of others? True as long as it is not
    /// known.
    pub(super) fn sees_queue(&self) -> bool {
        let (Some(lately), Some(min_rtt)) = (self.lately, self.min_rtt) else {
            return true;
        };
        lately > min_rtt + LEAST_QUEUE.max(min_rtt / STANDS)
    }

    /// There should be no queue of ours now, by this model.
    pub(super) const fn on_drained(&mut self) {
        self.doubt.drained = Some(None);
    }

    /// A new cycle of gains begins: what did the last one say of the smallest round-trip time?
    pub(super) fn on_cycle(&mut self) {
        let quickest = self.doubt.drained.take().flatten();
        if let (Some(quickest), Some(min_rtt)) = (quickest, self.min_rtt) {
            let longer = quickest > min_rtt + min_rtt / DOUBTS;
            self.doubt.cycles = if longer { self.doubt.cycles + 1 } else { 0 };
        }
    }

    /// PROBE_RTT has measured: the estimate is good for ten more seconds.
    pub(super) fn confirm_min_rtt(&mut self, now: Instant) {
        self.min_rtt_at = now;
        if let (Some(before), Some(min_rtt)) = (self.doubt.before.take(), self.min_rtt) {
            self.doubt.patience = if min_rtt > before + before / DOUBTS {
                PATIENCE
            } else {
                (2 * self.doubt.patience).min(MOST_PATIENCE)
            };
        }
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
    use crate::congestion::DeliverySample;

    fn mbps(megabits: u64) -> Rate {
        Rate::from_mbps(megabits)
    }

    #[test]
    fn maximum_lasts_ten_rounds() {
        let mut filter = MaxBandwidth::default();
        filter.update(1, mbps(20), false);
        for round in 2..=11 {
            filter.update(round, mbps(10), false);
            filter.update(round, mbps(5), false);
            assert_eq!(filter.get(), Some(mbps(20)), "round {round}");
        }
        filter.update(12, mbps(5), false);
        assert_eq!(filter.get(), Some(mbps(10)));
        filter.update(13, mbps(30), false);
        assert_eq!(filter.get(), Some(mbps(30)));
        assert_eq!(filter.candidates.len(), 1);
    }

    fn event(now: Instant, rtt: u64, round_start: bool) -> Event {
        let rtt = Duration::from_millis(rtt);
        Event {
            now,
            ack: crate::congestion::tests::ack(1_250, now, rtt),
            sample: None,
            lost: 0,
            round_start,
        }
    }

    #[test]
    fn a_gentle_model_seeks_the_smallest_mean_and_not_the_luckiest_packet() {
        let mut models =
            [Manner::FourPackets, Manner::HalfPipe].map(|m| Model::new(Instant::ZERO, m));
        for n in 0..200 {
            // 20 to 60 ms, and 100 ms more while there is a queue; rounds of 20 packets.
            let queue = if n >= 100 { 100 } else { 0 };
            let rtt = 20 + (n * 7) % 41 + queue;
            let event = event(Instant::from_millis(n), rtt, n % 20 == 0);
            for model in &mut models {
                model.update_min_rtt(&event);
            }
        }
        let found = models.map(|m| m.min_rtt().unwrap());
        assert_eq!(found[0], Duration::from_millis(20));
        let mean = found[1].as_secs_f64() * 1e3;
        assert!((35.0..45.0).contains(&mean), "{mean}");
    }

    /// A sender that fills no path for fifty rounds, and then, after a burst of losses, one packet
    /// is acknowledged.
    #[test]
    fn a_gentle_estimate_outlives_one_bad_sample_of_a_sender_that_was_limited() {
        for (manner, after) in [(Manner::HalfPipe, 20), (Manner::FourPackets, 1)] {
            let mut model = Model::new(Instant::ZERO, manner);
            let mut hear = |round, megabits, app_limited| {
                let mut event = event(Instant::from_millis(round), 20, true);
                event.sample = Some(DeliverySample {
                    rate: mbps(megabits),
                    app_limited,
                });
                model.update_bandwidth(&event, round);
                model.bandwidth()
            };
            hear(1, 20, false);
            for round in 2..=50 {
                assert_eq!(hear(round, 10, true), Some(mbps(20)), "round {round}");
            }
            assert_eq!(hear(51, 1, false), Some(mbps(after)));
            let later = [52, 53].map(|round| hear(round, 2, false));
            assert_eq!(later[1], Some(mbps(2)), "it is not for ever");
        }
    }

    #[test]
    fn falling_samples_keep_one_candidate_a_round() {
        let mut filter = MaxBandwidth::default();
        for round in 0..100 {
            for step in 0..100 {
                filter.update(round, mbps(100_000 - 100 * round - step), false);
                assert!(filter.candidates.len() <= 11);
            }
        }
        assert_eq!(filter.get(), Some(mbps(100_000 - 8_900)));
    }
}
