//! How each published port stands, for whoever asks.

use super::status::{PublishedState, PublishedStatus};
use marline::support::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// All published ports of this process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    shown: BTreeMap<u64, PublishedStatus>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Shown {
    board: Board,
    number: u64,
}

impl Board {
    /// How they stand, in the order in which they came.
    pub fn status(&self) -> Vec<PublishedStatus> {
        lock(&self.0).shown.values().cloned().collect()
    }

    pub(super) fn show(&self, port: &str, leads_to: &str) -> Shown {
        let mut inner = lock(&self.0);
        let number = inner.next;
        inner.next += 1;
        inner.shown.insert(
            number,
            PublishedStatus {
                port: port.to_owned(),
                leads_to: leads_to.to_owned(),
                state: PublishedState::Asking,
                about: None,
            },
        );
        drop(inner);
        Shown {
            board: self.clone(),
            number,
        }
    }
}

impl Shown {
    /// It stands so now; without a word `about` it, the last one stays while it is open or set
    /// aside.
    pub(super) fn say(&self, state: PublishedState, about: Option<String>) {
        let mut inner = lock(&self.board.0);
        if let Some(shown) = inner.shown.get_mut(&self.number) {
            let stays = matches!(state, PublishedState::Open | PublishedState::SetAside);
            let last = shown.about.take().filter(|_| stays);
            shown.state = state;
            shown.about = about.or(last);
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        lock(&self.board.0).shown.remove(&self.number);
    }
}
