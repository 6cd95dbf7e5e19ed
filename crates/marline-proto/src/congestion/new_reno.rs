//! NewReno as QUIC runs it (RFC 9002 §7 and appendix B), with the Eifel response to losses that
//! were none (RFC 4015), as TCP has it.

use alloc::boxed::Box;

use marline_base::{Instant, Rate};

use super::undo::Undo;
use super::window::{Usage, initial_window, minimum_window};
use super::{Ack, Controller, Loss, Params, Phase, View};

pub(super) const NAME: &str = "new-reno";

#[derive(Debug)]
struct NewReno {
    mtu: u64,
    window: u64,
    ssthresh: Option<u64>,
    /// Bytes acknowledged in congestion avoidance towards the next datagram of growth.
    credit: u64,
    /// When the current recovery period began, or the last one did.
    recovery_start: Option<Instant>,
    in_recovery: bool,
    /// Window and threshold before the last reduction.
    undo: Option<Undo<(u64, Option<u64>)>>,
    usage: Usage,
}

pub(super) fn new(_now: Instant, params: &Params) -> Box<dyn Controller> {
    Box::new(NewReno {
        mtu: params.mtu,
        window: initial_window(params.mtu),
        ssthresh: None,
        credit: 0,
        recovery_start: None,
        in_recovery: false,
        undo: None,
        usage: Usage::default(),
    })
}

impl NewReno {
    fn in_slow_start(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.window < ssthresh)
    }

    /// A packet sent before the period began belongs to the flight that was already paid for.
    fn before_recovery(&self, sent: Instant) -> bool {
        self.recovery_start.is_some_and(|start| sent <= start)
    }
}

impl Controller for NewReno {
    fn on_sent(&mut self, now: Instant, _bytes: u64, _in_flight: u64, app_limited: bool) {
        self.usage.on_sent(now, app_limited);
    }

    fn on_ack(&mut self, _now: Instant, ack: &Ack) {
        if self.before_recovery(ack.sent) {
            return;
        }
        self.in_recovery = false;
        if !self.usage.was_full(ack, self.window) {
            return;
        }
        if self.in_slow_start() {
            // §7.3.1: grow by the bytes acknowledged.
            self.window = self.window.saturating_add(ack.bytes);
            return;
        }
        // §7.3.3: one datagram for every window acknowledged. The remainder is kept, so that
        // small acknowledgements do not round away.
        self.credit = self.credit.saturating_add(ack.bytes);
        while self.credit >= self.window {
            self.credit -= self.window;
            self.window += self.mtu;
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &Loss) {
        if !self.before_recovery(loss.sent) {
            // §7.3.2: once a round trip, halve.
            let before = (self.window, self.ssthresh);
            self.undo = Some(Undo::new(before, now, self.recovery_start));
            self.recovery_start = Some(now);
            self.in_recovery = true;
            self.window = (self.window / 2).max(minimum_window(self.mtu));
            self.ssthresh = Some(self.window);
            self.credit = 0;
        }
        if let Some(undo) = &mut self.undo {
            undo.lost(loss.bytes);
        }
        if loss.persistent {
            // §7.6.2, and B.8: what is lost from here on starts a new period.
            self.window = minimum_window(self.mtu);
            self.recovery_start = None;
            self.in_recovery = false;
            self.undo = None;
        }
    }

    fn on_spurious_loss(&mut self, _now: Instant, bytes: u64, sent: Instant) {
        let undo = self.undo.as_mut();
        if let Some((window, ssthresh)) = undo.and_then(|undo| undo.arrived(bytes, sent)) {
            self.window = self.window.max(window);
            self.ssthresh = ssthresh;
            self.undo = None;
            self.in_recovery = false;
        }
    }

    fn on_mtu(&mut self, mtu: u64) {
        let untouched = self.ssthresh.is_none() && self.window == initial_window(self.mtu);
        self.mtu = mtu;
        self.undo = None;
        self.window = if untouched {
            initial_window(mtu)
        } else {
            self.window.max(minimum_window(mtu))
        };
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    fn view(&self) -> View {
        View {
            name: NAME,
            phase: if self.in_recovery {
                Phase::Recovery
            } else if self.in_slow_start() {
                Phase::SlowStart
            } else {
                Phase::Avoidance
            },
            window_gain: 1.0,
            pacing_gain: 1.0,
            bandwidth: None,
            min_rtt: None,
            ssthresh: self.ssthresh,
        }
    }
}

#[cfg(test)]
mod tests;
