//! What is left of a block when its schedule is done.

use super::{Block, Hop, block_of, source_left};
use crate::sched::Plan;

impl Hop {
    /// Sends what came back of a block that had been sent, because it waited for a path that
    /// carries nothing any more: no other begins before. Answers whether there was something.
    pub(super) fn resume(&mut self, plan: &mut Plan<'_>) -> bool {
        let Some(unit) = plan.unit() else {
            return false;
        };
        let has_begun = self.newest.is_some_and(|newest| unit.id <= newest);
        let is_staged = self.staged.iter().any(|staged| staged.id == unit.id);
        let pacing = self.pacing.as_ref();
        let is_owed = pacing.is_some_and(|pacing| pacing.owed(unit.id) > 0);
        if !has_begun || is_staged || is_owed || plan.paths().is_empty() {
            return false;
        }
        let packets = source_left(plan, unit.id);
        let block = Block {
            packets,
            ..block_of(plan.now(), &unit, plan.paths())
        };
        let paths = self.seen(plan.paths());
        let schedule = self.sender.plan(block.at, &block, &[], &paths);
        let mut source = packets;
        for (index, packets) in schedule.packets.iter().enumerate() {
            self.give(plan, unit.id, &mut source, (index, *packets));
        }
        self.give_rest(plan, unit.id, &mut source, &schedule.packets);
        source < packets
    }

    /// Sends what no schedule of JUMP had room for: it must leave all the same, if the block is to
    /// arrive at all.
    pub(super) fn give_rest(
        &mut self,
        plan: &mut Plan<'_>,
        id: u64,
        source: &mut u32,
        packets: &[u32],
    ) {
        if let Some(index) = (0..packets.len()).max_by_key(|i| packets[*i]) {
            let waits = self.pacing.as_ref().map_or(0, |pacing| pacing.owed(id));
            let rest = source.saturating_sub(waits);
            self.give(plan, id, source, (index, rest));
        }
    }
}
