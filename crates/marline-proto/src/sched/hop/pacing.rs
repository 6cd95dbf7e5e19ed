//! Packets of blocks that leave one after the other instead of at once.

use alloc::collections::{BTreeMap, VecDeque};

use marline_base::{Duration, Instant};

use crate::wire::PathId;

/// So far ahead of its time a packet may leave, so that timers need not be finer.
const SLACK: Duration = Duration::from_micros(500);
/// Entries that wait at most; what comes then leaves at once.
const MOST: usize = 256;

/// What is scheduled and has not left, and when each path may be used again.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacing {
    owed: VecDeque<Owed>,
    next: BTreeMap<PathId, Instant>,
}

/// Packets of a block that are to go on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owed {
    pub(super) block: u64,
    pub(super) path: PathId,
    pub(super) packets: u32,
}

impl Pacing {
    /// Schedules packets; answers how many leave at once because too much waits.
    pub(super) fn owe(&mut self, block: u64, path: PathId, packets: u32) -> u32 {
        if packets == 0 {
            return 0;
        }
        if self.owed.len() >= MOST {
            return packets;
        }
        self.owed.push_back(Owed {
            block,
            path,
            packets,
        });
        0
    }

    /// Packets of a block that have not left.
    pub(super) fn owed(&self, block: u64) -> u32 {
        let of_block = self.owed.iter().filter(|owed| owed.block == block);
        of_block.map(|owed| owed.packets).sum()
    }

    /// The next packet that may leave at `now`: the oldest of a path whose turn it is.
    pub(super) fn ready(&self, now: Instant) -> Option<Owed> {
        let may = |owed: &&Owed| self.turn(owed.path) <= now + SLACK;
        self.owed.iter().find(may).copied()
    }

    /// The packet that was [`ready`](Self::ready) has left; the next on its path may follow after
    /// `gap`.
    pub(super) fn paid(&mut self, now: Instant, owed: &Owed, gap: Duration) {
        let next = self.turn(owed.path).max(now) + gap;
        self.next.insert(owed.path, next);
        let found = self.owed.iter().position(|other| other == owed);
        let Some((index, waits)) = found.and_then(|i| Some((i, self.owed.get_mut(i)?))) else {
            return;
        };
        waits.packets -= 1;
        if waits.packets == 0 {
            self.owed.remove(index);
        }
    }

    /// Nothing more of this is to leave.
    pub(super) fn drop(&mut self, owed: &Owed) {
        self.owed.retain(|other| other != owed);
    }

    /// The path is gone for good.
    pub(super) fn forget(&mut self, path: PathId) {
        self.next.remove(&path);
    }

    /// When the next packet may leave; `None` if nothing waits.
    pub(super) fn due(&self) -> Option<Instant> {
        let turns = self.owed.iter().map(|owed| self.turn(owed.path));
        turns.min()
    }

    fn turn(&self, path: PathId) -> Instant {
        self.next.get(&path).copied().unwrap_or(Instant::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn packets_leave_at_their_path_s_pace_and_paths_do_not_wait_for_each_other() {
        let mut pacing = Pacing::default();
        assert_eq!(pacing.due(), None);
        pacing.owe(1, PathId(0), 3);
        pacing.owe(1, PathId(1), 1);
        assert_eq!(pacing.owed(1), 4);
        let mut left: Vec<(u64, u64)> = Vec::new();
        let mut now = MS(10);
        while let Some(due) = pacing.due() {
            now = now.max(due);
            while let Some(owed) = pacing.ready(now) {
                pacing.paid(now, &owed, Duration::from_millis(2));
                left.push((now.as_micros() / 1_000, owed.path.0));
            }
        }
        assert_eq!(left, [(10, 0), (10, 1), (12, 0), (14, 0)]);
        assert_eq!(pacing.owed(1), 0);
    }

    #[test]
    fn what_waits_is_bounded_and_can_be_dropped() {
        let mut pacing = Pacing::default();
        for block in 0..MOST as u64 {
            assert_eq!(pacing.owe(block, PathId(0), 2), 0);
        }
        assert_eq!(pacing.owe(9_999, PathId(0), 2), 2);
        let first = pacing.ready(MS(1)).unwrap();
        assert_eq!(first.block, 0);
        pacing.drop(&first);
        assert_eq!(pacing.owed(0), 0);
        assert_eq!(pacing.ready(MS(1)).unwrap().block, 1);
    }
}
