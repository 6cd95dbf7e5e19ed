//! Acknowledgements go out: when, and by which way back.
//!
//! Acknowledgements carry arrival times: forward delay, its variation and the spacing of packets
//! are computed from these, whatever delays the acknowledgement on its way back.
//!
//! An acknowledgement goes back on the path that it acknowledges, so that a round trip is measured
//! on one path; while that way back is in doubt, it goes over the quickest path as well. A side
//! that only acknowledges sends a ping now and then, or it would not notice that its own direction
//! is cut; until it has noticed, it may be wrong about which way back works, so neither way alone
//! will do.

use marline_base::{Duration, Instant};

use super::Session;
use super::output::Draft;
use crate::path::{Path, PathState, SentFrame};
use crate::wire::Ack;

/// Another way back is quicker if this many round trips of it are at most four of the path's own.
const QUICKER: u32 = 5;
/// What another way back repeats comes later by so much, if the two take half a round trip each.
const LATER: Duration = Duration::from_millis(2);
/// What went another, quicker way back, above all because it shows a loss, goes that way again
/// after so long: what takes one acknowledgement takes some in a row, and the path's own way back
/// is late.
const AGAIN: [Duration; 2] = [Duration::from_millis(8), Duration::from_millis(20)];

impl Session {
    /// Is an acknowledgement of any path due?
    pub(super) fn acks_are_due(&self, now: Instant) -> bool {
        let due = |p: &Path| p.received.due().is_some_and(|due| due <= now);
        let any = |p: &Path| due(p) || p.received.is_asked() || is_silent(now, p);
        self.paths.iter().any(any)
    }

    pub(super) fn write_acks(&mut self, now: Instant, index: usize, draft: &mut Draft<'_>) {
        for owner in 0..self.paths.len() {
            let path = &self.paths[owner];
            let due = path.received.due().is_some_and(|due| due <= now);
            let carries = due && self.ack_carrier(owner) == Some(index);
            let echoes = owner == index && path.received.is_echo_due();
            let relay = path.received.is_asked().then(|| self.relay(owner));
            let relays = relay == Some(Some(index));
            let alarms = is_silent(now, path) && self.quickest() == Some(index);
            if relay == Some(None) {
                self.paths[owner].received.on_relayed();
            }
            if !carries && !echoes && !relays && !alarms {
                continue;
            }
            if let Some(ack) = self.write_ack(now, owner, draft) {
                let repeats = owner == index && self.has_quicker(owner);
                let hurries = owner != index && self.is_quicker(index, owner);
                let path = &mut self.paths[owner];
                if alarms {
                    path.received.on_silence_reported();
                }
                if carries || echoes || alarms && owner == index {
                    path.received.on_ack_sent(owner != index);
                }
                if owner != index {
                    path.received.on_relayed();
                    path.received.on_reported_elsewhere();
                }
                if hurries {
                    for hurried in &mut path.hurried {
                        hurried.push(now, ack.clone());
                    }
                }
                if repeats {
                    path.repeats.push(now, ack);
                }
                draft.has_ack = true;
            }
        }
    }

    /// An acknowledgement also says what arrived on other paths. Losses take several
    /// acknowledgements in a row, and their path would be held for silent.
    ///
    /// A path that is much quicker would speak before the other's own way back, by which the peer
    /// should hear of what arrived if all is well. So it repeats what went that way, late enough to
    /// be no sooner.
    ///
    /// A path in reserve says no more than it must: its acknowledgements are half a minute apart.
    pub(super) fn write_testimony(&mut self, now: Instant, index: usize, draft: &mut Draft<'_>) {
        if self.is_in_reserve(&self.paths[index]) {
            return;
        }
        for owner in (0..self.paths.len()).filter(|&i| i != index) {
            let is_quicker = self.is_quicker(index, owner);
            if is_quicker {
                self.repeat_hurried(now, owner, draft);
                self.repeat_ack(now, owner, index, draft);
            }
            let received = &self.paths[owner].received;
            let unreported = !is_quicker && received.is_unreported_elsewhere();
            if unreported && self.write_ack(now, owner, draft).is_some() {
                self.paths[owner].received.on_reported_elsewhere();
            }
        }
    }

    /// Says by the path at `index` once more what went by the slower way of `owner` so long ago
    /// that both arrive together.
    fn repeat_ack(&mut self, now: Instant, owner: usize, index: usize, draft: &mut Draft<'_>) {
        let rtt = |i: usize| self.paths[i].rtt.smoothed();
        let sooner = rtt(owner).saturating_sub(rtt(index)) / 2;
        if let Some(ack) = self.paths[owner].repeats.take(now, sooner + LATER) {
            ack.encode_within(draft.room(), draft.buf);
        }
    }

    /// Says again what went a quicker way, as it was: a report of its own would reach the peer
    /// before the path's own way back, by which round trips are measured.
    fn repeat_hurried(&mut self, now: Instant, owner: usize, draft: &mut Draft<'_>) {
        for (hurried, age) in self.paths[owner].hurried.iter_mut().zip(AGAIN) {
            if let Some(ack) = hurried.take(now, age) {
                ack.encode_within(draft.room(), draft.buf);
            }
        }
    }

    /// Is the way back of the path at `index` much quicker than that of `owner`?
    fn is_quicker(&self, index: usize, owner: usize) -> bool {
        let rtt = |i: usize| self.paths[i].rtt.smoothed();
        rtt(index) * QUICKER < rtt(owner) * 4
    }

    /// Is there a path that can repeat what the one at `owner` tells?
    fn has_quicker(&self, owner: usize) -> bool {
        let mut usable = self.paths.usable();
        usable.any(|i| i != owner && self.is_quicker(i, owner))
    }

    /// Appends what arrived on a path and returns it; `None` if there is nothing to tell or no
    /// room.
    fn write_ack(&self, now: Instant, owner: usize, draft: &mut Draft<'_>) -> Option<Ack> {
        let path = &self.paths[owner];
        let ack = path.received.ack(path.id, now)?;
        ack.encode_within(draft.room(), draft.buf)?;
        Some(ack)
    }

    /// When the peer must hear next that nothing arrives on a path, if there is a way to tell it.
    pub(super) fn alarm_due(&self) -> Option<Instant> {
        let due = self
            .paths
            .iter()
            .filter_map(|p| p.received.silence_due())
            .min();
        due.filter(|_| self.quickest().is_some())
    }

    /// The path by which a report is there first.
    fn quickest(&self) -> Option<usize> {
        let usable = self.paths.usable().filter(|&i| !self.paths[i].blocked);
        usable.min_by_key(|&i| self.paths[i].rtt.smoothed())
    }

    /// The path besides its own on which a path's acknowledgement goes when the peer asks.
    fn relay(&self, owner: usize) -> Option<usize> {
        let others = self
            .paths
            .usable()
            .filter(|&i| i != owner && !self.paths[i].blocked);
        others.min_by_key(|&i| self.paths[i].rtt.smoothed())
    }

    /// The path on which a path's acknowledgements go back: its own, so that round trips are its
    /// own, unless that way is in doubt. Then they go on both: a side that only acknowledges may be
    /// wrong about which of its ways out is cut. What shows a loss goes the quickest way.
    fn ack_carrier(&self, owner: usize) -> Option<usize> {
        let path = &self.paths[owner];
        let own = matches!(
            path.state(),
            PathState::Active | PathState::Standby | PathState::Validating
        );
        if !own || path.blocked {
            return self.best_path().or(Some(owner));
        }
        let best = path.received.is_urgent().then(|| self.best_path());
        let quicker =
            |best: &usize| self.paths[*best].rtt.smoothed() * QUICKER <= path.rtt.smoothed() * 4;
        best.flatten().filter(quicker).or(Some(owner))
    }

    /// Says with an acknowledgement what needs no datagram of its own, as far as it fits.
    pub(super) fn write_asides(&mut self, draft: &mut Draft<'_>) {
        if !draft.has_ack {
            return;
        }
        while let Some(control) = self.egress.asides.pop_first() {
            let Some(frame) = self.control_frame(control) else {
                continue;
            };
            if frame.encoded_len() > draft.room() {
                self.egress.asides.insert(control);
                return;
            }
            frame.encode(draft.buf);
            draft.eliciting |= frame.is_ack_eliciting();
            draft.frames.push(SentFrame::Control(control));
            self.egress.control.remove(&control);
            self.note_sent(control);
        }
    }
}

/// Must the peer hear by now that nothing arrives on the path?
fn is_silent(now: Instant, path: &Path) -> bool {
    path.received.silence_due().is_some_and(|due| due <= now)
}
