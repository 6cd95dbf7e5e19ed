//! How many flows clients may have at once: each client, and all together.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marline::identity::PublicKey;

/// Places for the flows of all clients. A client's sessions share what it may have, which is at
/// most half of what is free: so there is always a place for one more client. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Places {
    taken: Arc<Mutex<Taken>>,
    all: usize,
    each: usize,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_client: BTreeMap<Option<PublicKey>, usize>,
}

/// One place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    taken: Arc<Mutex<Taken>>,
    client: Option<PublicKey>,
}

impl Places {
    /// `all` places, of which one client has at most `each`.
    pub fn new(all: usize, each: usize) -> Self {
        Self {
            taken: Arc::default(),
            all,
            each,
        }
    }

    /// A place for a flow of this client, if there is one.
    pub(crate) fn take(&self, client: Option<PublicKey>) -> Option<Place> {
        let mut taken = lock(&self.taken);
        let own = taken.by_client.get(&client).copied().unwrap_or(0);
        let free = self.all - (taken.all - own);
        if own >= self.each.min(free.div_ceil(2)) {
            return None;
        }
        taken.all += 1;
        taken.by_client.insert(client, own + 1);
        Some(Place {
            taken: Arc::clone(&self.taken),
            client,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.all -= 1;
        if let Some(own) = taken.by_client.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                taken.by_client.remove(&self.client);
            }
        }
    }
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline::identity::Identity;

    #[test]
    fn sessions_of_a_client_share_its_places_and_leave_some_to_others() {
        let places = Places::new(16, 6);
        let [a, b, c] = [(); 3].map(|()| Some(Identity::generate().unwrap().public_key()));
        let take = |client, most: usize| -> Vec<Place> {
            (0..most).map_while(|_| places.take(client)).collect()
        };
        let first = take(a, 99);
        assert_eq!(first.len(), 6, "as many as each may have");
        let second = take(b, 99);
        assert_eq!(second.len(), 5, "half of the ten that are free");
        assert_eq!(take(c, 99).len(), 3);
        drop(first);
        assert_eq!(take(a, 99).len(), 6);
        drop(second);
        assert!(lock(&places.taken).by_client.is_empty());
    }
}
