//! Names of paths and flows on the wire.

use core::fmt;

/// Most paths that a session has at once; a further one is refused.
pub const MAX_PATHS: usize = 16;

/// A path of the session: at most [`varint::MAX`](super::varint::MAX), never used twice in a
/// session, and the same number at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u64);

/// A flow of the session: at most [`varint::MAX`](super::varint::MAX). The client opens the even
/// numbers, the server the odd ones, each from its lowest upwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

impl FlowId {
    /// The flow that the client (else the server) opens after `index` others.
    #[must_use]
    #[inline]
    pub const fn new(client: bool, index: u64) -> Self {
        Self(index << 1 | !client as u64)
    }

    /// Whether the client opened this flow (it is even).
    #[must_use]
    #[inline]
    pub const fn is_client_initiated(self) -> bool {
        self.0 & 1 == 0
    }

    /// How many flows the same side opened before this one; MAX_FLOWS limits it.
    #[must_use]
    #[inline]
    pub const fn index(self) -> u64 {
        self.0 >> 1
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
