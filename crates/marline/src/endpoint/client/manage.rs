//! Status of a client; its paths added, removed and rested at run time.

use super::dial::socket;
use super::slot::Slot;
use super::{Client, FailureKind};
use crate::config::PathSpec;
use crate::control::status::{PathState, PathStatus, Role, SessionStatus};
use crate::control::{Manage, ManageError, Status};
use crate::endpoint::status;

/// Most paths that a session has at once.
const MAX_PATHS: usize = 16;

impl Manage for Client {
    async fn status(&self) -> Status {
        Status {
            role: Role::Client,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.shared.started.elapsed().as_secs_f64(),
            sessions: vec![self.session_status()],
            live: Vec::new(),
            tunnel: None,
        }
    }

    async fn add_path(&self, spec: PathSpec) -> Result<(), ManageError> {
        {
            let slots = self.shared.slots();
            if slots.iter().any(|slot| slot.spec.name == spec.name) {
                return Err(ManageError {
                    message: format!("there is a path {} already", spec.name),
                    hint: Some("give this one another name: `...,name=NAME`".into()),
                });
            }
            if slots.len() >= MAX_PATHS {
                return Err(ManageError {
                    message: format!("there are {MAX_PATHS} paths, as many as a session may have"),
                    hint: Some("remove one: `marline paths remove NAME`".into()),
                });
            }
        }
        socket(&spec).check().map_err(|error| ManageError {
            message: format!("path {spec}: {error}"),
            hint: Some("give an interface or address of this host, or `any`".into()),
        })?;
        self.start_path(spec);
        Ok(())
    }

    async fn remove_path(&self, name: &str) -> Result<(), ManageError> {
        let (number, path) = {
            let mut slots = self.shared.slots();
            let known = names(&slots);
            let slot = slots.find(name).ok_or_else(|| unknown(name, known))?;
            slot.gone.cancel();
            let found = (slot.number, slot.path);
            slots.remove(found.0);
            found
        };
        if let (Some(path), Some(handle)) = (path, self.session()) {
            // An error says that the session has lost it already.
            let _ = handle.remove_path(path);
        }
        tracing::info!(number, "path {name} was removed");
        Ok(())
    }

    async fn set_standby(&self, name: &str, standby: bool) -> Result<(), ManageError> {
        let path = {
            let mut slots = self.shared.slots();
            let known = names(&slots);
            let slot = slots.find(name).ok_or_else(|| unknown(name, known))?;
            slot.spec.standby = standby;
            slot.path
        };
        if let (Some(path), Some(handle)) = (path, self.session()) {
            // If it is lost just now, it comes back as was asked.
            let _ = handle.set_standby(path, standby);
        }
        Ok(())
    }
}

fn names(slots: &super::Slots) -> Vec<String> {
    slots.iter().map(|slot| slot.spec.name.clone()).collect()
}

fn unknown(name: &str, known: Vec<String>) -> ManageError {
    ManageError {
        message: format!("there is no path {name}"),
        hint: Some(match known.is_empty() {
            true => "there is none at all; add one: `marline paths add LOCAL`".into(),
            false => format!("there are: {}", known.join(", ")),
        }),
    }
}

impl Client {
    fn session_status(&self) -> SessionStatus {
        let (live, next) = {
            let current = self.shared.current.borrow();
            (current.live(), current.next())
        };
        let peer = self.shared.options.server.to_string();
        let Some(live) = live else {
            let slots = self.shared.slots();
            return SessionStatus {
                id: next,
                peer,
                state: "connecting".into(),
                paths: slots.iter().map(absent).collect(),
                flows: Vec::new(),
                flows_opened: 0,
            };
        };
        let stats = live.handle.stats();
        let carriers = live.handle.path_carriers();
        let slots = self.shared.slots();
        let paths = slots
            .iter()
            .map(|slot| {
                let up = stats.paths.iter().find(|path| Some(path.id) == slot.path);
                up.map_or_else(
                    || absent(slot),
                    |path| {
                        let carrier = carriers.get(&path.id).copied();
                        let forecast = status::forecast(&stats, path.id);
                        status::path(slot.number, &slot.spec.name, path, carrier, forecast)
                    },
                )
            })
            .collect();
        status::session(live.number, peer, &live.handle, &stats, paths)
    }
}

/// A path that is being dialled.
fn absent(slot: &Slot) -> PathStatus {
    let cost = u32::from(slot.spec.cost);
    let (state, reason) = match &slot.failure {
        None => (PathState::Validating, "being dialled".to_owned()),
        Some(failure) => {
            let then = match (&failure.hint, failure.kind) {
                (Some(hint), FailureKind::Configuration | FailureKind::Refused) => hint,
                _ => "dialling again",
            };
            (PathState::Dead, format!("{}; {then}", failure.message))
        }
    };
    status::absent_path(slot.number, &slot.spec.name, cost, state, &reason)
}
