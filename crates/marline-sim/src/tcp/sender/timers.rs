//! Timers: reordering, tail loss probe, retransmission time-out.

use marline_base::{Duration, Instant};

use super::super::scoreboard::Sent;
use super::super::segment::Segment;
use super::TcpSender;

/// RFC 8985 §7.2 `TLP.max_ack_delay`: added when a single segment is in flight, whose
/// acknowledgement may wait for a second one.
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// RFC 8985 §7.2: probe time-out before there is a round-trip time.
const INITIAL_PROBE: Duration = Duration::from_secs(1);

/// A tail loss probe on its way (RFC 8985 §7.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// `TLP.end_seq`.
    pub(super) end: u64,
    /// `TLP.is_retrans`: the segment as it was, and when it was sent again.
    pub(super) again: Option<(Sent, Instant)>,
}

impl TcpSender {
    /// When [`TcpSender::handle_timeout`] wants to be called, if nothing else happens.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timers = [
            self.reordering_until,
            self.probe_at(),
            self.timeout_at(),
            self.wake,
        ];
        timers.into_iter().flatten().min()
    }

    /// Time has passed. [`TcpSender::poll_transmit`] comes next, as after every input.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.reordering_until) {
            self.detect_losses(now);
            self.repace(now);
        }
        // §7.2: a probe that is due no earlier than the time-out goes in its place.
        if due(self.probe_at()) {
            self.probe_due = true;
        } else if due(self.timeout_at()) {
            self.counters.timeouts += 1;
            self.timed_out.get_or_insert(self.board.next_transmission());
            self.backoff += 1;
            self.armed = now;
            self.resend_first = true;
            self.probe = None;
            self.probe_due = false;
            self.reordering_until = None;
        }
    }

    /// Expiry of the retransmission time-out (RFC 6298 §5).
    fn timeout_at(&self) -> Option<Instant> {
        (!self.board.is_empty()).then(|| self.armed + self.rtt.timeout(self.backoff))
    }

    /// RFC 8985 §7.2: only while nothing hints at a loss, and one probe at a time.
    fn probe_at(&self) -> Option<Instant> {
        let quiet = self.recovery.is_none()
            && self.timed_out.is_none()
            && self.probe.is_none()
            && !self.probe_due
            && self.board.sacked_segments() == 0;
        let flight = Some(self.board.in_flight()).filter(|&bytes| quiet && bytes > 0)?;
        let mut wait = self.rtt.smoothed().map_or(INITIAL_PROBE, |srtt| 2 * srtt);
        if flight <= u64::from(self.mss) {
            wait += MAX_ACK_DELAY;
        }
        Some(self.last_sent.max(self.armed) + wait).min(self.timeout_at())
    }

    /// RFC 8985 §7.3: new data, or else the last segment again, whatever the window says.
    pub(super) fn send_probe(&mut self, now: Instant) -> Option<Segment> {
        let last = *self.board.last()?;
        self.counters.probes += 1;
        let (segment, again) = match self.next_len(now) {
            Some(len) => (self.send_new(now, len), None),
            None => (self.send_again(now, last.seq)?, Some((last, now))),
        };
        self.probe = Some(Probe {
            end: self.next,
            again,
        });
        // §7.3: the retransmission time-out starts again.
        self.armed = now;
        Some(segment)
    }
}
