//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00; section numbers are the draft's).
//!
//! | file | holds |
//! | --- | --- |
//! | `filters.rs` | the model: windowed maximum of bandwidth, minimum of round-trip time (§4.1) |
//! | `control.rs` | what the model makes of it: pacing rate, send quantum, window (§4.2) |
//! | `recovery.rs` | the window while losses are repaired (§4.2.3.4) |
//! | `startup.rs` | STARTUP and DRAIN: find the full pipe, empty the queue (§4.3.2, §4.3.3) |
//! | `probe_bw.rs` | PROBE_BW: the cycle of gains (§4.3.4) |
//! | `probe_rtt.rs` | PROBE_RTT: the window of four packets every ten seconds (§4.3.5) |
//!
//! `bbr-gentle` differs in PROBE_RTT ([`Manner`]), in that the smallest round-trip time is that of
//! a whole round's mean (`filters.rs`), in its patience in STARTUP, and in PROBE_BW: its draining
//! phase lasts until the queue is gone, as in BBR version 2. So most cycles confirm the smallest
//! round-trip time and no probe is needed; and two cycles that cannot reach it although they should
//! have drained the queue show that the path has grown longer, long before ten seconds are over.
//! Its bandwidth lasts for some rounds that the application does not limit, too: one bad sample
//! after a burst of losses is not all that is left of it (`filters.rs`).
//!
//! Where live streams say what they need of a path, it begins with that instead of a guess
//! (`control.rs`).
//!
//! The full-pipe test ignores app-limited samples, as the draft says, so a path that is never
//! filled stays in STARTUP with a window of 2.89 bandwidth-delay products. The gentle manner counts
//! them where a round loses much by more than a pipe in flight, or stands in a queue from beginning
//! to end (`startup.rs`): a stream that waits for what was lost is limited by that, and would
//! overrun the queue again and again; one that is spread over several paths would keep a queue on
//! each for ever.
//!
//! Why `bbr-gentle` is the default: the draft's probe of four packets stops a live stream for 200
//! ms every ten seconds. The gentle probe keeps half of the pipe full and leaves out paths that are
//! not filled; `bbr` keeps the draft's probe for comparisons. Draining the queue whole in each
//! cycle of gains keeps the round trip of a full path near its minimum: 25 instead of 47 ms on 6
//! Mb/s with 20 ms. STARTUP ends in rounds that lose a quarter of what was sent, whatever was in
//! flight, because what is sent again in bursts overruns a short buffer again, without end.

use alloc::boxed::Box;

use marline_base::{Duration, Instant, Rate, Rng};

use super::rounds::Rounds;
use super::{Ack, Controller, DeliverySample, Live, Loss, Params, Phase, View};

mod control;
mod filters;
mod probe_bw;
mod probe_rtt;
mod recovery;
mod startup;

use control::Control;
use filters::Model;
use probe_bw::Cycle;
use probe_rtt::{Manner, ProbeRtt};
use recovery::Recovery;
use startup::FullPipe;

pub(super) const NAME: &str = "bbr";
pub(super) const GENTLE: &str = "bbr-gentle";

/// What an acknowledgement and the losses since the one before amount to.
#[derive(Clone, Copy, Debug)]
struct Event {
    now: Instant,
    ack: Ack,
    /// The delivery sample, after PROBE_RTT has had its say about being app-limited.
    sample: Option<DeliverySample>,
    /// Bytes declared lost since the last acknowledgement.
    lost: u64,
    /// A round trip ended.
    round_start: bool,
}

#[derive(Debug)]
struct Bbr {
    manner: Manner,
    phase: Phase,
    rounds: Rounds,
    /// Bytes delivered so far.
    delivered: u64,
    /// Bytes declared lost since the last acknowledgement.
    lost: u64,
    /// Sending resumed after everything had been acknowledged, and no acknowledgement came since.
    idle_restart: bool,
    /// Live streams share the path.
    live: Live,
    rng: Rng,
    model: Model,
    control: Control,
    recovery: Recovery,
    full_pipe: FullPipe,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
}

pub(super) fn new(now: Instant, params: &Params) -> Box<dyn Controller> {
    Box::new(Bbr::new(now, params, Manner::FourPackets))
}

pub(super) fn new_gentle(now: Instant, params: &Params) -> Box<dyn Controller> {
    Box::new(Bbr::new(now, params, Manner::HalfPipe))
}

impl Bbr {
    fn new(now: Instant, params: &Params, manner: Manner) -> Self {
        Self {
            manner,
            phase: Phase::Startup,
            rounds: Rounds::default(),
            delivered: 0,
            lost: 0,
            idle_restart: false,
            live: Live::Absent,
            rng: Rng::new(params.seed).stream("bbr"),
            model: Model::new(now, manner),
            control: Control::new(params),
            recovery: Recovery::default(),
            full_pipe: FullPipe::new(manner),
            cycle: Cycle::new(now),
            probe_rtt: ProbeRtt::default(),
        }
    }
}

impl Controller for Bbr {
    fn on_sent(&mut self, _now: Instant, bytes: u64, in_flight: u64, _app_limited: bool) {
        // §4.3.4.4: after a pause, packets leave at the rate of the model, not in a burst or a
        // probe. Only what was sent can be idle: the first packet of all does not count.
        if bytes == in_flight && self.delivered > 0 {
            self.idle_restart = true;
            if self.phase == Phase::ProbeBw {
                self.control.set_pacing_rate(&self.model, 1.0, true);
            }
        }
    }

    /// §4.1.1 `BBRUpdateOnACK`.
    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let round_start = self.rounds.on_ack(ack);
        self.delivered = ack.delivered;
        let event = Event {
            now,
            ack: *ack,
            sample: ack.delivery.map(|sample| DeliverySample {
                app_limited: sample.app_limited || self.probe_rtt.sent_in_probe(ack),
                ..sample
            }),
            lost: core::mem::take(&mut self.lost),
            round_start,
        };
        // BBRUpdateModelAndState
        self.model.update_bandwidth(&event, self.rounds.count);
        self.check_cycle_phase(&event);
        self.check_full_pipe(&event);
        self.check_drain(&event);
        let expired = self.model.update_min_rtt(&event);
        self.check_probe_rtt(&event, expired);
        // BBRUpdateControlParameters
        self.update_control(&event);
    }

    fn on_loss(&mut self, now: Instant, loss: &Loss) {
        self.lost = self.lost.saturating_add(loss.bytes);
        self.enter_recovery(now, loss);
    }

    fn on_mtu(&mut self, mtu: u64) {
        self.control.set_mtu(mtu);
    }

    fn on_demand(&mut self, rate: Rate, srtt: Duration) {
        // What comes back from more than a first window says more than what streams need.
        if self.manner == Manner::HalfPipe && self.delivered < self.control.initial {
            self.control.ask(rate, srtt);
        }
    }

    fn on_live(&mut self, live: Live) {
        if self.manner == Manner::HalfPipe {
            self.live = live;
        }
    }

    fn window(&self) -> u64 {
        self.control.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.control.pacing_rate)
    }

    fn view(&self) -> View {
        View {
            name: match self.manner {
                Manner::FourPackets => NAME,
                Manner::HalfPipe => GENTLE,
            },
            phase: self.phase,
            window_gain: self.window_gain(),
            pacing_gain: self.pacing_gain(),
            bandwidth: self.model.bandwidth(),
            min_rtt: self.model.min_rtt(),
            ssthresh: None,
        }
    }
}

#[cfg(test)]
mod tests;
