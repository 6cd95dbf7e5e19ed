//! Live streams: datagrams of encoders and contribution tools carried in order, each worth no more
//! than a latency budget.
//!
//! A client's entry listens at a port; every local sender gets a flow of its own there, and what
//! comes back on the flow goes to that sender, because SRT and RIST talk both ways. A server's
//! entry of the same name says where the flows end. `docs/LIVE.md` has the user's view.
//!
//! | file | what |
//! | --- | --- |
//! | `inlet.rs` | the client's side |
//! | `inflow.rs` | what a sender's datagrams wait in while there is no session |
//! | `frames.rs`, `grouping.rs` | entries with a deadline: video frames as blocks |
//! | `media.rs`, `composing.rs`, `arriving.rs` | entries with objects: frames and PES packets |
//! | `writing.rs` | what both write in several parts, and keep for the next session |
//! | `framing.rs`, `pes.rs` | where frames and PES packets begin and end |
//! | `outlet.rs` | the server's side |
//! | `entry.rs`, `meter.rs` | what entries and their flows count; targets |
//! | `inspect.rs`, `rtp.rs`, `mpegts.rs` | what the content's own numbers say |
//! | `alarm.rs` | what is due at a time that changes |
//! | `terms.rs` | what an entry asks for |
//! | `status.rs` | what it reports |
//!
//! An entry's lifetime for datagrams is its latency budget. With a deadline, a flow of blocks
//! carries the RTP packets of one video frame each; with objects, a flow of objects carries a video
//! frame or a PES packet each, which are handed over in order. The parsers follow the numbers in
//! RTP and MPEG-TS and change nothing.

mod alarm;
mod arriving;
mod composing;
mod entry;
mod frames;
mod framing;
mod grouping;
mod inflow;
mod inlet;
mod inspect;
mod media;
mod meter;
mod mpegts;
mod outlet;
mod pes;
mod rtp;
pub mod status;
mod terms;
mod writing;

pub use crate::destination::LiveName;
pub use crate::options::{LIVE_LATENCY as LATENCY, live_latency};
pub use entry::Board;
pub use frames::Frames;
pub use inlet::Inlets;
pub use inspect::{Content, Wholeness};
pub use media::Media;
pub use outlet::Outlets;
pub use terms::{
    FrameTerms, LiveDefaults, LiveIn, LiveOut, Reliability, listen, live_deadline,
    live_reliability, live_target,
};

#[cfg(test)]
mod tests;
