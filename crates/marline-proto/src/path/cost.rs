//! What a path costs, as both ends say.

use crate::wire::MAX_COST;

/// Cost ranks of one path; lower is cheaper.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// As this end's user says, at most [`MAX_COST`].
    pub(crate) local: u32,
    /// As the peer says.
    peer: u32,
    /// Changes of `local` so far.
    pub(crate) sent: u64,
    /// The peer's changes that are known.
    seen: u64,
}

impl Cost {
    pub(crate) fn of(local: u32) -> Self {
        Self {
            local: local.min(MAX_COST as u32),
            ..Self::default()
        }
    }

    /// Bytes are paid for at either end, so that the higher rank is the path's.
    pub(crate) fn rank(&self) -> u32 {
        self.local.max(self.peer)
    }

    /// The user says another one; does that change anything?
    pub(crate) fn set(&mut self, local: u32) -> bool {
        let local = local.min(MAX_COST as u32);
        let changes = local != self.local;
        self.local = local;
        self.sent += u64::from(changes);
        changes
    }

    /// The peer says another one in its change number `sequence`; is that new?
    pub(crate) fn on_peer(&mut self, sequence: u64, cost: u64) -> bool {
        let is_new = sequence >= self.seen;
        if is_new {
            self.seen = sequence + 1;
            self.peer = cost.min(MAX_COST) as u32;
        }
        is_new
    }
}
