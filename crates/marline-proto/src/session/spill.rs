//! A dear path is for what the cheaper ones do not carry in time.
//!
//! Whoever gives a path a cost pays for its bytes. So the scheduler of a flow sees such a path only
//! while the cheaper ones would hold up for too long what waits at the sender: what is too long
//! follows from the flow. The rule holds for every kind of flow and in both directions. A cheaper
//! path that goes dark is no path that may be used, so that the next dearer ones take over at once.
//!
//! Schedulers that [mind cost](crate::sched::Scheduler::minds_cost) decide for themselves.

use alloc::vec::Vec;

use marline_base::{Duration, Instant, Rate};
use smallvec::SmallVec;

use super::flow::Flow;
use crate::flow::SendHalf;
use crate::path::Path;
use crate::sched::PathView;
use crate::stats::Spill;
use crate::wire::PathId;

/// A stream may be held up for this long before it is worth money. A player fetches segments of six
/// seconds at full speed (HLS Authoring Specification for Apple Devices, rule 7.5), and pauses: as
/// long as each takes no longer than it plays, the cheaper paths carry it in time.
const STREAM_WAIT: Duration = Duration::from_secs(6);
/// It is held up while this much waits: more than a writer's piece of 64 KiB takes at 30 Mb/s, less
/// than a window of credit takes at 1 Gb/s.
const HELD_UP: Duration = Duration::from_millis(20);
/// The same of datagrams that have no lifetime: a worst-case round trip, as of CoDel's interval
/// (RFC 8289 section 4.3).
const DATAGRAM_WAIT: Duration = Duration::from_millis(100);
/// One over the part of a lifetime or deadline that may be spent on waiting for cheap paths. The
/// rest is for the way, and for sending once more what is lost.
const SHARE: u32 = 3;

/// What the paths of a session cost, for one pass over its flows.
#[derive(Debug)]
pub(super) struct Costs {
    /// All cost ranks, ascending.
    ranks: SmallVec<[u32; 4]>,
    /// Paths that never were full: nobody knows how much they carry.
    unfilled: SmallVec<[PathId; 4]>,
}

impl Costs {
    /// `None` where all paths cost the same.
    pub(super) fn of(views: &[PathView], paths: &[Path]) -> Option<Self> {
        let first = views.first()?.cost;
        if views.iter().all(|view| view.cost == first) {
            return None;
        }
        let mut ranks: SmallVec<[u32; 4]> = views.iter().map(|view| view.cost).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let unfilled = paths.iter().filter(|path| !path.was_filled());
        let unfilled = unfilled.map(|path| path.id).collect();
        Some(Self { ranks, unfilled })
    }

    /// The views that a flow may have, in the session's scratch memory `chosen`; its
    /// [`Spill`] is kept in the flow.
    pub(super) fn choose(
        &self,
        now: Instant,
        flow: &mut Flow,
        views: &[PathView],
        credit: u64,
        chosen: &mut Vec<PathView>,
    ) {
        chosen.clear();
        flow.spill = None;
        if flow.scheduler.minds_cost() {
            chosen.extend_from_slice(views);
            return;
        }
        for (i, ranks) in self.ranks.windows(2).enumerate() {
            chosen.clear();
            chosen.extend(views.iter().filter(|view| view.cost <= ranks[0]));
            if chosen.iter().any(|view| self.unfilled.contains(&view.id)) {
                return;
            }
            let wait = wait(flow, credit, chosen);
            if is_served(now, flow, chosen, wait, i == 0) {
                return;
            }
            let cost = ranks[1];
            flow.spill = Some(Spill { cost, wait });
        }
        chosen.clear();
        chosen.extend_from_slice(views);
    }
}

/// How long the last byte that the flow has waiting would wait on these paths.
fn wait(flow: &Flow, credit: u64, paths: &[PathView]) -> Duration {
    // What the peer does not take waits for the peer.
    let mut bytes = flow.unsent(credit) + flow.queues.source_bytes();
    let mut rate = 0.0;
    for path in paths {
        let standing = path
            .in_flight
            .saturating_sub(path.rate.bytes_in(path.min_rtt));
        bytes += standing + path.queued.saturating_sub(path.queued_own);
        rate += path.rate.as_bps() as f64 * (1.0 - path.loss).max(0.0);
    }
    Rate::from_bps(rate as u64)
        .max(Rate::from_bps(1))
        .time_for(bytes)
        .min(Duration::from_secs(3_600))
}

/// Do these paths, the cheapest or others with them, carry in time what the flow has waiting?
fn is_served(
    now: Instant,
    flow: &mut Flow,
    paths: &[PathView],
    wait: Duration,
    are_cheapest: bool,
) -> bool {
    let within = |limit: Duration| {
        let trips = paths.iter().map(|path| path.srtt);
        let trip = trips.min().unwrap_or(Duration::ZERO);
        // The way, and once more for what is lost.
        let left = limit.saturating_sub(trip * 3 / 2);
        wait <= left.min(limit / SHARE)
    };
    match (&flow.send, flow.lifetime) {
        (SendHalf::Stream(_), _) if wait < HELD_UP => {
            if are_cheapest {
                flow.held_up = None;
            }
            true
        }
        (SendHalf::Stream(_), _) => now.since(*flow.held_up.get_or_insert(now)) <= STREAM_WAIT,
        (SendHalf::Packets(_), Some(lifetime)) => within(lifetime),
        (SendHalf::Packets(_), None) => wait <= DATAGRAM_WAIT,
        (SendHalf::Units(units), _) => match units.next_expiry() {
            Some(deadline) => within(deadline.since(now)),
            None => wait <= STREAM_WAIT,
        },
    }
}
