//! What a path waits for.

use marline_base::{Duration, Instant};

use super::{Health, Path};

/// Longest time between two probe timeouts, unless the round trip is longer: RFC 9002 §6.2.1
/// doubles without a bound, but a return is to be noticed within a second.
const MAX_PTO: Duration = Duration::from_secs(1);
/// A new path is probed again this long after its first probe, and then after twice as long each
/// time: probes that are lost now may be lost in a burst.
const FIRST_RETRY: Duration = Duration::from_millis(25);
/// Feedback may be late by this much beyond round trip and deviation before it is missed.
const LATENESS: Duration = Duration::from_millis(10);
/// What jumps of the round trip may add to that is at most the round trip divided by this: a path
/// whose round trips jump must not go silent unnoticed.
const MOST_SWING: u32 = 2;

/// An acknowledgement waits for the shortest round trip divided by this at most, or for the least
/// delay, which bounds how many acknowledgements there are a second.
const ACK_PART: u32 = 10;
const LEAST_ACK_DELAY: Duration = Duration::from_millis(1);

/// Why a path asks to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathTimer {
    /// A packet is lost unless it is acknowledged by now (RFC 9002 §6.1.2).
    Loss,
    /// Nothing came back (RFC 9002 §6.2).
    ProbeTimeout,
    /// Feedback is late.
    Overdue,
    /// Packets are late, although feedback comes.
    Late,
    /// A suspect path has been silent long enough to be dead.
    Death,
    /// Time for a probe of a suspect or dead path.
    Trial,
    /// Nothing was sent for long.
    KeepAlive,
    /// Time to see whether long datagrams pass again.
    Size,
}

fn ack_delay(shortest_trip: Duration, longest: Duration) -> Duration {
    longest.min((shortest_trip / ACK_PART).max(LEAST_ACK_DELAY))
}

impl Path {
    /// How long an acknowledgement may wait for more to acknowledge, at most `longest`: a small
    /// part of the round trip. A longer wait makes the path look longer to the peer's window, and a
    /// window of few packets does not make up for that.
    pub(crate) fn ack_delay(&self, longest: Duration) -> Duration {
        ack_delay(self.rtt.min(), longest)
    }

    /// The earliest timer but [`ack_due`](Self::ack_due), and its reason. `max_ack_delay` is the
    /// peer's promise.
    pub(crate) fn next_timer(
        &self,
        max_ack_delay: Duration,
        dead_after: Duration,
        keep_alive: Duration,
    ) -> (Instant, PathTimer) {
        let mut next = (self.keep_alive_at(keep_alive), PathTimer::KeepAlive);
        let mut consider = |at: Option<Instant>, timer| {
            if let Some(at) = at {
                next = next.min((at, timer));
            }
        };
        consider(self.ledger.loss_time(), PathTimer::Loss);
        consider(
            self.probe_timeout_at(max_ack_delay),
            PathTimer::ProbeTimeout,
        );
        consider(self.overdue_at(max_ack_delay), PathTimer::Overdue);
        consider(self.late_at(max_ack_delay), PathTimer::Late);
        match &self.health {
            Health::Suspect(trial) => consider(Some(trial.heard + dead_after), PathTimer::Death),
            // The peer never answered on it.
            Health::Validating => consider(Some(self.last_progress + dead_after), PathTimer::Death),
            // In doubt nothing is tried that may be lost.
            Health::Active => {
                let next = self.size.next_ping().filter(|_| !self.blocked);
                consider(next, PathTimer::Size);
            }
            Health::Dead(_) => {}
        }
        if let Health::Suspect(trial) | Health::Dead(trial) = &self.health {
            consider(Some(trial.next_probe), PathTimer::Trial);
        }
        next
    }

    /// When an acknowledgement is due.
    pub(crate) fn ack_due(&self) -> Option<Instant> {
        self.received.due().filter(|_| !self.blocked)
    }

    /// When either end sent the last packet that the other acknowledges: what one end asked, the
    /// other need not ask, too.
    pub(crate) fn last_eliciting(&self) -> Instant {
        self.last_eliciting_sent.max(self.last_eliciting_received)
    }

    fn keep_alive_at(&self, keep_alive: Duration) -> Instant {
        match self.health {
            // Their trial probes them.
            Health::Suspect(_) | Health::Dead(_) => Instant::FAR_FUTURE,
            _ => self.last_eliciting() + keep_alive,
        }
    }

    pub(crate) fn probe_timeout_at(&self, max_ack_delay: Duration) -> Option<Instant> {
        let base = match self.health {
            Health::Dead(_) => return None,
            // Nobody answered yet: the path is probed again, also when the probe is known to be
            // lost, and sooner than a far peer can answer. Everything waits for the answer, and two
            // probes too many cost 120 bytes.
            Health::Validating => FIRST_RETRY,
            Health::Active | Health::Suspect(_) if !self.ledger.has_outstanding() => return None,
            Health::Active | Health::Suspect(_) => self.rtt.probe_timeout(max_ack_delay),
        };
        if self.pto_backoff == 0 {
            return Some(self.last_eliciting_sent + base);
        }
        let backed_off = base * (1 << self.pto_backoff.min(10));
        let timeout = backed_off.min(MAX_PTO.max(base * 2));
        Some(self.last_eliciting_sent + timeout)
    }

    /// When feedback is overdue, or a silence is to be looked at again.
    pub(crate) fn overdue_at(&self, max_ack_delay: Duration) -> Option<Instant> {
        let again = self
            .look_again
            .filter(|_| matches!(self.health, Health::Active));
        let feedback = self.feedback_at(max_ack_delay);
        feedback.into_iter().chain(again).min()
    }

    /// When feedback is overdue: the acknowledgement of the oldest packet that was not rescued yet,
    /// or the one after the last.
    pub(crate) fn feedback_at(&self, max_ack_delay: Duration) -> Option<Instant> {
        if !matches!(self.health, Health::Active) || !self.rtt.is_known() {
            return None;
        }
        let oldest = self.ledger.oldest_unrescued()?.sent;
        let expected = (oldest + self.rtt.smoothed()).max(self.last_progress);
        let overdue = expected + self.lateness(max_ack_delay);
        let sooner = |silent: Instant| silent.max(expected + self.usual_lateness(max_ack_delay));
        Some(self.silent_at().map_or(overdue, sooner).min(overdue))
    }

    /// When the oldest packet that was not rescued is late by what was known when it left, although
    /// others are acknowledged.
    pub(crate) fn late_at(&self, max_ack_delay: Duration) -> Option<Instant> {
        if !matches!(self.health, Health::Active) || !self.rtt.is_known() {
            return None;
        }
        let oldest = self.ledger.oldest_unrescued()?;
        let late = oldest.sent + oldest.patience + max_ack_delay;
        Some(late.max(self.found_late + LATENESS))
    }

    /// How many packets are overdue.
    pub(crate) fn overdue(&self, now: Instant, max_ack_delay: Duration) -> usize {
        let wait = if self.is_silent(now) {
            self.rtt.smoothed() + self.usual_lateness(max_ack_delay)
        } else {
            self.in_time(max_ack_delay)
        };
        let open = self.ledger.open_packets();
        open.take_while(|p| p.sent + wait <= now).count()
    }

    /// When the peer's own packets will have been missing for longer than a burst of losses lasts,
    /// if some came after the oldest packet left that is not acknowledged: it had something to
    /// send.
    pub(crate) fn silent_at(&self) -> Option<Instant> {
        self.silent_if(self.ledger.oldest_open()?)
    }

    /// The same where the oldest packet without an acknowledgement left then.
    pub(crate) fn silent_if(&self, oldest: Instant) -> Option<Instant> {
        let (last, longest) = self.received.outage()?;
        (last >= oldest).then_some(last + longest)
    }

    fn is_silent(&self, now: Instant) -> bool {
        self.silent_at().is_some_and(|at| at <= now)
    }

    /// How long after a packet left it is acknowledged at the latest, if nothing is wrong.
    pub(crate) fn in_time(&self, max_ack_delay: Duration) -> Duration {
        self.rtt.smoothed() + self.lateness(max_ack_delay)
    }

    /// By how much feedback may be late before it is missed.
    pub(super) fn lateness(&self, max_ack_delay: Duration) -> Duration {
        // The deviation forgets a jump within a few packets; another jump of the kind is to be
        // expected.
        let swing = self.rtt.swing().min(self.rtt.smoothed() / MOST_SWING);
        let slack = self.rtt.slack().max(swing + LATENESS);
        slack + self.mending() + max_ack_delay
    }

    /// The same without a jump: where nothing arrives of what came all the time, the path is silent
    /// both ways, and no queue makes it so.
    fn usual_lateness(&self, max_ack_delay: Duration) -> Duration {
        self.rtt.slack().max(LATENESS) + self.mending() + max_ack_delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_wait_for_a_small_part_of_the_round_trip() {
        let delay = |trip| ack_delay(trip, Duration::from_millis(5)).as_micros();
        let trips = [100, 9_999, 10_000, 30_000, 50_000, 900_000];
        assert_eq!(
            trips.map(|trip| delay(Duration::from_micros(trip))),
            [1_000, 1_000, 1_000, 3_000, 5_000, 5_000]
        );
        assert_eq!(
            ack_delay(Duration::from_secs(1), Duration::ZERO),
            Duration::ZERO
        );
    }
}
