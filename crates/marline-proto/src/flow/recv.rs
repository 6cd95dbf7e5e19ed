//! The receiving half of a flow, whatever its kind.

use alloc::boxed::Box;

use super::{PacketsRecv, StreamRecv, UnitsRecv};

#[derive(Debug)]
pub(crate) enum RecvHalf {
    Stream(StreamRecv),
    Packets(PacketsRecv),
    Units(Box<UnitsRecv>),
}

impl RecvHalf {
    pub(crate) fn is_readable(&self) -> bool {
        match self {
            Self::Stream(s) => s.is_readable(),
            Self::Packets(p) => p.is_readable(),
            Self::Units(u) => u.is_readable(),
        }
    }

    /// Nothing more is expected from the peer.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Self::Stream(s) => s.is_complete(),
            Self::Packets(p) => p.is_complete(),
            Self::Units(u) => u.is_complete(),
        }
    }
}
