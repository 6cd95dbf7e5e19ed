//! A bounded number of connections that are worth little as long as they are silent: one more ends
//! the one that has been silent the longest.

use marline::support::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// At most this number of connections; the least recently active one gives way. Clones are one.
#[derive(Debug, Clone)]
pub struct Lru {
    most: usize,
    held: Arc<Mutex<ByActivity>>,
}

#[derive(Debug, Default)]
struct ByActivity {
    /// What ends them; the first was active before all others.
    ends: BTreeMap<u64, CancellationToken>,
    next: u64,
}

impl ByActivity {
    fn insert(&mut self, end: CancellationToken) -> u64 {
        let key = self.next;
        self.next += 1;
        self.ends.insert(key, end);
        key
    }
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub struct Held {
    key: u64,
    held: Arc<Mutex<ByActivity>>,
}

impl Lru {
    /// For `most` connections, at least one.
    pub fn new(most: usize) -> Self {
        Lru {
            most: most.max(1),
            held: Arc::default(),
        }
    }

    /// Takes in a connection that ends when `end` is cancelled. Cancels that of another where there
    /// is no room.
    pub fn enter(&self, end: CancellationToken) -> Held {
        let mut held = lock(&self.held);
        while held.ends.len() >= self.most {
            let Some((_, oldest)) = held.ends.pop_first() else {
                break;
            };
            oldest.cancel();
        }
        Held {
            key: held.insert(end),
            held: Arc::clone(&self.held),
        }
    }

    /// Connections that have a place.
    pub fn len(&self) -> usize {
        lock(&self.held).ends.len()
    }

    /// Has none a place?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Held {
    /// The connection was active now.
    pub fn active(&mut self) {
        let mut held = lock(&self.held);
        if let Some(end) = held.ends.remove(&self.key) {
            self.key = held.insert(end);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        lock(&self.held).ends.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_was_silent_the_longest_gives_way() {
        let lru = Lru::new(3);
        let ends = [(); 6].map(|()| CancellationToken::new());
        let ended = || ends.each_ref().map(CancellationToken::is_cancelled);
        let mut first = lru.enter(ends[0].clone());
        let _second = lru.enter(ends[1].clone());
        let third = lru.enter(ends[2].clone());
        first.active();
        let _fourth = lru.enter(ends[3].clone());
        assert_eq!(ended(), [false, true, false, false, false, false]);
        drop(third);
        let _fifth = lru.enter(ends[4].clone());
        assert_eq!(ended(), [false, true, false, false, false, false]);
        let _sixth = lru.enter(ends[5].clone());
        assert_eq!(ended(), [true, true, false, false, false, false]);
        // One that gave way has no place to keep or to give up.
        first.active();
        drop(first);
        assert_eq!(lru.len(), 3);
    }
}
