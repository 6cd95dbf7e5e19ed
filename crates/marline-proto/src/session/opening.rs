//! How flows are opened, and why they or what is written to them may be refused.
//!
//! Opening a flow costs no round trip: OPEN_FLOW precedes the flow's data in every datagram until
//! it is acknowledged, so data never arrives for an unknown flow.

use bytes::Bytes;
use marline_base::Duration;

use crate::config::ConfigError;
use crate::sched::Choice;
use crate::wire::{DeliveryOrder, FlowKind, LEAST_PRIORITY, MAX_TARGET};

/// How a flow is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowOptions {
    /// What it carries; methods that open one kind of flow set it themselves.
    pub kind: FlowKind,
    /// Packets flows: deliver in order (the default) or as they come. Streams are in order.
    pub ordered: bool,
    /// 0 (first) to 7 (last); default 3. Whoever waits behind more urgent flows has one turn of 3
    /// kB in 32 all the same, so that nobody starves.
    pub priority: u8,
    /// Packets flows: how long a message is worth sending (again); `None` for ever.
    pub lifetime: Option<Duration>,
    /// Packets flows: most bytes that may wait on this side before a path is chosen for them. What
    /// is sent then is refused ([`SendError::Full`](crate::flow::SendError::Full)), as by a network
    /// interface whose queue is full. The newest message of an ordered flow outlives its
    /// `lifetime` then, until there is a newer one. `None` leaves it to
    /// [`Config::send_buffer`](crate::Config::send_buffer), which also counts what is on its way.
    pub queue: Option<u64>,
    /// The scheduler on this side; `None` for the configured default.
    pub scheduler: Option<Choice>,
    /// Opaque to the session, handed to the peer: at most 512 bytes.
    pub target: Bytes,
}

/// A stream with defaults for the rest.
impl Default for FlowOptions {
    fn default() -> Self {
        Self::new(FlowKind::Stream)
    }
}

impl FlowOptions {
    /// Priority of a flow that asks for none.
    pub const MIDDLE_PRIORITY: u8 = 3;

    /// A flow of this kind with defaults for the rest.
    pub fn new(kind: FlowKind) -> Self {
        Self {
            kind,
            ordered: true,
            priority: Self::MIDDLE_PRIORITY,
            lifetime: None,
            queue: None,
            scheduler: None,
            target: Bytes::new(),
        }
    }
}

/// What the peer asked for when it opened a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowInfo {
    /// What it carries.
    pub kind: FlowKind,
    /// In which order messages are delivered.
    pub order: DeliveryOrder,
    /// 0 (first) to 7 (last).
    pub priority: u8,
    /// How long a message is worth sending.
    pub lifetime: Option<Duration>,
    /// The opener's bytes.
    pub target: Bytes,
}

/// Why a flow was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The peer allows no more flows at once; try again when one has closed.
    TooManyFlows,
    /// The target is longer than 512 bytes: its length.
    TargetTooLong(usize),
    /// Priority beyond 7.
    Priority(u8),
    /// The scheduler cannot serve the kind.
    Scheduler(ConfigError),
    /// The peer does not take flows of this kind.
    Kind(FlowKind),
    /// The session is closing.
    Closing,
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TooManyFlows => f.write_str("the peer allows no more flows at once"),
            Self::TargetTooLong(len) => {
                write!(
                    f,
                    "the target has {len} bytes; at most {MAX_TARGET} are allowed"
                )
            }
            Self::Priority(p) => write!(f, "priority {p} is not from 0 to {LEAST_PRIORITY}"),
            Self::Scheduler(error) => write!(f, "{error}"),
            Self::Kind(kind) => write!(f, "the peer takes no flows of {}", kind.name()),
            Self::Closing => f.write_str("the session is closing"),
        }
    }
}

impl core::error::Error for OpenError {}

/// Why a stream took no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// There is no such flow, it is of another kind, or it was finished or reset.
    Closed,
    /// The flow's send buffer is full; [`Event::FlowWritable`](crate::Event::FlowWritable) tells of
    /// room.
    Blocked,
}

impl core::fmt::Display for WriteError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Closed => "the flow is closed or of another kind",
            Self::Blocked => "the flow's send buffer is full",
        })
    }
}

impl core::error::Error for WriteError {}
