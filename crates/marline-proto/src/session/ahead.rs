//! How many bytes leave a path before a symbol that a flow would queue now.
//!
//! With flows served by strict priority and in turn among equals, that is not all that waits: what
//! is less urgent waits longer, and of an equal only as much leaves first as the flow itself has
//! waiting, and one turn. A bulk flow that queues half a second ahead must not make a path look
//! half a second away to a flow that has nothing waiting there.

use alloc::vec::Vec;

use super::share::QUANTUM;

const PRIORITIES: usize = 8;

/// Waiting bytes and flows of one priority on one path.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    bytes: u64,
    flows: u64,
}

/// What waits on each path, by priority.
#[derive(Debug)]
pub(super) struct Ahead {
    paths: Vec<[Class; PRIORITIES]>,
}

impl Ahead {
    pub(super) fn new(paths: usize) -> Self {
        Self {
            paths: alloc::vec![[Class::default(); PRIORITIES]; paths],
        }
    }

    /// A flow's bytes on the path at `path` change from `before` to `after`.
    pub(super) fn update(&mut self, path: usize, priority: u8, before: u64, after: u64) {
        let class = &mut self.paths[path][usize::from(priority).min(PRIORITIES - 1)];
        class.bytes = class.bytes + after - before;
        class.flows = class.flows + u64::from(after > 0) - u64::from(before > 0);
    }

    /// Bytes that leave before a symbol of a flow with this priority and `own` bytes waiting.
    pub(super) fn of(&self, path: usize, priority: u8, own: u64) -> u64 {
        let priority = usize::from(priority).min(PRIORITIES - 1);
        let classes = &self.paths[path];
        let urgent: u64 = classes[..priority].iter().map(|c| c.bytes).sum();
        let equals = classes[priority].flows - u64::from(own > 0);
        let turns = equals.saturating_mul(own + QUANTUM);
        own + urgent + turns.min(classes[priority].bytes - own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_waits_for_the_urgent_and_for_its_turn_among_equals() {
        let mut ahead = Ahead::new(2);
        ahead.update(1, 3, 0, 1_000_000);
        ahead.update(1, 3, 0, 500);
        ahead.update(1, 1, 0, 700);
        ahead.update(1, 5, 0, 900_000);
        assert_eq!(ahead.of(0, 3, 0), 0, "another path");
        // Nothing of its own: one turn of each equal, and all that is urgent.
        assert_eq!(ahead.of(1, 3, 0), 700 + 2 * QUANTUM);
        // The bulk flow itself waits for its own bytes and the little of its equal.
        assert_eq!(ahead.of(1, 3, 1_000_000), 1_000_000 + 700 + 500);
        assert_eq!(ahead.of(1, 0, 0), 0);
        ahead.update(1, 3, 500, 0);
        assert_eq!(ahead.of(1, 3, 0), 700 + QUANTUM);
    }
}
