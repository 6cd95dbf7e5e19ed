//! One direction of a network link as a pure model: [`Link::offer`] takes a packet's size and the
//! time and answers when it arrives, or why it does not.
//!
//! ```text
//!  offer ─▶ MTU ─▶ outage ─▶ queue (drop-tail, CoDel) ─▶ capacity ─▶ propagation ─▶ loss ─▶ arrival
//! ```
//!
//! No clock, socket or thread is involved, and every random draw follows from a seed, so that a
//! simulator and a real-time relay which are given the same packets at the same times see the same
//! link. The queue is first in, first out, which is why a verdict can be given at once: nothing
//! that is offered later changes it.
//!
//! ```
//! use marline_base::Instant;
//! use marline_link::{Link, LinkConfig, Verdict};
//!
//! let config: LinkConfig = "rate=20mbit,delay=15ms,queue=200ms".parse()?;
//! let mut link = Link::new(config, 7)?;
//! // 1500 bytes take 0.6 ms at 20 Mb/s, then travel for 15 ms.
//! let Verdict::Delivered { at, .. } = link.offer(Instant::ZERO, 1_500) else {
//!     panic!("an empty, lossless link delivers");
//! };
//! assert_eq!(at, Instant::from_micros(15_600));
//! # Ok::<(), marline_link::ConfigError>(())
//! ```
//!
//! [`LinkConfig`] holds the parameters; its text form is described at
//! [`LinkConfig::parse_with`].

#![no_std]

extern crate alloc;

mod capacity;
mod config;
mod delay;
mod link;
mod loss;
mod outage;
mod queue;
mod replayed;
mod slots;
mod text;
mod verdict;

pub use capacity::{
    Bucket, Capacity, RateDist, RateTrace, ServiceTime, Trace, TraceError, VaryingRate,
};
pub use config::{ConfigError, LinkConfig};
pub use delay::{Delay, Redraw};
pub use link::Link;
pub use loss::Loss;
pub use outage::{Outage, OutageMode, Outages};
pub use queue::{Codel, CodelControl, QueueLimit};
pub use replayed::Replay;
pub use text::Key;
pub use verdict::{Counters, Reason, Verdict};
