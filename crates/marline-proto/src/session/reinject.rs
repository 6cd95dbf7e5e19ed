//! What stands in the queue of a path that has become slow comes sooner by another: reinjection.
//!
//! Where a rate drops, acknowledgements go on to trickle in, so that nothing is silent and nothing
//! lost; but the last packet in the queue comes when all before it have been served. A packet is
//! late if it is not acknowledged by what was known when it left. Then the packets are copied that
//! another path would deliver sooner than this one does at its present pace, queues included on
//! either side, so that copies stop where they gain nothing.

use alloc::vec::Vec;

use marline_base::Instant;

use super::Session;
use super::again::Arrivals;
use super::rescue::MAX_RESCUE;
use super::spill::paid;
use crate::path::EmissionKind;
use crate::sched::PathView;

/// A copy must save the slow path's round trip divided by this: by as much the estimates of a
/// moment are off (`marline repro field misbehaving` beside `wifi-cell`).
const WORTH: u32 = 2;

impl Session {
    /// Packets are late on a path that still delivers some.
    pub(super) fn reinject(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        path.found_late(now);
        let (own, cost) = (path.id, path.cost.rank());
        let Some(pace) = path.slow() else {
            return;
        };
        let mut others: Vec<PathView> = self.view_usable().collect();
        let arrivals = Arrivals::by(now, &others);
        others.retain(|view| view.id != own);
        let path = &mut self.paths[index];
        let (back, gain) = (path.rtt.min() / 2, path.rtt.smoothed() / WORTH);
        // What the path holds takes this long: it carries none of the copies itself.
        let doubt = pace.time_for(path.in_flight());
        let mut ahead = 0;
        let symbols = path.ledger.rescue_where(MAX_RESCUE, |packet| {
            ahead += u64::from(packet.size);
            let here = pace.time_for(ahead).saturating_sub(back);
            let arrival = |view: &PathView| arrivals.after(view, packet.size) + paid(view, cost);
            let other = others.iter_mut().min_by_key(|view| arrival(view));
            let sooner = other.filter(|view| !packet.rescued && arrival(view) + gain < here);
            sooner
                .map(|view| view.queued += u64::from(packet.size))
                .is_some()
        });
        self.send_rescued(now, index, symbols, EmissionKind::Copy, doubt);
    }
}
