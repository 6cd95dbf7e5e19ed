//! How a client stands; its paths added, removed and rested at run time.

use std::time::Duration;

use marline_proto::path::PathState;
use marline_proto::wire::PathId;

use super::dial::socket;
use super::slot::{Slot, Slots};
use super::{Client, FailureKind, MAX_PATHS};
use crate::Path;
use crate::carrier::SocketError;
use crate::endpoint::info::{self, PathInfo, SessionInfo, SessionState};

/// Why a client's path could not be added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddPathError {
    /// Names distinguish paths.
    #[error("there is a path {0} already")]
    NameTaken(String),
    /// There are as many as a session may have.
    #[error("there are {MAX_PATHS} paths, as many as a session may have")]
    TooMany,
    /// This host has no such address.
    #[error("path {path}: {error}")]
    Socket {
        /// The path as it is written.
        path: Box<Path>,
        /// What the system said.
        error: SocketError,
    },
}

/// A client has no path of that name or number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no path {name}")]
pub struct UnknownPath {
    /// What was asked for.
    pub name: String,
    /// The names of the paths that there are.
    pub known: Vec<String>,
}

/// Why a client's path could not be removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemovePathError {
    /// There is none.
    #[error(transparent)]
    Unknown(#[from] UnknownPath),
    /// It is there since more than one interface fits another path.
    #[error("path {name} is there because its interface fits path {first}")]
    Added {
        /// What was to be removed.
        name: String,
        /// The path that says which interfaces fit.
        first: String,
    },
}

impl Client {
    /// How long it has been running.
    pub fn uptime(&self) -> Duration {
        self.shared.started.elapsed()
    }

    /// Starts to dial a further path. An interface that this host does not have yet is waited for,
    /// as it is at the start.
    ///
    /// # Errors
    /// There is a path of that name, there are too many, or its address is none of this host's.
    /// Nothing has changed then.
    pub fn add_path(&self, spec: Path) -> Result<(), AddPathError> {
        {
            let slots = self.shared.slots();
            if slots.iter().any(|slot| slot.spec.name == spec.name) {
                return Err(AddPathError::NameTaken(spec.name));
            }
            if slots.len() >= MAX_PATHS {
                return Err(AddPathError::TooMany);
            }
        }
        match socket(&spec).check() {
            // It may come.
            Ok(()) | Err(SocketError::BadInterface { .. } | SocketError::NoneFits { .. }) => {}
            Err(error) => {
                let path = Box::new(spec);
                return Err(AddPathError::Socket { path, error });
            }
        }
        self.start_path(spec);
        Ok(())
    }

    /// Removes the path of that name, or else of that number, and with it those that were added
    /// since further interfaces fit.
    ///
    /// # Errors
    /// There is none, or it was added for another path, which would add it again. Nothing has
    /// changed then.
    pub fn remove_path(&self, name: &str) -> Result<(), RemovePathError> {
        let number = {
            let mut slots = self.shared.slots();
            let slot = find(&mut slots, name)?;
            let (number, of, name) = (slot.number, slot.of, slot.spec.name.clone());
            if let Some(first) = of.and_then(|of| slots.get(of)) {
                let first = first.spec.name.clone();
                return Err(RemovePathError::Added { name, first });
            }
            number
        };
        let with_it: Vec<u64> = {
            let slots = self.shared.slots();
            let of_it = slots.iter().filter(|slot| slot.of == Some(number));
            of_it.map(|slot| slot.number).collect()
        };
        for number in with_it.into_iter().chain([number]) {
            self.end_path(number);
        }
        // Other paths may have its interface now.
        self.assign();
        self.shared.notifier.notify(true);
        tracing::info!(number, "path {name} was removed");
        Ok(())
    }

    /// Ends the path of this number.
    pub(super) fn end_path(&self, number: u64) {
        let path = {
            let mut slots = self.shared.slots();
            let Some(slot) = slots.get(number) else {
                return;
            };
            slot.gone.cancel();
            let path = slot.path;
            slots.remove(number);
            path
        };
        if let (Some(path), Some(handle)) = (path, self.session()) {
            // An error says that the session has lost it already.
            let _ = handle.remove_path(path);
        }
    }

    /// Puts the path of that name, or else of that number, on standby, or calls it back.
    ///
    /// # Errors
    /// There is none.
    pub fn set_standby(&self, name: &str, standby: bool) -> Result<(), UnknownPath> {
        let paths: Vec<PathId> = {
            let mut slots = self.shared.slots();
            let number = find(&mut slots, name)?.number;
            let same = |slot: &&mut Slot| slot.number == number || slot.of == Some(number);
            let slots = slots.iter_mut().filter(same);
            slots
                .filter_map(|slot| {
                    slot.spec.standby = standby;
                    slot.path
                })
                .collect()
        };
        for path in paths {
            if let Some(handle) = self.session() {
                // If it is lost just now, it comes back as was asked.
                let _ = handle.set_standby(path, standby);
            }
        }
        Ok(())
    }

    /// How the session stands, or the one to come.
    pub fn info(&self) -> SessionInfo {
        let (live, next) = {
            let current = self.shared.current.borrow();
            (current.live(), current.next())
        };
        let peer = self.shared.options.server;
        let Some(live) = live else {
            let slots = self.shared.slots();
            return SessionInfo {
                number: next,
                peer,
                state: SessionState::Connecting,
                paths: slots.iter().map(absent).collect(),
                stats: None,
            };
        };
        let stats = live.handle.stats();
        let carriers = live.handle.path_carriers();
        let now = live.handle.now();
        let slots = self.shared.slots();
        let paths = slots
            .iter()
            .map(|slot| {
                let up = stats.paths.iter().find(|path| Some(path.id) == slot.path);
                up.map_or_else(
                    || absent(slot),
                    |path| {
                        let carrier = carriers.get(&path.id).copied();
                        info::path(slot.number, slot.spec.name.clone(), path, carrier, now)
                    },
                )
            })
            .collect();
        SessionInfo {
            number: live.number,
            peer,
            state: live.handle.session_state(),
            paths,
            stats: Some(stats),
        }
    }
}

fn find<'a>(slots: &'a mut Slots, name: &str) -> Result<&'a mut Slot, UnknownPath> {
    let known: Vec<String> = slots.iter().map(|slot| slot.spec.name.clone()).collect();
    slots.find(name).ok_or_else(|| UnknownPath {
        name: name.to_owned(),
        known,
    })
}

/// A path that is being dialled.
fn absent(slot: &Slot) -> PathInfo {
    let (state, reason) = match &slot.failure {
        None => (PathState::Validating, "being dialled".to_owned()),
        Some(failure) => {
            let then = match &failure.hint {
                Some(hint) if failure.kind != FailureKind::Passing => hint,
                _ => "dialling again",
            };
            (PathState::Dead, format!("{}; {then}", failure.message))
        }
    };
    PathInfo {
        number: slot.number,
        name: slot.spec.name.clone(),
        state,
        reason,
        for_time: slot.down.elapsed(),
        silent: None,
        cost: u32::from(slot.spec.cost),
        carrier: None,
        stats: None,
    }
}
