//! BBR's PROBE_RTT: a nearly empty window, so that the queue drains and the propagation time shows
//! (§4.3.5).

use marline_base::{Duration, Instant};

use super::{Ack, Bbr, Event, Phase};

/// §4.3.5 `ProbeRTTDuration`.
const DURATION: Duration = Duration::from_millis(200);

/// How the smallest round-trip time is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// With four packets, as the draft says: a live stream waits for 200 ms every ten seconds.
    FourPackets,
    /// With half of the bandwidth-delay product (as BBR version 2), which drains a queue of up to
    /// half of it too, and not at all while the application leaves the path room: it has no queue
    /// of ours then, and any sample will do.
    HalfPipe,
}

/// Part of the bandwidth-delay product in flight during a [`Manner::HalfPipe`] probe.
const HALF: f64 = 0.5;

#[derive(Debug, Default)]
pub(super) struct ProbeRtt {
    /// When the probe may end; set once the flight has shrunk to the window.
    done_at: Option<Instant>,
    /// A round trip has passed since then.
    round_done: bool,
    /// Values of `delivered` between which packets were sent with the nearly empty window.
    span: Option<(u64, u64)>,
}

impl ProbeRtt {
    /// The newest packet covered was sent with the nearly empty window, so its delivery rate says
    /// nothing about the path. The draft marks such packets by `C.app_limited` when they leave;
    /// the marks belong to the path's sampler, so here they are kept as a span of `delivered`.
    pub(super) fn sent_in_probe(&self, ack: &Ack) -> bool {
        self.span
            .is_some_and(|(from, to)| (from..=to).contains(&ack.delivered_when_sent))
    }
}

impl Bbr {
    /// §4.3.5 `BBRCheckProbeRTT`. A pause in sending has drained the queue as well as a probe.
    pub(super) fn check_probe_rtt(&mut self, event: &Event, expired: bool) {
        let roomy =
            self.manner == Manner::HalfPipe && event.sample.is_none_or(|sample| sample.app_limited);
        if self.phase != Phase::ProbeRtt && expired && !self.idle_restart && !roomy {
            self.save_window();
            self.phase = Phase::ProbeRtt;
            self.probe_rtt = ProbeRtt {
                done_at: None,
                round_done: false,
                span: Some((self.delivered, self.delivered)),
            };
        }
        if self.phase == Phase::ProbeRtt {
            self.handle_probe_rtt(event);
        }
        self.idle_restart = false;
    }

    /// Window during the probe (bytes).
    pub(super) fn probe_window(&self) -> u64 {
        let least = self.control.min_pipe();
        match self.manner {
            Manner::FourPackets => least,
            Manner::HalfPipe => self
                .model
                .flight(HALF)
                .map_or(least, |half| half.max(least)),
        }
    }

    /// §4.3.5 `BBRHandleProbeRTT`.
    fn handle_probe_rtt(&mut self, event: &Event) {
        let in_flight = event.ack.in_flight;
        if let Some((_, to)) = &mut self.probe_rtt.span {
            *to = self.delivered.saturating_add(in_flight);
        }
        match self.probe_rtt.done_at {
            None if in_flight <= self.probe_window() => {
                self.probe_rtt.done_at = Some(event.now + DURATION);
                self.probe_rtt.round_done = false;
                self.rounds.restart(self.delivered);
            }
            None => {}
            Some(done_at) => {
                self.probe_rtt.round_done |= event.round_start;
                if self.probe_rtt.round_done && event.now > done_at {
                    self.model.confirm_min_rtt(event.now);
                    self.restore_window();
                    self.exit_probe_rtt(event.now);
                }
            }
        }
    }

    /// §4.3.5 `BBRExitProbeRTT`.
    fn exit_probe_rtt(&mut self, now: Instant) {
        if self.full_pipe.filled() {
            self.enter_probe_bw(now);
        } else {
            self.phase = Phase::Startup;
        }
    }
}
