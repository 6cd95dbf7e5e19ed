//! Shortest transfer time first (Hurtig, Grinnemo, Brunstrom, Ferlin, Alay and Kuhn, "Low-Latency
//! Scheduling in MPTCP", IEEE/ACM ToN 2019, §III).
//!
//! A symbol goes to the path where its transfer takes the shortest time, whether or not the window
//! has room. The time is predicted in rounds as the window will grow: what fits the window now
//! arrives after half a round trip; what does not waits for rounds whose windows double in slow
//! start and grow by a symbol in congestion avoidance. What waits is placed again when the
//! prediction may have changed.
//!
//! The publication knows loss-based controllers. A rate-based one (BBR) doubles its window in
//! startup and otherwise keeps it.

use alloc::boxed::Box;

use marline_base::{Duration, Instant};

use super::entry::{Entry, PACKET_WISE};
use super::revision::Revision;
use super::{Choice, OptionSpec, PathView, Plan, Scheduler};
use crate::congestion::Phase;

const OPTIONS: &[OptionSpec] = &[OptionSpec::time(
    "revise",
    Duration::from_millis(10),
    (Duration::from_millis(1), Duration::from_secs(1)),
    "how often what waits is placed anew",
)];

/// Rounds that a symbol may wait for at most; further ones are not worth predicting.
const MAX_ROUNDS: u32 = 16;

#[derive(Debug)]
struct Sttf {
    revision: Revision,
}

pub(super) const ENTRY: Entry = Entry {
    name: "sttf",
    publication: "Hurtig et al., IEEE/ACM ToN 2019",
    help: "the path of the shortest transfer time, as its window will grow",
    kinds: PACKET_WISE,
    options: OPTIONS,
    new,
};

fn new(choice: &Choice) -> Box<dyn Scheduler> {
    Box::new(Sttf::new(choice.time("revise")))
}

/// The window of the next round.
fn grown(window: u64, path: &PathView) -> u64 {
    let symbol = u64::from(path.symbol);
    match (path.congestion.phase, path.congestion.ssthresh) {
        (Phase::SlowStart, Some(ssthresh)) if window >= ssthresh => window.saturating_add(symbol),
        (Phase::SlowStart | Phase::Startup, _) => window.saturating_mul(2),
        (Phase::Avoidance | Phase::Recovery, _) => window.saturating_add(symbol),
        (Phase::Drain | Phase::ProbeBw | Phase::ProbeRtt | Phase::Steady, _) => window,
    }
}

/// Time until `len` more bytes have arrived, or `None` if they wait for too many rounds.
fn transfer_time(path: &PathView, len: u32) -> Option<Duration> {
    let mut left = path.queued + u64::from(len);
    let mut round = path.window.saturating_sub(path.in_flight);
    let mut window = path.window.max(u64::from(path.symbol));
    for rounds in 0..=MAX_ROUNDS {
        if left <= round {
            return Some(path.srtt * rounds + path.srtt / 2);
        }
        left -= round;
        window = grown(window, path);
        round = window;
    }
    None
}

impl Sttf {
    const fn new(revise: Duration) -> Self {
        Self {
            revision: Revision::new(revise),
        }
    }
}

impl Scheduler for Sttf {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        self.revision.take_back(plan);
        while let Some(len) = plan.next_len() {
            let paths = plan.paths();
            // Without a path that has room, later is early enough.
            if !paths.iter().any(PathView::has_room) {
                return;
            }
            let times = paths.iter().enumerate();
            let times = times.filter_map(|(i, p)| Some((transfer_time(p, len)?, i)));
            let Some((_, best)) = times.min() else {
                return;
            };
            if !paths[best].has_room() {
                self.revision.queued_ahead();
            }
            plan.send(best);
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.revision.at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::{Backlog, path};

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn view(phase: Phase, ssthresh: Option<u64>) -> PathView {
        let mut view = path(0);
        view.srtt = MS(20);
        view.window = 4 * 1_200;
        view.congestion.phase = phase;
        view.congestion.ssthresh = ssthresh;
        view
    }

    /// Transfer times (ms) of the symbols that come after `queued` others.
    fn times(mut view: PathView, queued: &[u64]) -> alloc::vec::Vec<u64> {
        let mut time = |symbols: &u64| {
            view.queued = symbols * 1_200;
            transfer_time(&view, 1_200).unwrap().as_millis() as u64
        };
        queued.iter().map(&mut time).collect()
    }

    #[test]
    fn rounds_double_in_slow_start_and_grow_by_one_beyond() {
        // Windows 4, 8, 16: symbols 1–4 take 10 ms, 5–12 30 ms, 13–28 50 ms, the 29th 70 ms.
        let slow_start = view(Phase::SlowStart, None);
        assert_eq!(
            times(slow_start, &[0, 3, 4, 11, 12, 27, 28]),
            [10, 10, 30, 30, 50, 50, 70]
        );
        // Windows 4, 5, 6: symbols 1–4, 5–9, 10–15, then the 16th.
        let avoidance = view(Phase::Avoidance, Some(2_400));
        assert_eq!(
            times(avoidance, &[3, 4, 8, 9, 14, 15]),
            [10, 30, 30, 50, 50, 70]
        );
        // Threshold 8: windows 4, 8, 9: symbols 1–4, 5–12, 13–21, then the 22nd.
        let both = view(Phase::SlowStart, Some(9_600));
        assert_eq!(times(both, &[11, 12, 20, 21]), [30, 50, 50, 70]);
        // Windows 4, 4, 4.
        let constant = view(Phase::ProbeBw, None);
        assert_eq!(
            times(constant, &[3, 4, 7, 8, 11, 12]),
            [10, 30, 30, 50, 50, 70]
        );
    }

    #[test]
    fn what_is_in_flight_takes_from_the_first_round() {
        let mut full = view(Phase::ProbeBw, None);
        full.in_flight = full.window;
        assert_eq!(times(full, &[0, 3, 4]), [30, 30, 50]);
    }

    #[test]
    fn waits_for_the_quick_path_where_that_is_shorter() {
        // Path 0: 20 ms, 4 symbols a round; path 1: 70 ms, 10 symbols. Arrivals on path 0: four
        // after 10 ms, four after 30 ms, then 50 ms, later than 35 ms on path 1, which takes ten.
        let mut paths = [view(Phase::ProbeBw, None), path(1)];
        paths[1].srtt = MS(70);
        paths[1].window = 10 * 1_200;
        let mut backlog = Backlog::of(40);
        let mut sttf = Sttf::new(MS(10));
        sttf.plan(&mut Plan::new(Instant::ZERO, &mut paths, &mut backlog));
        let mut expected = alloc::vec![0; 8];
        expected.extend([1; 10]);
        assert_eq!(backlog.sent_on(), expected);
        assert_eq!(sttf.wake_at(), Some(Instant::ZERO + MS(10)));
    }
}
