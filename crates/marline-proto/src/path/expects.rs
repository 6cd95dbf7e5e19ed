//! What the path's law says of a packet that leaves now.

use alloc::boxed::Box;

use marline_base::Instant;

use super::track::Path;
use super::view::PathView;
use crate::law::{Calibration, Carries, Law, Silence};
use crate::wire::PathId;

/// What was expected of a packet as it left, by the path's law and by what schedulers see.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreseen {
    /// The path.
    pub path: PathId,
    /// The packet's number.
    pub packet: u64,
    /// Its size (bytes).
    pub size: usize,
    /// The law; `None` before the first arrival.
    pub law: Option<Box<Law>>,
    /// The same for when all that left before it are there as well.
    pub in_order: Option<Box<Law>>,
    /// Whether the path is dark.
    pub silence: Silence,
    /// The path, as schedulers see it, with nothing queued.
    pub view: Box<PathView>,
}

impl Path {
    pub(super) fn carries(&self) -> Carries {
        Carries {
            rate: self.rate(),
            filled: self.was_filled(),
        }
    }

    /// How likely the path is dark, by what was sent after the newest packet that arrived.
    pub(crate) fn silence(&self, now: Instant) -> Silence {
        let open = self.ledger.unheard_packets();
        self.law.silence(now, open.map(|p| (p.sent, &p.left)))
    }

    /// When a packet arrives that leaves now behind `bytes` more of ours, and how likely it never
    /// does; `None` before the first arrival.
    pub(crate) fn after(&self, now: Instant, bytes: u64) -> Option<Law> {
        self.law
            .after(now, bytes, self.carries(), self.silence(now))
    }

    /// All that is expected of a packet of `size` bytes that leaves now.
    pub(crate) fn foresee(&self, now: Instant, size: usize) -> Foreseen {
        let law = self.after(now, 0);
        Foreseen {
            path: self.id,
            packet: self.ledger.next_number(),
            size,
            law: law.map(Box::new),
            in_order: law.map(|law| Box::new(self.law.in_order(&law))),
            silence: self.silence(now),
            view: Box::new(self.view(0)),
        }
    }

    /// How often the law came true.
    pub(crate) fn calibration(&self) -> Calibration {
        self.law.calibration()
    }
}
