//! Which flow sends next on a path: strict priority but for one turn now and then (`ageing`), then
//! deficit round robin (Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit Round Robin",
//! SIGCOMM 1995).
//!
//! Emissions of schedulers wait in a queue per flow and path (`flow/queues.rs`) until the path's
//! window and pacer let them go, and can be taken back until then. This is the order in which flows
//! get what window and pacer allow.

use alloc::collections::VecDeque;

use super::flow::Flow;
use crate::wire::{FlowId, LEAST_PRIORITY};

/// Bytes that a flow may send in its turn.
pub(super) const QUANTUM: u64 = 3_000;
/// Classes in which flows are served: the one whose turn has come because it has waited for long,
/// and one for each priority.
pub(super) const CLASSES: usize = 2 + LEAST_PRIORITY as usize;

/// The class of a flow.
pub(super) fn class_of(flow: &Flow) -> usize {
    match flow.promoted {
        true => 0,
        false => 1 + usize::from(flow.priority.min(LEAST_PRIORITY)),
    }
}

/// Flows that have, or may have, something to send: by class, in turn.
#[derive(Debug, Default)]
pub(super) struct Share {
    classes: [VecDeque<FlowId>; CLASSES],
    turns: u64,
}

impl Share {
    /// Adds a flow behind all others of its class. Returns its turn: the smaller it is, the
    /// earlier the flow sends.
    pub(super) fn add(&mut self, flow: FlowId, class: usize) -> u64 {
        self.classes[class].push_back(flow);
        self.turns += 1;
        self.turns
    }

    pub(super) fn remove(&mut self, flow: FlowId, class: usize) {
        self.classes[class].retain(|f| *f != flow);
    }

    /// The flow used its turn up. Returns its next one, if that is another.
    pub(super) fn rotate(&mut self, flow: FlowId, class: usize) -> Option<u64> {
        let flows = &mut self.classes[class];
        if flows.back() == Some(&flow) {
            return None;
        }
        let i = flows.iter().position(|f| *f == flow)?;
        flows.remove(i);
        flows.push_back(flow);
        self.turns += 1;
        Some(self.turns)
    }

    /// All flows, most urgent class first.
    pub(super) fn iter(&self) -> impl Iterator<Item = FlowId> + '_ {
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
        let turns: Vec<u64> = [(0, 3), (4, 3), (8, 1)]
            .into_iter()
            .map(|(id, class)| share.add(FlowId(id), class))
            .collect();
        assert!(turns.is_sorted());
        let order = |share: &Share| share.iter().map(|f| f.0).collect::<Vec<_>>();
        assert_eq!(order(&share), [8, 0, 4]);
        let next = share.rotate(FlowId(0), 3).unwrap();
        assert!(next > turns[2]);
        assert_eq!(order(&share), [8, 4, 0]);
        assert_eq!(share.rotate(FlowId(0), 3), None, "it is the last already");
        share.remove(FlowId(0), 3);
        assert_eq!(share.iter().count(), 2);
    }
}
