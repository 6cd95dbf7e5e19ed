//! BBR's PROBE_BW: a cycle of gains, each for about one round-trip time (§4.3.4).

use marline_base::Instant;

use super::{Bbr, Event, Phase};

/// §4.3.4.1: probe for more, drain the queue that this made, then cruise.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

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
            self.cycle.advance(event.now);
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
            // The queue may be gone earlier.
            full_length || event.ack.prior_in_flight <= reached(1.0)
        } else {
            full_length
        }
    }
}
