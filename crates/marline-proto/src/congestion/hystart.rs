//! HyStart++ (RFC 9406): leaves slow start when the round-trip time grows, before packets are lost.
//!
//! Growth of the smallest round-trip time of a round over that of the round before means that a
//! queue builds up. Because it may also be jitter, slow start first continues at a quarter of the
//! speed (conservative slow start, CSS), and resumes if the round-trip time falls back.

use marline_base::Duration;

use super::Ack;
use super::rounds::Rounds;

/// RFC 9406 §4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u32 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Css {
    /// Smallest round-trip time of the round in which it began (`cssBaselineMinRtt`).
    baseline: Duration,
    /// Rounds that ended in it; the one in which it began counts.
    rounds: u32,
}

/// State of HyStart++ in a connection's initial slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    rounds: Rounds,
    /// `lastRoundMinRTT`.
    last_min: Option<Duration>,
    /// `currentRoundMinRTT`.
    current_min: Option<Duration>,
    /// `rttSampleCount`.
    samples: u32,
    css: Option<Css>,
}

/// What an acknowledgement means for slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    /// Grow the window by this number of bytes. Pacing makes the limit `L` of §4.2 infinite.
    Grow(u64),
    /// Enter congestion avoidance at the current window.
    Leave,
}

impl HyStart {
    /// Follows one acknowledgement in slow start (RFC 9406 §4.2).
    pub(super) fn on_ack(&mut self, ack: &Ack) -> Advice {
        if self.rounds.on_ack(ack) {
            if let Some(css) = &mut self.css {
                css.rounds += 1;
                if css.rounds >= CSS_ROUNDS {
                    return Advice::Leave;
                }
            }
            self.last_min = self.current_min.take();
            self.samples = 0;
        }
        if let Some(rtt) = ack.rtt {
            self.current_min = Some(self.current_min.map_or(rtt, |min| min.min(rtt)));
            self.samples += 1;
        }
        if self.samples >= N_RTT_SAMPLE
            && let Some(current) = self.current_min
        {
            match self.css {
                // The growth was spurious: slow start resumes.
                Some(css) if current < css.baseline => self.css = None,
                Some(_) => {}
                None => self.enter_css(current),
            }
        }
        Advice::Grow(match self.css {
            Some(_) => ack.bytes / CSS_GROWTH_DIVISOR,
            None => ack.bytes,
        })
    }

    fn enter_css(&mut self, current: Duration) {
        let Some(last) = self.last_min else { return };
        let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
        if current >= last + threshold {
            self.css = Some(Css {
                baseline: current,
                rounds: 0,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Instant;

    /// A round of `count` acknowledgements of 1000 bytes with the given round-trip time; the
    /// advice on the last one.
    fn round(hystart: &mut HyStart, delivered: &mut u64, count: u64, millis: u64) -> Advice {
        let start = *delivered;
        let mut advice = Advice::Grow(0);
        for _ in 0..count {
            *delivered += 1_000;
            let rtt = Duration::from_millis(millis);
            advice = hystart.on_ack(&Ack {
                bytes: 1_000,
                prior_in_flight: 10_000,
                in_flight: 9_000,
                sent: Instant::ZERO,
                rtt: Some(rtt),
                back_queueing: Duration::ZERO,
                srtt: rtt,
                delivery: None,
                delivered: *delivered,
                delivered_when_sent: start,
            });
            if advice == Advice::Leave {
                break;
            }
        }
        advice
    }

    #[test]
    fn growing_round_trip_time_slows_down_and_then_leaves() {
        let (mut hystart, mut delivered) = (HyStart::default(), 0);
        assert_eq!(
            round(&mut hystart, &mut delivered, 10, 40),
            Advice::Grow(1_000)
        );
        // The threshold is an eighth of 40 ms: 44 ms pass, 45 ms do not.
        assert_eq!(
            round(&mut hystart, &mut delivered, 10, 44),
            Advice::Grow(1_000)
        );
        // The threshold is now an eighth of 44 ms, so 50 ms are too many; the first seven samples
        // of the round do not decide.
        assert_eq!(
            round(&mut hystart, &mut delivered, 7, 50),
            Advice::Grow(1_000)
        );
        let (mut hystart, mut delivered) = (HyStart::default(), 0);
        round(&mut hystart, &mut delivered, 10, 40);
        assert_eq!(
            round(&mut hystart, &mut delivered, 10, 45),
            Advice::Grow(250)
        );
        for _ in 0..4 {
            assert_eq!(
                round(&mut hystart, &mut delivered, 10, 50),
                Advice::Grow(250)
            );
        }
        assert_eq!(round(&mut hystart, &mut delivered, 10, 50), Advice::Leave);
    }

    #[test]
    fn jitter_resumes_slow_start() {
        let (mut hystart, mut delivered) = (HyStart::default(), 0);
        round(&mut hystart, &mut delivered, 10, 40);
        assert_eq!(
            round(&mut hystart, &mut delivered, 10, 60),
            Advice::Grow(250)
        );
        assert_eq!(
            round(&mut hystart, &mut delivered, 10, 41),
            Advice::Grow(1_000)
        );
        assert_eq!(
            round(&mut hystart, &mut delivered, 10, 41),
            Advice::Grow(1_000)
        );
    }

    #[test]
    fn threshold_is_clamped() {
        // An eighth of 8 ms is 1 ms; 3 ms more are within the 4 ms that jitter may take.
        let (mut hystart, mut delivered) = (HyStart::default(), 0);
        round(&mut hystart, &mut delivered, 10, 8);
        assert_eq!(
            round(&mut hystart, &mut delivered, 10, 11),
            Advice::Grow(1_000)
        );
        // An eighth of 400 ms is 50 ms; 16 ms more are enough.
        let (mut hystart, mut delivered) = (HyStart::default(), 0);
        round(&mut hystart, &mut delivered, 10, 400);
        assert_eq!(
            round(&mut hystart, &mut delivered, 10, 416),
            Advice::Grow(250)
        );
    }
}
