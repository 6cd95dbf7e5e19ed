//! The configured paths, and how each stands.

use std::net::SocketAddr;

use marline_proto::wire::PathId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::{FailureKind, PathFailure};
use crate::Path;
use crate::carrier::Bind;

/// One configured path. Its number stays the same while its carriers come and go.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) number: u64,
    pub(super) spec: Path,
    /// The interface that it has of those that fit, where its path names none itself.
    pub(super) device: Option<String>,
    /// The slot that it was added for, since more than one interface fits there.
    pub(super) of: Option<u64>,
    /// Its path in the session, while it is up.
    pub(super) path: Option<PathId>,
    /// Why it is not up; `None` while it is up or dialled for the first time.
    pub(super) failure: Option<PathFailure>,
    /// The kind of failure that was logged last since it was up.
    pub(super) logged: Option<FailureKind>,
    /// Since when it is not up.
    pub(super) down: Instant,
    /// Which of the server's addresses answered last.
    pub(super) favourite: Option<SocketAddr>,
    /// Cancelled when the path is removed.
    pub(super) gone: CancellationToken,
}

impl Slot {
    /// Its path, over the interface that it has.
    pub(super) fn resolved(&self) -> Path {
        let mut path = self.spec.clone();
        if let (Bind::Matching(_), Some(device)) = (&path.local, &self.device) {
            path.local = Bind::Interface(device.clone());
        }
        path
    }

    /// Logs why the path is not up, if it is not and that has not been said.
    pub(super) fn complain(&mut self) {
        if let Some(failure) = &self.failure
            && self.logged.replace(failure.kind) != Some(failure.kind)
        {
            let then = failure.hint.as_deref().unwrap_or("dialling again");
            tracing::warn!("path {}: {}; {then}", self.spec.name, failure.message);
        }
    }
}

/// All configured paths, in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Slots {
    all: Vec<Slot>,
    next: u64,
}

impl Slots {
    pub(super) fn add(&mut self, spec: Path, gone: CancellationToken) -> u64 {
        let number = self.next;
        self.next += 1;
        self.all.push(Slot {
            number,
            spec,
            device: None,
            of: None,
            path: None,
            failure: None,
            logged: None,
            down: Instant::now(),
            favourite: None,
            gone,
        });
        number
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut Slot> {
        self.all.iter_mut().find(|slot| slot.number == number)
    }

    /// The path of this name, or else of this number.
    pub(super) fn find(&mut self, name: &str) -> Option<&mut Slot> {
        let number = name.parse().ok();
        let index = self.all.iter().position(|slot| slot.spec.name == name);
        let index = index.or_else(|| {
            let of_number = |slot: &Slot| Some(slot.number) == number;
            self.all.iter().position(of_number)
        })?;
        Some(&mut self.all[index])
    }

    pub(super) fn remove(&mut self, number: u64) {
        self.all.retain(|slot| slot.number != number);
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.all.iter_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.all.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Every path's name, and why it is not up.
    pub(super) fn failures(&self) -> Vec<(String, Option<PathFailure>)> {
        let slots = self.all.iter();
        slots
            .map(|slot| (slot.spec.name.clone(), slot.failure.clone()))
            .collect()
    }
}
