//! Which flow sends next on a path: strict priority, then deficit round robin (Shreedhar and
//! Varghese, "Efficient Fair Queuing Using Deficit Round Robin", SIGCOMM 1995).

use alloc::collections::VecDeque;

use crate::wire::FlowId;

/// Bytes that a flow may send in its turn.
pub(crate) const QUANTUM: u64 = 3_000;
const PRIORITIES: usize = 8;

/// Flows that have something queued, by priority, in turn.
#[derive(Debug, Default)]
pub(crate) struct Share {
    classes: [VecDeque<FlowId>; PRIORITIES],
}

impl Share {
    pub(crate) fn add(&mut self, flow: FlowId, priority: u8) {
        self.classes[usize::from(priority).min(PRIORITIES - 1)].push_back(flow);
    }

    pub(crate) fn remove(&mut self, flow: FlowId, priority: u8) {
        self.classes[usize::from(priority).min(PRIORITIES - 1)].retain(|f| *f != flow);
    }

    /// The first flow in turn that `is_ready`, most urgent priority first.
    pub(crate) fn next(&self, mut is_ready: impl FnMut(FlowId) -> bool) -> Option<(FlowId, usize)> {
        self.classes.iter().enumerate().find_map(|(class, flows)| {
            let found = flows.iter().copied().find(|flow| is_ready(*flow));
            found.map(|flow| (flow, class))
        })
    }

    /// The flow used its turn up.
    pub(crate) fn rotate(&mut self, flow: FlowId, class: usize) {
        let flows = &mut self.classes[class];
        if let Some(i) = flows.iter().position(|f| *f == flow) {
            flows.remove(i);
            flows.push_back(flow);
        }
    }

    /// All flows, most urgent priority first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.classes.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn urgent_flows_first_and_equals_in_turn() {
        let mut share = Share::default();
        for (id, priority) in [(0, 3), (4, 3), (8, 1)] {
            share.add(FlowId(id), priority);
        }
        assert_eq!(share.next(|_| true), Some((FlowId(8), 1)));
        let mut order = Vec::new();
        for _ in 0..4 {
            let (flow, class) = share.next(|f| f != FlowId(8)).unwrap();
            order.push(flow.0);
            share.rotate(flow, class);
        }
        assert_eq!(order, [0, 4, 0, 4]);
        share.remove(FlowId(0), 3);
        assert_eq!(share.iter().count(), 2);
    }
}
