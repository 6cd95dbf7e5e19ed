//! Warming up: a path that never carried load cannot take a load over.
//!
//! Its window is still the initial one, and slow start at the moment of a handover costs several
//! round trips. So a path whose capacity is unknown gets copies of a part of what is sent elsewhere
//! until its window would carry the present load twice, or until the copies have filled it and its
//! capacity is known. A window grows by what arrives, so that takes as many bytes as such a window
//! has: if as many copies did not do it, something else holds the window back, such as a scheduler
//! that never fills the path. So it costs that much once in a path's life, and nothing of what the
//! load needs. A dear path stays cold: its bytes are paid for.

use marline_base::{Duration, Instant, Rate};

use super::Session;
use crate::flow::{Assigned, Symbol};
use crate::path::{EmissionKind, Path, PathState};
use crate::wire::{FlowId, PathId};

/// Time over which the load is counted: two or three frames of video.
const SPAN: Duration = Duration::from_millis(100);
/// A taker of the load gets it on top of what it must repair.
const HEADROOM: u64 = 2;
/// One symbol in this many is copied at first, half as few after half of the copies, and all after
/// three quarters. All of them at once would be the whole load once more: on links that carry
/// little more than that, a queue of tens of milliseconds before anybody sees it grow.
const EVERY: u64 = 4;

/// Rate at which flows send fresh data, all paths together.
#[derive(Debug, Default)]
pub(super) struct Load {
    since: Instant,
    bytes: u64,
    rate: Rate,
}

impl Load {
    fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.bytes += bytes;
        let span = now.since(self.since);
        if span >= SPAN {
            self.rate = Rate::from_bytes_over(self.bytes, span);
            self.bytes = 0;
            self.since = now;
        }
    }
}

impl Session {
    /// A fresh symbol left on a path: copy it to paths that have to be warmed up.
    pub(super) fn warm_up(&mut self, now: Instant, sent_on: PathId, id: FlowId, symbol: Symbol) {
        self.load.on_sent(now, u64::from(symbol.len));
        let rate = self.load.rate;
        let is_cold = |p: &Path| p.id != sent_on && !p.was_filled();
        if !self.paths.iter().any(is_cold) {
            return;
        }
        let active = |p: &&Path| p.state() == PathState::Active;
        let costs = self.paths.iter().filter(active).map(|p| p.cost.rank());
        let least = costs.min().unwrap_or(0);
        let cold = |p: &&Path| is_cold(p) && p.cost.rank() == least;
        let Some(id_cold) = self.paths.iter().filter(active).find(cold).map(|p| p.id) else {
            return;
        };
        let waiting = self.queued_on(id_cold);
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        if let Some(path) = self.paths.iter_mut().find(|p| p.id == id_cold) {
            let window = path.controller.window();
            let needed = HEADROOM * rate.bytes_in(path.rtt.smoothed());
            let taken = path.in_flight() + waiting;
            let len = u64::from(symbol.len);
            path.passed += 1;
            let every = match 4 * path.warmed / needed.max(1) {
                0 | 1 => EVERY,
                2 => EVERY / 2,
                _ => 1,
            };
            let is_turn = path.passed % every == 0;
            if is_turn && window < needed && path.warmed < needed && taken + len <= window {
                path.warmed += len;
                let kind = EmissionKind::Copy;
                flow.queues.push(path.id, Assigned { symbol, kind });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_the_rate_of_the_last_whole_span() {
        let mut load = Load::default();
        for n in 1..=200 {
            load.on_sent(Instant::from_millis(n), 1_000);
        }
        assert_eq!(load.rate, Rate::from_mbps(8));
        load.on_sent(Instant::from_millis(1_200), 0);
        assert_eq!(load.rate, Rate::ZERO);
    }
}
