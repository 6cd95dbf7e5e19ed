//! What a session tells its driver.

use alloc::string::String;

use marline_base::{Duration, Rate};

use crate::flow::Fate;
use crate::path::PathState;
use crate::wire::{FlowId, PathId};

/// Something that happened and that the application or the driver may act on.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The peer opened a flow; [`Session::flow_info`](crate::Session::flow_info) describes it.
    FlowOpened(FlowId),
    /// A flow has something to read: data, a message, its end or a reset.
    FlowReadable(FlowId),
    /// A flow that refused a write has room again.
    FlowWritable(FlowId),
    /// A block or an object that was written here has come to its end, as its receiver says.
    UnitSettled {
        /// The flow.
        flow: FlowId,
        /// Number of the block or object.
        number: u64,
        /// What became of it.
        fate: Fate,
        /// From the write until the receiver had it whole, as far as the clocks of both ends can
        /// be compared; for one that it never had, until this is known.
        after: Duration,
    },
    /// The flow's sending half is over, with a code: the peer will not read more, or this side gave
    /// the flow up for its memory (`YIELDED`). What was unsent is dropped.
    FlowStopped(FlowId, u64),
    /// Both sides are done with the flow and its id is free.
    FlowClosed(FlowId),
    /// The paths carry less than the rate that the flow's application
    /// [said it needs](crate::Session::set_needed_rate), or that a live flow is written at.
    /// Reported again when it becomes much less or more; ended by [`Event::MeetsNeededRate`], or
    /// when another rate is needed.
    BelowNeededRate {
        /// The flow.
        flow: FlowId,
        /// What the flow got lately, in bytes of the application.
        capacity: Rate,
    },
    /// The paths carry again what the flow's application needs.
    MeetsNeededRate {
        /// The flow.
        flow: FlowId,
    },
    /// A path changed its state.
    PathChanged {
        /// The path.
        path: PathId,
        /// Its new state.
        state: PathState,
        /// Why, in words.
        reason: String,
    },
    /// The peer gave the path up; its carrier should be closed.
    PathAbandoned(PathId),
    /// The session is over; nothing follows.
    Closed(CloseReason),
}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// This side closed it.
    Local {
        /// The code that was sent.
        code: u64,
        /// The reason that was sent.
        reason: String,
    },
    /// The peer closed it.
    Peer {
        /// The peer's code ([`crate::wire::close_code`]).
        code: u64,
        /// The peer's reason.
        reason: String,
    },
    /// Nothing arrived on any path for the idle timeout.
    IdleTimeout,
    /// The peer broke the protocol.
    Protocol {
        /// The code that was sent ([`crate::wire::close_code`]).
        code: u64,
        /// What it did, in words.
        reason: String,
    },
}

impl core::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Local { reason, .. } => write!(f, "closed here: {reason}"),
            Self::Peer { code, reason } => write!(f, "closed by the peer (code {code}): {reason}"),
            Self::IdleTimeout => f.write_str("nothing arrived on any path for the idle timeout"),
            Self::Protocol { reason, .. } => write!(f, "the peer broke the protocol: {reason}"),
        }
    }
}
