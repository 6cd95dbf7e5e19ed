//! BBR's window while losses are repaired (§4.2.3.4): packet conservation for one round trip.
//!
//! The draft leans on TCP's fast recovery, which ends when everything lost has been repaired. Here
//! lost data may be repaired on any path, so recovery ends when a packet is acknowledged that was
//! sent after the last loss was declared: a round trip without losses.
//!
//! The gentle manner keeps a pipe's worth of window: with a burst of ten packets lost to the air,
//! only as much may leave as is acknowledged of what is left, and the repairs wait, for which
//! everything waits that is delivered in order. What overflowed a queue stood beyond the pipe.
//! Where no queue stands nothing overflowed one, and two pipes are left: with one, a few
//! acknowledgements lost to the same air stop the path. What is lost before anything was measured,
//! such as the first questions, leaves the first window.

use marline_base::Instant;

use super::super::window::minimum_window;
use super::probe_rtt::Manner;
use super::{Bbr, Event, Loss, Phase};

#[derive(Debug, Default)]
pub(super) struct Recovery {
    period: Option<Period>,
    /// Window to return to (bytes), `BBR.prior_cwnd`.
    prior_window: u64,
}

#[derive(Clone, Copy, Debug)]
struct Period {
    started: Instant,
    last_loss: Instant,
    /// The first round trip is not over (`BBR.packet_conservation`).
    conserves: bool,
}

impl Recovery {
    /// Only as much may be sent as is delivered.
    pub(super) fn conserves(&self) -> bool {
        self.period.is_some_and(|period| period.conserves)
    }
}

impl Bbr {
    /// `BBRSaveCwnd`: remembers the last window that neither recovery nor PROBE_RTT had cut.
    pub(super) fn save_window(&mut self) {
        let window = self.control.window;
        let cut = self.recovery.period.is_some() || self.phase == Phase::ProbeRtt;
        self.recovery.prior_window = if cut {
            self.recovery.prior_window.max(window)
        } else {
            window
        };
    }

    /// `BBRRestoreCwnd`.
    pub(super) fn restore_window(&mut self) {
        self.control.window = self.control.window.max(self.recovery.prior_window);
    }

    /// Upon entering fast recovery, or upon persistent congestion in place of TCP's time-out.
    pub(super) fn enter_recovery(&mut self, now: Instant, loss: &Loss) {
        let minimum = minimum_window(self.control.mtu);
        if loss.persistent {
            self.save_window();
            self.control.window = minimum;
            self.recovery.period = Some(Period {
                started: now,
                last_loss: now,
                conserves: false,
            });
            return;
        }
        match &mut self.recovery.period {
            Some(period) => period.last_loss = now,
            None => {
                self.save_window();
                // One packet at least, or the retransmission could not leave.
                let flight = loss.in_flight.saturating_add(self.control.mtu);
                self.control.window = flight.max(self.least_in_recovery());
                self.recovery.period = Some(Period {
                    started: now,
                    last_loss: now,
                    conserves: true,
                });
            }
        }
    }

    /// Losses, if they are not persistent, cut the window to no less (bytes).
    fn least_in_recovery(&self) -> u64 {
        let minimum = minimum_window(self.control.mtu);
        match self.manner {
            Manner::FourPackets => minimum,
            Manner::HalfPipe => {
                let pipes = if self.model.sees_queue() { 1.0 } else { 2.0 };
                let least = self.model.flight(pipes);
                least.map_or(self.control.initial, |least| least.max(minimum))
            }
        }
    }

    /// `BBRModulateCwndForRecovery`, and the ends of conservation and recovery.
    pub(super) fn modulate_for_recovery(&mut self, event: &Event) {
        if event.lost > 0 {
            let least = self.least_in_recovery();
            self.control.window = self.control.window.saturating_sub(event.lost).max(least);
        }
        let Some(period) = &mut self.recovery.period else {
            return;
        };
        if event.ack.sent > period.last_loss {
            self.recovery.period = None;
            self.restore_window();
            return;
        }
        if event.ack.sent > period.started {
            period.conserves = false;
        }
        if period.conserves {
            let flight = event.ack.in_flight.saturating_add(event.ack.bytes);
            self.control.window = self.control.window.max(flight);
        }
    }
}
