//! Records of what a session does, for statistics, logs and tests.

use alloc::boxed::Box;
use core::fmt;

use marline_base::{Duration, Instant};

use crate::flow::Symbol;
use crate::path::{EmissionKind, PathState};
use crate::wire::{FlowId, PathId};

/// One thing that a session did or learnt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Record<'a> {
    /// A datagram left.
    Sent {
        /// On this path.
        path: PathId,
        /// Its packet number.
        packet: u64,
        /// Its size (bytes).
        size: usize,
        /// Bytes in flight on the path, this datagram included.
        in_flight: u64,
    },
    /// A symbol left in a datagram.
    Emitted {
        /// The flow.
        flow: FlowId,
        /// The symbol.
        symbol: Symbol,
        /// The path.
        path: PathId,
        /// For the first time, as a copy, or again.
        kind: EmissionKind,
    },
    /// A datagram was acknowledged.
    Acked {
        /// On this path.
        path: PathId,
        /// Its packet number.
        packet: u64,
        /// Time since it was sent.
        after: Duration,
        /// It had been declared lost.
        spurious: bool,
    },
    /// A datagram was declared lost.
    Lost {
        /// On this path.
        path: PathId,
        /// Its packet number.
        packet: u64,
    },
    /// A datagram arrived.
    Received {
        /// On this path.
        path: PathId,
        /// Its packet number.
        packet: u64,
        /// Its size (bytes).
        size: usize,
        /// It had arrived before.
        duplicate: bool,
    },
    /// A path changed its state.
    PathState {
        /// The path.
        path: PathId,
        /// Its new state.
        state: PathState,
        /// Why.
        reason: &'a str,
    },
}

/// Listens to a session's records.
pub trait Observer: Send {
    /// Something happened at `now`.
    fn on(&mut self, now: Instant, record: &Record<'_>);
}

/// The observer of a session, if any; costs nothing when there is none.
#[derive(Default)]
pub(crate) struct Observed(pub(crate) Option<Box<dyn Observer>>);

impl Observed {
    #[inline]
    pub(crate) fn on(&mut self, now: Instant, record: &Record<'_>) {
        if let Some(observer) = &mut self.0 {
            observer.on(now, record);
        }
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observed").field(&self.0.is_some()).finish()
    }
}
