//! Congestion control: one trait, one file a controller, one line each in [`registry`].
//!
//! A controller belongs to one path. It sees sent, acknowledged and lost bytes and answers two
//! questions: how much may be in flight ([`Controller::window`]) and how fast it may leave
//! ([`Controller::pacing_rate`]). Schedulers read its inner state through [`Controller::view`].

use alloc::boxed::Box;
use core::fmt;

use marline_base::{Duration, Instant, Rate};

pub mod registry;

mod ack_train;
mod bbr;
pub(crate) mod carrier;
mod choice;
mod cubic;
mod fixed;
mod hystart;
mod new_reno;
mod none;
mod rounds;
mod undo;
mod window;

#[cfg(test)]
mod tests;

pub use carrier::{CarrierState, bbr_view};
pub use choice::Congestion;

/// What one acknowledgement taught about a path, aggregated over all packets that it newly covers.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Bytes newly acknowledged.
    pub bytes: u64,
    /// Bytes in flight before this acknowledgement was processed.
    pub prior_in_flight: u64,
    /// Bytes in flight after it, and after the losses that it revealed.
    pub in_flight: u64,
    /// When the largest newly acknowledged packet was sent.
    pub sent: Instant,
    /// Round-trip time of that packet, or where packets overtake each other the mean of all that
    /// this reports, less what the peer waited; `None` if it taught none (it had been acknowledged
    /// before).
    pub rtt: Option<Duration>,
    /// How long acknowledgements queue at the least on the way back: a part of `rtt` that is no
    /// queue of the path's data.
    pub back_queueing: Duration,
    /// The path's smoothed round-trip time (RFC 9002 §5.3), for which only the largest packets
    /// count.
    pub srtt: Duration,
    /// Delivery rate (draft-cheng-iccrg-delivery-rate-estimation §3.3), if this sample taught one.
    pub delivery: Option<DeliverySample>,
    /// Bytes delivered on the path so far, this acknowledgement included.
    pub delivered: u64,
    /// Value of `delivered` when the newest packet covered here was sent; a round trip ends when
    /// it reaches the value of `delivered` at the round's start.
    pub delivered_when_sent: u64,
}

/// Live streams that share the paths with what fills them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Live {
    /// None, or nothing fills the paths.
    #[default]
    Absent,
    /// Some are open, and none is written here now: the peer may send them, and their
    /// acknowledgements wait in our queues.
    Received,
    /// Some are written here: their packets wait in our queues.
    Sent,
}

/// One sample of a path's delivery rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliverySample {
    /// Bytes delivered over the longer of the send and the acknowledgement interval.
    pub rate: Rate,
    /// The sender had nothing more to send during the interval, so that `rate` is a lower bound.
    pub app_limited: bool,
}

/// Packets that loss detection gave up.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Bytes newly declared lost.
    pub bytes: u64,
    /// When the most recently sent of the lost packets was sent.
    pub sent: Instant,
    /// Bytes in flight after the lost ones were taken off.
    pub in_flight: u64,
    /// The losses span more than the persistent-congestion period (RFC 9002 §7.6).
    pub persistent: bool,
}

/// What a scheduler may read of a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// The controller's name in the registry.
    pub name: &'static str,
    /// The phase that it is in.
    pub phase: Phase,
    /// Gain on the bandwidth-delay product that makes the window; 1 for controllers without one.
    pub window_gain: f64,
    /// Gain on the bandwidth that makes the pacing rate; 1 for controllers without one.
    pub pacing_gain: f64,
    /// Bottleneck bandwidth by the controller's model, where it has one.
    pub bandwidth: Option<Rate>,
    /// Smallest round-trip time by the controller's model, where it has one.
    pub min_rtt: Option<Duration>,
    /// Slow-start threshold (bytes), where the controller has one that is set.
    pub ssthresh: Option<u64>,
}

/// Phases that controllers go through; each uses those that its publication names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Slow start (RFC 9002 §7.3.1).
    SlowStart,
    /// Congestion avoidance (RFC 9002 §7.3.3, RFC 9438 §4).
    Avoidance,
    /// Fast recovery (RFC 9002 §7.3.2).
    Recovery,
    /// BBR's exponential search for bandwidth.
    Startup,
    /// BBR's draining of the queue that startup made.
    Drain,
    /// BBR's cruise with bandwidth probes.
    ProbeBw,
    /// BBR's probe of the smallest round-trip time, with a nearly empty window.
    ProbeRtt,
    /// The controller has no phases.
    Steady,
}

impl Phase {
    /// Is the window on its way to a capacity that is not known yet?
    pub const fn is_search(self) -> bool {
        matches!(self, Self::SlowStart | Self::Startup)
    }
}

/// Congestion control of one path.
pub trait Controller: fmt::Debug + Send {
    /// `bytes` were sent; `in_flight` includes them. `app_limited`: neither the window nor the
    /// pacer holds the sender back; after these bytes it has nothing more to send on this path.
    fn on_sent(&mut self, now: Instant, bytes: u64, in_flight: u64, app_limited: bool) {
        let _ = (now, bytes, in_flight, app_limited);
    }

    /// An acknowledgement covered packets that were in flight.
    fn on_ack(&mut self, now: Instant, ack: &Ack);

    /// Packets were declared lost. Called before [`Controller::on_ack`] where one acknowledgement
    /// reveals both.
    fn on_loss(&mut self, now: Instant, loss: &Loss);

    /// A loss declared before proves to have been reordering: a packet of `bytes`, sent at `sent`,
    /// arrived after all. A controller undoes a reduction only when everything that caused it
    /// proves to have arrived.
    fn on_spurious_loss(&mut self, now: Instant, bytes: u64, sent: Instant) {
        let _ = (now, bytes, sent);
    }

    /// The path's carrier controls its own congestion, and stands so. Only the controller of such
    /// paths is reported.
    fn on_carrier(&mut self, state: &CarrierState) {
        let _ = state;
    }

    /// The path carries datagrams of up to `mtu` bytes from now on.
    fn on_mtu(&mut self, mtu: u64) {
        let _ = mtu;
    }

    /// Live streams need `rate` of the path, whose capacity is not known yet and whose smoothed
    /// round-trip time is `srtt`, or assumed to be until one was measured. A controller may begin
    /// with what that takes instead of its usual first window; if it is called again, the last rate
    /// counts.
    fn on_demand(&mut self, rate: Rate, srtt: Duration) {
        let _ = (rate, srtt);
    }

    /// From now on live streams share the paths with what fills them, or do not any more. A
    /// controller may keep a shorter queue meanwhile.
    fn on_live(&mut self, live: Live) {
        let _ = live;
    }

    /// Bytes that may be in flight.
    fn window(&self) -> u64;

    /// Rate at which packets should leave; `None` leaves it to the pacer (window over smoothed
    /// round-trip time, with the usual headroom).
    fn pacing_rate(&self) -> Option<Rate>;

    /// State for schedulers, metrics and logs.
    fn view(&self) -> View;
}

/// What a controller starts from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Largest datagram that the path carries (bytes).
    pub mtu: u64,
    /// Rate of the `fixed` controller; others take it as no more than a first guess for pacing.
    pub rate: Option<Rate>,
    /// The sender spreads its packets over the round trip where the controller names no rate.
    pub paced: bool,
    /// Seed of what randomness a controller needs (BBR's first phase of the gain cycle).
    pub seed: u64,
}

/// A new controller. `params.mtu` is at least 1000.
pub type Constructor = fn(now: Instant, params: &Params) -> Box<dyn Controller>;
