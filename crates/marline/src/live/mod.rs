//! Live streams: datagrams of encoders and contribution tools carried in order, each worth no more than a latency budget.
//!
//! A client's entry listens at a port; every local sender gets a flow of its own there, and what comes back on the flow
//! goes to that sender, because SRT and RIST talk both ways. A server's entry of the same name says where the flows end.
//! `docs/LIVE.md` has the user's view.
//!
//! | file | what |
//! | --- | --- |
//! | `name.rs` | the name by which entries of a client and a server find each other |
//! | `inlet.rs` | the client's side |
//! | `inflow.rs` | what a sender's datagrams wait in while there is no session |
//! | `frames.rs`, `grouping.rs` | entries with a deadline: video frames as blocks |
//! | `media.rs`, `composing.rs`, `arriving.rs` | entries with objects: video frames and PES packets as objects |
//! | `writing.rs` | what both write in several parts, and keep for the next session |
//! | `framing.rs`, `pes.rs` | where frames and PES packets begin and end |
//! | `outlet.rs` | the server's side |
//! | `entry.rs`, `meter.rs` | what entries and their flows count; targets |
//! | `inspect.rs`, `rtp.rs`, `mpegts.rs` | what the content's own numbers say |
//! | `alarm.rs` | what is due at a time that changes |
//! | `manage.rs` | status and targets through the control socket |

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
mod manage;
mod media;
mod meter;
mod mpegts;
mod name;
mod outlet;
mod pes;
mod rtp;
mod writing;

pub use entry::Board;
pub(crate) use frames::Frames;
pub use inlet::Inlets;
pub use inspect::{Content, Wholeness};
pub use manage::WithLive;
pub(crate) use media::Media;
pub use name::LiveName;
pub use outlet::Outlets;

#[cfg(test)]
mod tests;
