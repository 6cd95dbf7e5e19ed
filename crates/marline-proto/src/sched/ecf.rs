//! Earliest completion first (Lim, Nahum, Towsley and Gibbens, "ECF: An MPTCP Path Scheduler to
//! Manage Heterogeneous Paths", CoNEXT 2017, Algorithm 1).
//!
//! When the quickest path f is full, the quickest open path s is used only if waiting for f would
//! not bring the k bytes of the backlog to completion earlier. f needs n = 1 + k/CWND_f round
//! trips, one of them to wait; δ = max(σ_f, σ_s) is a margin, β = 0.25 hysteresis:
//!
//! * n·RTT_f < (1 + waiting·β)(RTT_s + δ): f would be done before s, and
//! * k/CWND_s·RTT_s ≥ 2·RTT_f + δ: s is no quicker even with what it could take in windows,
//!
//! then wait. In both, k is at least one window, as in the Linux implementation by the authors: the
//! last symbol of a backlog costs a whole round trip, too.

use alloc::boxed::Box;

use super::entry::{Entry, PACKET_WISE};
use super::pick::{quickest, will_have_room};
use super::{Choice, OptionSpec, PathView, Plan, Scheduler};

const OPTIONS: &[OptionSpec] = &[OptionSpec::number(
    "beta",
    0.25,
    (0.0, 1.0),
    "how much longer it goes on waiting than it would begin to",
)];

#[derive(Debug)]
struct Ecf {
    beta: f64,
    waiting: bool,
}

pub(super) const ENTRY: Entry = Entry {
    name: "ecf",
    publication: "Lim et al., CoNEXT 2017",
    help: "as min-rtt, but waits for the quick path where the backlog is done earlier so",
    kinds: PACKET_WISE,
    options: OPTIONS,
    new,
};

fn new(choice: &Choice) -> Box<dyn Scheduler> {
    Box::new(Ecf {
        beta: choice.number("beta"),
        waiting: false,
    })
}

impl Ecf {
    /// Is it better to wait for `fast` than to use `slow` for a backlog of `k` bytes?
    fn waits(&mut self, fast: &PathView, slow: &PathView, k: u64) -> bool {
        let (rtt_f, rtt_s) = (fast.srtt.as_secs_f64(), slow.srtt.as_secs_f64());
        let delta = fast.rtt_var.max(slow.rtt_var).as_secs_f64();
        let windows = |path: &PathView| (k as f64 / path.window.max(1) as f64).max(1.0);
        let margin = if self.waiting { self.beta } else { 0.0 };
        if (1.0 + windows(fast)) * rtt_f < (1.0 + margin) * (rtt_s + delta) {
            if windows(slow) * rtt_s >= 2.0 * rtt_f + delta {
                self.waiting = true;
                return true;
            }
        } else {
            self.waiting = false;
        }
        false
    }
}

impl Scheduler for Ecf {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        while plan.next_len().is_some() {
            let paths = plan.paths();
            let Some(next) = quickest(paths, PathView::has_room) else {
                return;
            };
            let fast = quickest(paths, will_have_room).unwrap_or(next);
            if next != fast && self.waits(&paths[fast], &paths[next], plan.unsent()) {
                return;
            }
            plan.send(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::path;
    use marline_base::Duration;

    /// Windows of 10 symbols; round-trip times and deviations in ms.
    fn pair(fast: (u64, u64), slow: (u64, u64)) -> (PathView, PathView) {
        let view = |id, (rtt, var)| PathView {
            srtt: Duration::from_millis(rtt),
            rtt_var: Duration::from_millis(var),
            window: 12_000,
            ..path(id)
        };
        (view(0, fast), view(1, slow))
    }

    fn ecf() -> Ecf {
        Ecf {
            beta: 0.25,
            waiting: false,
        }
    }

    #[test]
    fn a_short_backlog_waits_and_a_long_one_does_not() {
        // RTT 10 and 100 ms, δ = 2 ms. k = 12 000 B: (1 + 1)·10 = 20 < 102, and 1·100 ≥ 22: wait.
        let (fast, slow) = pair((10, 2), (100, 1));
        assert!(ecf().waits(&fast, &slow, 12_000));
        // One symbol counts as a whole window: the same.
        assert!(ecf().waits(&fast, &slow, 1_200));
        // k = 111 600 B: (1 + 9.3)·10 = 103, not less than 102: the slow path helps.
        assert!(!ecf().waits(&fast, &slow, 111_600));
        // Two symbols less: (1 + 9.1)·10 = 101 < 102.
        assert!(ecf().waits(&fast, &slow, 109_200));
    }

    #[test]
    fn a_slow_path_that_is_not_slow_is_used() {
        // RTT 10 and 21 ms, δ = 0: 20 < 21, and 21 ≥ 20: wait. At 20 ms: 20 < 20 is false.
        let (fast, slow) = pair((10, 0), (21, 0));
        assert!(ecf().waits(&fast, &slow, 12_000));
        let (fast, slow) = pair((10, 0), (20, 0));
        assert!(!ecf().waits(&fast, &slow, 12_000));
        // RTT 10 and 21 ms, δ = 2: 20 < 23, but 21 ≥ 22 is false: no wait, and no end of waiting.
        let (fast, slow) = pair((10, 2), (21, 0));
        assert!(!ecf().waits(&fast, &slow, 12_000));
    }

    #[test]
    fn who_waits_goes_on_a_quarter_longer() {
        // k = 124 800 B: (1 + 10.4)·10 = 114 ms: too long to begin (100), not to go on (125).
        let (fast, slow) = pair((10, 0), (100, 0));
        let mut ecf = ecf();
        assert!(!ecf.waits(&fast, &slow, 124_800));
        assert!(ecf.waits(&fast, &slow, 12_000));
        assert!(ecf.waits(&fast, &slow, 124_800));
        // k = 139 200 B: (1 + 11.6)·10 = 126 is not less than 125, which ends the waiting.
        assert!(!ecf.waits(&fast, &slow, 139_200));
        assert!(!ecf.waiting);
    }

    #[test]
    fn an_open_quick_path_is_filled_first() {
        use crate::sched::tests::Backlog;
        let (fast, slow) = pair((10, 0), (100, 0));
        let mut paths = [fast, slow];
        let mut backlog = Backlog::of(12);
        ecf().plan(&mut Plan::new(Default::default(), &mut paths, &mut backlog));
        // Ten symbols fill path 0; the two that are left wait for it.
        assert_eq!(backlog.sent_on(), [0; 10]);
    }
}
