//! The life of a flow: OPEN_FLOW, RESET_FLOW, STOP_SENDING.

use alloc::vec::Vec;

use super::reader::Reader;
use super::{DecodeErrorKind, FlowId, frame_type, varint};

/// Most bytes of a flow's target.
pub const MAX_TARGET: usize = 512;

/// The least urgent priority; 0 is the most urgent.
pub const LEAST_PRIORITY: u8 = 7;

/// What a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowKind {
    /// Bytes, reliably and in order.
    Stream = 0,
    /// Messages, reliably within the flow's lifetime.
    Packets = 1,
    /// Units that are worth something only by their deadline: each whole, late or lost.
    Blocks = 2,
    /// Objects, reliably and each on its own, the urgent ones first.
    Objects = 3,
}

impl FlowKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Stream, Self::Packets, Self::Blocks, Self::Objects];

    /// What people write for it in flags, configuration and scenarios.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Packets => "packets",
            Self::Blocks => "blocks",
            Self::Objects => "objects",
        }
    }

    /// Does it carry coded units, blocks or objects?
    #[must_use]
    pub const fn has_units(self) -> bool {
        matches!(self, Self::Blocks | Self::Objects)
    }
}

/// In which order a flow's units reach the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeliveryOrder {
    /// As they were sent.
    #[default]
    InOrder = 0,
    /// As they come.
    AsTheyCome = 1,
}

/// OPEN_FLOW: announces a flow that the sender of the frame opens.
///
/// ```text
/// 0x04 | flow (i) | kind (i) | order (i) | priority (i) | lifetime_us (i)
///      | target length (i) | target (..)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFlow<'a> {
    /// The flow.
    pub flow: FlowId,
    /// What it carries.
    pub kind: FlowKind,
    /// How it is delivered; [`FlowKind::Stream`] allows [`DeliveryOrder::InOrder`] only, blocks and
    /// objects [`DeliveryOrder::AsTheyCome`] only.
    pub order: DeliveryOrder,
    /// 0 (most urgent) to [`LEAST_PRIORITY`].
    pub priority: u8,
    /// Microseconds after which a unit that was not delivered is given up; 0 for never.
    pub lifetime_us: u64,
    /// At most [`MAX_TARGET`] bytes that say what the flow is for; opaque to the session.
    pub target: &'a [u8],
}

impl<'a> OpenFlow<'a> {
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeErrorKind> {
        let flow = FlowId(reader.varint("flow")?);
        let kind = match reader.varint("kind")? {
            0 => FlowKind::Stream,
            1 => FlowKind::Packets,
            2 => FlowKind::Blocks,
            3 => FlowKind::Objects,
            value => {
                return Err(DecodeErrorKind::UnknownValue {
                    field: "kind",
                    value,
                });
            }
        };
        let order = match (reader.varint("order")?, kind) {
            (0, FlowKind::Blocks | FlowKind::Objects) => {
                return Err(DecodeErrorKind::UnitsInOrder);
            }
            (0, _) => DeliveryOrder::InOrder,
            (1, FlowKind::Stream) => return Err(DecodeErrorKind::StreamOutOfOrder),
            (1, _) => DeliveryOrder::AsTheyCome,
            (value, _) => {
                return Err(DecodeErrorKind::UnknownValue {
                    field: "order",
                    value,
                });
            }
        };
        let priority = reader.varint_up_to("priority", LEAST_PRIORITY.into())? as u8;
        let lifetime_us = reader.varint("lifetime_us")?;
        let len = reader.varint_up_to("target length", MAX_TARGET as u64)?;
        Ok(Self {
            flow,
            kind,
            order,
            priority,
            lifetime_us,
            target: reader.bytes(len, "target")?,
        })
    }

    fn fields(&self) -> [u64; 6] {
        debug_assert!(
            self.priority <= LEAST_PRIORITY,
            "priority {}",
            self.priority
        );
        debug_assert!(self.target.len() <= MAX_TARGET, "target too long");
        [
            self.flow.0,
            self.kind as u64,
            self.order as u64,
            self.priority.into(),
            self.lifetime_us,
            self.target.len() as u64,
        ]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::OPEN_FLOW, self.fields(), out);
        out.extend_from_slice(self.target);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields()) + self.target.len()
    }
}

/// RESET_FLOW: the sender of the frame gives up its side of a flow.
///
/// ```text
/// 0x05 | flow (i) | code (i) | final_size (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetFlow {
    /// The flow.
    pub flow: FlowId,
    /// Why, in the application's numbers.
    pub code: u64,
    /// Bytes of the stream that the sender ever sent, for they count against its credit; 0 for a
    /// packets flow.
    pub final_size: u64,
}

impl ResetFlow {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        Ok(Self {
            flow: FlowId(reader.varint("flow")?),
            code: reader.varint("code")?,
            final_size: reader.varint("final_size")?,
        })
    }

    fn fields(&self) -> [u64; 3] {
        [self.flow.0, self.code, self.final_size]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::RESET_FLOW, self.fields(), out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields())
    }
}

/// STOP_SENDING: the sender of the frame will not read more of a flow.
///
/// ```text
/// 0x06 | flow (i) | code (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopSending {
    /// The flow.
    pub flow: FlowId,
    /// Why, in the application's numbers.
    pub code: u64,
}

impl StopSending {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        Ok(Self {
            flow: FlowId(reader.varint("flow")?),
            code: reader.varint("code")?,
        })
    }

    fn fields(&self) -> [u64; 2] {
        [self.flow.0, self.code]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::STOP_SENDING, self.fields(), out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields())
    }
}
