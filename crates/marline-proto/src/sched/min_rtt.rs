//! Lowest round-trip time first (LowRTT, LRF): the default of Linux MPTCP for years.
//!
//! Fills the window of the path with the smallest smoothed round-trip time, then the next one's
//! (Paasch et al., "Experimental Evaluation of Multipath TCP Schedulers", CSWS 2014, §2). Backup
//! paths carry data only when there is no other, as in Linux: the session sees to that for every
//! scheduler. What Linux does when a slow path blocks the send window is optional ([`Relief`]).

use alloc::boxed::Box;

use marline_base::Instant;

use super::entry::{Entry, PACKET_WISE};
use super::pick::quickest;
use super::relief::Relief;
use super::{Choice, Feedback, OptionSpec, Plan, Scheduler};

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::switch(
        "opportunistic",
        false,
        "when credit is used up, copy the oldest packet from a much slower path to the quickest",
    ),
    OptionSpec::switch(
        "penalise",
        false,
        "when credit is used up, use half the window of the slower path that holds the oldest packet",
    ),
];

#[derive(Debug, Default)]
struct MinRtt {
    relief: Relief,
}

pub(super) const ENTRY: Entry = Entry {
    name: "min-rtt",
    publication: "Paasch et al., CSWS 2014; Raiciu et al., NSDI 2012",
    help: "the path with the smallest round-trip time that has room",
    kinds: PACKET_WISE,
    options: OPTIONS,
    new,
};

fn new(choice: &Choice) -> Box<dyn Scheduler> {
    let mut relief = Relief::default();
    relief.opportunistic = choice.switch("opportunistic");
    relief.penalise = choice.switch("penalise");
    Box::new(MinRtt { relief })
}

impl Scheduler for MinRtt {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        let now = plan.now();
        self.relief.expire(now, plan.paths());
        while plan.next_len().is_some() {
            let may = |p: &_| self.relief.lets(now, p);
            let Some(next) = quickest(plan.paths(), |p| p.has_room() && may(p)) else {
                break;
            };
            plan.send(next);
        }
        if self.relief.is_on()
            && let Some(blocked) = plan.blocked()
        {
            self.relief.relieve(plan, blocked);
        }
    }

    fn on_feedback(&mut self, _: Instant, feedback: &Feedback) {
        self.relief.on_feedback(feedback);
    }

    fn awaits_room(&self) -> bool {
        !self.relief.is_on()
    }

    fn minds_credit(&self) -> bool {
        self.relief.is_on()
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
        MinRtt::default().plan(&mut Plan::new(Default::default(), &mut paths, &mut backlog));
        assert_eq!(backlog.sent_on(), [1, 1, 1, 0, 0, 0, 0]);
    }
}
