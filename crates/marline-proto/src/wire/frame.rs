//! All frames in one enum, and the iterator over a datagram's frames.

use alloc::vec::Vec;
use core::iter::FusedIterator;

use super::reader::Reader;
use super::{
    Ack, Close, CodeStatus, DecodeError, DecodeErrorKind, Finish, FlowReport, Forward, Header,
    MaxData, MaxFlowData, MaxFlows, OpenFlow, Packet, PacketPart, PathAbandon, PathCost, PathQuiet,
    PathStatus, RepairSymbol, ResetFlow, SourceSymbol, StopSending, Stream, UnitCancel, UnitData,
    UnitFate, UnitRepair, frame_type, varint,
};

/// One frame; data is borrowed from the datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A run of PADDING, one byte each.
    Padding {
        /// Bytes of the run, at least one.
        len: usize,
    },
    /// Asks for an acknowledgement.
    Ping,
    /// Which packets of a path arrived, and when.
    Ack(Ack),
    /// A flow is opened.
    OpenFlow(OpenFlow<'a>),
    /// The peer gives up its side of a flow.
    ResetFlow(ResetFlow),
    /// The peer will not read more of a flow.
    StopSending(StopSending),
    /// Bytes of a stream.
    Stream(Stream<'a>),
    /// A whole message.
    Packet(Packet<'a>),
    /// A part of a message.
    PacketPart(PacketPart<'a>),
    /// Messages that will not come.
    Forward(Forward),
    /// The end of a packets flow.
    Finish(Finish),
    /// How the messages of a packets flow fared.
    FlowReport(FlowReport),
    /// Bytes of a unit.
    Unit(UnitData<'a>),
    /// A repair symbol of a unit.
    UnitRepair(UnitRepair<'a>),
    /// What became of a unit.
    UnitFate(UnitFate),
    /// A unit is given up.
    UnitCancel(UnitCancel),
    /// Credit for the session.
    MaxData(MaxData),
    /// Credit for a flow.
    MaxFlowData(MaxFlowData),
    /// Flows that may be opened.
    MaxFlows(MaxFlows),
    /// How a path is to be used.
    PathStatus(PathStatus),
    /// A path is given up.
    PathAbandon(PathAbandon),
    /// What a path costs.
    PathCost(PathCost),
    /// After which quiet time a path in reserve is to get a ping.
    PathQuiet(PathQuiet),
    /// The session ends.
    Close(Close<'a>),
    /// A source symbol of a coded flow.
    Symbol(SourceSymbol<'a>),
    /// A repair symbol of a coded flow.
    Repair(RepairSymbol<'a>),
    /// What the receiver of a coded flow has and needs.
    CodeStatus(CodeStatus),
}

impl<'a> Frame<'a> {
    /// Whether a datagram with this frame must be acknowledged: all but PADDING, ACK, FLOW_REPORT
    /// and CLOSE.
    #[must_use]
    #[inline]
    pub const fn is_ack_eliciting(&self) -> bool {
        !matches!(
            self,
            Self::Padding { .. } | Self::Ack(_) | Self::FlowReport(_) | Self::Close(_)
        )
    }

    /// The frame's type on the wire.
    #[must_use]
    pub const fn frame_type(&self) -> u64 {
        match self {
            Self::Padding { .. } => frame_type::PADDING,
            Self::Ping => frame_type::PING,
            Self::Ack(_) => frame_type::ACK,
            Self::OpenFlow(_) => frame_type::OPEN_FLOW,
            Self::ResetFlow(_) => frame_type::RESET_FLOW,
            Self::StopSending(_) => frame_type::STOP_SENDING,
            Self::Stream(Stream { fin: false, .. }) => frame_type::STREAM,
            Self::Stream(Stream { fin: true, .. }) => frame_type::STREAM_FIN,
            Self::Packet(_) => frame_type::PACKET,
            Self::PacketPart(_) => frame_type::PACKET_PART,
            Self::Forward(_) => frame_type::FORWARD,
            Self::Finish(_) => frame_type::FINISH,
            Self::FlowReport(_) => frame_type::FLOW_REPORT,
            Self::Unit(_) => frame_type::UNIT,
            Self::UnitRepair(_) => frame_type::UNIT_REPAIR,
            Self::UnitFate(_) => frame_type::UNIT_FATE,
            Self::UnitCancel(_) => frame_type::UNIT_CANCEL,
            Self::MaxData(_) => frame_type::MAX_DATA,
            Self::MaxFlowData(_) => frame_type::MAX_FLOW_DATA,
            Self::MaxFlows(_) => frame_type::MAX_FLOWS,
            Self::PathStatus(_) => frame_type::PATH_STATUS,
            Self::PathAbandon(_) => frame_type::PATH_ABANDON,
            Self::PathCost(_) => frame_type::PATH_COST,
            Self::PathQuiet(_) => frame_type::PATH_QUIET,
            Self::Close(_) => frame_type::CLOSE,
            Self::Symbol(_) => frame_type::SYMBOL,
            Self::Repair(_) => frame_type::REPAIR,
            Self::CodeStatus(_) => frame_type::CODE_STATUS,
        }
    }

    /// Appends the frame.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Padding { len } => out.resize(out.len() + len, frame_type::PADDING as u8),
            Self::Ping => varint::encode(frame_type::PING, out),
            Self::Ack(frame) => frame.encode(out),
            Self::OpenFlow(frame) => frame.encode(out),
            Self::ResetFlow(frame) => frame.encode(out),
            Self::StopSending(frame) => frame.encode(out),
            Self::Stream(frame) => frame.encode(out),
            Self::Packet(frame) => frame.encode(out),
            Self::PacketPart(frame) => frame.encode(out),
            Self::Forward(frame) => frame.encode(out),
            Self::Finish(frame) => frame.encode(out),
            Self::FlowReport(frame) => frame.encode(out),
            Self::Unit(frame) => frame.encode(out),
            Self::UnitRepair(frame) => frame.encode(out),
            Self::UnitFate(frame) => frame.encode(out),
            Self::UnitCancel(frame) => frame.encode(out),
            Self::MaxData(frame) => frame.encode(out),
            Self::MaxFlowData(frame) => frame.encode(out),
            Self::MaxFlows(frame) => frame.encode(out),
            Self::PathStatus(frame) => frame.encode(out),
            Self::PathAbandon(frame) => frame.encode(out),
            Self::PathCost(frame) => frame.encode(out),
            Self::PathQuiet(frame) => frame.encode(out),
            Self::Close(frame) => frame.encode(out),
            Self::Symbol(frame) => frame.encode(out),
            Self::Repair(frame) => frame.encode(out),
            Self::CodeStatus(frame) => frame.encode(out),
        }
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    #[inline]
    pub fn encoded_len(&self) -> usize {
        match self {
            Self::Padding { len } => *len,
            Self::Ping => varint::len(frame_type::PING),
            Self::Ack(frame) => frame.encoded_len(),
            Self::OpenFlow(frame) => frame.encoded_len(),
            Self::ResetFlow(frame) => frame.encoded_len(),
            Self::StopSending(frame) => frame.encoded_len(),
            Self::Stream(frame) => frame.encoded_len(),
            Self::Packet(frame) => frame.encoded_len(),
            Self::PacketPart(frame) => frame.encoded_len(),
            Self::Forward(frame) => frame.encoded_len(),
            Self::Finish(frame) => frame.encoded_len(),
            Self::FlowReport(frame) => frame.encoded_len(),
            Self::Unit(frame) => frame.encoded_len(),
            Self::UnitRepair(frame) => frame.encoded_len(),
            Self::UnitFate(frame) => frame.encoded_len(),
            Self::UnitCancel(frame) => frame.encoded_len(),
            Self::MaxData(frame) => frame.encoded_len(),
            Self::MaxFlowData(frame) => frame.encoded_len(),
            Self::MaxFlows(frame) => frame.encoded_len(),
            Self::PathStatus(frame) => frame.encoded_len(),
            Self::PathAbandon(frame) => frame.encoded_len(),
            Self::PathCost(frame) => frame.encoded_len(),
            Self::PathQuiet(frame) => frame.encoded_len(),
            Self::Close(frame) => frame.encoded_len(),
            Self::Symbol(frame) => frame.encoded_len(),
            Self::Repair(frame) => frame.encoded_len(),
            Self::CodeStatus(frame) => frame.encoded_len(),
        }
    }

    /// Reads what follows a frame's type.
    #[inline]
    fn decode_body(frame: u64, reader: &mut Reader<'a>) -> Result<Self, DecodeErrorKind> {
        Ok(match frame {
            frame_type::PADDING => {
                let more = reader.rest.iter().take_while(|&&byte| byte == 0).count();
                reader.rest = &reader.rest[more..];
                Self::Padding { len: 1 + more }
            }
            frame_type::PING => Self::Ping,
            frame_type::ACK => Self::Ack(Ack::decode(reader)?),
            frame_type::OPEN_FLOW => Self::OpenFlow(OpenFlow::decode(reader)?),
            frame_type::RESET_FLOW => Self::ResetFlow(ResetFlow::decode(reader)?),
            frame_type::STOP_SENDING => Self::StopSending(StopSending::decode(reader)?),
            frame_type::STREAM => Self::Stream(Stream::decode(reader, false)?),
            frame_type::STREAM_FIN => Self::Stream(Stream::decode(reader, true)?),
            frame_type::PACKET => Self::Packet(Packet::decode(reader)?),
            frame_type::PACKET_PART => Self::PacketPart(PacketPart::decode(reader)?),
            frame_type::FORWARD => Self::Forward(Forward::decode(reader)?),
            frame_type::FINISH => Self::Finish(Finish::decode(reader)?),
            frame_type::FLOW_REPORT => Self::FlowReport(FlowReport::decode(reader)?),
            frame_type::UNIT => Self::Unit(UnitData::decode(reader)?),
            frame_type::UNIT_REPAIR => Self::UnitRepair(UnitRepair::decode(reader)?),
            frame_type::UNIT_FATE => Self::UnitFate(UnitFate::decode(reader)?),
            frame_type::UNIT_CANCEL => Self::UnitCancel(UnitCancel::decode(reader)?),
            frame_type::MAX_DATA => Self::MaxData(MaxData::decode(reader)?),
            frame_type::MAX_FLOW_DATA => Self::MaxFlowData(MaxFlowData::decode(reader)?),
            frame_type::MAX_FLOWS => Self::MaxFlows(MaxFlows::decode(reader)?),
            frame_type::PATH_STATUS => Self::PathStatus(PathStatus::decode(reader)?),
            frame_type::PATH_ABANDON => Self::PathAbandon(PathAbandon::decode(reader)?),
            frame_type::PATH_COST => Self::PathCost(PathCost::decode(reader)?),
            frame_type::PATH_QUIET => Self::PathQuiet(PathQuiet::decode(reader)?),
            frame_type::CLOSE => Self::Close(Close::decode(reader)?),
            frame_type::SYMBOL => Self::Symbol(SourceSymbol::decode(reader)?),
            frame_type::REPAIR => Self::Repair(RepairSymbol::decode(reader)?),
            frame_type::CODE_STATUS => Self::CodeStatus(CodeStatus::decode(reader)?),
            _ => return Err(DecodeErrorKind::UnknownFrame),
        })
    }
}

/// Reads a datagram's header and returns it with the iterator over its frames, whose errors count
/// bytes from the datagram's start.
///
/// # Errors
/// As [`Header::decode`].
#[inline]
pub fn decode(datagram: &[u8]) -> Result<(Header, Frames<'_>), DecodeError> {
    let (header, rest) = Header::decode(datagram)?;
    let frames = Frames {
        reader: Reader { rest },
        end: datagram.len(),
    };
    Ok((header, frames))
}

/// The frames of a datagram, in order. After an error the iterator ends: where the next frame
/// would start is unknown.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
    /// Offset of the last byte's end, from wherever errors count.
    end: usize,
}

impl<'a> Frames<'a> {
    /// Iterates over what follows the header; errors count bytes from its first byte.
    #[must_use]
    #[inline]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self {
            reader: Reader { rest: payload },
            end: payload.len(),
        }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.rest.is_empty() {
            return None;
        }
        let start = self.reader.rest;
        let mut frame = None;
        let decoded = self.reader.varint("frame type").and_then(|found| {
            frame = Some(found);
            if start.len() - self.reader.rest.len() != varint::len(found) {
                return Err(DecodeErrorKind::LongFrameType);
            }
            Frame::decode_body(found, &mut self.reader)
        });
        Some(decoded.map_err(|kind| {
            self.reader.rest = &[];
            DecodeError {
                offset: self.end - start.len(),
                frame,
                kind,
            }
        }))
    }
}

impl FusedIterator for Frames<'_> {}
