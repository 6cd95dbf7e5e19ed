//! BBR's control parameters: pacing rate, send quantum, window and gains (§4.2).

use marline_base::{Duration, Rate};

use super::super::window::{initial_window, minimum_window};
use super::filters::Model;
use super::probe_bw::PROBE_GAIN;
use super::startup::HIGH_GAIN;
use super::{Bbr, Event, Live, Manner, Params, Phase};

/// §4.2.3.2: the window in PROBE_BW, in bandwidth-delay products, leaves room for delayed and
/// stretched acknowledgements.
const WINDOW_GAIN: f64 = 2.0;

/// While live streams share the path, the window in PROBE_BW holds what a probe needs, and beside
/// that what the path carries in this time, so that it does not run dry between two turns of a
/// radio (a frame of LTE is 10 ms, 3GPP TS 36.211 §4). Without it a download over WiFi loses a
/// quarter instead of a tenth (`marline repro field --cell load=live+download`).
const LIVE_QUEUE: Duration = Duration::from_millis(10);

/// §4.2.3.3 `BBRMinPipeCwnd`, in packets: enough to keep packets and their acknowledgements moving.
const MIN_PIPE_PACKETS: u64 = 4;

/// §4.2.1: round-trip time assumed for the pacing rate before there is a sample.
const NOMINAL_RTT: Duration = Duration::from_millis(1);

/// The gentle manner begins with what a rate brings in some round trips where that is more than the
/// usual ten packets, but not with more than this number: otherwise a live stream over a path of
/// 160 ms waits for half a second until it carries its share. It is paced as the usual window would
/// be, or by that rate and a gain: the path may carry no more.
#[derive(Clone, Copy, Debug)]
struct First {
    rate: Rate,
    /// Round trips whose worth of that rate the window holds,
    trips: f64,
    /// but no more packets than these.
    packets: u64,
    /// On the rate, for pacing.
    gain: f64,
}

impl First {
    /// What is needed is not known. Two round trips, for the first that is measured may have been a
    /// lucky one, or have come back by a quicker path.
    const GUESS: Self = Self {
        rate: Rate::from_mbps(2),
        trips: 2.0,
        packets: 32,
        gain: HIGH_GAIN,
    };

    /// What is needed is known, with what headroom there should be. Of 30 Mb/s, 160 ms are 500
    /// packets.
    const fn need(rate: Rate) -> Self {
        Self {
            rate,
            trips: 1.0,
            packets: 512,
            gain: 1.0,
        }
    }
}

#[derive(Debug)]
pub(super) struct Control {
    pub(super) mtu: u64,
    /// Congestion window (bytes).
    pub(super) window: u64,
    /// What the window is before anything is acknowledged (bytes).
    pub(super) initial: u64,
    pub(super) pacing_rate: Rate,
    first: First,
    /// The pacing rate does not rest on a guess any more.
    measured: bool,
}

impl Control {
    /// §4.2.1 `BBRInitPacingRate`.
    pub(super) fn new(params: &Params) -> Self {
        let window = initial_window(params.mtu);
        let nominal = params
            .rate
            .unwrap_or_else(|| Rate::from_bytes_over(window, NOMINAL_RTT));
        Self {
            mtu: params.mtu,
            window,
            initial: window,
            pacing_rate: nominal.scaled(HIGH_GAIN),
            first: First::GUESS,
            measured: false,
        }
    }

    pub(super) fn set_mtu(&mut self, mtu: u64) {
        if self.measured {
            let least = minimum_window(mtu);
            self.window = self.window.max(least);
            self.initial = self.initial.max(least);
        } else {
            self.initial = initial_window(mtu);
            self.window = self.initial;
        }
        self.mtu = mtu;
    }

    /// Smallest window outside recovery (bytes).
    pub(super) const fn min_pipe(&self) -> u64 {
        MIN_PIPE_PACKETS * self.mtu
    }

    /// §4.2.2 `BBRSetSendQuantum` (bytes).
    fn send_quantum(&self) -> u64 {
        if self.pacing_rate < Rate::from_kbps(1_200) {
            self.mtu
        } else if self.pacing_rate < Rate::from_mbps(24) {
            2 * self.mtu
        } else {
            self.pacing_rate
                .bytes_in(Duration::from_millis(1))
                .min(64 << 10)
        }
    }

    /// §4.2.3.2 `BBRInflight`: `gain` bandwidth-delay products, and three quanta for what sender,
    /// receiver and network hold back to send in bunches.
    pub(super) fn inflight(&self, model: &Model, gain: f64) -> u64 {
        match model.flight(gain) {
            Some(bytes) => bytes.saturating_add(3 * self.send_quantum()),
            None => self.initial,
        }
    }

    /// §4.2.1 `BBRSetPacingRateWithGain`: until the pipe is full, the rate only rises.
    pub(super) fn set_pacing_rate(&mut self, model: &Model, gain: f64, full: bool) {
        if let Some(bandwidth) = model.bandwidth() {
            let rate = bandwidth.scaled(gain);
            if full || rate > self.pacing_rate {
                self.pacing_rate = rate;
            }
        }
    }

    /// The first round-trip time replaces the nominal millisecond. The draft's text does without;
    /// its authors' implementations do this, because a rate that only rises would otherwise leave
    /// STARTUP unpaced on every path below 100 Mb/s.
    fn set_first_rate(&mut self, manner: Manner, srtt: Duration) {
        if self.measured || srtt.is_zero() {
            return;
        }
        self.measured = true;
        match manner {
            Manner::FourPackets => {
                let rate = Rate::from_bytes_over(self.initial, srtt);
                self.pacing_rate = rate.scaled(HIGH_GAIN);
            }
            Manner::HalfPipe => self.begin(srtt),
        }
    }

    /// The application needs this rate of the path: more or less than was guessed.
    pub(super) fn ask(&mut self, rate: Rate, srtt: Duration) {
        self.first = First::need(rate);
        if self.measured {
            self.begin(srtt);
        }
    }

    /// The gentle manner's first window and rate, also if some of it was used already.
    fn begin(&mut self, srtt: Duration) {
        let First {
            rate,
            trips,
            packets,
            gain,
        } = self.first;
        let usual = initial_window(self.mtu);
        let most = usual.max(packets * self.mtu);
        let initial = rate.scaled(trips).bytes_in(srtt).clamp(usual, most);
        self.window = (self.window + initial).saturating_sub(self.initial);
        self.window = self.window.max(self.min_pipe());
        self.initial = initial;
        let usual_rate = Rate::from_bytes_over(usual, srtt).scaled(HIGH_GAIN);
        self.pacing_rate = usual_rate.max(rate.scaled(gain));
    }
}

impl Bbr {
    /// Gain on the bandwidth that makes the pacing rate, by phase.
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.phase {
            Phase::Startup => HIGH_GAIN,
            Phase::Drain => 1.0 / HIGH_GAIN,
            Phase::ProbeBw => self.cycle.gain(),
            _ => 1.0,
        }
    }

    /// Gain on the bandwidth-delay product that makes the window, by phase.
    pub(super) fn window_gain(&self) -> f64 {
        match self.phase {
            Phase::Startup | Phase::Drain => HIGH_GAIN,
            Phase::ProbeBw => WINDOW_GAIN,
            _ => 1.0,
        }
    }

    /// §4.2.3.2: what the window grows to. Two pipes keep a pipe's worth of queue, and live streams
    /// would wait behind that, whatever their priority here.
    pub(super) fn target_window(&self) -> u64 {
        let usual = self.control.inflight(&self.model, self.window_gain());
        if self.live != Live::Sent || self.phase != Phase::ProbeBw {
            return usual;
        }
        let queue = self.model.bandwidth().map(|rate| rate.bytes_in(LIVE_QUEUE));
        let short = self.control.inflight(&self.model, PROBE_GAIN);
        usual.min(short.saturating_add(queue.unwrap_or(0)))
    }

    /// §4.2 `BBRUpdateControlParameters`.
    pub(super) fn update_control(&mut self, event: &Event) {
        let pacing_gain = self.pacing_gain();
        let full = self.full_pipe.filled();
        self.control.set_first_rate(self.manner, event.ack.srtt);
        self.control.set_pacing_rate(&self.model, pacing_gain, full);

        // §4.2.3.6 BBRSetCwnd
        let target = self.target_window();
        self.modulate_for_recovery(event);
        if !self.recovery.conserves() {
            let control = &mut self.control;
            if full {
                control.window = control.window.saturating_add(event.ack.bytes).min(target);
            } else if control.window < target || self.delivered < control.initial {
                control.window = control.window.saturating_add(event.ack.bytes);
            }
            control.window = control.window.max(control.min_pipe());
        }
        if self.phase == Phase::ProbeRtt {
            self.control.window = self.control.window.min(self.probe_window());
        }
    }
}
