//! When a link is dark.

mod cursor;

use alloc::vec::Vec;
use core::time::Duration;
use marline_base::Instant;

pub(crate) use cursor::Cursor;

/// One stretch of darkness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// When it begins.
    pub start: Instant,
    /// How long it lasts, more than zero.
    pub length: Duration,
}

/// The outage process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Outages {
    /// Always lit.
    #[default]
    Never,
    /// A list, in any order; overlapping outages merge.
    Scheduled(Vec<Outage>),
    /// `first`, then one of the same length every `every`, which must exceed the length.
    Periodic {
        /// The first one.
        first: Outage,
        /// From the start of one to the start of the next.
        every: Duration,
    },
    /// Lit and dark by turns, each for an exponentially distributed time; begins lit.
    Random {
        /// Mean time between outages, at least 1 ms.
        mean_lit: Duration,
        /// Mean length of an outage, at least 1 ms.
        mean_dark: Duration,
    },
}

/// What an outage does to packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OutageMode {
    /// Cuts the link: what waits in the queue when it begins is lost, and so is what is offered
    /// before it ends. Packets that have left the queue arrive.
    #[default]
    Drop,
    /// Stops the clock of the queue: packets wait, as far as it has room, and leave afterwards.
    Hold,
}
