//! Adaptive cheapest path first (Pieska et al., "Adaptive Cheapest Path First Scheduling in a
//! Transport-Layer Multi-Path Tunnel Context", ANRW 2021).
//!
//! Strict priority fills the cheap path's bottleneck buffer before it touches the next path. That
//! makes the cheap path longer, and the connections inside the tunnel then never ask for more
//! than it carries (§3.1). Here a path takes no more than a fraction of its window, ideally its
//! bandwidth-delay product, as long as little waits in the scheduler's queue; the fraction grows
//! while much does (§3.2, Figure 2b). It is meant for BBR, whose window is about twice that
//! product (eq. 1).
//!
//! Two ways of moving the fraction are published: by every packet that is scheduled, path by path
//! ([`kernel`], §4.1), and every millisecond, for all paths at once ([`user`], §4.2).
//!
//! [`PathView::cost`] orders the paths;
//! [`PathView::congestion`] gives the window's gain and the phase
//! (PROBE_RTT freezes the fraction); [`Plan::unsent`] is the scheduler's
//! queue. The kernel's variant moves its fractions in `plan`, the user-space variant by `wake_at`.

mod kernel;
mod user;

use alloc::boxed::Box;

use marline_base::Instant;

use super::entry::{Entry, PACKET_WISE};
use super::{Choice, OptionSpec, PathView, Plan, Scheduler};
use kernel::Kernel;
use user::User;

/// Figure 2b: RAW_INC.
const RAW_STEP: f64 = 0.05;
/// Figure 2b: MAX_FRAC.
const MOST: f64 = 1.0;

pub(super) const ENTRY: Entry = Entry {
    name: "acpf",
    publication: "Pieska et al., ANRW 2021",
    help: "the cheapest path, up to about its bandwidth-delay product while little waits",
    kinds: PACKET_WISE,
    options: &[
        OptionSpec::switch(
            "kernel",
            false,
            "move the fraction with every packet and path by path, as in the kernel, not every \
             millisecond",
        ),
        OptionSpec::number(
            "least",
            0.47,
            (0.05, 1.0),
            "smallest fraction of a window that a path may use",
        ),
        OptionSpec::number(
            "threshold",
            10.0,
            (0.0, 10_000.0),
            "packets that may wait before the fraction grows",
        ),
    ],
    new,
};

fn new(choice: &Choice) -> Box<dyn Scheduler> {
    let bounds = Bounds {
        least: choice.number("least"),
        threshold: choice.number("threshold"),
    };
    Box::new(Acpf {
        choice: *choice,
        fractions: match choice.switch("kernel") {
            true => Fractions::Kernel(Kernel::new(bounds)),
            false => Fractions::User(User::new(bounds)),
        },
        wake_at: None,
    })
}

/// Figure 2b: MIN_FRAC and QUEUE_SIZE_THRESHOLD.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least: f64,
    threshold: f64,
}

impl Bounds {
    /// Figure 2b: does a queue of this length make the fraction grow? One of just the threshold
    /// does not.
    fn is_long(&self, queue: f64) -> bool {
        queue > self.threshold
    }

    fn grown(&self, fraction: f64, step: f64) -> f64 {
        (fraction + step).min(MOST)
    }

    fn shrunk(&self, fraction: f64, step: f64) -> f64 {
        (fraction - step).max(self.least)
    }
}

/// How the fractions of the windows move.
#[derive(Clone, Debug)]
enum Fractions {
    Kernel(Kernel),
    User(User),
}

impl Fractions {
    /// Time has passed; `queue` packets wait now.
    fn on_time(&mut self, now: Instant, queue: f64) {
        if let Fractions::User(user) = self {
            user.on_time(now, queue);
        }
    }

    /// A packet was scheduled; `queue` packets wait behind it.
    fn on_scheduled(&mut self, paths: &[PathView], queue: f64) {
        if let Fractions::Kernel(kernel) = self {
            kernel.on_scheduled(paths, queue);
        }
    }

    /// The fraction of its window that a path may use.
    fn of(&self, path: &PathView) -> f64 {
        match self {
            Fractions::Kernel(kernel) => kernel.of(path),
            Fractions::User(user) => user.fraction,
        }
    }

    /// When [`Self::on_time`] must be called next.
    fn wake_at(&self) -> Option<Instant> {
        match self {
            Fractions::Kernel(_) => None,
            Fractions::User(user) => user.wake_at(),
        }
    }
}

#[derive(Debug)]
struct Acpf {
    choice: Choice,
    /// The flow's own where it is alone, as in tests; else the session's while it plans.
    fractions: Fractions,
    wake_at: Option<Instant>,
}

/// Packets of full size that wait in the scheduler's queue, which is the session's: the tunnel of
/// the paper has one queue. By its own queue alone, a flow in which little waits would keep to a
/// small fraction of windows that another one fills, and never send.
pub(super) fn queue(plan: &Plan<'_>) -> f64 {
    let symbol = plan.paths().iter().map(|p| p.symbol).min().unwrap_or(1);
    plan.waiting() as f64 / f64::from(symbol.max(1))
}

/// May the path take a packet if no more than `live` bytes of its window are to be used (§3.1)?
/// The packet has to fit, as into the window itself. An idle path always may: a live window is
/// never below one packet.
fn takes(path: &PathView, live: f64) -> bool {
    let used = path.in_flight + path.queued;
    // Half a byte is what steps of the fraction may be off by rounding.
    let fits = (used + u64::from(path.symbol)) as f64 <= live + 0.5;
    path.has_room() && (used == 0 || fits)
}

impl Acpf {
    fn send(&mut self, plan: &mut Plan<'_>) {
        self.fractions.on_time(plan.now(), queue(plan));
        while plan.next_len().is_some() {
            let live = |p: &PathView| self.fractions.of(p) * p.window as f64;
            let open = plan.paths().iter().enumerate();
            let open = open.filter(|(_, p)| takes(p, live(p)));
            let Some((cheapest, _)) = open.min_by_key(|(_, p)| (p.cost, p.srtt)) else {
                break;
            };
            plan.send(cheapest);
            self.fractions.on_scheduled(plan.paths(), queue(plan));
        }
        // What is left waits for the next millisecond.
        self.fractions.on_time(plan.now(), queue(plan));
    }
}

impl Scheduler for Acpf {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        plan.exchange(&self.choice, &mut self.fractions);
        self.send(plan);
        self.wake_at = self.fractions.wake_at();
        plan.exchange(&self.choice, &mut self.fractions);
    }

    fn minds_others(&self) -> bool {
        true
    }

    fn minds_cost(&self) -> bool {
        true
    }

    fn wake_at(&self) -> Option<Instant> {
        self.wake_at
    }
}

#[cfg(test)]
mod tests;
