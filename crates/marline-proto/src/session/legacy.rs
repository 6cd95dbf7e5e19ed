//! What schedulers have learnt of the paths goes on to those of flows that begin later.
//!
//! Most of what a scheduler knows of a path is the path's own or shared by all flows
//! ([`Common`](crate::sched::Common)). Some have estimators that belong to how they send, as HOP's
//! of what a path carries from block to block: of these a new flow begins with a copy of what the
//! latest flow of the same choice knows, whether that is over or goes on.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use super::Session;
use super::flow::Flow;
use crate::sched::Choice;

/// Most choices of schedulers for which something is kept; with more, what was left longest ago is
/// forgotten. A program has one or two for each kind of flow.
const MOST: usize = 8;

/// What flows have left that are over, the latest at the end.
#[derive(Debug, Default)]
pub(super) struct Legacies {
    left: Vec<(Choice, Box<dyn Any + Send>)>,
}

impl Legacies {
    fn leave(&mut self, choice: Choice, legacy: Box<dyn Any + Send>) {
        self.left.retain(|(known, _)| *known != choice);
        if self.left.len() == MOST {
            self.left.remove(0);
        }
        self.left.push((choice, legacy));
    }

    fn of(&self, choice: Choice) -> Option<&(dyn Any + Send)> {
        let found = self.left.iter().find(|(known, _)| *known == choice);
        found.map(|(_, legacy)| &**legacy)
    }
}

impl Session {
    /// A flow begins: its scheduler takes over what that of the flow knows which was served last of
    /// all that were chosen alike, or what those left that are over.
    pub(super) fn inherit(&self, flow: &mut Flow) {
        if self.config.begin_blind || !flow.scheduler.inherits() {
            return;
        }
        let alike = self.flows.values().filter(|f| f.choice == flow.choice);
        let served = alike.filter(|f| f.counters.acked_bytes > 0);
        let latest = served.max_by_key(|f| f.served_at);
        match latest.and_then(|latest| latest.scheduler.legacy()) {
            Some(legacy) => flow.scheduler.inherit(&*legacy),
            None => {
                if let Some(legacy) = self.legacies.of(flow.choice) {
                    flow.scheduler.inherit(legacy);
                }
            }
        }
    }

    /// A flow is over: what its scheduler knows is kept.
    pub(super) fn bequeath(&mut self, flow: &Flow) {
        if flow.counters.acked_bytes > 0
            && let Some(legacy) = flow.scheduler.legacy()
        {
            self.legacies.leave(flow.choice, legacy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_legacy_of_each_choice_is_kept_and_no_more_than_some() {
        let choice = |ms: usize| -> Choice {
            alloc::format!("edpf:revise={ms}ms")
                .parse()
                .expect("a choice")
        };
        let mut legacies = Legacies::default();
        for ms in 1..=MOST {
            legacies.leave(choice(ms), Box::new(ms));
        }
        legacies.leave(choice(1), Box::new(100_usize));
        legacies.leave(choice(50), Box::new(50_usize));
        let of = |ms| {
            legacies
                .of(choice(ms))
                .and_then(|l| l.downcast_ref::<usize>())
        };
        assert_eq!(of(1), Some(&100));
        assert_eq!((of(2), of(3), of(50)), (None, Some(&3), Some(&50)));
        assert_eq!(legacies.left.len(), MOST);
    }
}
