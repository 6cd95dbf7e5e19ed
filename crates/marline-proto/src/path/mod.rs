//! One path: its ledger of sent packets, what it received, its estimators, its state.
//!
//! | file | what |
//! | --- | --- |
//! | `track.rs`, `counters.rs` | all that the session keeps of one path, and what it counts |
//! | `view.rs` | what schedulers see of it |
//! | `ledger.rs`, `control.rs`, `timers.rs` | packets sent, losses, and what the path waits for |
//! | `received.rs`, `silence.rs` | packets received, and when to acknowledge them |
//! | `relayed.rs`, `repeats.rs` | acknowledgements over another path's way back |
//! | `rtt.rs`, `trips.rs`, `least.rs` | round-trip times |
//! | `one_way.rs` | forward delay |
//! | `expects.rs` | what the path's law ([`law`](crate::law)) says of a packet that leaves now |
//! | `quiet.rs` | how long a path in reserve may be quiet |
//! | `cost.rs` | what the path costs either end |
//! | `due.rs` | what has arrived on other paths by then |
//! | `delivery.rs`, `pace.rs` | delivery rate: the most, and now |
//! | `loss_meter.rs` | the share of packets that are lost |
//! | `size.rs` | how long its datagrams may be |
//! | `pacer.rs`, `state.rs` | pacing; the path's state |

mod control;
mod cost;
pub(crate) mod counters;
pub mod delivery;
mod due;
mod expects;
pub(crate) mod least;
mod ledger;
mod loss_meter;
mod one_way;
mod pace;
pub mod pacer;
pub(crate) mod quiet;
mod received;
mod relayed;
mod repeats;
mod rtt;
mod sent;
mod silence;
mod size;
mod state;
mod timers;
mod track;
pub(crate) mod trips;
pub(crate) mod view;

pub use crate::flow::emission::EmissionKind;
pub use expects::Foreseen;
pub use state::PathState;

pub(crate) use control::Control;
pub(crate) use loss_meter::LOSSY;
pub(crate) use sent::{Rescued, SentFrame, SentPacket, Settled};
pub(crate) use state::{Health, Reason, Trial};
pub(crate) use timers::PathTimer;
pub(crate) use track::{Path, WHOLE_MARGIN};
pub(crate) use trips::Timing;
pub(crate) use view::LATEST;

/// How a path begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathParams {
    /// Largest datagram that the carrier takes (bytes), at least [`MIN_DATAGRAM`]. Where it grows
    /// ([`Session::path_max_datagram`]), datagrams of this size are taken to pass always.
    ///
    /// [`Session::path_max_datagram`]: crate::Session::path_max_datagram
    pub max_datagram: usize,
    /// Cost rank; lower is cheaper. Schedulers that mind cost fill cheap paths first.
    pub cost: u32,
    /// Start in reserve.
    pub standby: bool,
    /// Round-trip time that the carrier's handshake measured, if it did. A path that comes with
    /// one has proved both directions and is active at once.
    pub rtt: Option<marline_base::Duration>,
    /// The carrier controls congestion itself, and [`Session::on_carrier_state`] says how that
    /// stands: the session's controller of this path is what the carrier reports.
    ///
    /// [`Session::on_carrier_state`]: crate::Session::on_carrier_state
    pub carrier_controls: bool,
    /// The carrier goes on when an address translator gives the path another address, as QUIC does.
    /// Only then the session may learn how long such a path can be quiet in reserve: it finds out
    /// by being forgotten once.
    pub survives_rebinding: bool,
}

impl Default for PathParams {
    /// 1200 bytes, cost 0, not in reserve, nothing measured, a carrier that has one address.
    fn default() -> Self {
        Self {
            max_datagram: 1_200,
            cost: 0,
            standby: false,
            rtt: None,
            carrier_controls: false,
            survives_rebinding: false,
        }
    }
}

/// Smallest `max_datagram` of a path (bytes): every control frame fits.
pub const MIN_DATAGRAM: usize = 1_000;
