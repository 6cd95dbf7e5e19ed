//! Every symbol on every path (ReMP TCP: Frömmgen et al., "ReMP TCP: Low Latency Multipath TCP",
//! ICC 2016): the first copy wins, at the price of the sum of the links.
//!
//! The fastest path with room takes the next symbol and the others get copies. A copy that is
//! still waiting when its symbol is acknowledged is never sent, so a slow path falls back to what
//! it can do in time instead of trailing behind.

use alloc::boxed::Box;

use super::entry::{Entry, PACKET_WISE};
use super::{Choice, Plan, Scheduler};

#[derive(Debug)]
struct Redundant;

pub(super) const ENTRY: Entry = Entry {
    name: "redundant",
    publication: "Frömmgen et al., ICC 2016",
    help: "every packet on every path; the first copy wins",
    kinds: PACKET_WISE,
    options: &[],
    new,
};

fn new(_: &Choice) -> Box<dyn Scheduler> {
    Box::new(Redundant)
}

impl Scheduler for Redundant {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        while plan.next_len().is_some() {
            let paths = plan.paths().iter().enumerate();
            let open = paths.filter(|(_, p)| p.has_room());
            let Some((first, _)) = open.min_by_key(|(_, p)| p.srtt) else {
                return;
            };
            let symbol = plan.send(first);
            for other in (0..plan.paths().len()).filter(|&i| i != first) {
                plan.copy(other, symbol);
            }
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
    fn copies_go_everywhere_even_where_there_is_no_room() {
        let mut backlog = Backlog::of(1);
        let mut paths = [path(0), path(1), path(2)];
        paths[2].in_flight = paths[2].window;
        Redundant.plan(&mut Plan::new(Default::default(), &mut paths, &mut backlog));
        assert_eq!(backlog.sent_on(), [0]);
        assert_eq!(backlog.copied_to(), [1, 2]);
    }

    #[test]
    fn one_full_path_does_not_hold_the_others() {
        let mut backlog = Backlog::of(3);
        let mut paths = [path(0), path(1)];
        paths[0].window = 1_200;
        Redundant.plan(&mut Plan::new(Default::default(), &mut paths, &mut backlog));
        assert_eq!(backlog.sent_on(), [0, 1, 1]);
        assert_eq!(backlog.copied_to(), [1, 0, 0]);
    }
}
