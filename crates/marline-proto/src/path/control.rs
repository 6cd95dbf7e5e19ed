//! Names of control frames that must arrive. What such a frame says is written from the state of
//! the moment when it is sent (`session/control.rs`).

use crate::wire::{FlowId, PathId};

/// A control frame that is due, or was sent and is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Control {
    OpenFlow(FlowId),
    ResetFlow(FlowId),
    StopSending(FlowId),
    Forward(FlowId),
    Finish(FlowId),
    FlowReport(FlowId),
    /// A unit is given up.
    CancelUnit(FlowId, u64),
    /// What became of a unit.
    UnitFate(FlowId, u64),
    /// A unit needs more symbols than it should.
    UnitShort(FlowId, u64),
    MaxData,
    MaxFlowData(FlowId),
    MaxFlows,
    PathStatus(PathId),
    PathCost(PathId),
    PathQuiet(PathId),
    PathAbandon(PathId),
    CodeStatus(FlowId),
}

impl Control {
    /// The flow that the frame is about.
    pub(crate) fn flow(self) -> Option<FlowId> {
        match self {
            Self::OpenFlow(flow)
            | Self::ResetFlow(flow)
            | Self::StopSending(flow)
            | Self::Forward(flow)
            | Self::Finish(flow)
            | Self::FlowReport(flow)
            | Self::CancelUnit(flow, _)
            | Self::UnitFate(flow, _)
            | Self::UnitShort(flow, _)
            | Self::MaxFlowData(flow)
            | Self::CodeStatus(flow) => Some(flow),
            Self::MaxData
            | Self::MaxFlows
            | Self::PathStatus(_)
            | Self::PathCost(_)
            | Self::PathQuiet(_)
            | Self::PathAbandon(_) => None,
        }
    }
}
