//! Several unreliable links twisted into one low-latency connection, as a library.

pub mod carrier;
pub mod endpoint;
pub mod identity;
mod path;
#[doc(hidden)]
pub mod support;

pub use marline_proto::sched;
pub use marline_proto::wire::FlowKind;
pub use path::{PathSpec, tcp_congestion};
