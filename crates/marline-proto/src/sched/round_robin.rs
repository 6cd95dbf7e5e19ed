//! Round robin: each path with room in turn, a symbol each.

use alloc::boxed::Box;

use super::entry::{Entry, PACKET_WISE};
use super::{Choice, Plan, Scheduler};
use crate::wire::PathId;

#[derive(Debug, Default)]
struct RoundRobin {
    last: Option<PathId>,
}

pub(super) const ENTRY: Entry = Entry {
    name: "round-robin",
    publication: "Paasch et al., CSWS 2014",
    help: "each path with room in turn",
    kinds: PACKET_WISE,
    options: &[],
    new,
};

fn new(_: &Choice) -> Box<dyn Scheduler> {
    Box::new(RoundRobin::default())
}

impl Scheduler for RoundRobin {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        while plan.next_len().is_some() {
            let paths = plan.paths();
            let start = paths.partition_point(|p| Some(p.id) <= self.last);
            let turn = (0..paths.len()).map(|i| (start + i) % paths.len());
            let Some(next) = turn.into_iter().find(|&i| paths[i].has_room()) else {
                return;
            };
            self.last = Some(paths[next].id);
            plan.send(next);
        }
    }

    fn awaits_room(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::{Backlog, path};

    #[test]
    fn takes_turns_and_skips_full_paths() {
        let mut backlog = Backlog::of(6);
        let mut paths = [path(0), path(1), path(2)];
        paths[1].in_flight = paths[1].window;
        RoundRobin::default().plan(&mut Plan::new(Default::default(), &mut paths, &mut backlog));
        assert_eq!(backlog.sent_on(), [0, 2, 0, 2, 0, 2]);
    }

    #[test]
    fn waits_when_every_window_is_full() {
        let mut backlog = Backlog::of(3);
        let mut paths = [path(0)];
        paths[0].window = 2_400;
        RoundRobin::default().plan(&mut Plan::new(Default::default(), &mut paths, &mut backlog));
        assert_eq!(backlog.sent_on(), [0, 0]);
    }
}
