//! The wire format (`docs/PROTOCOL.md`): a datagram is a [`Header`] and [`Frame`]s to its end.
//!
//! Decoding borrows from the datagram and is total: any bytes give frames or a [`DecodeError`],
//! never a panic, and no frame allocates but an [`Ack`], for two vectors whose lengths are
//! bounded. Encoding appends to a buffer that the caller owns.
//!
//! | file | what |
//! | --- | --- |
//! | [`varint`] | variable-length integers (RFC 9000 §16) |
//! | `id.rs` | [`PathId`], [`FlowId`] |
//! | `header.rs`, `frame.rs` | [`Header`], [`Frame`] and the iterator [`Frames`] |
//! | `ack.rs` | ACK with arrival times |
//! | `flow.rs` | OPEN_FLOW, RESET_FLOW, STOP_SENDING |
//! | `stream.rs` | STREAM |
//! | `packet.rs` | PACKET, PACKET_PART, FORWARD, FINISH |
//! | `code.rs` | SYMBOL, REPAIR, CODE_STATUS |
//! | `unit.rs`, `heading.rs` | UNIT, UNIT_REPAIR, UNIT_FATE, UNIT_CANCEL; how units begin |
//! | `credit.rs` | MAX_DATA, MAX_FLOW_DATA, MAX_FLOWS |
//! | `path.rs` | PATH_STATUS, PATH_ABANDON |
//! | `close.rs` | CLOSE and its codes |
//! | `params.rs`, `param_name.rs` | [`Params`], which the carrier's handshake exchanges |
//! | `error.rs` | [`DecodeError`] |

mod ack;
mod close;
mod code;
mod credit;
mod error;
mod flow;
mod frame;
pub mod frame_type;
mod header;
mod heading;
mod id;
mod packet;
mod param_name;
mod params;
mod path;
mod reader;
mod side;
mod stream;
mod unit;
pub mod varint;

pub use ack::{
    Ack, Arrival, Fitted, MAX_ARRIVALS_DECODED, MAX_ARRIVALS_ENCODED, MAX_RANGES_DECODED,
    MAX_RANGES_ENCODED,
};
pub use close::{Close, MAX_REASON, close_code};
pub use code::{
    CODED_LENGTH, CodeStatus, Content, MAX_CODE_SYMBOL, MAX_CODE_WINDOW, RepairSymbol, SourceSymbol,
};
pub use credit::{MAX_FLOW_COUNT, MaxData, MaxFlowData, MaxFlows};
pub use error::{DecodeError, DecodeErrorKind};
pub use flow::{
    DeliveryOrder, FlowKind, LEAST_PRIORITY, MAX_TARGET, OpenFlow, ResetFlow, StopSending,
};
pub use frame::{Frame, Frames, decode};
pub use header::Header;
pub use heading::{BlockHeading, ObjectHeading, Piece};
pub use id::{FlowId, MAX_PATHS, PathId};
pub use packet::{Finish, FlowReport, Forward, MAX_MESSAGE, Packet, PacketPart};
pub use params::{MAX_ACK_DELAY_US, MAX_PARAMETERS, MAX_REPAIRS, MAX_UNITS, Params};
pub use path::{
    Availability, MAX_COST, MAX_QUIET_MS, PathAbandon, PathCost, PathQuiet, PathStatus,
};
pub use side::Side;
pub use stream::Stream;
pub use unit::{
    CERTAIN, LEAST_SYMBOL, MAX_SOURCES, MAX_UNIT, UnitCancel, UnitData, UnitFate, UnitRepair,
    Verdict,
};

/// The version that this code speaks.
pub const VERSION: u8 = 1;

#[cfg(test)]
mod tests;
