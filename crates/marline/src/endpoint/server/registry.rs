//! The sessions that a server has.

use std::collections::{BTreeMap, BTreeSet};

use marline_proto::wire::PathId;

use crate::carrier::handshake::{SessionId, SessionKey};
use crate::endpoint::Session;
use crate::identity::PublicKey;

/// How far behind the highest number a new path's number may be. Paths are numbered in the order
/// in which they are dialled, and few are dialled at once.
const WINDOW: u64 = 256;

/// Path numbers that were used, in constant memory: those far behind the highest count as used.
#[derive(Debug, Default)]
pub(super) struct UsedPaths {
    recent: BTreeSet<PathId>,
    /// Numbers below are used up.
    floor: u64,
}

impl UsedPaths {
    /// Takes a number; false when it was used before.
    pub(super) fn take(&mut self, path: PathId) -> bool {
        if path.0 < self.floor || !self.recent.insert(path) {
            return false;
        }
        self.floor = self.floor.max(path.0.saturating_sub(WINDOW));
        self.recent = self.recent.split_off(&PathId(self.floor));
        true
    }
}

/// One client's session.
#[derive(Debug)]
pub(super) struct Entry {
    /// Counted from 0.
    pub(super) number: u64,
    pub(super) peer: PublicKey,
    pub(super) handle: Session,
    pub(super) key: SessionKey,
    pub(super) used: UsedPaths,
    /// The number of the worker on which it runs.
    pub(super) worker: usize,
}

/// All sessions, by name.
#[derive(Debug, Default)]
pub(super) struct Registry {
    sessions: BTreeMap<SessionId, Entry>,
    next: u64,
}

impl Registry {
    /// The number of the next session.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    pub(super) fn insert(&mut self, entry: Entry) {
        self.sessions.insert(entry.key.session(), entry);
    }

    pub(super) fn remove(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }

    pub(super) fn get(&mut self, session: SessionId) -> Option<&mut Entry> {
        self.sessions.get_mut(&session)
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.sessions.values()
    }

    /// On which of `workers` a new session of this client runs, whose first packets come to the
    /// worker `nearest`. What a client's sessions share is on one thread. Others are on the nearest
    /// unless that has more than an eighth more of them than another one.
    pub(super) fn place(&self, peer: PublicKey, nearest: usize, workers: usize) -> usize {
        if let Some(other) = self.of(peer).next() {
            return other.worker;
        }
        let mut sessions = vec![0; workers];
        for entry in self.iter() {
            sessions[entry.worker] += 1;
        }
        choice(&sessions, nearest)
    }

    pub(super) fn of(&self, peer: PublicKey) -> impl Iterator<Item = &Entry> {
        self.iter().filter(move |entry| entry.peer == peer)
    }
}

/// The worker of the least sessions, if the nearest has clearly more.
fn choice(sessions: &[usize], nearest: usize) -> usize {
    let least = (0..sessions.len()).min_by_key(|worker| sessions[*worker]);
    let least = least.unwrap_or(nearest);
    match sessions[nearest] <= sessions[least] + sessions[least] / 8 {
        true => nearest,
        false => least,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_stay_near_unless_another_worker_has_clearly_fewer() {
        assert_eq!(choice(&[0], 0), 0);
        assert_eq!(choice(&[0, 0], 1), 1);
        assert_eq!(choice(&[0, 1], 1), 0);
        assert_eq!(choice(&[7, 8, 9], 1), 0);
        assert_eq!(choice(&[8, 9, 9], 1), 1);
        assert_eq!(choice(&[400, 450], 1), 1);
        assert_eq!(choice(&[400, 451], 1), 0);
    }

    #[test]
    fn a_path_number_is_taken_once_and_memory_stays_bounded() {
        let mut used = UsedPaths::default();
        assert!(used.take(PathId(0)) && used.take(PathId(2)) && used.take(PathId(1)));
        assert!(!used.take(PathId(2)));
        for number in 3..10_000 {
            assert!(used.take(PathId(number)));
        }
        assert!(!used.take(PathId(2)) && !used.take(PathId(9_000)) && !used.take(PathId(9_999)));
        assert!(used.recent.len() as u64 <= WINDOW + 1);
        assert!(used.take(PathId((1 << 62) - 1)));
        assert!(used.recent.len() == 1);
    }
}
