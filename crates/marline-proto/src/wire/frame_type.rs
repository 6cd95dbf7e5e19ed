//! The numbers of the frames. All of them fit one byte, and a type must be in its shortest form.

/// A byte that means nothing.
pub const PADDING: u64 = 0x00;
/// Asks for an acknowledgement.
pub const PING: u64 = 0x01;
/// [`Ack`](super::Ack).
pub const ACK: u64 = 0x02;
/// [`OpenFlow`](super::OpenFlow).
pub const OPEN_FLOW: u64 = 0x04;
/// [`ResetFlow`](super::ResetFlow).
pub const RESET_FLOW: u64 = 0x05;
/// [`StopSending`](super::StopSending).
pub const STOP_SENDING: u64 = 0x06;
/// [`Stream`](super::Stream) that does not end with its data.
pub const STREAM: u64 = 0x08;
/// [`Stream`](super::Stream) that ends with its data.
pub const STREAM_FIN: u64 = 0x09;
/// [`Packet`](super::Packet).
pub const PACKET: u64 = 0x0a;
/// [`PacketPart`](super::PacketPart).
pub const PACKET_PART: u64 = 0x0b;
/// [`Forward`](super::Forward).
pub const FORWARD: u64 = 0x0c;
/// [`Finish`](super::Finish).
pub const FINISH: u64 = 0x0d;
/// [`FlowReport`](super::FlowReport).
pub const FLOW_REPORT: u64 = 0x0e;
/// [`MaxData`](super::MaxData).
pub const MAX_DATA: u64 = 0x10;
/// [`MaxFlowData`](super::MaxFlowData).
pub const MAX_FLOW_DATA: u64 = 0x11;
/// [`MaxFlows`](super::MaxFlows).
pub const MAX_FLOWS: u64 = 0x12;
/// [`PathStatus`](super::PathStatus).
pub const PATH_STATUS: u64 = 0x18;
/// [`PathAbandon`](super::PathAbandon).
pub const PATH_ABANDON: u64 = 0x19;
/// [`PathCost`](super::PathCost).
pub const PATH_COST: u64 = 0x1a;
/// [`PathQuiet`](super::PathQuiet).
pub const PATH_QUIET: u64 = 0x1b;
/// [`Close`](super::Close).
pub const CLOSE: u64 = 0x1f;

/// [`SourceSymbol`](super::SourceSymbol).
pub const SYMBOL: u64 = 0x20;
/// [`RepairSymbol`](super::RepairSymbol).
pub const REPAIR: u64 = 0x21;
/// [`CodeStatus`](super::CodeStatus).
pub const CODE_STATUS: u64 = 0x22;
/// [`UnitData`](super::UnitData).
pub const UNIT: u64 = 0x28;
/// [`UnitRepair`](super::UnitRepair).
pub const UNIT_REPAIR: u64 = 0x29;
/// [`UnitFate`](super::UnitFate).
pub const UNIT_FATE: u64 = 0x2a;
/// [`UnitCancel`](super::UnitCancel).
pub const UNIT_CANCEL: u64 = 0x2b;

/// Name of a frame as `docs/PROTOCOL.md` writes it; `None` if no frame has this type.
#[must_use]
pub const fn name(frame_type: u64) -> Option<&'static str> {
    Some(match frame_type {
        PADDING => "PADDING",
        PING => "PING",
        ACK => "ACK",
        OPEN_FLOW => "OPEN_FLOW",
        RESET_FLOW => "RESET_FLOW",
        STOP_SENDING => "STOP_SENDING",
        STREAM | STREAM_FIN => "STREAM",
        PACKET => "PACKET",
        PACKET_PART => "PACKET_PART",
        FORWARD => "FORWARD",
        FINISH => "FINISH",
        FLOW_REPORT => "FLOW_REPORT",
        MAX_DATA => "MAX_DATA",
        MAX_FLOW_DATA => "MAX_FLOW_DATA",
        MAX_FLOWS => "MAX_FLOWS",
        PATH_STATUS => "PATH_STATUS",
        PATH_ABANDON => "PATH_ABANDON",
        PATH_COST => "PATH_COST",
        PATH_QUIET => "PATH_QUIET",
        CLOSE => "CLOSE",
        SYMBOL => "SYMBOL",
        REPAIR => "REPAIR",
        CODE_STATUS => "CODE_STATUS",
        UNIT => "UNIT",
        UNIT_REPAIR => "UNIT_REPAIR",
        UNIT_FATE => "UNIT_FATE",
        UNIT_CANCEL => "UNIT_CANCEL",
        _ => return None,
    })
}
