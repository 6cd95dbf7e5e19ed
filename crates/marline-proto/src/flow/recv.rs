//! The receiving half of a flow, whatever its kind.

use super::{PacketsRecv, StreamRecv};

#[derive(Debug)]
pub(crate) enum RecvHalf {
    Stream(StreamRecv),
    Packets(PacketsRecv),
}

impl RecvHalf {
    pub(crate) fn is_readable(&self) -> bool {
        match self {
            Self::Stream(s) => s.is_readable(),
            Self::Packets(p) => p.is_readable(),
        }
    }

    /// Nothing more is expected from the peer.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Self::Stream(s) => s.is_complete(),
            Self::Packets(p) => p.is_complete(),
        }
    }
}
