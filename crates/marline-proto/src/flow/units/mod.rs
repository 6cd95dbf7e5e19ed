//! Flows of units: blocks and objects.
//!
//! A *unit* is cut into *k* symbols of equal length, and any k of them and of the repair symbols
//! that the block code of `marline-fec` makes bring it back. A block is one unit. An object is one
//! unit or, if it is long or grows while it is sent, several. Several units are under way at once,
//! and none waits for another.
//!
//! | file | what |
//! | --- | --- |
//! | `outgoing.rs` | one unit at its sender: what was cut, acknowledged, written off |
//! | `repairs.rs` | its repair symbols, encoded when they leave |
//! | `order.rs` | whose symbol is next: by urgency, but nobody starves |
//! | `send.rs`, `view.rs` | all units of a sender; what schedulers see of them |
//! | `object_table.rs`, `objects.rs` | its objects: pieces, dependencies, priorities |
//! | `arriving.rs` | one unit at its receiver |
//! | `recv.rs`, `assembly.rs` | all units of a receiver, and objects out of units |
//! | `fate.rs`, `error.rs` | what became of a unit; how a peer's may break the rules |
//!
//! The receiver decides what became of a unit and says so (UNIT_FATE) until the sender knows. The
//! sender keeps a unit until then. It sends again what was lost, unless repair symbols make up for
//! it; a block only until its deadline.
//!
//! # Bounds
//!
//! A unit takes credit when its first symbol is cut: its bytes and [`UNIT_COST`]; it gives the
//! credit back when the receiver's application has read it. So the receiver holds at most the
//! flow's window, and as much again for repair symbols and the one unit that is being rebuilt. The
//! numbers of units that are not settled lie within `max_units` of each other.
//!
//! # Decisions
//!
//! * Because the receiver decides, and repeats its report until the sender has it, both sides tell
//!   their applications the same, whatever crossed on the way. Deadlines are judged by the
//!   receiver's clock, which the sender learns as NTP does: from the quickest packet each way.
//! * A unit is cut once, into equal symbols, but travels as ranges of its bytes, so that a path
//!   with smaller datagrams can still carry it. What was lost is not sent again while repair
//!   symbols that arrived or are in flight make up for it; if a random code fails to decode, the
//!   receiver says so.
//! * A block is dropped at its deadline, not before: whether it can still be in time is for the
//!   scheduler to judge, by refusing it. Schedulers that place packet by packet therefore lose most
//!   blocks of a flow that asks for more than the paths carry.

mod arriving;
mod assembly;
mod error;
mod fate;
mod object_table;
mod objects;
mod order;
mod outgoing;
mod recv;
mod repairs;
mod send;
mod view;

#[cfg(test)]
mod tests;

pub use assembly::UnitPiece;
pub use fate::Fate;
pub use objects::ObjectOptions;
pub use recv::Received;
pub use send::BlockTerms;

pub(crate) use error::UnitError;
pub(crate) use recv::UnitsRecv;
pub(crate) use send::{Limits, Settlement, UnitsSend};

/// Credit (bytes) that a unit takes besides its length, so that small ones are bounded too.
pub(crate) const UNIT_COST: u64 = 256;
