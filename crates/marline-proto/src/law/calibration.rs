//! How often the law came true.
//!
//! Now and then a packet's law is kept until its fate is known. If the law is right, the
//! probability that it gave to the moment of arrival is even between 0 and 1: a tenth of packets
//! arrives in each tenth of the law. And of packets as many are lost as the law said.

use alloc::collections::VecDeque;

use marline_base::{Duration, Instant};

use super::Law;

/// Nobody plans finer than this (µs): the law of a path that has no jitter is narrower, and which
/// tenth of a microsecond a packet came in says nothing.
const EITHER_SIDE: f64 = 500.0;
/// The golden ratio's multiples, whole parts left out, are as even as numbers in turn can be.
const GOLDEN: f64 = 0.618_033_988_749_895;
/// A law is kept at most this often: independent enough, and a thousandth of a busy path's work.
const EVERY: Duration = Duration::from_millis(25);
/// Laws that are kept at once: a round trip of 400 ms.
const KEPT: usize = 16;
/// What is undecided for longer is lost: no round trip is as long, and statistics may be late.
/// Nothing is decided by it.
const LOST: Duration = Duration::from_secs(10);

/// How often the law of a path came true.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Packets that arrived by the tenth of their law in which they did, earliest first.
    pub deciles: [u64; 10],
    /// Packets that were lost.
    pub lost: u64,
    /// How many of all packets were to be lost.
    pub expected_lost: f64,
}

impl Calibration {
    /// Packets whose fate is known.
    pub fn packets(&self) -> u64 {
        self.deciles.iter().sum::<u64>() + self.lost
    }

    /// How far the tenths are from a tenth, on average: 0 if all is as promised, 0.18 at the most.
    /// `None` before anything arrived.
    pub fn off(&self) -> Option<f64> {
        let arrived = self.deciles.iter().sum::<u64>() as f64;
        let off = |count: &u64| (*count as f64 / arrived - 0.1).abs();
        (arrived > 0.0).then(|| self.deciles.iter().map(off).sum::<f64>() / 10.0)
    }

    /// Share of what arrived that came later than its law's last tenth begins: a tenth if it is
    /// right. `None` before anything arrived.
    pub fn late(&self) -> Option<f64> {
        let arrived = self.deciles.iter().sum::<u64>() as f64;
        (arrived > 0.0).then(|| self.deciles[9] as f64 / arrived)
    }

    /// A packet of this law arrived at `at` (µs on the peer's clock).
    pub fn on_arrived(&mut self, law: &Law, at: f64) {
        // Within a millisecond any tenth will do, each in its turn.
        let (low, high) = (law.share(at - EITHER_SIDE), law.share(at + EITHER_SIDE));
        let turn = self.deciles.iter().sum::<u64>() as f64 * GOLDEN % 1.0;
        let decile = (10.0 * (low + turn * (high - low))) as usize;
        self.deciles[decile.min(9)] += 1;
        self.expected_lost += law.loss();
    }

    /// A packet was lost.
    pub fn on_lost(&mut self, loss: f64) {
        self.lost += 1;
        self.expected_lost += loss;
    }
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    number: u64,
    sent: Instant,
    law: Law,
}

/// Laws whose packets are under way.
#[derive(Debug, Default)]
pub(super) struct Judge {
    kept: VecDeque<Kept>,
    next: Instant,
    calibration: Calibration,
}

impl Judge {
    /// Is a law to be kept of what leaves now?
    pub(super) fn wants(&self, now: Instant) -> bool {
        now >= self.next
            && (self.kept.len() < KEPT || self.kept.front().is_some_and(|k| is_lost(k, now)))
    }

    /// Packet `number` leaves.
    pub(super) fn keep(&mut self, now: Instant, number: u64, law: Law) {
        while let Some(kept) = self.kept.front().filter(|kept| is_lost(kept, now)) {
            self.calibration.on_lost(kept.law.loss());
            self.kept.pop_front();
        }
        self.next = now + EVERY;
        if self.kept.len() < KEPT {
            self.kept.push_back(Kept {
                number,
                sent: now,
                law,
            });
        }
    }

    /// Packet `number` arrived at `at` (µs on the peer's clock).
    pub(super) fn on_arrival(&mut self, number: u64, at: f64) {
        // Most packets are none of those that are kept.
        if self.kept.front().is_none_or(|first| number < first.number) {
            return;
        }
        if let Some(place) = self.kept.iter().position(|kept| kept.number == number)
            && let Some(kept) = self.kept.remove(place)
        {
            self.calibration.on_arrived(&kept.law, at);
        }
    }

    /// Packet `number` was lost.
    pub(super) fn on_lost(&mut self, number: u64) {
        if let Some(place) = self.kept.iter().position(|kept| kept.number == number)
            && let Some(kept) = self.kept.remove(place)
        {
            self.calibration.on_lost(kept.law.loss());
        }
    }

    /// The clocks are not what they were: what is kept says nothing.
    pub(super) fn forget(&mut self) {
        self.kept.clear();
    }

    pub(super) fn calibration(&self) -> Calibration {
        self.calibration
    }
}

fn is_lost(kept: &Kept, now: Instant) -> bool {
    now.since(kept.sent) > LOST
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Rng;

    #[test]
    fn a_true_law_has_a_tenth_of_packets_in_each_tenth() {
        let mut judge = Judge::default();
        let mut rng = Rng::new(8);
        for number in 0..20_000_u64 {
            let now = Instant::from_millis(25 * number);
            assert!(judge.wants(now));
            let law = Law::normal(now.as_micros() as f64, 5e3, 0.05);
            judge.keep(now, number, law);
            assert!(!judge.wants(now));
            match law.quantile(rng.uniform()) {
                Some(at) => judge.on_arrival(number, at),
                None => judge.on_lost(number),
            }
        }
        let calibration = judge.calibration();
        assert_eq!(calibration.packets(), 20_000);
        assert!(calibration.off().unwrap() < 0.004);
        assert!((calibration.late().unwrap() - 0.1).abs() < 0.01);
        assert!((calibration.expected_lost - 1e3).abs() < 1e-6);
        assert!(calibration.lost.abs_diff(1_000) < 100);
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_never_comes_is_lost() {
        let mut judge = Judge::default();
        let law = Law::normal(0.0, 1.0, 0.5);
        for number in 0..100 {
            let now = Instant::from_millis(25 * number);
            if judge.wants(now) {
                judge.keep(now, number, law);
            }
        }
        assert_eq!((judge.kept.len(), judge.calibration().packets()), (KEPT, 0));
        let later = Instant::from_millis(60_000);
        assert!(judge.wants(later));
        judge.keep(later, 100, law);
        assert_eq!(judge.calibration().lost, KEPT as u64);
        assert_eq!(judge.kept.len(), 1);
        // What arrives in an instant that its law held for impossible is in the last tenth.
        judge.on_arrival(100, 1e18);
        assert_eq!(judge.calibration().deciles[9], 1);
        assert_eq!(judge.calibration().off(), Some(0.18));
        assert_eq!(Calibration::default().off(), None);
    }
}
