//! BBR's PROBE_BW: a cycle of gains, each for about one round-trip time (§4.3.4).

use marline_base::Instant;

use super::probe_rtt::Manner;
use super::{Bbr, Event, Phase};

/// §4.3.4.1: how far a probe goes beyond the bandwidth.
pub(super) const PROBE_GAIN: f64 = 1.25;
/// Probe for more, drain the queue that this made, then cruise.
const GAINS: [f64; 8] = [PROBE_GAIN, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// Longest draining phase of the gentle manner, in round-trip times. A choice, not tuned.
const LONGEST_DRAIN: u32 = 6;

#[derive(Debug)]
pub(super) struct Cycle {
    index: usize,
    /// When the current gain began.
    since: Instant,
}

impl Cycle {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            index: 0,
            since: now,
        }
    }

    pub(super) const fn gain(&self) -> f64 {
        GAINS[self.index]
    }

    #[cfg(test)]
    pub(super) const fn index(&self) -> usize {
        self.index
    }

    pub(super) const fn advance(&mut self, now: Instant) {
        self.index = (self.index + 1) % GAINS.len();
        self.since = now;
    }
}

impl Bbr {
    /// §4.3.4.3 `BBREnterProbeBW`: starts anywhere but in the draining phase, so that flows that
    /// share a bottleneck do not probe in step.
    pub(super) fn enter_probe_bw(&mut self, now: Instant) {
        self.phase = Phase::ProbeBw;
        let skip = self.rng.below(GAINS.len() as u64 - 1) as usize;
        self.cycle.index = GAINS.len() - 1 - skip;
        self.cycle.advance(now);
    }

    /// §4.3.4.3 `BBRCheckCyclePhase`.
    pub(super) fn check_cycle_phase(&mut self, event: &Event) {
        if self.phase == Phase::ProbeBw && self.is_next_cycle_phase(event) {
            // Only the gentle manner drains until the queue is gone; a cycle of the other that does
            // not reach the smallest round-trip time speaks of our own queue as often as of the
            // path.
            let drains = self.manner == Manner::HalfPipe;
            if drains && self.cycle.gain() < 1.0 {
                self.model.on_drained();
            }
            self.cycle.advance(event.now);
            if drains && self.cycle.gain() > 1.0 {
                self.model.on_cycle();
            }
        }
    }

    /// §4.3.4.3 `BBRIsNextCyclePhase`.
    fn is_next_cycle_phase(&self, event: &Event) -> bool {
        let Some(min_rtt) = self.model.min_rtt() else {
            return false;
        };
        let full_length = event.now.since(self.cycle.since) > min_rtt;
        let gain = self.cycle.gain();
        let reached = |gain| self.control.inflight(&self.model, gain);
        if gain > 1.0 {
            // The probe must have had its effect, unless the buffer cannot hold it.
            full_length && (event.lost > 0 || event.ack.prior_in_flight >= reached(gain))
        } else if gain < 1.0 {
            match self.manner {
                // The queue may be gone earlier.
                Manner::FourPackets => full_length || event.ack.prior_in_flight <= reached(1.0),
                Manner::HalfPipe => {
                    self.is_drained(event)
                        || event.now.since(self.cycle.since) > min_rtt * LONGEST_DRAIN
                }
            }
        } else {
            full_length
        }
    }

    /// No more is in flight than the pipe holds, so that no queue of ours stands. Before an
    /// acknowledgement what it acknowledges is counted in full although it left the pipe by and by,
    /// after it not at all: half of it is right. On a short path the whole would keep the draining
    /// phase going to its end, for a tenth of the rate.
    fn is_drained(&self, event: &Event) -> bool {
        let pipe = self.model.flight(1.0).unwrap_or(0);
        let in_flight = event.ack.prior_in_flight.midpoint(event.ack.in_flight);
        in_flight <= pipe.max(self.control.min_pipe())
    }
}
