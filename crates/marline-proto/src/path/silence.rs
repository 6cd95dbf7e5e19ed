//! That nothing arrives any more on a path is worth a report.
//!
//! A burst of losses shows by itself only when it is over. Where packets come at even intervals,
//! the first lost packet is known to be missing as soon as the next one should have come. Reported
//! at once, it is sent again while the burst lasts.
//!
//! The report goes back over the quickest path. The sender knows when each packet should have
//! arrived and copies those that did not. By gaps in packet numbers alone the sender would wait for
//! the end of the burst.

use marline_base::{Duration, Instant, nanos_f64};

use super::loss_meter::{LOSSY, LossMeter};
use crate::law::Loss;

/// A path falls silent when nothing arrives for this number of usual gaps: the next packet is
/// late by half a gap then. A choice, not tuned.
const SILENT_GAPS: f64 = 1.5;
/// Shortest gap that counts (ns): a millisecond, within which batches of the host's own arrive.
const LEAST_GAP: f64 = 1e6;
/// A path is idle when nothing arrived for this time: whoever sends less often is not waited
/// for.
const LONGEST: Duration = Duration::from_millis(100);
/// A silence is reported again after each further gap, as long as it may be a burst: the report may
/// be lost, and more is missing by then.
const REPORTS: u32 = LONGEST_BURST as u32;
/// Weight of a gap in the mean one (RFC 6298 §2).
const GAIN: f64 = 1.0 / 8.0;
/// Gaps are even if they differ from the mean one by no more than this share of it, on average.
const EVEN: f64 = 0.4;
/// The gap that a burst leaves counts as no further from the mean one than this share of it.
const BURST: f64 = 1.5;
/// A packet is missing if it has not arrived this long after one that left later: until then it may
/// only have been overtaken. Jitter is a time, not a number of packets: 32 packets are 70 ms of 5
/// Mb/s and 9 of 40.
const OVERTAKEN: Duration = Duration::from_millis(70);
/// At most this number of packets is judged at once: no peer makes us count to a number of its
/// choice.
const MOST_JUDGED: u64 = 256;

/// More packets in a row are not lost to a burst: of bursts of four on average, one in a hundred is
/// longer.
pub(super) const LONGEST_BURST: usize = 16;

/// When a path has been silent for too long.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// When the last packet arrived that asks for an acknowledgement.
    last: Option<Instant>,
    /// Mean time between two (ns), and how far from it the gaps are.
    spacing: f64,
    spread: f64,
    /// Share of the packets that did not arrive, of those below this number.
    missing: LossMeter,
    /// The same as a law, which knows bursts.
    pub(super) lost: Loss,
    judged: u64,
    /// The first of the packets right before `judged` that did not arrive.
    gap: Option<u64>,
    /// The largest number that had arrived when packets were judged last.
    passed: Option<(Instant, u64)>,
    /// How often the present silence was reported.
    reports: u32,
}

impl Silence {
    /// Packets up to `largest` are arriving; `has` answers whether a packet arrived.
    pub(super) fn on_number(&mut self, now: Instant, largest: u64, has: impl Fn(u64) -> bool) {
        let (at, until) = *self.passed.get_or_insert((now, largest));
        if now.since(at) < OVERTAKEN {
            return;
        }
        self.passed = Some((now, largest));
        self.judged = self.judged.max(until.saturating_sub(MOST_JUDGED));
        for number in self.judged..until {
            let has = has(number);
            self.missing.record(!has);
            if has {
                // A longer gap is an outage's, and says nothing of losses while the path carries.
                let gap = self.gap.take().unwrap_or(number)..number;
                if gap.end - gap.start <= LONGEST_BURST as u64 {
                    gap.for_each(|number| self.lost.on_lost(number, now));
                }
                self.lost.on_arrived(1, number);
            } else {
                self.gap.get_or_insert(number);
            }
        }
        self.lost.refresh(now);
        self.judged = self.judged.max(until);
    }

    /// When the last packet arrived that asks for an acknowledgement, and how long a silence after
    /// it is no burst of losses, where packets come at this pace.
    pub(super) fn outage(&self) -> Option<(Instant, Duration)> {
        let longest = LONGEST_BURST as f64 * self.usual_gap();
        Some((self.last?, Duration::from_nanos(longest as u64)))
    }

    /// How many packets should have arrived since the last one did, where they keep their pace; 0
    /// if none arrived after `since`, for then the peer may have had nothing to send.
    pub(super) fn missing_since(&self, now: Instant, since: Instant) -> u32 {
        let Some(last) = self.last.filter(|last| *last >= since) else {
            return 0;
        };
        let gaps = nanos_f64(now.since(last)) / self.usual_gap();
        gaps.min(LONGEST_BURST as f64) as u32
    }

    /// What two packets are apart (ns), uneven ones by as much more as they differ.
    fn usual_gap(&self) -> f64 {
        (self.spacing + self.spread).max(LEAST_GAP)
    }

    /// The packet asks for an acknowledgement: others will follow as they did before.
    pub(super) fn on_eliciting(&mut self, now: Instant) {
        self.reports = 0;
        if let Some(last) = self.last.replace(now) {
            let gap = nanos_f64(now.since(last).min(LONGEST));
            let off = (gap - self.spacing).abs().min(BURST * self.spacing);
            self.spread += GAIN * (off - self.spread);
            self.spacing += GAIN * (gap - self.spacing);
        }
    }

    /// When the peer must learn that nothing arrives; `None` where a silence would not mean losses.
    pub(super) fn due(&self) -> Option<Instant> {
        // Asked for each datagram, and nearly always nothing is missing.
        if self.missing.fraction() <= LOSSY || self.reports >= REPORTS {
            return None;
        }
        let last = self.last?;
        let even = self.spread <= EVEN * self.spacing;
        if !even {
            return None;
        }
        let gaps = SILENT_GAPS + f64::from(self.reports);
        let silence = Duration::from_nanos((gaps * self.spacing.max(LEAST_GAP)) as u64);
        (silence < LONGEST).then(|| last + silence)
    }

    pub(super) fn on_report(&mut self) {
        self.reports += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const GAP: u64 = 2_000;

    /// 100 packets; `number` and time (µs) of each.
    fn after(number: impl Fn(u64) -> u64, at_us: impl Fn(u64) -> u64) -> (Silence, Instant) {
        let mut silence = Silence::default();
        let mut now = Instant::ZERO;
        let mut arrived = Vec::new();
        for n in 0..100 {
            now = Instant::from_micros(at_us(n));
            arrived.push(number(n));
            let largest = *arrived.iter().max().unwrap();
            silence.on_number(now, largest, |number| arrived.contains(&number));
            silence.on_eliciting(now);
        }
        (silence, now)
    }

    fn due_us(silence: &Silence, last: Instant) -> Option<u64> {
        Some(silence.due()?.since(last).as_micros() as u64)
    }

    /// Every 33rd packet is lost.
    fn lossy(n: u64) -> u64 {
        n + n / 32
    }

    #[test]
    fn it_is_reported_after_a_gap_and_a_half_and_again_until_it_is_old() {
        let (mut silence, last) = after(lossy, |n| GAP * n);
        for reports in 0..u64::from(REPORTS) {
            let due = due_us(&silence, last).unwrap();
            assert!(due.abs_diff(GAP * 3 / 2 + reports * GAP) < 100, "{due}");
            silence.on_report();
        }
        assert_eq!(silence.due(), None);
        let now = last + Duration::from_millis(30);
        silence.on_eliciting(now);
        assert!(silence.due() > Some(now), "it is over");
    }

    #[test]
    fn one_loss_is_remembered_for_some_hundred_packets() {
        let reported_after = |packets: u64| {
            let mut silence = Silence::default();
            for n in 0..packets {
                let now = Instant::from_micros(GAP * n);
                silence.on_number(now, n + u64::from(n > 300), |number| number != 301);
                silence.on_eliciting(now);
            }
            silence.due().is_some()
        };
        assert!(reported_after(700));
        assert!(!reported_after(1_200));
    }

    #[test]
    fn a_path_that_loses_nothing_may_pause() {
        let (silence, _) = after(|n| n, |n| GAP * n);
        assert_eq!(silence.due(), None);
        // Packets that overtake each other are not lost.
        let (silence, _) = after(|n| n ^ 1, |n| GAP * n);
        assert_eq!(silence.due(), None);
    }

    #[test]
    fn what_jitter_delays_is_not_lost_at_any_rate() {
        // Four packets of every fifty come 8 ms after their turn, in which eighty others do.
        let mut silence = Silence::default();
        let mut arrivals: Vec<(u64, u64)> = (0..4_000)
            .map(|n| (100 * n + if n % 50 < 4 { 8_050 } else { 0 }, n))
            .collect();
        arrivals.sort_unstable();
        let (mut arrived, mut largest) = (alloc::collections::BTreeSet::new(), 0);
        for (at_us, number) in arrivals {
            let now = Instant::from_micros(at_us);
            arrived.insert(number);
            if number > largest {
                largest = number;
                silence.on_number(now, largest, |number| arrived.contains(&number));
            }
            silence.on_eliciting(now);
        }
        assert_eq!(silence.missing.fraction(), 0.0);
    }

    #[test]
    fn uneven_gaps_say_nothing() {
        // Four at once, as where delay varies and packets keep their order.
        let (silence, _) = after(lossy, |n| 4 * GAP * (n / 4));
        assert_eq!(silence.due(), None);
        // A burst of losses is no reason to hold the gaps for uneven.
        let (silence, last) = after(lossy, |n| GAP * (n + 4 * u64::from(n >= 98)));
        assert!(due_us(&silence, last).is_some());
    }

    #[test]
    fn a_gap_of_an_outage_is_no_loss() {
        let (silence, _) = after(|n| n + 40 * (n / 50), |n| GAP * n);
        assert!(silence.lost.rate() < 0.004, "{}", silence.lost.rate());
        let (silence, _) = after(lossy, |n| GAP * n);
        assert!(silence.lost.rate() > 0.02, "{}", silence.lost.rate());
    }

    #[test]
    fn packets_are_missing_by_the_pace_at_which_they_came() {
        let (silence, last) = after(|n| n, |n| GAP * n);
        let missing = |after_us| {
            let now = last + Duration::from_micros(after_us);
            silence.missing_since(now, Instant::ZERO)
        };
        assert_eq!([0, GAP * 3 + 100, 1_000_000].map(missing), [0, 3, 16]);
        let later = last + Duration::from_millis(10);
        assert_eq!(silence.missing_since(later, later), 0, "they came before");
    }

    #[test]
    fn what_is_idle_or_begins_is_not_silent() {
        let (silence, _) = after(lossy, |n| 90_000 * n);
        assert_eq!(silence.due(), None);
        let mut silence = Silence::default();
        assert_eq!(silence.due(), None);
        silence.on_number(Instant::ZERO, u64::MAX, |_| false);
        silence.on_number(Instant::from_millis(100), u64::MAX, |_| false);
        assert_eq!(silence.due(), None, "nothing asked for an acknowledgement");
    }
}
