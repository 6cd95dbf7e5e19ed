//! The configured paths, and how each stands.

use std::net::SocketAddr;

use marline_proto::wire::PathId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::PathFailure;
use crate::Path;

/// One configured path. Its number stays the same while its carriers come and go.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) number: u64,
    pub(super) spec: Path,
    /// Its path in the session, while it is up.
    pub(super) path: Option<PathId>,
    /// Why it is not up; `None` while it is up or dialled for the first time.
    pub(super) failure: Option<PathFailure>,
    /// Since when it is not up.
    pub(super) down: Instant,
    /// Which of the server's addresses answered last.
    pub(super) favourite: Option<SocketAddr>,
    /// Cancelled when the path is removed.
    pub(super) gone: CancellationToken,
}

impl Slot {
    /// Logs why the path is not up, if it is not.
    pub(super) fn complain(&self) {
        if let Some(failure) = &self.failure {
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
            path: None,
            failure: None,
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
