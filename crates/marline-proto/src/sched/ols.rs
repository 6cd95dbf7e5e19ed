//! OverLapped Scheduler (Xing et al., "A Low-Latency MPTCP Scheduler for Live Video Streaming in
//! Mobile Networks", IEEE TWC 2021): live streams without reordering.
//!
//! DEJA (Algorithm 1) sends each packet where it should arrive first and copies it to every path
//! whose arrival *interval* overlaps the first one's. TPA (Algorithm 2) allows only as many copies
//! as leave the target throughput to new packets.
//!
//! The options `deja=off` and `tpa=off` are the paper's "w/o-DEJA" and "w/o-TPA" (§VI-A).
//! Conventions where the paper is silent: an interval without jitter is a point, and a point
//! overlaps an interval that it lies inside of; the budget is refreshed when a window of bytes was
//! scheduled on the path since the last time.
//!
//! [`PathView::queued`] is the paper's qlen. Window, smoothed round-trip
//! time and the median deviation of the round trips that feedback shows give the interval (eq.
//! 1–3). The session drops a copy whose symbol is acknowledged before the copy leaves.

use alloc::boxed::Box;
use alloc::vec::Vec;

use marline_base::{Duration, Instant};

use super::entry::{Entry, PACKET_WISE};
use super::per_path::PerPath;
use super::{Choice, Feedback, OptionSpec, Outcome, PathView, Plan, Scheduler};
use crate::wire::PathId;

mod deviation;
pub(super) mod target;

use deviation::Deviation;
use target::Target;

pub(super) const ENTRY: Entry = Entry {
    name: "ols",
    publication: "Xing et al., IEEE TWC 2021",
    help: "live streams: copies where arrival intervals overlap, within the surplus",
    kinds: PACKET_WISE,
    options: &[
        OptionSpec::switch(
            "deja",
            true,
            "copies on paths whose arrival intervals overlap; off: the paper's w/o-DEJA",
        ),
        OptionSpec::switch(
            "tpa",
            true,
            "only as many copies as leave the target to new packets; off: the paper's w/o-TPA",
        ),
        target::OPTION,
    ],
    new,
};

fn new(choice: &Choice) -> Box<dyn Scheduler> {
    Box::new(Ols::new(choice))
}

/// What rounding may leave of a budget above a whole number of packets, in packets. A target is
/// whole bits per second.
const ROUNDING: f64 = 1e-3;

#[derive(Debug)]
struct Ols {
    /// Algorithm 1's copies.
    deja: bool,
    /// Algorithm 2's limit.
    tpa: bool,
    target: Target,
    paths: PerPath<Subflow>,
}

/// What the scheduler keeps of one path.
#[derive(Debug, Default)]
struct Subflow {
    /// Δ_j: median deviation of the round-trip times.
    jitter: Deviation,
    /// red_thp_j (bytes/s).
    redundant: f64,
    /// Bytes scheduled since `redundant` was calculated; `None` before the first.
    scheduled: Option<u64>,
}

/// T_j = (T(srtt), T(srtt + Δ)), in seconds from now.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    left: f64,
    right: f64,
}

impl Interval {
    /// Equation (2) at both ends.
    fn of(path: &PathView, len: u32, jitter: Duration) -> Self {
        let windows = (path.queued as f64 + f64::from(len)) / path.window.max(1) as f64;
        let srtt = path.srtt.as_secs_f64();
        Self {
            left: (windows + 0.5) * srtt,
            right: (windows + 0.5) * (srtt + jitter.as_secs_f64()),
        }
    }

    /// Does it overlap `first`, which begins no later? A point at its very beginning only touches
    /// it, so that of two paths alike it does not matter which is called the first.
    fn overlaps(&self, first: &Self) -> bool {
        let touches = self.left >= self.right && self.left <= first.left;
        self.left < first.right && !touches
    }
}

/// cwnd_j · MSS_j / srtt_j (bytes/s).
fn throughput(path: &PathView) -> f64 {
    path.window as f64 / path.srtt.as_secs_f64().max(1e-6)
}

impl Ols {
    fn new(choice: &Choice) -> Self {
        Self {
            deja: choice.switch("deja"),
            tpa: choice.switch("tpa"),
            target: Target::new(choice.number("target")),
            paths: PerPath::default(),
        }
    }

    fn subflow(&mut self, id: PathId) -> &mut Subflow {
        self.paths.of(id, Subflow::default)
    }

    /// Equation (3) for the path at `index`.
    fn budget(&self, paths: &[PathView], index: usize) -> f64 {
        let others = paths.iter().enumerate().filter(|(i, _)| *i != index);
        let others: f64 = others.map(|(_, p)| throughput(p)).sum();
        let reserved = (self.target.bytes_per_second() - others).max(0.0);
        (throughput(&paths[index]) - reserved).max(0.0)
    }

    /// Algorithm 2: may a redundant packet leave on the path at `index`?
    fn allows(&mut self, paths: &[PathView], index: usize, len: u32) -> bool {
        if !self.tpa {
            return true;
        }
        self.begin(paths, index);
        let path = &paths[index];
        let step = f64::from(len) / path.srtt.as_secs_f64().max(1e-6);
        let subflow = self.subflow(path.id);
        // Line 2: not all of the budget may go, so that of one of x steps ⌈x⌉ − 1 packets leave.
        let allowed = subflow.redundant - step > ROUNDING * step;
        if allowed {
            subflow.redundant -= step;
        }
        allowed
    }

    /// The budget exists from the first packet that is scheduled on the path, once the target is
    /// known.
    fn begin(&mut self, paths: &[PathView], index: usize) {
        if self.target.is_known() && self.subflow(paths[index].id).scheduled.is_none() {
            let budget = self.budget(paths, index);
            let subflow = self.subflow(paths[index].id);
            subflow.redundant = budget;
            subflow.scheduled = Some(0);
        }
    }

    /// Algorithm 2, lines 9 to 11: a packet was scheduled on the path at `index`.
    fn scheduled(&mut self, paths: &[PathView], index: usize, len: u32) {
        self.begin(paths, index);
        let window = paths[index].window;
        let subflow = self.subflow(paths[index].id);
        let Some(scheduled) = subflow.scheduled.map(|sum| sum + u64::from(len)) else {
            return;
        };
        subflow.scheduled = Some(scheduled);
        if scheduled >= window {
            let budget = self.budget(paths, index);
            let subflow = self.subflow(paths[index].id);
            subflow.redundant = budget;
            subflow.scheduled = Some(0);
        }
    }
}

impl Scheduler for Ols {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        self.target
            .observe(plan.now(), plan.needed_rate(), plan.unsent());
        while let Some(len) = plan.next_len() {
            // Algorithm 1, lines 1 to 3.
            if !plan.paths().iter().any(PathView::has_room) {
                return;
            }
            // Lines 4 to 8.
            let mut intervals = Vec::with_capacity(plan.paths().len());
            for path in plan.paths() {
                let jitter = self.subflow(path.id).jitter.median();
                intervals.push(Interval::of(path, len, jitter));
            }
            let order = intervals.iter().enumerate();
            let Some((first, _)) = order.min_by(|a, b| a.1.left.total_cmp(&b.1.left)) else {
                return;
            };
            let symbol = plan.send(first);
            self.target.sent(symbol.len);
            self.scheduled(plan.paths(), first, symbol.len);
            // Lines 10 to 14, as far as Algorithm 2 allows.
            for other in (0..intervals.len()).filter(|&i| i != first) {
                if self.deja
                    && intervals[other].overlaps(&intervals[first])
                    && self.allows(plan.paths(), other, symbol.len)
                {
                    plan.copy(other, symbol);
                    self.scheduled(plan.paths(), other, symbol.len);
                }
            }
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        if feedback.outcome == Outcome::Acked {
            let rtt = now.since(feedback.sent);
            self.subflow(feedback.path).jitter.sample(rtt);
        }
    }
}

#[cfg(test)]
mod tests;
