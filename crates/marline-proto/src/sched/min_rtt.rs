//! Lowest round-trip time first (LowRTT, LRF): the default of Linux MPTCP for years.
//!
//! Fills the window of the path with the smallest smoothed round-trip time, then the next one's
//! (Paasch et al., "Experimental Evaluation of Multipath TCP Schedulers", CSWS 2014, §2).

use alloc::boxed::Box;

use super::registry::{Entry, PACKET_WISE};
use super::{Choice, Plan, Scheduler};

#[derive(Debug)]
struct MinRtt;

pub(super) const ENTRY: Entry = Entry {
    name: "min-rtt",
    publication: "Paasch et al., CSWS 2014",
    help: "the path with the smallest round-trip time that has room",
    kinds: PACKET_WISE,
    options: &[],
    new,
};

fn new(_: &Choice) -> Box<dyn Scheduler> {
    Box::new(MinRtt)
}

impl Scheduler for MinRtt {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        while plan.next_len().is_some() {
            let paths = plan.paths().iter().enumerate();
            let open = paths.filter(|(_, p)| p.has_room());
            let Some((next, _)) = open.min_by_key(|(_, p)| p.srtt) else {
                return;
            };
            plan.send(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::{Backlog, path};
    use marline_base::Duration;

    #[test]
    fn fills_the_shorter_path_before_the_longer() {
        let mut backlog = Backlog::of(9);
        let mut paths = [path(0), path(1)];
        paths[0].srtt = Duration::from_millis(50);
        paths[1].srtt = Duration::from_millis(30);
        paths[0].window = 4 * 1_200;
        paths[1].window = 3 * 1_200;
        MinRtt.plan(&mut Plan::new(Default::default(), &mut paths, &mut backlog));
        assert_eq!(backlog.sent_on(), [1, 1, 1, 0, 0, 0, 0]);
    }
}
