//! Paths come, go, and stand by.

use alloc::format;
use alloc::string::String;

use marline_base::Instant;

use super::Session;
use super::share::Scope;
use super::views::view_usable;
use crate::congestion::{CarrierState, Params, carrier};
use crate::event::Event;
use crate::observe::Record;
use crate::path::{Control, Health, MIN_DATAGRAM, Path, PathParams, PathState, Reason};
use crate::sched::PathView;
use crate::wire::{MAX_PATHS, PathCost, PathId};

/// Pings by which a path in use is asked whether it still works. All of them are unlikely to be
/// lost.
const QUESTIONS: u32 = 3;

/// Why a path was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The session has as many paths as it may.
    TooMany(usize),
    /// The id is or was in use.
    Taken(PathId),
    /// The carrier's datagrams are too small: (their size, the smallest accepted), in bytes.
    TooSmall(usize, usize),
    /// There is no such path.
    Unknown(PathId),
    /// The session is closing.
    Closing,
}

impl core::fmt::Display for PathError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TooMany(limit) => write!(f, "the session has {limit} paths, as many as it may"),
            Self::Taken(id) => write!(f, "path {} is or was in use", id.0),
            Self::TooSmall(size, least) => write!(
                f,
                "the path carries datagrams of {size} bytes; at least {least} are needed"
            ),
            Self::Unknown(id) => write!(f, "there is no path {}", id.0),
            Self::Closing => f.write_str("the session is closing"),
        }
    }
}

impl core::error::Error for PathError {}

impl Session {
    /// Adds a path under an id that both sides agreed on; the client counts up from 0.
    ///
    /// # Errors
    /// As [`PathError`] says; nothing has changed then.
    pub fn add_path(
        &mut self,
        now: Instant,
        id: PathId,
        params: &PathParams,
    ) -> Result<(), PathError> {
        if self.ending.is_some() {
            return Err(PathError::Closing);
        }
        if self.paths.len() >= MAX_PATHS {
            return Err(PathError::TooMany(MAX_PATHS));
        }
        if params.max_datagram < MIN_DATAGRAM {
            return Err(PathError::TooSmall(params.max_datagram, MIN_DATAGRAM));
        }
        if self.path_index(id).is_some() || self.paths.was_abandoned(id) {
            return Err(PathError::Taken(id));
        }
        let seed = self.rng.stream(&format!("path {}", id.0)).next_u64();
        let congestion = Params {
            mtu: params.max_datagram as u64,
            rate: self.config.congestion.rate(),
            paced: true,
            seed,
        };
        let controller = if params.carrier_controls {
            carrier::new(congestion.mtu)
        } else {
            (self.config.congestion.entry().new)(now, &congestion)
        };
        self.timers.wake_paths();
        let path = Path::new(now, id, params, controller);
        if path.standby_local {
            self.egress.control.insert(Control::PathStatus(id));
        }
        let costs = path.cost.local > 0;
        self.paths.insert(path);
        if costs {
            self.announce_cost(id);
        }
        self.announce(now, id);
        self.planning.widen(Scope::All);
        Ok(())
    }

    /// An id that no path has had yet.
    pub fn next_path_id(&self) -> PathId {
        self.paths.next_id()
    }

    /// Removes a path at once: its carrier is gone or the user wants it gone. What was in flight on
    /// it is sent again on others. The peer learns it over another path.
    ///
    /// # Errors
    /// [`PathError::Unknown`].
    pub fn remove_path(&mut self, now: Instant, id: PathId) -> Result<(), PathError> {
        let index = self.path_index(id).ok_or(PathError::Unknown(id))?;
        self.drop_path(now, index);
        self.egress.control.insert(Control::PathAbandon(id));
        if let Some(ending) = &mut self.ending {
            ending.farewells.retain(|p| *p != id);
        }
        self.finish_ending();
        Ok(())
    }

    /// Either end has abandoned the path: what was in flight is sent again on others.
    pub(super) fn drop_path(&mut self, now: Instant, index: usize) {
        let id = self.paths[index].id;
        self.timers.wake_paths();
        self.free_path(now, index);
        self.paths.abandon(index);
        self.waiting.forget(id);
        self.egress.control.remove(&Control::PathStatus(id));
        self.egress.control.remove(&Control::PathCost(id));
        self.egress.control.remove(&Control::PathQuiet(id));
        self.planning.widen(Scope::All);
    }

    /// Doubts a path for a reason that was learnt outside the session, as that its device is gone:
    /// what is in flight on it is copied to others at once. A path that is not in use is left as it
    /// is.
    ///
    /// # Errors
    /// [`PathError::Unknown`].
    pub fn suspect_path(
        &mut self,
        now: Instant,
        id: PathId,
        reason: &'static str,
    ) -> Result<(), PathError> {
        let index = self.path_index(id).ok_or(PathError::Unknown(id))?;
        self.timers.wake_paths();
        self.suspect(now, index, Reason::Borrowed(reason));
        Ok(())
    }

    /// Asks whether a path still works, since something outside the session gave reason to: one
    /// that is in doubt is tested at once, and one in use that does not answer is doubted.
    ///
    /// # Errors
    /// [`PathError::Unknown`].
    pub fn probe_path(&mut self, now: Instant, id: PathId) -> Result<(), PathError> {
        let index = self.path_index(id).ok_or(PathError::Unknown(id))?;
        self.timers.wake_paths();
        match self.paths[index].health {
            Health::Active => self.paths[index].ask_for_life(QUESTIONS),
            _ => self.probe(now, index),
        }
        Ok(())
    }

    /// Keeps a path in reserve, or takes it back into use. The peer does the same.
    ///
    /// # Errors
    /// [`PathError::Unknown`].
    pub fn set_standby(
        &mut self,
        now: Instant,
        id: PathId,
        standby: bool,
    ) -> Result<(), PathError> {
        self.timers.wake_paths();
        let path = self.path_mut(id).ok_or(PathError::Unknown(id))?;
        if path.standby_local != standby {
            path.standby_local = standby;
            path.reason = Reason::Borrowed(if standby {
                "put on standby here"
            } else {
                "taken into use here"
            });
            path.status_sent += 1;
            self.egress.control.insert(Control::PathStatus(id));
            self.announce(now, id);
            self.planning.widen(Scope::All);
        }
        Ok(())
    }

    /// The path's carrier takes datagrams of up to this many bytes from now on. What is in flight
    /// and does not arrive goes again, in pieces where it is too long. Sizes below
    /// [`MIN_DATAGRAM`] count as that: such a path only looks lossy.
    ///
    /// # Errors
    /// [`PathError::Unknown`].
    pub fn path_max_datagram(
        &mut self,
        now: Instant,
        id: PathId,
        max_datagram: usize,
    ) -> Result<(), PathError> {
        let size = max_datagram.max(MIN_DATAGRAM);
        let index = self.path_index(id).ok_or(PathError::Unknown(id))?;
        self.paths[index].size.set_carrier(size);
        self.heed_size(now, index);
        Ok(())
    }

    /// Concludes from what arrived and was lost on a path how long its datagrams may be.
    pub(super) fn conclude_size(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        let trip = path.rtt.smoothed();
        path.size.conclude(now, trip);
        self.heed_size(now, index);
    }

    fn heed_size(&mut self, now: Instant, index: usize) {
        if !self.paths[index].heed_size(now) {
            return;
        }
        self.timers.wake_paths();
        self.planning.widen(Scope::All);
    }

    /// Gives a path another cost rank, at most 255, and reports it to the peer: the higher of the
    /// two ends' ranks holds at both.
    ///
    /// # Errors
    /// [`PathError::Unknown`].
    pub fn set_cost(&mut self, id: PathId, cost: u32) -> Result<(), PathError> {
        let path = self.path_mut(id).ok_or(PathError::Unknown(id))?;
        if path.cost.set(cost) {
            self.announce_cost(id);
            self.on_cost_changed();
        }
        Ok(())
    }

    /// The peer says what a path costs it.
    pub(super) fn on_peer_cost(&mut self, frame: &PathCost) {
        let path = self.path_mut(frame.path);
        if path.is_some_and(|path| path.cost.on_peer(frame.sequence, frame.cost)) {
            self.on_cost_changed();
        }
    }

    fn announce_cost(&mut self, id: PathId) {
        let most = self.peer.max_path_cost;
        let cost = |path: &Path| u64::from(path.cost.local);
        if most > 0
            && self
                .path_index(id)
                .is_some_and(|i| cost(&self.paths[i]) <= most)
        {
            self.egress.control.insert(Control::PathCost(id));
        }
    }

    fn on_cost_changed(&mut self) {
        self.timers.wake();
        self.planning.widen(Scope::All);
    }

    /// The carrier of a path that [controls congestion itself](PathParams::carrier_controls) tells
    /// how that stands: best whenever the session has been handed something or polled, so that
    /// what it believes to be in flight is true.
    pub fn on_carrier_state(&mut self, now: Instant, id: PathId, state: &CarrierState) {
        let changed = self.path_mut(id).is_some_and(|p| p.on_carrier(now, state));
        if changed {
            self.timers.wake_paths();
            self.planning.widen(Scope::All);
        }
    }

    /// The carrier has room again after [`path_blocked`](Self::path_blocked).
    pub fn path_unblocked(&mut self, id: PathId) {
        self.timers.wake_paths();
        if let Some(path) = self.path_mut(id) {
            path.blocked = false;
        }
    }

    /// The carrier takes no datagrams for now: none are polled for the path until
    /// [`path_unblocked`](Self::path_unblocked).
    pub fn path_blocked(&mut self, id: PathId) {
        self.timers.wake_paths();
        if let Some(path) = self.path_mut(id) {
            path.blocked = true;
        }
    }

    /// Tells observers and the driver of a path's state.
    pub(super) fn announce(&mut self, now: Instant, id: PathId) {
        // The others' states decide whether a path is in reserve, and how long it may be quiet.
        self.timers.wake_paths();
        let Some(path) = self.paths.iter_mut().find(|p| p.id == id) else {
            return;
        };
        let state = path.state();
        if path.announced.0 != state {
            path.announced = (state, now);
        }
        self.observer.on(
            now,
            &Record::PathState {
                path: id,
                state,
                reason: path.reason.clone(),
            },
        );
        self.events.push_back(Event::PathChanged {
            path: id,
            state,
            reason: String::from(&*path.reason),
        });
        if self.has_active_path() {
            self.relieve_suspects(now);
        }
    }

    /// Takes back what waits for suspect paths: others can carry it.
    fn relieve_suspects(&mut self, now: Instant) {
        for index in 0..self.paths.len() {
            let path = &self.paths[index];
            if path.state() == PathState::Suspect && self.has_queued(path.id) {
                self.unassign(now, path.id);
            }
        }
    }

    /// Hands back all that a path holds: in-flight symbols are lost, queued ones unassigned.
    pub(super) fn free_path(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        let id = path.id;
        let lost = path.ledger.abandon(now, &path.rtt);
        for packet in lost {
            self.on_frames_lost(now, id, packet);
        }
        self.unassign(now, id);
    }

    /// Views of the usable paths, for schedulers.
    pub(super) fn view_usable(&self) -> impl Iterator<Item = PathView> + Clone + '_ {
        view_usable(&self.paths, &self.waiting)
    }

    pub(super) fn queued_on(&self, id: PathId) -> u64 {
        self.waiting.bytes(id)
    }

    /// The path for control frames and for acknowledgements that cannot go their own way: the
    /// quickest of the cheapest usable ones that are not blocked.
    pub(super) fn best_path(&self) -> Option<usize> {
        self.paths
            .usable()
            .filter(|&i| !self.paths[i].blocked)
            .min_by_key(|&i| (self.paths[i].cost.rank(), self.paths[i].rtt.smoothed()))
            .or_else(|| {
                let mut young = self.paths.iter().enumerate();
                young
                    .find(|(_, p)| matches!(p.health, Health::Validating) && !p.blocked)
                    .map(|(i, _)| i)
            })
    }
}
