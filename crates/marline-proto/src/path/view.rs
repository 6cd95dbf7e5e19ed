//! What schedulers see of a path.

use marline_base::{Duration, Rate};

use crate::congestion;
use crate::law::ArrivalForecast;
use crate::wire::PathId;

/// No arrival is expected later than this: rates and clocks that are far off must not make sums
/// overflow.
pub(crate) const LATEST: Duration = Duration::from_secs(3600);

/// What a scheduler sees of one path, as a snapshot.
///
/// All fields are public so that a scheduler can be tested from literals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// The path.
    pub id: PathId,
    /// Congestion window (bytes).
    pub window: u64,
    /// Bytes sent and neither acknowledged nor lost.
    pub in_flight: u64,
    /// Bytes that wait at the sender and leave on this path before a symbol of this flow that is
    /// queued now: its own, the more urgent, and its equals' as far as their turn comes first.
    pub queued: u64,
    /// Bytes of this flow that wait for this path at the sender.
    pub queued_own: u64,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_var: Duration,
    /// Smallest round-trip time of the last 10 to 20 s.
    pub min_rtt: Duration,
    /// Delivery rate: the controller's model if it has one, else measured, else window over srtt.
    pub rate: Rate,
    /// Fraction of packets lost lately, 0..=1.
    pub loss: f64,
    /// What is in flight is lost again and again, by outages or bursts, and may be so again.
    pub flaps: bool,
    /// Smoothed forward delay beyond its minimum, from arrival times at the peer.
    pub queueing: Duration,
    /// How long acknowledgements queue at the least on the way back: packets do not meet that queue
    /// (RFC 8289 §3.1).
    pub back_queueing: Duration,
    /// Smoothed time between arrivals of consecutive packets at the peer.
    pub spacing: Option<Duration>,
    /// When a packet that leaves now would arrive, on the peer's clock, and how sure that is;
    /// `None` before the first acknowledgement with arrival times.
    pub forecast: Option<ArrivalForecast>,
    /// Largest symbol that fits one datagram (bytes).
    pub symbol: u32,
    /// Cost rank that the user gave; lower is cheaper.
    pub cost: u32,
    /// The congestion controller's state.
    pub congestion: congestion::View,
}

impl PathView {
    /// Bytes that the window still takes after what is in flight and what leaves first.
    pub fn room(&self) -> u64 {
        self.window
            .saturating_sub(self.in_flight)
            .saturating_sub(self.queued)
    }

    /// Has the window room for a whole symbol? (For half a window, if symbols are longer.)
    pub fn has_room(&self) -> bool {
        self.room() >= u64::from(self.symbol).min(self.window / 2).max(1)
    }

    /// Expected time from now until `len` bytes that are queued now have arrived at the peer:
    /// what stands before them at the sender and in the network, their own transmission, and half
    /// the smallest round-trip time.
    pub fn arrival(&self, len: u32) -> Duration {
        // What a path without a queue holds is not in the way; the rest of the flight is.
        let pipe = self.rate.bytes_in(self.min_rtt);
        let standing = self.in_flight.saturating_sub(pipe);
        let ahead = self.queued + standing + u64::from(len);
        self.min_rtt / 2 + self.rate.time_for(ahead).min(LATEST)
    }
}
