//! Cheapest path first, or strict priority (3GPP TS 23.501 §5.32.8, "priority-based" steering;
//! Pieska et al., "Adaptive Cheapest Path First Scheduling", ANRW 2021, §3.1).
//!
//! The cheapest path takes every symbol until its window is full, then the next cheapest. Among
//! paths of one cost the smaller round-trip time goes first.

use alloc::boxed::Box;

use super::entry::{Entry, PACKET_WISE};
use super::{Choice, Plan, Scheduler};

#[derive(Debug)]
struct Cpf;

pub(super) const ENTRY: Entry = Entry {
    name: "cpf",
    publication: "3GPP TS 23.501; Pieska et al., ANRW 2021",
    help: "the cheapest path that has room",
    kinds: PACKET_WISE,
    options: &[],
    new,
};

fn new(_: &Choice) -> Box<dyn Scheduler> {
    Box::new(Cpf)
}

impl Scheduler for Cpf {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        while plan.next_len().is_some() {
            let open = plan.paths().iter().enumerate();
            let open = open.filter(|(_, p)| p.has_room());
            let Some((next, _)) = open.min_by_key(|(_, p)| (p.cost, p.srtt)) else {
                return;
            };
            plan.send(next);
        }
    }

    fn awaits_room(&self) -> bool {
        true
    }

    fn minds_cost(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::{Backlog, path};
    use marline_base::Duration;

    #[test]
    fn cost_goes_before_delay_and_a_full_window_spills_over() {
        // Windows of 2, 3 and 1 symbols; costs 1, 0 and 1, so 1 fills first. Of the two dearer
        // ones path 2 is quicker.
        let mut paths = [path(0), path(1), path(2)];
        for (path, (symbols, cost, ms)) in
            paths.iter_mut().zip([(2, 1, 30), (3, 0, 90), (1, 1, 10)])
        {
            path.window = symbols * 1_200;
            path.cost = cost;
            path.srtt = Duration::from_millis(ms);
        }
        let mut backlog = Backlog::of(9);
        Cpf.plan(&mut Plan::new(Default::default(), &mut paths, &mut backlog));
        assert_eq!(backlog.sent_on(), [1, 1, 1, 2, 0, 0]);
    }
}
