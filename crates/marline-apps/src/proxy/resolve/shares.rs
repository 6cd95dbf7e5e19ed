//! Who looks up the next name, when many want to.
//!
//! The places are few. A client may take one while those that it holds are at most a part of those
//! that are free: a lone client gets a fifth of them, and whatever a few do with theirs, some stay
//! free for others. (Dynamic thresholds: Choudhury and Hahne, "Dynamic queue length thresholds for
//! shared-memory packet switches", IEEE/ACM Transactions on Networking 6(2), 1998.) The rest of a
//! client's names wait in a queue of its own; queues take turns.

use super::question::Question;
use marline::identity::PublicKey;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Names that may be looked up at the same time, a thread each. By the rule above 5 clients whose
/// names are never answered leave 29 places, and 20 of them 4.
pub(super) const PLACES: usize = 64;
/// A client may hold a quarter of what is free.
const PART: usize = 4;
/// Most names of a client that wait for a place; the flows of one session at the default
/// `max-flows`.
pub(super) const MAX_WAITING: usize = 1024;

/// A client by its key, over all of its sessions; `None` for the server itself.
pub(super) type Share = Option<PublicKey>;

/// The places, and who waits for one.
#[derive(Debug)]
pub(super) struct Shares {
    free: usize,
    clients: HashMap<Share, Client>,
    /// Clients with something that waits, in the order of their turns.
    turns: VecDeque<Share>,
}

#[derive(Debug, Default)]
struct Client {
    held: usize,
    /// In the order in which they came.
    waiting: BTreeMap<u64, Question>,
}

impl Shares {
    pub(super) fn new() -> Self {
        Shares {
            free: PLACES,
            clients: HashMap::new(),
            turns: VecDeque::new(),
        }
    }

    /// Puts a question at the end of a client's queue, as number `id`. False when the queue is
    /// full.
    pub(super) fn queue(&mut self, share: Share, id: u64, question: Question) -> bool {
        let client = self.clients.entry(share).or_default();
        if client.waiting.len() >= MAX_WAITING {
            return false;
        }
        if client.waiting.is_empty() {
            self.turns.push_back(share);
        }
        client.waiting.insert(id, question);
        true
    }

    /// Takes what has this number out of a client's queue, if it is there.
    pub(super) fn leave(&mut self, share: Share, id: u64) {
        let Some(client) = self.clients.get_mut(&share) else {
            return;
        };
        if client.waiting.remove(&id).is_some() && client.waiting.is_empty() {
            self.turns.retain(|other| *other != share);
        }
        self.forget(share);
    }

    /// The next question, of the client whose turn it is among those that may take a place. It
    /// leaves its queue, and takes the place with [`take`](Self::take).
    pub(super) fn next(&mut self) -> Option<(Share, Question)> {
        for _ in 0..self.turns.len() {
            let share = self.turns.pop_front()?;
            let client = self.clients.get_mut(&share)?;
            let may = self.free > 0 && client.held <= self.free / PART;
            let next = match may {
                true => client.waiting.pop_first(),
                false => None,
            };
            if !client.waiting.is_empty() {
                self.turns.push_back(share);
            }
            if let Some((_, question)) = next {
                self.forget(share);
                return Some((share, question));
            }
        }
        None
    }

    /// One place less is free.
    pub(super) fn take(&mut self, share: Share) {
        self.free -= 1;
        self.clients.entry(share).or_default().held += 1;
    }

    /// One place is free again.
    pub(super) fn give_back(&mut self, share: Share) {
        self.free += 1;
        if let Some(client) = self.clients.get_mut(&share) {
            client.held -= 1;
        }
        self.forget(share);
    }

    fn forget(&mut self, share: Share) {
        let idle = |client: &Client| client.held == 0 && client.waiting.is_empty();
        if self.clients.get(&share).is_some_and(idle) {
            self.clients.remove(&share);
        }
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.free
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.free == PLACES && self.clients.is_empty() && self.turns.is_empty()
    }
}
