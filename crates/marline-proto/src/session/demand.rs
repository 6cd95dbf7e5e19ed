//! What live streams need of paths whose capacity nobody knows yet.
//!
//! Windows and rates are sought from a first guess, which is too little for a stream of some Mb/s
//! over a path of 160 ms, and too much for one that carries hardly a megabit. A stream's rate is
//! known long before, from its application or from its first moments. So each path of unknown
//! capacity learns its share of that.
//!
//! Each path of unknown capacity is given half as much again as its share of the rate. `bbr-gentle`
//! begins with that instead of 2 Mb/s. The window of a path that was never filled counts for no
//! more rate than what was asked, or a quarter more than what the path carried: the window doubles
//! although the stream uses only a part of it. While the capacity is sought, only a queue shows it:
//! a rate that the window limited says only what the window was.

use marline_base::{Instant, Rate};

use super::Session;
use crate::congestion::Live;
use crate::path::{Path, PathState};
use crate::wire::FlowId;

/// So many times a share is asked for, since what waited until it was known has to leave, too.
const HEADROOM: f64 = 1.5;

impl Session {
    /// Tells paths whether live streams go beside what fills every window: that decides how long a
    /// queue may be.
    pub(super) fn set_live(&mut self) {
        let beside = self.share.iter().any(|id| !self.watches.has(id));
        let live = match (
            beside,
            self.watches.next_look().is_none(),
            self.watches.is_empty(),
        ) {
            (false, ..) | (_, _, true) => Live::Absent,
            (true, true, false) => Live::Received,
            (true, false, false) => Live::Sent,
        };
        for path in &mut *self.paths {
            path.set_live(live);
        }
    }

    /// The flow has something to send again. If it is no live stream, others may wait behind it.
    pub(super) fn on_active(&mut self, id: FlowId) {
        if !self.watches.is_empty() && !self.watches.has(id) {
            self.set_live();
        }
    }

    /// Tells paths of unknown capacity what is needed of them.
    pub(super) fn tell_demand(&mut self, now: Instant) {
        self.set_live();
        if self.paths.iter().all(|p| !is_unknown(p) && !p.is_asked()) {
            return;
        }
        let needs = self.watches.iter().filter_map(|(id, watch)| {
            let written = self.flows.get(id)?.counters.written_bytes;
            watch.needs(now, written)
        });
        let need = needs.sum::<Rate>();
        let ask = (need > Rate::ZERO).then(|| self.share_of(need).scaled(HEADROOM));
        for path in &mut *self.paths {
            match ask.filter(|_| is_unknown(path)) {
                // What is not needed now may be when another path fails.
                Some(Rate::ZERO) => {}
                Some(rate) => path.ask(now, rate),
                None => path.ask_no_more(),
            }
        }
        self.timers.wake();
    }

    fn share_of(&self, need: Rate) -> Rate {
        let usable = || self.paths.iter().filter(|path| may_carry(path));
        let known = usable().filter(|path| !is_unknown(path));
        let carried = known.map(Path::rate).sum();
        let unknown = usable().filter(|path| is_unknown(path)).count();
        share(need, carried, unknown as u64, usable().count() as u64)
    }
}

/// What is needed of each `unknown` path: what others are not known to carry, but no more than if
/// `all` carried the same.
fn share(need: Rate, carried: Rate, unknown: u64, all: u64) -> Rate {
    let left = need.as_bps().saturating_sub(carried.as_bps());
    let even = need.as_bps() / all.max(1);
    Rate::from_bps(even.min(left / unknown.max(1)))
}

fn may_carry(path: &Path) -> bool {
    matches!(path.state(), PathState::Validating | PathState::Active)
}

fn is_unknown(path: &Path) -> bool {
    may_carry(path) && !path.was_filled()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_what_others_do_not_carry() {
        let share = |need, carried, unknown, all| {
            let [need, carried] = [need, carried].map(Rate::from_mbps);
            share(need, carried, unknown, all).as_mbps_f64()
        };
        assert_eq!(share(10, 0, 2, 2), 5.0);
        // Of one path is known what it carries: the other one brings the rest, or as much.
        assert_eq!(share(10, 6, 1, 2), 4.0);
        assert_eq!(share(10, 1, 1, 2), 5.0);
        assert_eq!(share(12, 6, 2, 3), 3.0);
        assert_eq!(share(10, 12, 1, 2), 0.0);
        assert_eq!(share(10, 0, 0, 0), 10.0);
    }
}
