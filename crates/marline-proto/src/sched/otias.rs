//! Out-of-order transmission for in-order arrival (Yang, Wang and Amer, "Out-of-order Transmission
//! for In-order Arrival Scheduling for Multipath TCP", WAINA 2014, Algorithm 1).
//!
//! A symbol goes to the path with the smallest T = (⌊w/CWND⌋ + 1/2)·SRTT, whether or not its window
//! has room: w is what the path was given and cannot send before acknowledgements return, so that
//! each whole window of it costs a round trip. Half a round trip is the way there.
//!
//! What a path was given stays with it (the publication has no second thoughts). Symbols are given
//! out only while some path has room: later is early enough, and knows more.

use alloc::boxed::Box;

use marline_base::Duration;

use super::entry::{Entry, PACKET_WISE};
use super::{Choice, PathView, Plan, Scheduler};

/// Windows that may wait for one path at most.
const MAX_WAITING: u64 = 16;

#[derive(Debug)]
struct Otias;

pub(super) const ENTRY: Entry = Entry {
    name: "otias",
    publication: "Yang et al., WAINA 2014",
    help: "the path of the smallest expected arrival in whole round trips, though its window be full",
    kinds: PACKET_WISE,
    options: &[],
    new,
};

fn new(_: &Choice) -> Box<dyn Scheduler> {
    Box::new(Otias)
}

/// T of Algorithm 1 for a symbol of `len` bytes.
fn arrival(path: &PathView, len: u32) -> Duration {
    let sendable = path.window.saturating_sub(path.in_flight);
    let waiting = (path.queued + u64::from(len)).saturating_sub(sendable);
    let rounds = waiting / path.window.max(u64::from(len)).max(1);
    path.srtt * rounds.min(1_000) as u32 + path.srtt / 2
}

impl Scheduler for Otias {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        while let Some(len) = plan.next_len() {
            let paths = plan.paths();
            if !paths.iter().any(PathView::has_room) {
                return;
            }
            let best = paths
                .iter()
                .enumerate()
                .min_by_key(|(_, p)| arrival(p, len));
            let Some((best, path)) = best else {
                return;
            };
            let most = path.window.max(u64::from(len)).saturating_mul(MAX_WAITING);
            if path.queued > most {
                return;
            }
            plan.send(best);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::{Backlog, path};

    #[test]
    fn a_symbol_waits_for_the_quick_path_as_long_as_it_arrives_no_later() {
        // Path 0: 20 ms, window 2 symbols. Path 1: 90 ms, window 10.
        // On path 0 symbols 1, 2 and (waiting for less than a window) 3 have T = 10 ms; 4 and 5
        // wait for one window: 30 ms; 6 and 7: 50 ms, later than 45 ms on path 1, which takes ten
        // (T = 45 ms), and an eleventh that waits for less than its window. But then no path has
        // room after the tenth.
        let mut paths = [path(0), path(1)];
        paths[0].srtt = Duration::from_millis(20);
        paths[0].window = 2 * 1_200;
        paths[1].srtt = Duration::from_millis(90);
        paths[1].window = 10 * 1_200;
        let mut backlog = Backlog::of(30);
        Otias.plan(&mut Plan::new(Default::default(), &mut paths, &mut backlog));
        let mut expected = alloc::vec![0; 5];
        expected.extend([1; 10]);
        assert_eq!(backlog.sent_on(), expected);
    }

    #[test]
    fn what_is_in_flight_makes_wait() {
        // Window 4, 3 in flight, 4 queued: of the 5 with the new one 1 may leave, 4 wait: 1 round.
        let mut view = path(0);
        view.srtt = Duration::from_millis(20);
        view.window = 4 * 1_200;
        view.in_flight = 3 * 1_200;
        view.queued = 4 * 1_200;
        assert_eq!(arrival(&view, 1_200), Duration::from_millis(30));
        view.queued = 3 * 1_200;
        assert_eq!(arrival(&view, 1_200), Duration::from_millis(10));
    }
}
