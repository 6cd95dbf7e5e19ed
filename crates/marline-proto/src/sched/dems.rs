//! Balanced subflow completion (Guo, Nikravesh, Mao, Qian and Sen, "Accelerating Multipath
//! Transport Through Balanced Subflow Completion", MobiCom 2017): DEMS.
//!
//! A chunk is done when its last path is done, so a chunk is divided such that all paths bring
//! their parts to the peer at the same moment, counting the difference of their delays (§3.2).
//! The quickest path works from the chunk's beginning and the slowest towards its end, and neither
//! waits for the other (§3.1).
//!
//! * DEMS sends the end backwards, so that the paths meet wherever they are. Here a path works
//!   forward from where its part begins, and what has not left is divided again every few
//!   milliseconds: what is left always is a chunk of its own, and it is done no later.
//! * A chunk is a unit ([`Plan::unit`]). A stream has none; its backlog is taken as one, up to the
//!   option `chunk`.
//! * Adaptive redundancy (§3.3): delays vary, so near the meeting point paths carry symbols of each
//!   other's parts. A path's last symbols, as many as it sends in a mean deviation of its round
//!   trip, are copied to the others, once all that is left of the chunk fits the windows, and at
//!   most the fraction `redundancy` of that. The session drops copies that come too late to leave.

use alloc::boxed::Box;
use alloc::vec::Vec;

use marline_base::{Duration, Instant};

use super::entry::{Entry, PACKET_WISE};
use super::revision::{REVISE, Revision};
use super::{Choice, OptionSpec, PathView, Plan, Scheduler};
use crate::flow::Symbol;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::count(
        "chunk",
        1_000_000,
        (1_000, 100_000_000),
        "bytes of a stream's backlog that are divided as one chunk",
    ),
    OptionSpec::number(
        "redundancy",
        0.1,
        (0.0, 1.0),
        "most copies, as a fraction of the end of a chunk that is in the windows",
    ),
];

#[derive(Debug)]
struct Dems {
    chunk: u64,
    redundancy: f64,
    revision: Revision,
}

pub(super) const ENTRY: Entry = Entry {
    name: "dems",
    publication: "Guo et al., MobiCom 2017",
    help: "divides a chunk so that all paths complete at once, with copies where they meet",
    kinds: PACKET_WISE,
    options: OPTIONS,
    new,
};

fn new(choice: &Choice) -> Box<dyn Scheduler> {
    Box::new(Dems::new(choice))
}

/// Indices of the paths with the bytes of `chunk` that fall to each, the quickest path first, so
/// that all are done at once: path i at s_i + b_i/r_i, s_i being when a symbol of no length would
/// arrive there now. Paths that would be late with nothing get nothing.
fn divide(paths: &[PathView], chunk: u64) -> Vec<(usize, f64)> {
    let mut order: Vec<(Duration, usize)> = Vec::with_capacity(paths.len());
    order.extend(paths.iter().enumerate().map(|(i, p)| (p.arrival(0), i)));
    order.sort_unstable();
    let rate = |i: usize| (paths[i].rate.as_bps() as f64 / 8.0).max(1.0);
    let (mut rates, mut weighted, mut end, mut used) = (0.0, 0.0, f64::MAX, 0);
    for &(start, i) in &order {
        let start = start.as_secs_f64();
        if start >= end {
            break;
        }
        rates += rate(i);
        weighted += rate(i) * start;
        end = (chunk as f64 + weighted) / rates;
        used += 1;
    }
    order.truncate(used);
    let part = |&(start, i): &(Duration, usize)| (i, rate(i) * (end - start.as_secs_f64()));
    order.iter().map(part).collect()
}

impl Dems {
    fn new(choice: &Choice) -> Self {
        Self {
            chunk: choice.number("chunk") as u64,
            redundancy: choice.number("redundancy"),
            revision: Revision::new(REVISE),
        }
    }

    /// Sends one chunk of `left` bytes.
    fn send_chunk(&mut self, plan: &mut Plan<'_>, mut left: u64) {
        let parts = divide(plan.paths(), left);
        let fits = |&(i, bytes): &(usize, f64)| bytes <= plan.paths()[i].room() as f64;
        let is_end = parts.iter().all(fits);
        let mut ends: Vec<(usize, Vec<Symbol>)> = Vec::new();
        let most = (left as f64 * self.redundancy) as u64;
        for (n, &(index, bytes)) in parts.iter().enumerate() {
            let last = n + 1 == parts.len();
            let (mut done, mut tail) = (0.0, Vec::new());
            while let Some(len) = plan.next_len() {
                let len = f64::from(len);
                if left == 0 || (!last && done + len / 2.0 > bytes) {
                    break;
                }
                if !plan.paths()[index].has_room() {
                    self.revision.queued_ahead();
                }
                let symbol = plan.send(index);
                done += len;
                left = left.saturating_sub(u64::from(symbol.len).max(1));
                if is_end {
                    tail.push(symbol);
                }
            }
            ends.push((index, tail));
        }
        if is_end && ends.len() > 1 {
            overlap(plan, &ends, most);
        }
    }
}

/// Copies each part's end, newest first, to the next quicker path (the quickest one's to the
/// slowest), at most `most` bytes in all.
fn overlap(plan: &mut Plan<'_>, ends: &[(usize, Vec<Symbol>)], most: u64) {
    let mut spent = 0;
    for (n, (index, symbols)) in ends.iter().enumerate() {
        let other = ends[(n + ends.len() - 1) % ends.len()].0;
        let path = &plan.paths()[*index];
        let mut doubtful = path.rate.bytes_in(path.rtt_var);
        for symbol in symbols.iter().rev() {
            let len = u64::from(symbol.len);
            if doubtful < len || spent + len > most || !plan.paths()[other].has_room() {
                break;
            }
            doubtful -= len;
            spent += len;
            plan.copy(other, *symbol);
        }
    }
}

impl Scheduler for Dems {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        self.revision.take_back(plan);
        while plan.next_len().is_some() && plan.paths().iter().any(PathView::has_room) {
            let left = match plan.unit() {
                Some(unit) => unit.len,
                None => plan.unsent().min(self.chunk),
            };
            self.send_chunk(plan, left.max(1));
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
    use marline_base::Rate;

    /// 1200 B take 1 ms on path 0 and 2 ms on path 1; forward delays are 10 and 15 ms.
    fn paths(deviation_ms: u64) -> [PathView; 2] {
        let mut paths = [path(0), path(1)];
        paths[0].rate = Rate::from_kbps(9_600);
        paths[0].min_rtt = Duration::from_millis(20);
        paths[1].rate = Rate::from_kbps(4_800);
        paths[1].min_rtt = Duration::from_millis(30);
        for path in &mut paths {
            path.rtt_var = Duration::from_millis(deviation_ms);
        }
        paths
    }

    fn dems(text: &str) -> Dems {
        Dems::new(&text.parse().unwrap())
    }

    #[test]
    fn both_paths_are_done_at_once() {
        // Ten symbols: (10 + 1·10 + 0.5·15)/1.5 = 18.33 ms; path 0 gets 8.33 of them, path 1 1.67.
        let parts = divide(&paths(0), 12_000);
        let symbols: Vec<_> = parts
            .iter()
            .map(|(i, b)| (*i, (b / 12.0).round()))
            .collect();
        assert_eq!(symbols, [(0, 833.0), (1, 167.0)]);
        // Five: path 0 alone is done after 15 ms, when path 1 would only begin to deliver.
        assert_eq!(divide(&paths(0), 6_000).len(), 1);
        let mut backlog = Backlog::of(10).in_units_of(10);
        dems("dems").plan(&mut Plan::new(Instant::ZERO, &mut paths(0), &mut backlog));
        assert_eq!(backlog.sent_on(), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert!(
            backlog.copied_to().is_empty(),
            "steady paths need no copies"
        );
    }

    #[test]
    fn each_unit_is_a_chunk_of_its_own() {
        // The first five symbols are done after 15 ms on path 0. Behind them the next five would
        // take until 20 ms there: (5 + 1·15 + 0.5·15)/1.5 = 18.33 ms gives path 0 3.33, path 1
        // 1.67.
        let mut backlog = Backlog::of(10).in_units_of(5);
        dems("dems").plan(&mut Plan::new(Instant::ZERO, &mut paths(0), &mut backlog));
        assert_eq!(backlog.sent_on(), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        // A stream's backlog is a chunk up to the size that is given: here four symbols.
        let mut backlog = Backlog::of(4);
        dems("dems:chunk=4800").plan(&mut Plan::new(Instant::ZERO, &mut paths(0), &mut backlog));
        assert_eq!(backlog.sent_on(), [0; 4]);
    }

    #[test]
    fn the_meeting_point_is_covered_as_far_as_delays_vary() {
        // In a deviation of 2 ms path 0 sends two symbols and path 1 one. Of ten symbols 30 % may
        // be copied: path 0's last two go to path 1, path 1's last one to path 0.
        let mut backlog = Backlog::of(10).in_units_of(10);
        let mut generous = dems("dems:redundancy=0.3");
        generous.plan(&mut Plan::new(Instant::ZERO, &mut paths(2), &mut backlog));
        assert_eq!(backlog.copied_to(), [1, 1, 0]);
        // With 10 % there is one copy.
        let mut backlog = Backlog::of(10).in_units_of(10);
        dems("dems").plan(&mut Plan::new(Instant::ZERO, &mut paths(2), &mut backlog));
        assert_eq!(backlog.copied_to(), [1]);
    }

    #[test]
    fn what_does_not_fit_the_windows_is_divided_anew() {
        let mut narrow = paths(2);
        narrow[0].window = 4 * 1_200;
        let mut backlog = Backlog::of(10).in_units_of(10);
        let mut dems = dems("dems");
        dems.plan(&mut Plan::new(Instant::ZERO, &mut narrow, &mut backlog));
        assert_eq!(backlog.sent_on(), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert!(backlog.copied_to().is_empty(), "not the end yet");
        assert_eq!(dems.wake_at(), Some(Instant::ZERO + REVISE));
    }
}
