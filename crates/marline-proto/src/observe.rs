//! Records of what a session does, for statistics, logs and tests.

use alloc::boxed::Box;
use core::fmt;

use marline_base::{Duration, Instant};

use crate::flow::{Fate, Symbol};
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
        /// For the first time, as a copy, again, or as a combination of others.
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
    /// Something of a flow arrived, or its receiver stopped waiting for something.
    Progress {
        /// The flow.
        flow: FlowId,
        /// What arrived, if something did, whether or not it had arrived before.
        symbol: Option<Symbol>,
        /// Unit and offset below which everything was delivered or given up; a stream is unit 0.
        /// `u64::MAX` where the order is not kept, so that nothing waits, and when the flow is
        /// over.
        frontier: (u64, u64),
    },
    /// A source symbol came out of repair symbols before it arrived itself.
    Repaired {
        /// The flow.
        flow: FlowId,
        /// The symbol.
        symbol: Symbol,
    },
    /// A block or a piece of an object is whole at its receiver.
    UnitWhole {
        /// The flow.
        flow: FlowId,
        /// The unit.
        unit: u64,
        /// It came after its deadline.
        late: bool,
    },
    /// The sender of a unit learnt what became of it.
    UnitSettled {
        /// The flow.
        flow: FlowId,
        /// The unit.
        unit: u64,
        /// What became of it.
        fate: Fate,
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
    /// Does anybody listen?
    #[inline]
    pub(crate) fn listens(&self) -> bool {
        self.0.is_some()
    }

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
