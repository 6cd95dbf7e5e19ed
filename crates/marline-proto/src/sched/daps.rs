//! Delay-aware packet scheduling (Sarwar, Boreli, Lochin, Mifdaoui and Smith, "Mitigating
//! Receiver's Buffer Blocking by Delay Aware Packet Scheduling in Multipath Data Transfer", WAINA
//! 2013; Kuhn et al., "DAPS: Intelligent Delay-Aware Packet Scheduling for Multipath Transport",
//! ICC 2014, Algorithm 1).
//!
//! A schedule covers a round trip of the slowest path, which sends one window meanwhile. A path i
//! sends D_max/D_i windows, D being forward delays, taken as half of the round trips. The symbols
//! are dealt to the windows in the order in which those arrive, so that what leaves on a slow path
//! now is what the receiver needs when it arrives, and the quick path's next windows carry what
//! comes before. They wait in its queue.
//!
//! A schedule is carried out to its end before the next one is made; that is what later
//! publications improve on. It is given up only when paths come or go. The paper's least common
//! multiple of the delays is replaced by whole windows within D_max, as in the implementations:
//! measured delays have none worth the name.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::entry::{Entry, PACKET_WISE};
use super::{Choice, PathView, Plan, Scheduler};
use crate::wire::PathId;

/// Most windows of one path in a schedule: the delays' ratio beyond which a path is too slow.
const MAX_WINDOWS: u128 = 32;

#[derive(Debug, Default)]
struct Daps {
    /// What is left of the schedule: paths and how many symbols each takes in turn.
    turns: VecDeque<(PathId, u64)>,
    /// The paths that it was made for.
    paths: Vec<PathId>,
}

pub(super) const ENTRY: Entry = Entry {
    name: "daps",
    publication: "Sarwar et al., WAINA 2013; Kuhn et al., ICC 2014",
    help: "windows in the order of their arrival, by a schedule over the longest delay",
    kinds: PACKET_WISE,
    options: &[],
    new,
};

fn new(_: &Choice) -> Box<dyn Scheduler> {
    Box::new(Daps::default())
}

/// The windows of one schedule: path and symbols, in the order of arrival.
fn schedule(paths: &[PathView], len: u32) -> VecDeque<(PathId, u64)> {
    let forward = |p: &PathView| (p.srtt / 2).as_nanos().max(1);
    let longest = paths.iter().map(forward).max().unwrap_or(1);
    let mut windows = Vec::new();
    for path in paths {
        let symbols = (path.window / u64::from(len.max(1))).max(1);
        // The k-th window leaves after k − 1 round trips and arrives after (2k − 1)·D_i.
        let count = (longest / forward(path)).clamp(1, MAX_WINDOWS);
        for k in 1..=count {
            windows.push(((2 * k - 1) * forward(path), path.id, symbols));
        }
    }
    windows.sort_unstable();
    windows.into_iter().map(|(_, id, n)| (id, n)).collect()
}

impl Scheduler for Daps {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        if !plan
            .paths()
            .iter()
            .map(|p| p.id)
            .eq(self.paths.iter().copied())
        {
            self.paths = plan.paths().iter().map(|p| p.id).collect();
            self.turns.clear();
        }
        while let Some(len) = plan.next_len() {
            let paths = plan.paths();
            // Nothing is dealt out before some window can take what falls to it.
            if !paths.iter().any(PathView::has_room) {
                return;
            }
            if self.turns.is_empty() {
                self.turns = schedule(paths, len);
            }
            let Some((id, symbols)) = self.turns.front_mut() else {
                return;
            };
            let Some(index) = paths.iter().position(|p| p.id == *id) else {
                return;
            };
            let path = &paths[index];
            let window = path.window.max(u64::from(len));
            let most = window.saturating_mul(MAX_WINDOWS as u64);
            if !path.has_room() && path.queued > most {
                return;
            }
            *symbols -= 1;
            if *symbols == 0 {
                self.turns.pop_front();
            }
            plan.send(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::{Backlog, path};
    use marline_base::{Duration, Instant};

    fn paths() -> [PathView; 2] {
        // Forward delays of 10 and 30 ms; windows of 2 and 3 symbols.
        let mut paths = [path(0), path(1)];
        paths[0].srtt = Duration::from_millis(20);
        paths[0].window = 2 * 1_200;
        paths[1].srtt = Duration::from_millis(60);
        paths[1].window = 3 * 1_200;
        paths
    }

    #[test]
    fn the_slow_path_carries_what_is_needed_when_it_arrives() {
        // In the 60 ms of path 1's round trip path 0 sends 30/10 = 3 windows, which arrive after
        // 10, 30 and 50 ms; path 1's window arrives after 30 ms. So: 2 symbols, 2, path 1's 3, 2.
        let turns: Vec<_> = schedule(&paths(), 1_200).into_iter().collect();
        let (a, b) = (PathId(0), PathId(1));
        assert_eq!(turns, [(a, 2), (a, 2), (b, 3), (a, 2)]);
        let mut backlog = Backlog::of(20);
        let mut views = paths();
        Daps::default().plan(&mut Plan::new(Instant::ZERO, &mut views, &mut backlog));
        // Then all windows are full, and the second window of path 0 waits.
        assert_eq!(backlog.sent_on(), [0, 0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn a_schedule_outlives_the_backlog_that_began_it_but_not_its_paths() {
        let mut daps = Daps::default();
        let mut first = Backlog::of(5);
        daps.plan(&mut Plan::new(Instant::ZERO, &mut paths(), &mut first));
        assert_eq!(first.sent_on(), [0, 0, 0, 0, 1]);
        // Two more symbols are path 1's, then comes the third window of path 0.
        let mut second = Backlog::of(3);
        daps.plan(&mut Plan::new(Instant::ZERO, &mut paths(), &mut second));
        assert_eq!(second.sent_on(), [1, 1, 0]);
        let mut third = Backlog::of(2);
        daps.plan(&mut Plan::new(Instant::ZERO, &mut paths()[..1], &mut third));
        assert_eq!(third.sent_on(), [0, 0]);
    }
}
