//! HyStart as Linux has it ("Taming the elephants: New TCP slow start", S. Ha and I. Rhee, Computer
//! Networks 55(9), 2011, with the constants of Linux 5.6 and later): leaves slow start for good
//! when acknowledgements come back to back for too long, or when round trips take longer than the
//! shortest one.
//!
//! It has no second thoughts: one round of jitter, or a sender whose packets a tunnel delays, ends
//! slow start early. [`HyStart`](super::hystart::HyStart) corrects that; this is here to be
//! compared with. As HyStart++ it serves only the first slow start here, where Linux watches every
//! one, and sees only acknowledgements of a window that was in use.

use marline_base::{Duration, Instant};

use super::Ack;
use super::rounds::Rounds;

/// Datagrams of window below which nothing is looked for (`hystart_low_window`).
const LOW_WINDOW: f64 = 16.0;
/// Acknowledgements that follow each other so closely belong to one train
/// (`hystart_ack_delta_us`).
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// How much longer than the path aggregation may make a train. Linux lets four of its largest
/// bursts, 256 KiB, pass at the pacing rate, at most this; below 2 Gb/s this is what it comes to.
const TRAIN_SLACK: Duration = Duration::from_millis(1);
/// Samples of a round that do not decide yet (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u32 = 8;
/// Bounds of the growth of round-trip times that counts, an eighth of the shortest one in between
/// (`HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`).
const DELAY_MIN: Duration = Duration::from_millis(4);
const DELAY_MAX: Duration = Duration::from_millis(16);

/// A round trip of slow start.
#[derive(Clone, Copy, Debug)]
struct Round {
    began: Instant,
    /// Last acknowledgement of the train that began with the round.
    train: Instant,
    /// Shortest round-trip time in it.
    shortest: Option<Duration>,
    samples: u32,
}

/// State of HyStart in a slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckTrain {
    /// The sender spreads its packets over half of a round trip or more.
    paced: bool,
    rounds: Rounds,
    round: Option<Round>,
    /// Shortest round-trip time of the connection.
    shortest: Option<Duration>,
}

impl AckTrain {
    pub(super) fn new(paced: bool) -> Self {
        Self {
            paced,
            rounds: Rounds::default(),
            round: None,
            shortest: None,
        }
    }

    /// Follows one acknowledgement in slow start at a window of `cwnd` datagrams; true if slow
    /// start is to end.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &Ack, cwnd: f64) -> bool {
        let ends = self.rounds.on_ack(ack);
        if ends || self.round.is_none() {
            self.round = Some(Round {
                began: now,
                train: now,
                shortest: None,
                samples: 0,
            });
        }
        let (Some(rtt), Some(round)) = (ack.rtt, &mut self.round) else {
            return false;
        };
        let shortest = self.shortest.map_or(rtt, |shortest| shortest.min(rtt));
        self.shortest = Some(shortest);
        if cwnd < LOW_WINDOW {
            return false;
        }
        let long = round.extend(now) > Self::longest(self.paced, shortest);
        let growth = (shortest / 8).clamp(DELAY_MIN, DELAY_MAX);
        let slow = round.sample(rtt).is_some_and(|rtt| rtt > shortest + growth);
        long || slow
    }

    /// A train of this length fills the path: its packets arrive during half of a round trip, about
    /// what they travel one way. Pacing alone may take that long in slow start.
    fn longest(paced: bool, shortest: Duration) -> Duration {
        let longest = shortest + TRAIN_SLACK;
        if paced { longest } else { longest / 2 }
    }
}

impl Round {
    /// The length of the round's train, if an acknowledgement at `now` prolongs it.
    fn extend(&mut self, now: Instant) -> Duration {
        if now.since(self.train) > TRAIN_GAP {
            return Duration::ZERO;
        }
        self.train = now;
        now.since(self.began)
    }

    /// The shortest round-trip time of the round, once it has samples enough.
    fn sample(&mut self, rtt: Duration) -> Option<Duration> {
        let shortest = self.shortest.map_or(rtt, |shortest| shortest.min(rtt));
        self.shortest = Some(shortest);
        self.samples = self.samples.saturating_add(1);
        (self.samples > MIN_SAMPLES).then_some(shortest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: f64 = 100.0;

    /// Acknowledgements of 1000 bytes.
    struct Bench {
        hystart: AckTrain,
        now: Instant,
        delivered: u64,
    }

    impl Bench {
        fn new(paced: bool) -> Self {
            Self {
                hystart: AckTrain::new(paced),
                now: Instant::ZERO,
                delivered: 0,
            }
        }

        /// A round of acknowledgements, the first 100 ms after the last of the round before and the
        /// others with the given gaps and round-trip times (µs); which of them, counted from 0,
        /// ended slow start.
        fn round(
            &mut self,
            cwnd: f64,
            acks: impl IntoIterator<Item = (u64, u64)>,
        ) -> Option<usize> {
            let delivered_when_sent = self.delivered;
            self.now += Duration::from_millis(100);
            acks.into_iter().position(|(gap, rtt)| {
                self.now += Duration::from_micros(gap);
                self.delivered += 1_000;
                let rtt = Duration::from_micros(rtt);
                let ack = Ack {
                    bytes: 1_000,
                    prior_in_flight: 100_000,
                    in_flight: 99_000,
                    sent: Instant::ZERO,
                    rtt: Some(rtt),
                    back_queueing: Duration::ZERO,
                    srtt: rtt,
                    delivery: None,
                    delivered: self.delivered,
                    delivered_when_sent,
                };
                self.hystart.on_ack(self.now, &ack, cwnd)
            })
        }
    }

    /// This number of acknowledgements alike.
    fn alike(count: usize, gap: u64, rtt: u64) -> impl Iterator<Item = (u64, u64)> {
        core::iter::repeat_n((gap, rtt), count)
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        // 41 ms / 2 = 20.5 ms: twenty gaps of 1 ms pass, the next does not.
        let mut bench = Bench::new(false);
        assert_eq!(bench.round(WIDE, alike(21, 1_000, 40_000)), None);
        assert_eq!(bench.round(WIDE, alike(30, 1_000, 40_000)), Some(21));
        // A paced sender has the whole 41 ms.
        let mut bench = Bench::new(true);
        assert_eq!(bench.round(WIDE, alike(42, 1_000, 40_000)), None);
        assert_eq!(bench.round(WIDE, alike(60, 1_000, 40_000)), Some(42));
    }

    #[test]
    fn a_gap_ends_the_train_of_a_round() {
        let mut bench = Bench::new(false);
        let acks = || alike(15, 1_000, 40_000);
        let gap = || core::iter::once((2_001, 40_000));
        assert_eq!(bench.round(WIDE, acks().chain(gap()).chain(acks())), None);
        // A gap of 2 ms is still of the train: 14 + 2 ms, then 5 more.
        let gap = core::iter::once((2_000, 40_000));
        let found = bench.round(WIDE, acks().chain(gap).chain(acks()));
        assert_eq!(found, Some(15 + 5));
    }

    #[test]
    fn longer_round_trips_end_slow_start() {
        // Sparse acknowledgements make no train. An eighth of 40 ms is 5 ms; eight samples do not
        // decide.
        let mut bench = Bench::new(false);
        assert_eq!(bench.round(WIDE, alike(20, 3_000, 40_000)), None);
        assert_eq!(bench.round(WIDE, alike(20, 3_000, 45_000)), None);
        assert_eq!(bench.round(WIDE, alike(20, 3_000, 45_001)), Some(8));
        // Growth counts from the shortest of all rounds, not from the last.
        let mut bench = Bench::new(false);
        bench.round(WIDE, alike(20, 3_000, 40_000));
        assert_eq!(bench.round(WIDE, alike(20, 3_000, 44_000)), None);
        assert_eq!(bench.round(WIDE, alike(20, 3_000, 48_000)), Some(8));
        // One packet that did not wait is enough to go on.
        let mut bench = Bench::new(false);
        bench.round(WIDE, alike(20, 3_000, 40_000));
        let quick = core::iter::once((3_000, 44_000));
        let acks = quick.chain(alike(20, 3_000, 60_000));
        assert_eq!(bench.round(WIDE, acks), None);
    }

    #[test]
    fn growth_that_counts_is_bounded() {
        for (shortest, passes) in [(8_000, 12_000), (400_000, 416_000)] {
            let mut bench = Bench::new(false);
            assert_eq!(bench.round(WIDE, alike(20, 3_000, shortest)), None);
            assert_eq!(bench.round(WIDE, alike(20, 3_000, passes)), None);
            assert_eq!(bench.round(WIDE, alike(20, 3_000, passes + 1)), Some(8));
        }
    }

    #[test]
    fn small_windows_grow_whatever_happens() {
        let mut bench = Bench::new(false);
        bench.round(15.9, alike(20, 1_000, 40_000));
        assert_eq!(bench.round(15.9, alike(60, 1_000, 80_000)), None);
        assert_eq!(bench.round(16.0, alike(60, 1_000, 80_000)), Some(8));
    }
}
