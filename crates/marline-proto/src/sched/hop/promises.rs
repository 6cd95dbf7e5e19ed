//! What was promised, against what came of it.

use alloc::collections::{BTreeMap, VecDeque};

use crate::sched::capacity::Calibration;

/// Promises that are open at most; the oldest of more was not kept.
const MOST: usize = 256;
/// Packets that are not acknowledged this long after they should have left (seconds) are lost.
const PATIENCE: f64 = 1.0;
/// Most blocks that were acknowledged in part before anything was promised: where a round trip
/// takes less than a block waits for the plan of its rest.
const EARLY: usize = 64;

/// Promises about one path: all packets of a block that went on it are on time.
#[derive(Clone, Debug, Default)]
pub(super) struct PathPromises {
    open: VecDeque<Promise>,
    early: VecDeque<Early>,
    calibration: Calibration,
}

/// What was reported of a block's packets before it was promised.
#[derive(Clone, Copy, Debug)]
struct Early {
    block: u64,
    packets: u32,
    /// When the last of those left that arrived.
    left: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Promise {
    block: u64,
    probability: f64,
    /// A packet is on time if it leaves the bottleneck by then (seconds).
    by: f64,
    /// Packets about which nothing is known yet.
    open: u32,
    arrived: bool,
    late: bool,
}

impl PathPromises {
    /// That many packets of the block all leave the bottleneck `by` then with this probability.
    pub(super) fn promise(&mut self, block: u64, packets: u32, by: f64, probability: f64) {
        if packets == 0 {
            return;
        }
        if self.open.len() == MOST
            && let Some(oldest) = self.open.pop_front()
        {
            self.calibration.record(oldest.probability, false);
        }
        let early = self.early.iter().position(|early| early.block == block);
        let early = early.and_then(|index| self.early.remove(index));
        let left = early.and_then(|early| early.left);
        self.open.push_back(Promise {
            block,
            probability,
            by,
            open: packets.saturating_sub(early.map_or(0, |early| early.packets)),
            arrived: left.is_some(),
            late: left.is_some_and(|left| left > by),
        });
        if self.open.back().is_some_and(|promise| promise.open == 0) {
            self.close(self.open.len() - 1);
        }
    }

    /// A packet of the block left the bottleneck then.
    pub(super) fn left(&mut self, block: u64, at: f64) {
        while self
            .open
            .front()
            .is_some_and(|oldest| oldest.by + PATIENCE < at)
        {
            self.close(0);
        }
        self.known(block, Some(at));
    }

    /// A packet of the block was lost, or how long it took is not known.
    pub(super) fn gone(&mut self, block: u64) {
        self.known(block, None);
    }

    fn known(&mut self, block: u64, left: Option<f64>) {
        let found = self.open.iter().position(|promise| promise.block == block);
        let Some((index, promise)) = found.and_then(|i| Some((i, self.open.get_mut(i)?))) else {
            self.heard_early(block, left);
            return;
        };
        promise.open -= 1;
        if let Some(at) = left {
            promise.arrived = true;
            promise.late |= at > promise.by;
        }
        if promise.open == 0 {
            self.close(index);
        }
    }

    fn heard_early(&mut self, block: u64, left: Option<f64>) {
        let latest = |early: &&mut Early| early.block == block;
        if let Some(early) = self.early.iter_mut().find(latest) {
            early.packets = early.packets.saturating_add(1);
            early.left = match (early.left, left) {
                (Some(before), Some(left)) => Some(before.max(left)),
                (before, left) => before.or(left),
            };
            return;
        }
        if self.early.len() == EARLY {
            self.early.pop_front();
        }
        self.early.push_back(Early {
            block,
            packets: 1,
            left,
        });
    }

    fn close(&mut self, index: usize) {
        if let Some(promise) = self.open.remove(index) {
            // Where everything is lost the path was down, which a forecast should have known.
            let kept = promise.arrived && !promise.late;
            self.calibration.record(promise.probability, kept);
        }
    }

    /// What became of the promises.
    pub(super) const fn calibration(&self) -> &Calibration {
        &self.calibration
    }
}

/// Promises that blocks are on time.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockPromises {
    open: BTreeMap<u64, f64>,
    /// What became of blocks before they were promised.
    early: BTreeMap<u64, bool>,
    calibration: Calibration,
}

impl BlockPromises {
    /// The block is on time with this probability.
    pub(super) fn promise(&mut self, block: u64, probability: f64) {
        if let Some(on_time) = self.early.remove(&block) {
            self.calibration.record(probability, on_time);
            return;
        }
        if self.open.len() == MOST
            && let Some((_, probability)) = self.open.pop_first()
        {
            self.calibration.record(probability, false);
        }
        self.open.insert(block, probability);
    }

    /// The block was on time or not.
    pub(super) fn settle(&mut self, block: u64, on_time: bool) {
        if let Some(probability) = self.open.remove(&block) {
            self.calibration.record(probability, on_time);
            return;
        }
        if self.early.len() == EARLY {
            self.early.pop_first();
        }
        self.early.insert(block, on_time);
    }

    /// Nothing can be said of the block: an application gave it up.
    pub(super) fn forget(&mut self, block: u64) {
        self.open.remove(&block);
    }

    /// What became of the promises.
    pub(super) const fn calibration(&self) -> &Calibration {
        &self.calibration
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(promises: &PathPromises) -> (u64, u64) {
        let all = promises.calibration().total();
        (all.promises, all.kept)
    }

    #[test]
    fn a_promise_is_kept_when_the_last_packet_is_on_time() {
        let mut path = PathPromises::default();
        path.promise(1, 3, 0.5, 0.9);
        path.left(1, 0.4);
        path.gone(1);
        // Of other blocks nothing was promised.
        path.left(2, 0.9);
        assert_eq!(total(&path), (0, 0));
        path.left(1, 0.5);
        assert_eq!(total(&path), (1, 1));
        path.promise(2, 2, 1.0, 0.9);
        path.promise(3, 1, 1.0, 0.9);
        path.left(3, 0.9);
        path.left(2, 1.1);
        path.left(2, 0.9);
        assert_eq!(total(&path), (3, 2));
        path.promise(4, 1, 2.0, 0.9);
        path.gone(4);
        path.promise(5, 0, 2.0, 0.9);
        path.left(5, 1.0);
        assert_eq!(total(&path), (4, 2));
        // One of two is never acknowledged.
        path.promise(6, 2, 3.0, 0.9);
        path.left(6, 2.0);
        path.left(7, 4.0);
        assert_eq!(total(&path), (4, 2));
        path.left(7, 4.1);
        assert_eq!(total(&path), (5, 3));
    }

    #[test]
    fn what_is_heard_before_it_is_promised_counts() {
        let mut path = PathPromises::default();
        path.left(1, 0.4);
        path.left(1, 0.3);
        path.promise(1, 2, 0.5, 0.9);
        assert_eq!(total(&path), (1, 1));
        path.left(2, 0.6);
        path.gone(2);
        path.promise(2, 3, 0.5, 0.9);
        assert_eq!(total(&path), (1, 1));
        path.left(2, 0.4);
        assert_eq!(total(&path), (2, 1));
        let mut blocks = BlockPromises::default();
        blocks.settle(1, true);
        blocks.settle(2, false);
        blocks.promise(1, 0.9);
        blocks.promise(2, 0.9);
        let all = blocks.calibration().total();
        assert_eq!((all.promises, all.kept), (2, 1));
        // Of what is never promised little is remembered.
        for block in 0..1_000 {
            path.left(block, 0.4);
            blocks.settle(block, true);
        }
        assert!(path.early.len() <= EARLY && blocks.early.len() <= EARLY);
    }

    #[test]
    fn promises_that_nothing_is_heard_of_are_not_kept_and_take_no_memory() {
        let mut path = PathPromises::default();
        let mut blocks = BlockPromises::default();
        for block in 0..MOST as u64 + 10 {
            path.promise(block, 5, 1.0, 0.9);
            blocks.promise(block, 0.9);
        }
        assert_eq!(total(&path), (10, 0));
        assert_eq!(blocks.calibration().total().promises, 10);
        assert_eq!((path.open.len(), blocks.open.len()), (MOST, MOST));
        blocks.settle(100, true);
        blocks.forget(101);
        blocks.settle(101, true);
        let all = blocks.calibration().total();
        assert_eq!((all.promises, all.kept), (11, 1));
    }
}
