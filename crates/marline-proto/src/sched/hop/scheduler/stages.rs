//! A block in two stages: its head when it begins, the rest when it is due.

use alloc::vec::Vec;

use marline_base::Instant;

use super::{Block, Hop, MOST_STAGED, QUANTUM, block_of, seconds, source_left};
use crate::sched::hop::Schedule;
use crate::sched::{PathView, Plan};
use crate::wire::PathId;

/// A block whose rest is still to be planned.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) id: u64,
    pub(super) block: Block,
    has_deadline: bool,
    pub(super) sent: Vec<(PathId, u32)>,
    pub(super) due: Instant,
}

impl Hop {
    /// Notes what a schedule promises that has sent these packets on each path.
    fn promise(&mut self, views: &[PathView], staged: &Staged, sent: &[u32], schedule: &Schedule) {
        let block = &staged.block;
        if !self.knows_all(block, views) {
            return;
        }
        for (i, view) in views.iter().enumerate() {
            let Some(path) = self.paths.get_mut(&view.id) else {
                continue;
            };
            let by = block.at + block.within - path.delay(view.min_rtt);
            if let (Some(sent), Some(late)) = (sent.get(i), schedule.late.get(i)) {
                path.promises.promise(staged.id, *sent, by, 1.0 - late);
            }
        }
        if staged.has_deadline {
            self.promises.promise(staged.id, 1.0 - schedule.failure);
        }
    }

    /// Begins the block that is next, if it has not begun; answers whether it did.
    pub(super) fn start(&mut self, plan: &mut Plan<'_>) -> bool {
        let Some(unit) = plan.unit() else {
            return false;
        };
        if self.newest.is_some_and(|newest| unit.id <= newest) || plan.paths().is_empty() {
            return false;
        }
        self.newest = Some(unit.id);
        self.ahead.begin(unit.id);
        let now = plan.now();
        let mut block = block_of(now, &unit, plan.paths());
        // Unless it was when it was offered, some time ago.
        if !self.beginning.knows(unit.id) {
            self.begin(now, unit.id, &block);
        }
        if unit.deadline.is_none() {
            let paths = self.seen(plan.paths());
            let shortest = self.sender.deadline(&block, QUANTUM, &paths);
            block.within = shortest.unwrap_or(block.within);
        }
        let whole = self.stage.is_zero().then(|| {
            let paths = self.seen(plan.paths());
            self.sender.plan(block.at, &block, &[], &paths)
        });
        let mut head = match &whole {
            Some(schedule) => schedule.packets.to_vec(),
            None => self.sender.head(&block, &self.seen(plan.paths())),
        };
        let mut source = source_left(plan, unit.id);
        for (index, packets) in head.iter_mut().enumerate() {
            *packets = self.give(plan, unit.id, &mut source, (index, *packets));
        }
        let ids = plan.paths().iter().map(|view| view.id);
        let staged = Staged {
            id: unit.id,
            block,
            has_deadline: unit.deadline.is_some(),
            sent: ids.zip(head.iter().copied()).collect(),
            due: now + self.stage,
        };
        if let Some(schedule) = &whole {
            self.promise(plan.paths(), &staged, &head, schedule);
        }
        if self.staged.len() < MOST_STAGED {
            self.staged.push_back(staged);
        } else {
            self.finish(plan, &staged);
        }
        true
    }

    /// Plans and sends the rest of a block.
    pub(super) fn finish(&mut self, plan: &mut Plan<'_>, staged: &Staged) {
        let Staged {
            id, block, sent, ..
        } = staged;
        let before = |path: PathId| {
            let found = sent.iter().find(|(id, _)| *id == path);
            found.map_or(0, |(_, packets)| *packets)
        };
        let mut sent: Vec<u32> = plan.paths().iter().map(|view| before(view.id)).collect();
        let now = seconds(plan.now());
        let schedule = match self.stage.is_zero() {
            // All of it was sent with the head.
            true => None,
            false => {
                let paths = self.seen(plan.paths());
                Some(self.sender.plan(now, block, &sent, &paths))
            }
        };
        let mut source = source_left(plan, *id);
        if let Some(schedule) = &schedule {
            for (index, packets) in schedule.packets.iter().enumerate() {
                let more = packets.saturating_sub(sent[index]);
                sent[index] += self.give(plan, *id, &mut source, (index, more));
            }
            self.promise(plan.paths(), staged, &sent, schedule);
        }
        let packets = schedule.as_ref().map_or(&sent[..], |s| &s.packets[..]);
        self.give_rest(plan, *id, &mut source, packets);
        let every = self.sender.every(block);
        for view in plan.paths() {
            if let Some(path) = self.paths.get_mut(&view.id) {
                path.skip.expect(block.at, now, every);
            }
        }
    }
}
