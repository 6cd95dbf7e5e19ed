//! CUBIC (RFC 9438), with HyStart++ (RFC 9406) in its first slow start, or Linux's HyStart.
//!
//! Windows are counted in datagrams as fractions, as the RFC does; [`Controller::window`] turns
//! them into bytes.

use alloc::boxed::Box;

use marline_base::{Duration, Instant, Rate};

use super::ack_train::AckTrain;
use super::hystart::{Advice, HyStart};
use super::undo::Undo;
use super::window::{Usage, initial_window, minimum_window};
use super::{Ack, Controller, Loss, Params, Phase, View};

pub(super) const NAME: &str = "cubic";
/// The name of CUBIC with Linux's HyStart.
pub(super) const ACK_TRAIN: &str = "cubic-hystart";

/// §4.6: multiplicative decrease factor β_cubic.
const BETA: f64 = 0.7;

/// §5: aggressiveness C, in datagrams per cubic second.
const C: f64 = 0.4;

/// §4.3: additive increase α_cubic, datagrams a round trip, that makes the Reno-friendly estimate
/// as fast on average as Reno with its β of 0.5.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Time in the stage during which the window was in use, up to `seen`.
    elapsed: Duration,
    /// When the last acknowledgement was seen, or sending resumed after a pause.
    seen: Instant,
    /// Time until the plateau `origin` is reached, K (s).
    k: f64,
    /// Window at the plateau (datagrams): W_max, or the window at the start without one.
    origin: f64,
    /// What Reno would have, W_est (datagrams).
    w_est: f64,
}

impl Epoch {
    fn start(now: Instant, cwnd: f64, w_max: Option<f64>) -> Self {
        let origin = w_max.map_or(cwnd, |w_max| w_max.max(cwnd));
        Self {
            elapsed: Duration::ZERO,
            seen: now,
            // §4.2, figure 2: K = cbrt((W_max - cwnd_epoch) / C).
            k: libm::cbrt((origin - cwnd) / C),
            origin,
            w_est: cwnd,
        }
    }

    /// §4.2, figure 1: W_cubic(t) = C · (t - K)³ + W_max.
    fn w_cubic(&self, t: Duration) -> f64 {
        let d = t.as_secs_f64() - self.k;
        C * d * d * d + self.origin
    }
}

/// What a congestion event changes, and its undoing restores.
#[derive(Clone, Copy, Debug)]
struct Curve {
    /// Window (datagrams).
    cwnd: f64,
    /// Slow-start threshold (datagrams).
    ssthresh: Option<f64>,
    /// Window before the last reduction, W_max (datagrams).
    w_max: Option<f64>,
    /// Window at the last congestion event, cwnd_prior (datagrams).
    cwnd_prior: f64,
    /// The stage of congestion avoidance; begins with the first acknowledgement in it.
    epoch: Option<Epoch>,
}

/// What ends a slow start before packets are lost.
#[derive(Clone, Copy, Debug)]
enum Guard {
    PlusPlus(HyStart),
    AckTrain(AckTrain),
}

impl Guard {
    const fn name(&self) -> &'static str {
        match self {
            Self::PlusPlus(_) => NAME,
            Self::AckTrain(_) => ACK_TRAIN,
        }
    }

    /// Follows an acknowledgement in slow start at a window of `cwnd` datagrams.
    fn on_ack(&mut self, now: Instant, ack: &Ack, cwnd: f64) -> Advice {
        match self {
            Self::PlusPlus(hystart) => hystart.on_ack(ack),
            Self::AckTrain(hystart) => match hystart.on_ack(now, ack, cwnd) {
                true => Advice::Leave,
                false => Advice::Grow(ack.bytes),
            },
        }
    }
}

#[derive(Debug)]
struct Cubic {
    name: &'static str,
    mtu: u64,
    curve: Curve,
    /// `None` once the first slow start is over (RFC 9406 §4.2).
    hystart: Option<Guard>,
    recovery_start: Option<Instant>,
    in_recovery: bool,
    undo: Option<Undo<Curve>>,
    usage: Usage,
}

pub(super) fn new(_now: Instant, params: &Params) -> Box<dyn Controller> {
    let guard = Guard::PlusPlus(HyStart::default());
    Box::new(Cubic::new(params.mtu, guard))
}

pub(super) fn new_ack_train(_now: Instant, params: &Params) -> Box<dyn Controller> {
    let guard = Guard::AckTrain(AckTrain::new(params.paced));
    Box::new(Cubic::new(params.mtu, guard))
}

impl Cubic {
    fn new(mtu: u64, guard: Guard) -> Self {
        Self {
            name: guard.name(),
            mtu,
            curve: Curve {
                cwnd: initial_window(mtu) as f64 / mtu as f64,
                ssthresh: None,
                w_max: None,
                cwnd_prior: 0.0,
                epoch: None,
            },
            hystart: Some(guard),
            recovery_start: None,
            in_recovery: false,
            undo: None,
            usage: Usage::default(),
        }
    }

    fn minimum(&self) -> f64 {
        minimum_window(self.mtu) as f64 / self.mtu as f64
    }

    fn in_slow_start(&self) -> bool {
        self.curve
            .ssthresh
            .is_none_or(|ssthresh| self.curve.cwnd < ssthresh)
    }

    fn before_recovery(&self, sent: Instant) -> bool {
        self.recovery_start.is_some_and(|start| sent <= start)
    }

    fn slow_start(&mut self, now: Instant, ack: &Ack) {
        let advice = match &mut self.hystart {
            Some(guard) => guard.on_ack(now, ack, self.curve.cwnd),
            None => Advice::Grow(ack.bytes),
        };
        match advice {
            Advice::Grow(bytes) => self.curve.cwnd += bytes as f64 / self.mtu as f64,
            Advice::Leave => {
                // §4.10: without a congestion event, the curve starts at its plateau.
                self.hystart = None;
                self.curve.ssthresh = Some(self.curve.cwnd);
            }
        }
    }

    fn avoidance(&mut self, now: Instant, ack: &Ack, used: bool) {
        let curve = &mut self.curve;
        let epoch = curve
            .epoch
            .get_or_insert_with(|| Epoch::start(now, curve.cwnd, curve.w_max));
        // §5.8: time in which the window was not used does not move along the curve.
        let step = now.since(epoch.seen);
        epoch.seen = epoch.seen.max(now);
        if !used {
            return;
        }
        epoch.elapsed += step;
        let acked = ack.bytes as f64 / self.mtu as f64;

        // §4.3, figure 4: W_est += α · segments_acked / cwnd, with α = 1 from cwnd_prior on.
        let alpha = if epoch.w_est < curve.cwnd_prior {
            ALPHA
        } else {
            1.0
        };
        epoch.w_est += alpha * acked / curve.cwnd;

        if epoch.w_cubic(epoch.elapsed) < epoch.w_est {
            // §4.3: the Reno-friendly region.
            curve.cwnd = curve.cwnd.max(epoch.w_est);
        } else {
            // §4.2, and §4.4 and §4.5 for the concave and the convex region.
            let target = epoch
                .w_cubic(epoch.elapsed + ack.srtt)
                .clamp(curve.cwnd, 1.5 * curve.cwnd);
            let growth = (target - curve.cwnd) / curve.cwnd * acked;
            curve.cwnd = (curve.cwnd + growth).min(target);
        }
    }

    fn reduce(&mut self, now: Instant) {
        self.undo = Some(Undo::new(self.curve, now, self.recovery_start));
        self.recovery_start = Some(now);
        self.in_recovery = true;
        self.hystart = None;
        let minimum = self.minimum();
        let curve = &mut self.curve;
        curve.cwnd_prior = curve.cwnd;
        // §4.7, fast convergence: a flow whose maximum shrinks gives up some more.
        curve.w_max = Some(match curve.w_max {
            Some(w_max) if curve.cwnd < w_max => curve.cwnd * (1.0 + BETA) / 2.0,
            _ => curve.cwnd,
        });
        // §4.6. The window stands for the flight size because it grows only while it is used.
        curve.cwnd = (curve.cwnd * BETA).max(minimum);
        curve.ssthresh = Some(curve.cwnd);
        curve.epoch = None;
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, now: Instant, bytes: u64, in_flight: u64, app_limited: bool) {
        self.usage.on_sent(now, app_limited);
        // Nothing was in flight, so the time since the last acknowledgement was idle (§5.8).
        if bytes == in_flight
            && let Some(epoch) = &mut self.curve.epoch
        {
            epoch.seen = epoch.seen.max(now);
        }
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        if self.before_recovery(ack.sent) {
            return;
        }
        self.in_recovery = false;
        let used = self.usage.was_full(ack, self.window());
        if !self.in_slow_start() {
            self.avoidance(now, ack, used);
        } else if used {
            self.slow_start(now, ack);
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &Loss) {
        if !self.before_recovery(loss.sent) {
            self.reduce(now);
        }
        if let Some(undo) = &mut self.undo {
            undo.lost(loss.bytes);
        }
        if loss.persistent {
            // RFC 9002 §7.6.2. The curve begins again where the slow start will end (§4.8).
            self.curve.cwnd = self.minimum();
            self.curve.w_max = None;
            self.curve.epoch = None;
            self.recovery_start = None;
            self.in_recovery = false;
            self.undo = None;
        }
    }

    fn on_spurious_loss(&mut self, now: Instant, bytes: u64, sent: Instant) {
        let undo = self.undo.as_mut();
        if let Some(before) = undo.and_then(|undo| undo.arrived(bytes, sent)) {
            // §4.9.2: everything that the reduction was for has arrived.
            let cwnd = self.curve.cwnd.max(before.cwnd);
            self.curve = before;
            self.curve.cwnd = cwnd;
            if let Some(epoch) = &mut self.curve.epoch {
                epoch.seen = epoch.seen.max(now);
            }
            self.undo = None;
            self.in_recovery = false;
        }
    }

    fn on_mtu(&mut self, mtu: u64) {
        if self.curve.ssthresh.is_none() && self.window() == initial_window(self.mtu) {
            self.curve.cwnd = initial_window(mtu) as f64 / mtu as f64;
        } else {
            let scale = self.mtu as f64 / mtu as f64;
            let curve = &mut self.curve;
            curve.cwnd = (curve.cwnd * scale).max(2.0);
            curve.ssthresh = curve.ssthresh.map(|ssthresh| ssthresh * scale);
            curve.w_max = curve.w_max.map(|w_max| w_max * scale);
            curve.cwnd_prior *= scale;
            // The curve is measured in datagrams, so it starts again from here.
            curve.epoch = None;
        }
        self.undo = None;
        self.mtu = mtu;
    }

    fn window(&self) -> u64 {
        // A window of whole datagrams in bytes must not lose one to the rounding of fractions.
        libm::round(self.curve.cwnd * self.mtu as f64) as u64
    }

    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    fn view(&self) -> View {
        View {
            name: self.name,
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
            ssthresh: self
                .curve
                .ssthresh
                .map(|ssthresh| libm::round(ssthresh * self.mtu as f64) as u64),
        }
    }
}

#[cfg(test)]
mod tests;
