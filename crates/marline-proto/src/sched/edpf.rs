//! Earliest delivery path first (Chebrolu and Rao, "Bandwidth Aggregation for Real-Time
//! Applications in Heterogeneous Wireless Networks", IEEE TMC 2006, §3).
//!
//! Each symbol goes to the path where it is expected to arrive first, counting what stands before
//! it, the path's rate and its propagation: min over l of max(a + D_l, A_l) + L/B_l. A_l, the time
//! until which path l is busy, is what is queued at the sender and in the network
//! ([`PathView::arrival`](super::PathView::arrival)), so that errors of the estimate do not add up.
//!
//! A symbol may be queued on a path whose window is full while a slower path is idle: it still
//! arrives earlier there. What waits is taken back and planned again every few milliseconds.

use alloc::boxed::Box;

use marline_base::{Duration, Instant};

use super::entry::{Entry, PACKET_WISE};
use super::revision::Revision;
use super::{Choice, OptionSpec, PathView, Plan, Scheduler};

const OPTIONS: &[OptionSpec] = &[
    // It bounds the difference of delays that can be evened out.
    OptionSpec::time(
        "horizon",
        Duration::from_millis(500),
        (Duration::ZERO, Duration::from_secs(10)),
        "how far ahead of a path's window packets may be queued, in time at its rate",
    ),
    OptionSpec::time(
        "revise",
        Duration::from_millis(10),
        (Duration::from_millis(1), Duration::from_secs(1)),
        "how often what waits is planned anew",
    ),
];

#[derive(Debug)]
struct Edpf {
    horizon: Duration,
    revision: Revision,
}

pub(super) const ENTRY: Entry = Entry {
    name: "edpf",
    publication: "Chebrolu and Rao, IEEE TMC 2006",
    help: "the path where the packet is expected to arrive first",
    kinds: PACKET_WISE,
    options: OPTIONS,
    new,
};

fn new(choice: &Choice) -> Box<dyn Scheduler> {
    Box::new(Edpf::new(choice))
}

impl Edpf {
    fn new(choice: &Choice) -> Self {
        Self {
            horizon: choice.time("horizon"),
            revision: Revision::new(choice.time("revise")),
        }
    }
}

impl Scheduler for Edpf {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        self.revision.take_back(plan);
        while let Some(len) = plan.next_len() {
            // Symbols are queued beyond a window only to find those that a path with room should
            // take out of turn. Without such a path, later is early enough.
            if !plan.paths().iter().any(PathView::has_room) {
                return;
            }
            let arrivals = plan.paths().iter().map(|p| p.arrival(len));
            let Some((best, _)) = arrivals.enumerate().min_by_key(|(_, at)| *at) else {
                return;
            };
            let path = &plan.paths()[best];
            if !path.has_room() {
                if path.queued_own > path.rate.bytes_in(self.horizon) {
                    return;
                }
                self.revision.queued_ahead();
            }
            plan.send(best);
        }
    }

    fn awaits_room(&self) -> bool {
        true
    }

    fn wake_at(&self) -> Option<Instant> {
        self.revision.at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::{Backlog, path};
    use marline_base::Rate;

    #[test]
    fn the_slow_path_gets_the_symbol_that_would_arrive_no_earlier_on_the_fast_one() {
        // 1200 B take 1 ms on path 0 and 2 ms on path 1, whose propagation is 5 ms longer, so
        // arrivals on path 0 are 11, 12, … and on path 1 they are 17, 19, … ms from now.
        let mut paths = [path(0), path(1)];
        paths[0].rate = Rate::from_kbps(9_600);
        paths[0].min_rtt = Duration::from_millis(20);
        paths[1].rate = Rate::from_kbps(4_800);
        paths[1].min_rtt = Duration::from_millis(30);
        let mut backlog = Backlog::of(10);
        Edpf::new(&Choice::from(&ENTRY)).plan(&mut Plan::new(
            Instant::ZERO,
            &mut paths,
            &mut backlog,
        ));
        // 11 12 13 14 15 16 17 | 17 (tie goes to path 0 first) 18 19 …
        assert_eq!(backlog.sent_on(), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn queues_nothing_ahead_when_no_path_has_room() {
        let mut paths = [path(0), path(1)];
        paths[0].window = 2 * 1_200;
        paths[1].window = 2 * 1_200;
        let mut backlog = Backlog::of(100);
        let mut edpf = Edpf::new(&Choice::from(&ENTRY));
        edpf.plan(&mut Plan::new(Instant::ZERO, &mut paths, &mut backlog));
        assert_eq!(backlog.sent_on().len(), 4);
        assert_eq!(edpf.wake_at(), None);
    }

    #[test]
    fn waits_for_the_better_path_within_the_horizon() {
        let mut paths = [path(0), path(1)];
        paths[0].window = 0;
        paths[0].rate = Rate::from_kbps(9_600);
        paths[0].min_rtt = Duration::from_millis(20);
        paths[1].rate = Rate::from_kbps(9_600);
        paths[1].min_rtt = Duration::from_millis(4_000);
        let mut backlog = Backlog::of(1_000);
        let mut edpf = Edpf::new(&Choice::from(&ENTRY));
        edpf.plan(&mut Plan::new(Instant::ZERO, &mut paths, &mut backlog));
        // 500 ms at 1 ms a symbol, and the one that crosses the line.
        assert_eq!(backlog.sent_on().len(), 501);
        assert!(backlog.sent_on().iter().all(|&p| p == 0));
        assert_eq!(edpf.wake_at(), Some(Instant::from_millis(10)));
    }
}
