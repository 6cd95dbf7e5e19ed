//! The paths of a session.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use crate::path::{Path, PathState};
use crate::wire::{MAX_PATHS, PathId};

/// The paths that there are, in the order of their ids.
#[derive(Debug, Default)]
pub(super) struct Paths {
    all: Vec<Path>,
    /// One more than the highest id that a path has had.
    next: u64,
    /// Paths that were removed at either end, the latest of them.
    abandoned: BTreeSet<PathId>,
    /// Grows with each access that may change a path.
    revision: u64,
}

impl Paths {
    pub(super) fn insert(&mut self, path: Path) {
        self.revision += 1;
        self.next = self.next.max(path.id.0 + 1);
        let at = self.all.partition_point(|p| p.id < path.id);
        // Each has some 2 KiB, and there are few: room for more would cost more than the moves.
        self.all.reserve_exact(1);
        self.all.insert(at, path);
    }

    /// Removes a path, whose id is never used again: schedulers keep what they know of a path by
    /// it.
    pub(super) fn abandon(&mut self, index: usize) {
        self.revision += 1;
        let path = self.all.remove(index);
        self.abandoned.insert(path.id);
        while self.abandoned.len() > 2 * MAX_PATHS {
            self.abandoned.pop_first();
        }
    }

    pub(super) fn was_abandoned(&self, id: PathId) -> bool {
        self.abandoned.contains(&id)
    }

    /// An id that no path has had yet.
    pub(super) fn next_id(&self) -> PathId {
        PathId(self.next)
    }

    /// No path has changed while this stays the same.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Indices of the paths that may carry data: the active ones; if there are none, those on
    /// standby; if there are none either, the suspect ones.
    pub(super) fn usable(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        let is_any = |state: &PathState| self.all.iter().any(|p| p.state() == *state);
        let best = [PathState::Active, PathState::Standby, PathState::Suspect]
            .into_iter()
            .find(is_any);
        let paths = self.all.iter().enumerate();
        paths
            .filter(move |(_, p)| Some(p.state()) == best)
            .map(|(i, _)| i)
    }
}

impl Deref for Paths {
    type Target = [Path];

    #[inline]
    fn deref(&self) -> &[Path] {
        &self.all
    }
}

impl DerefMut for Paths {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Path] {
        self.revision += 1;
        &mut self.all
    }
}
