//! S-EDPF whose packets arrive when a repair symbol brings them, if that is sooner: *decode-aware
//! lead*.
//!
//! Equation 9 fears a path whose packets may be late, and keeps what follows waiting for them: a
//! *lead* of the steady path's packets over the shaky one's, paid in delay. But a code repairs what
//! is late as it repairs what is lost. With one repair symbol in τ packets, everything is known as
//! soon as no more than one packet in τ has not arrived; so a path that carries a share f of the
//! packets may have a fraction 1/(τf) of its own late. What takes longer than that quantile of its
//! delay arrives with a repair symbol instead: the law of arrivals in equation 9 is cut there. With
//! τ = 4 over two equal paths one of which is shaky, this is the median, and nothing is held back;
//! without a code nothing is cut, and this is `s-edpf`.
//!
//! * Loss comes first: what repair symbols replace of it is not left for what is late.
//! * Several shaky paths share what is left, by how much their delays vary.
//! * Repair symbols that filled idle slots count like those that were due.
//! * A repair symbol that is late itself repairs nothing in time, so of paths that lose alike the
//!   steadiest one carries those that are due.
//! * On a path that keeps its order all this gains nothing: a late packet is late with all that
//!   follow. There, too, this is `s-edpf`.

use alloc::boxed::Box;

use smallvec::SmallVec;

use super::lanes::Lanes;
use super::{HORIZON, IDLE, Order, Ordered, Outlook, Variant, interval};
use crate::sched::registry::Entry;
use crate::sched::{Choice, Scheduler};
use crate::wire::FlowKind;

/// Packets that may be late for each repair symbol. With one, everything is known at the quantile;
/// the mean delay is least a little below it, because what is late arrives by itself, too.
const COUNTED: f64 = 1.25;

pub(crate) const ENTRY: Entry = Entry {
    name: "mend",
    publication: "Marline; after Garcia-Saavedra, Karzand and Leith, IEEE/ACM ToN 2018",
    help: "as s-edpf, but what a repair symbol brings sooner has arrived then",
    kinds: &[FlowKind::Stream, FlowKind::Packets],
    options: &[interval::OPTION, IDLE, HORIZON],
    new,
};

fn new(choice: &Choice) -> Box<dyn Scheduler> {
    Box::new(Ordered {
        order: Order::new(choice, true),
        variant: Mending,
    })
}

#[derive(Debug)]
struct Mending;

impl Variant for Mending {
    /// Cuts the laws of arrivals where repair symbols come sooner.
    fn prepare(&self, lanes: &mut Lanes<'_>, outlook: &Outlook<'_>) {
        let Some(tau) = outlook.tau else {
            return;
        };
        let of_all: f64 = outlook.shares.iter().sum();
        let of_sources: f64 = outlook.sources.iter().sum();
        let repairs = (of_all - of_sources).max(1.0 / f64::from(tau));
        let paths = outlook.paths.iter().zip(outlook.shares);
        let lost: f64 = paths.map(|(path, share)| path.loss * share).sum();
        let spare = (COUNTED * repairs - lost).max(0.0);
        let spreads: SmallVec<[f64; 4]> =
            (0..outlook.paths.len()).map(|q| lanes.spread(q)).collect();
        let weights = spreads.iter().zip(outlook.sources).enumerate();
        let scattered = weights.filter(|(q, _)| lanes.scatters(*q));
        let sum: f64 = scattered.map(|(_, (spread, share))| spread * share).sum();
        if sum <= 0.0 {
            return;
        }
        // The next repair symbol leaves up to an interval later.
        let soonest = lanes.quickest() + outlook.gap / repairs;
        for (q, spread) in spreads.iter().enumerate() {
            if !lanes.scatters(q) {
                continue;
            }
            lanes.mend(q, (spare * spread / sum).min(1.0), soonest);
        }
    }

    fn rank(&self, lanes: &Lanes<'_>, path: usize) -> f64 {
        match (0..lanes.len()).any(|q| lanes.scatters(q)) {
            true => -lanes.spread(path),
            false => lanes.spread(path),
        }
    }
}
