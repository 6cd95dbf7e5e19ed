//! `brim`: the cheapest path to the brim and no further, then the next. Ours, after the idea of
//! ACPF (Pieska et al., ANRW 2021).
//!
//! ACPF infers from what waits at the sender that the cheap path's bottleneck buffer fills, and
//! moves a fraction by and by. But the path says so itself: packets arrive later than they could.
//! So a path in whose buffer packets stand is at once limited to a little more than its
//! bandwidth-delay product, and otherwise to its window; there is no state that could be wrong for
//! long. Only when all paths are limited may the one with the least standing queue take what its
//! window allows: then the sender really wants more than all paths carry, and what is inside the
//! tunnel has to see a loss or a delay. The sooner, the better: where many packets had to wait
//! first, NewReno before a queue of 50 packets overflowed that one, and got 75 % of what it gets
//! now.

mod standing;

use alloc::boxed::Box;
use alloc::vec::Vec;

use marline_base::Instant;

use super::acpf::queue;
use super::entry::{Entry, PACKET_WISE};
use super::{Choice, Feedback, OptionSpec, Outcome, PathView, Plan, Scheduler};
use crate::wire::PathId;
use standing::Standing;

/// Bandwidth-delay products that a limited path may have in flight.
const BRIM: f64 = 1.1;
/// Packets beyond that, so that short paths and late acknowledgements starve nothing.
const SPARE_PACKETS: f64 = 4.0;

pub(super) const ENTRY: Entry = Entry {
    name: "brim",
    publication: "Marline; after Pieska et al., ANRW 2021",
    help: "the cheapest path until packets stand in its buffer, then the next",
    kinds: PACKET_WISE,
    options: &[OptionSpec::number(
        "threshold",
        0.0,
        (0.0, 10_000.0),
        "packets that must wait before buffers may fill after all",
    )],
    new,
};

fn new(choice: &Choice) -> Box<dyn Scheduler> {
    Box::new(Brim {
        threshold: choice.number("threshold"),
        standing: Vec::new(),
    })
}

#[derive(Debug)]
struct Brim {
    threshold: f64,
    /// What stands in each path's buffer, in order of path id.
    standing: Vec<(PathId, Standing)>,
}

impl Brim {
    fn find(&self, id: PathId) -> Result<usize, usize> {
        self.standing.binary_search_by_key(&id, |(id, _)| *id)
    }

    /// Bytes that a path may have in flight, and how long its standing queue is (µs).
    fn limit(&self, now: Instant, path: &PathView) -> (f64, u64) {
        let standing = self.find(path.id).ok().map(|i| &self.standing[i].1);
        let queue = standing.and_then(|s| s.queue(now)).unwrap_or(0);
        let limited = standing.is_some_and(|s| s.is_standing(now, path.min_rtt));
        if !limited {
            return (path.window as f64, queue);
        }
        let bandwidth = path.congestion.bandwidth.unwrap_or(path.rate);
        // Under jitter a controller may know better than the luckiest packet.
        let rtt = path.congestion.min_rtt.unwrap_or(path.min_rtt);
        let product = bandwidth.bytes_in(rtt) as f64;
        let spare = SPARE_PACKETS * f64::from(path.symbol);
        (BRIM * product + spare, queue)
    }
}

/// Is the path below `limit` bytes? By less than a packet it may be exceeded. An idle path always
/// is.
fn is_below(path: &PathView, limit: f64) -> bool {
    let used = path.in_flight + path.queued;
    path.has_room() && (used == 0 || (used as f64) < libm::floor(limit))
}

impl Scheduler for Brim {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        self.standing
            .retain(|(id, _)| plan.paths().iter().any(|p| p.id == *id));
        let now = plan.now();
        let limits = plan.paths().iter().map(|p| self.limit(now, p));
        let limits: Vec<(f64, u64)> = limits.collect();
        while plan.next_len().is_some() {
            let paths = || plan.paths().iter().enumerate();
            let below = paths().filter(|(i, p)| is_below(p, limits[*i].0));
            let cheapest = below.min_by_key(|(_, p)| (p.cost, p.srtt));
            let overflow = || {
                let open = paths().filter(|(_, p)| p.has_room());
                let much = queue(plan) > self.threshold;
                open.min_by_key(|(i, _)| limits[*i].1).filter(|_| much)
            };
            let Some((next, _)) = cheapest.or_else(overflow) else {
                return;
            };
            plan.send(next);
        }
    }

    fn minds_others(&self) -> bool {
        true
    }

    fn minds_cost(&self) -> bool {
        true
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        let (Outcome::Acked, Some(arrived_us)) = (feedback.outcome, feedback.arrived_us) else {
            return;
        };
        let index = self.find(feedback.path).unwrap_or_else(|index| {
            let standing = (feedback.path, Standing::default());
            self.standing.insert(index, standing);
            index
        });
        self.standing[index]
            .1
            .on_arrival(now, feedback.sent, arrived_us);
    }
}

#[cfg(test)]
mod tests;
