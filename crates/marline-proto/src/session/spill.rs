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

use super::flow::{Flow, HeldUp};
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
/// A copy over a dearer path must save this much: below it, delay is not noticed (ITU-T G.114
/// section 4: one-way delays up to 150 ms suit most uses).
const PAID: Duration = Duration::from_millis(150);
/// One over the part of a lifetime or deadline that may be spent on waiting for cheap paths. The
/// other thirds are for the way, and for sending once more what is lost.
const SHARE: u32 = 3;

/// How much longer a path that costs more than `cost` may be said to take.
pub(super) fn paid(path: &PathView, cost: u32) -> Duration {
    if path.cost > cost {
        PAID
    } else {
        Duration::ZERO
    }
}

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

    /// The views that a flow may have, in the session's scratch memory `chosen`; its [`Spill`] is
    /// kept in the flow.
    pub(super) fn choose(
        &self,
        now: Instant,
        flow: &mut Flow,
        views: &[PathView],
        credit: u64,
        chosen: &mut Vec<PathView>,
    ) {
        flow.spill = None;
        if flow.scheduler.minds_cost() {
            chosen.clear();
            chosen.extend_from_slice(views);
            return;
        }
        let mut first = None;
        for (i, &rank) in self.ranks.iter().enumerate() {
            chosen.clear();
            chosen.extend(views.iter().filter(|view| view.cost <= rank));
            let wait = wait(flow, credit, chosen);
            let first = *first.get_or_insert(wait);
            if i > 0 {
                flow.spill = Some(Spill {
                    cost: rank,
                    wait: first,
                });
            }
            if chosen.iter().any(|view| self.unfilled.contains(&view.id)) {
                return;
            }
            let served = match patience(now, flow, chosen) {
                Some(limit) => wait <= limit,
                None => !is_held_up(now, flow, rank, wait),
            };
            if served {
                return;
            }
        }
    }
}

/// How long the last byte that the flow has waiting would wait on these paths.
fn wait(flow: &Flow, credit: u64, paths: &[PathView]) -> Duration {
    let mut bytes = flow.queues.source_bytes();
    // What the peer does not take waits for the peer.
    if flow.has_backlog(1, credit) {
        bytes += flow.unsent(credit);
    }
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

/// How long what the flow has waiting may wait on these paths; `None` where that depends on how
/// long it goes on.
fn patience(now: Instant, flow: &Flow, paths: &[PathView]) -> Option<Duration> {
    let within = |limit: Duration| {
        let trips = paths.iter().map(|path| path.srtt);
        let trip = trips.min().unwrap_or(Duration::ZERO);
        // The way, and once more for what is lost.
        limit.saturating_sub(trip * 3 / 2).min(limit / SHARE)
    };
    match (&flow.send, flow.lifetime) {
        (SendHalf::Stream(_), _) => None,
        (SendHalf::Packets(_), Some(lifetime)) => Some(within(lifetime)),
        (SendHalf::Packets(_), None) => Some(DATAGRAM_WAIT),
        (SendHalf::Units(units), _) => Some(within(units.next_expiry()?.since(now))),
    }
}

/// Have the paths up to this cost held the flow up for too long, without a break? There was one
/// when it ran dry: little waited for longer than the little takes.
fn is_held_up(now: Instant, flow: &mut Flow, rank: u32, wait: Duration) -> bool {
    let low = (wait < HELD_UP).then_some(now);
    let Some(held) = flow.held_up.iter_mut().find(|held| held.cost == rank) else {
        if low.is_none() {
            let (cost, since) = (rank, now);
            flow.held_up.push(HeldUp { cost, since, low });
        }
        return false;
    };
    if held.low.is_some_and(|low| now.since(low) > HELD_UP) {
        flow.held_up.retain(|held| held.cost < rank);
        return false;
    }
    held.low = low.map(|now| held.low.unwrap_or(now));
    now.since(held.since) > STREAM_WAIT
}
