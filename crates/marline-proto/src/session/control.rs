//! Control frames that must arrive: what is due is remembered by name and written from the state
//! of the moment when it is sent, so that a retransmission never carries old news.

use crate::wire::{FlowId, PathId};

/// A control frame that is due, or was sent and is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Control {
    OpenFlow(FlowId),
    ResetFlow(FlowId),
    StopSending(FlowId),
    Forward(FlowId),
    Finish(FlowId),
    MaxData,
    MaxFlowData(FlowId),
    MaxFlows,
    PathStatus(PathId),
    PathAbandon(PathId),
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
            | Self::MaxFlowData(flow) => Some(flow),
            Self::MaxData | Self::MaxFlows | Self::PathStatus(_) | Self::PathAbandon(_) => None,
        }
    }
}
