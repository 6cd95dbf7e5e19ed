//! Blocking estimation (Ferlin, Alay, Mehani and Boreli, "BLEST: Blocking Estimation-based MPTCP
//! Scheduler for Heterogeneous Networks", IFIP Networking 2016).
//!
//! When the quickest path is full, a slower one is used only if that cannot fill the send window
//! with data that waits for it. While a symbol lingers on the slow path for RTT_S, the fast path
//! sends X = MSS·(CWND_F + (rtts − 1)/2)·rtts bytes, rtts = RTT_S/RTT_F (§III-A). The symbol is
//! held back if X·λ > |MSW| − MSS·(inflight_S + 1).
//!
//! λ corrects the estimate once per RTT_S: up if the send window blocked meanwhile, else down. The
//! start, the steps and the range are those of the Linux implementation. The send window is what
//! the peer's credit allows ([`Plan::send_window`]); flows without credit are never held back.

use alloc::boxed::Box;

use marline_base::{Duration, Instant};

use super::entry::{Entry, PACKET_WISE};
use super::pick::{quickest, will_have_room};
use super::{Choice, OptionSpec, PathView, Plan, Scheduler};

const OPTIONS: &[OptionSpec] = &[OptionSpec::number(
    "lambda",
    1.2,
    (1.0, 1.3),
    "the first value of the factor by which the fast path's rate is overestimated",
)];

const LAMBDA_MIN: f64 = 1.0;
const LAMBDA_MAX: f64 = 1.3;
/// λ grows by this when the send window blocked.
const LAMBDA_UP: f64 = 0.04;
/// λ shrinks by this when it did not.
const LAMBDA_DOWN: f64 = 0.01;

#[derive(Debug)]
struct Blest {
    lambda: f64,
    corrected: Instant,
    /// The send window blocked since λ was corrected.
    blocked: bool,
}

pub(super) const ENTRY: Entry = Entry {
    name: "blest",
    publication: "Ferlin et al., IFIP Networking 2016",
    help: "as min-rtt, but rather waits than block the send window with a slow path's data",
    kinds: PACKET_WISE,
    options: OPTIONS,
    new,
};

fn new(choice: &Choice) -> Box<dyn Scheduler> {
    Box::new(Blest::new(choice.number("lambda")))
}

impl Blest {
    fn new(lambda: f64) -> Self {
        Self {
            lambda,
            corrected: Instant::ZERO,
            blocked: false,
        }
    }

    fn correct(&mut self, now: Instant, slow: Duration) {
        if now.since(self.corrected) < slow {
            return;
        }
        let step = if self.blocked {
            LAMBDA_UP
        } else {
            -LAMBDA_DOWN
        };
        self.lambda = (self.lambda + step).clamp(LAMBDA_MIN, LAMBDA_MAX);
        self.blocked = false;
        self.corrected = now;
    }

    /// Would `len` bytes on `slow` leave too little of the send window for `fast`?
    fn would_block(&self, fast: &PathView, slow: &PathView, len: u32, send_window: u64) -> bool {
        let mss = f64::from(len.max(1));
        let rtts = slow.srtt.as_secs_f64() / fast.srtt.as_secs_f64().max(1e-9);
        let cwnd = fast.window as f64 / mss;
        let sent = mss * (cwnd + (rtts - 1.0) / 2.0) * rtts;
        let taken = slow.in_flight + slow.queued + u64::from(len);
        sent * self.lambda > send_window.saturating_sub(taken) as f64
    }
}

impl Scheduler for Blest {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        while let Some(len) = plan.next_len() {
            let paths = plan.paths();
            let Some(next) = quickest(paths, PathView::has_room) else {
                break;
            };
            let fast = quickest(paths, will_have_room).unwrap_or(next);
            if next != fast {
                self.correct(plan.now(), paths[next].srtt);
                let window = plan.send_window();
                if self.would_block(&paths[fast], &paths[next], len, window) {
                    break;
                }
            }
            plan.send(next);
        }
        self.blocked |= plan.blocked().is_some();
    }

    fn minds_credit(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::{Backlog, path};

    /// A fast path of 10 ms with a full window of 10 symbols, a slow one of 40 ms.
    fn paths() -> [PathView; 2] {
        let mut paths = [path(0), path(1)];
        paths[0].srtt = Duration::from_millis(10);
        paths[0].window = 10 * 1_200;
        paths[0].in_flight = 10 * 1_200;
        paths[1].srtt = Duration::from_millis(40);
        paths
    }

    fn sent(blest: &mut Blest, window: u64) -> usize {
        let mut backlog = Backlog::of(1).with_send_window(window);
        blest.plan(&mut Plan::new(Instant::ZERO, &mut paths(), &mut backlog));
        backlog.sent_on().len()
    }

    #[test]
    fn waits_when_the_slow_path_would_use_up_the_send_window() {
        // rtts = 40/10 = 4; X = 1200·(10 + 3/2)·4 = 55 200 B. The symbol itself takes 1200 B, so
        // with λ = 1 a window of 56 400 B is just enough and one byte less is not.
        assert_eq!(sent(&mut Blest::new(1.0), 56_400), 1);
        assert_eq!(sent(&mut Blest::new(1.0), 56_399), 0);
        // With λ = 1.2: 66 240 B + 1200 B.
        assert_eq!(sent(&mut Blest::new(1.2), 67_441), 1);
        assert_eq!(sent(&mut Blest::new(1.2), 67_439), 0);
        assert_eq!(sent(&mut Blest::new(1.3), u64::MAX), 1);
    }

    #[test]
    fn the_fast_path_is_never_held_back() {
        let mut open = paths();
        open[0].in_flight = 9 * 1_200;
        let mut backlog = Backlog::of(5).with_send_window(1);
        Blest::new(1.0).plan(&mut Plan::new(Instant::ZERO, &mut open, &mut backlog));
        assert_eq!(backlog.sent_on(), [0]);
    }

    #[test]
    fn lambda_follows_what_happened_once_per_slow_round_trip() {
        let mut blest = Blest::new(1.2);
        let slow = Duration::from_millis(40);
        blest.blocked = true;
        blest.correct(Instant::from_millis(40), slow);
        assert!((blest.lambda - 1.24).abs() < 1e-9);
        blest.correct(Instant::from_millis(79), slow);
        assert!((blest.lambda - 1.24).abs() < 1e-9, "too early");
        blest.correct(Instant::from_millis(80), slow);
        assert!((blest.lambda - 1.23).abs() < 1e-9);
        for ms in (120..10_000).step_by(40) {
            blest.correct(Instant::from_millis(ms), slow);
        }
        assert_eq!(blest.lambda, LAMBDA_MIN);
    }

    #[test]
    fn a_blocked_send_window_is_noticed() {
        let mut blest = Blest::new(1.2);
        let mut backlog = Backlog::of(0).blocked_at(0);
        blest.plan(&mut Plan::new(Instant::ZERO, &mut paths(), &mut backlog));
        assert!(blest.blocked);
    }
}
