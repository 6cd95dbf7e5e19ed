//! What stands in the queue of a path that has become slow comes sooner by another: reinjection.
//!
//! Where a rate drops, acknowledgements go on to trickle in, so that nothing is silent and nothing
//! lost; but the last packet in the queue comes when all before it have been served. A packet is
//! late if it is not acknowledged by what was known when it left. Then those are copied that another
//! path would deliver sooner than this one does at its present pace, queues included on either
//! side, so that copies stop where they gain nothing.

use alloc::vec::Vec;

use marline_base::{Duration, Instant};

use super::Session;
use crate::path::EmissionKind;
use crate::sched::PathView;

/// A copy must save this part of the slow path's round trip: estimates are no better.
const WORTH: u32 = 2;
/// Longer than any path takes: the slow path itself carries no copies.
const NEVER: Duration = Duration::from_secs(3_600);

impl Session {
    /// Packets are late on a path that still delivers some.
    pub(super) fn reinject(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        path.found_late(now);
        let own = path.id;
        let Some(pace) = path.slow() else {
            return;
        };
        let mut others: Vec<PathView> = self.views();
        others.retain(|view| view.id != own);
        let path = &self.paths[index];
        let (back, gain) = (path.rtt.min() / 2, path.rtt.smoothed() / WORTH);
        let (mut ahead, mut first, mut count) = (0, None, 0);
        for packet in path.ledger.open_packets() {
            ahead += u64::from(packet.size);
            if packet.rescued {
                continue;
            }
            let arrival = |view: &PathView| view.arrival(packet.size);
            let Some(other) = others.iter_mut().min_by_key(|view| arrival(view)) else {
                return;
            };
            let here = pace.time_for(ahead).saturating_sub(back);
            if arrival(other) + gain < here {
                first.get_or_insert(packet.sent);
                count += 1;
                other.queued += u64::from(packet.size);
            } else if first.is_some() {
                break;
            }
        }
        if let Some(first) = first {
            let symbols = self.paths[index].ledger.rescue_since(first, count);
            self.send_rescued(index, symbols, EmissionKind::Copy, NEVER);
        }
    }
}
