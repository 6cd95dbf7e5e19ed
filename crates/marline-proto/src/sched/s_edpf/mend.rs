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
//! without a code nothing is cut.
//!
//! * Loss comes first: what repair symbols replace of it is not left for what is late.
//! * Several shaky paths share what is left, by how much their delays vary.
//! * Repair symbols that filled idle slots count like those that were due. On a shaky path they are
//!   late as often as source symbols, so they are among the share f.
//! * Of paths that lose alike, the shakiest one carries the repair symbols that are due: as late as
//!   a source symbol, they are no worse for it, and the steady path is left to source symbols,
//!   which everything that follows waits for.
//! * On a path that keeps its order all this gains nothing: a late packet is late with all that
//!   follow. There nothing is cut, either.
//!
//! Without repair symbols a stream waits for whatever is late: a path that is quicker in the mean,
//! and slower once in a hundred packets, is the worse one. So where no code runs, arrivals are
//! compared by the 99th percentile of the latest one instead of its mean.
//!
//! The default of streams, so redundancy is not spent where it gains nothing, which also displaces
//! what others send:
//!
//! * *A backlog is no time for a code.* When what waits at the sender lasts several round trips, a
//!   round trip less at the receiver is little to the application, and repair symbols cost goodput.
//!   Nor is the latest packet in a hundred worth much then.
//! * *An idle slot is worth a repair symbol when something is likely enough to be missing*: when of
//!   the symbols that left more may have been lost than the repair symbols after them bring back,
//!   by the loss of the paths that they took; and only if sending again, a round trip later, is not
//!   as quick: repair symbols over a path that is far away are for its own losses, not for those of
//!   a quick one. Where packets overtake, what is late is missing as well, and every idle slot is
//!   filled.
//! * *The end of what was written gets one repair symbol*: nothing follows that would tell of its
//!   loss.
//!
//! A τ that was chosen by hand is kept.
//!
//! In short, a packet of a stream goes where the latest of all packets is there soonest almost
//! certainly: at the 99th percentile, because a stream waits for its late packets; and by the mean
//! where repair symbols are sent, and where much waits, so that one late packet does not matter.
//! Redundancy is spent only where something is lost and little waits: symbols that left and are
//! expected to have lost a twentieth of one earn a repair symbol in a slot that nothing else needs;
//! a backlog gets none.

use alloc::boxed::Box;

use marline_base::{Duration, Instant, nanos_f64};
use smallvec::SmallVec;

use super::lanes::{Lanes, Sight};
use super::repairs::{AT_RISK, Risk, is_sooner};
use super::{HORIZON, IDLE, Order, Ordered, Outlook, Variant, interval};
use crate::sched::entry::Entry;
use crate::sched::{Choice, PathView, Scheduler};
use crate::wire::FlowKind;

/// [`AT_RISK`] at the end of what was written.
const AT_RISK_LAST: f64 = 0.002;
/// That end has come when nothing was sent for this long, or for [`PAUSE_GAPS`] of the flow's gaps.
const PAUSE: Duration = Duration::from_millis(2);
const PAUSE_GAPS: f64 = 4.0;
/// What waits is a backlog if it lasts longer than this, or is as much as this (bytes), which a
/// stream takes from its writer however quick the paths are; and longer than so many round trips.
const LONG_WAIT: Duration = Duration::from_millis(150);
const MUCH: u64 = 192 << 10;
const LONG_WAIT_TRIPS: u32 = 3;

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
        order: Order::new(choice, Sight::SeenIfScattered),
        variant: Mending,
    })
}

#[derive(Debug)]
struct Mending;

impl Variant for Mending {
    fn prepare(&mut self, lanes: &mut Lanes<'_>, paths: &[PathView], outlook: &Outlook<'_>) {
        if outlook.tau.is_none() && !is_backlog(paths, outlook) {
            lanes.compare_late();
        }
        cut(lanes, paths, outlook);
    }

    fn is_coding_vain(&self, paths: &[PathView], outlook: &Outlook<'_>) -> bool {
        is_backlog(paths, outlook)
    }

    fn fills(
        &self,
        lanes: &Lanes<'_>,
        paths: &[PathView],
        outlook: &Outlook<'_>,
        (q, risk): (usize, &Risk),
    ) -> Option<Instant> {
        let now = outlook.now;
        if lanes.any_scatters() && outlook.tau.is_some() {
            return Some(now);
        }
        let all: f64 = outlook.sources.iter().sum();
        let least = shortest_trip(paths);
        let lost = paths.iter().zip(outlook.sources);
        let lost = lost.filter(|(path, _)| is_sooner(paths[q].srtt, path.srtt, least));
        let lost: f64 = lost.map(|(path, share)| path.loss * share).sum();
        let interval_us = AT_RISK * all / lost.max(1e-9) * outlook.gap;
        let again_us = nanos_f64(least) / 1e3;
        if risk.missing() >= AT_RISK && interval_us < again_us / 2.0 {
            return Some(now);
        }
        let gaps = Duration::from_nanos((1e3 * PAUSE_GAPS * outlook.gap) as u64);
        (risk.missing() >= AT_RISK_LAST).then(|| (risk.last + PAUSE.max(gaps)).max(now))
    }
}

/// Cuts the laws of arrivals where repair symbols come sooner.
fn cut(lanes: &mut Lanes<'_>, paths: &[PathView], outlook: &Outlook<'_>) {
    let Some(tau) = outlook.tau else {
        return;
    };
    let (repairs, spare) = budget(paths, outlook, tau);
    let spreads: SmallVec<[f64; 4]> = (0..paths.len()).map(|q| lanes.spread(q)).collect();
    let weights = spreads.iter().zip(outlook.shares).enumerate();
    let scattered = weights.filter(|(q, _)| lanes.scatters(*q));
    let sum: f64 = scattered.map(|(_, (spread, share))| spread * share).sum();
    if sum <= 0.0 {
        return;
    }
    // The next repair symbol leaves up to an interval later.
    let soonest = lanes.quickest() + outlook.gap / repairs;
    for (q, spread) in spreads.iter().enumerate() {
        if lanes.scatters(q) {
            lanes.mend(q, (spare * spread / sum).min(1.0), soonest);
        }
    }
}

/// The share of repair symbols among all packets, and what of it the paths' loss leaves over.
fn budget(paths: &[PathView], outlook: &Outlook<'_>, tau: u32) -> (f64, f64) {
    let sent: f64 = outlook.repairs.iter().sum();
    let repairs = sent.max(1.0 / f64::from(tau));
    let all = paths.iter().zip(outlook.shares);
    let lost: f64 = all.map(|(path, share)| path.loss * share).sum();
    (repairs, (repairs - lost).max(0.0))
}

/// Does so much wait that a round trip more or less is little?
fn is_backlog(paths: &[PathView], outlook: &Outlook<'_>) -> bool {
    let rate: f64 = paths.iter().map(|p| p.rate.as_bps() as f64).sum();
    let bytes_in = |wait: Duration| rate * wait.as_secs_f64() / 8.0;
    let trips = bytes_in(shortest_trip(paths) * LONG_WAIT_TRIPS);
    outlook.waiting as f64 > trips.max(bytes_in(LONG_WAIT).min(MUCH as f64))
}

fn shortest_trip(paths: &[PathView]) -> Duration {
    paths.iter().map(|p| p.srtt).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::path;
    use marline_base::Rate;

    /// Two paths that carry as much, of which nothing else is known; so much waits.
    fn outlook(waiting: u64) -> Outlook<'static> {
        Outlook {
            now: Instant::ZERO,
            shares: &[0.5, 0.5],
            sources: &[0.5, 0.5],
            repairs: &[0.0, 0.0],
            tau: Some(9),
            gap: 600.0,
            waiting,
        }
    }

    #[test]
    fn a_code_is_in_vain_while_much_waits() {
        let paths = [path(0), path(1)].map(|path| PathView {
            rate: Rate::from_mbps(10),
            srtt: Duration::from_millis(80),
            ..path
        });
        let is_vain = |waiting| Mending.is_coding_vain(&paths, &outlook(waiting));
        // Three round trips at 20 Mb/s.
        assert!(!is_vain(599_000));
        assert!(is_vain(601_000));
    }

    #[test]
    fn rates_without_bound_hold_nothing_up() {
        let paths = [path(0), path(1)].map(|path| PathView {
            rate: Rate::from_bps(u64::MAX),
            ..path
        });
        assert!(!Mending.is_coding_vain(&paths, &outlook(u64::MAX >> 8)));
    }

    #[test]
    fn what_is_sent_again_is_no_repair_symbol() {
        let mut paths = [path(0), path(1)];
        paths[0].loss = 0.1;
        // A tenth is sent again or copied.
        let outlook = Outlook {
            sources: &[0.4, 0.4],
            repairs: &[0.1, 0.0],
            ..outlook(0)
        };
        let (repairs, spare) = budget(&paths, &outlook, 16);
        assert_eq!(repairs, 0.1);
        assert!((spare - 0.05).abs() < 1e-12, "{spare}");
        // What is due counts before it was sent.
        assert_eq!(budget(&paths, &outlook, 8).0, 0.125);
    }
}
