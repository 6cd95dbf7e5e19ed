//! Which worker has a connection: its id says so, to who knows the key.
//!
//! Each of a server's workers has a socket of its own at the same port, and the kernel chooses one
//! of them by a packet's addresses (`SO_REUSEPORT`). A client's connection is of the worker whose
//! socket got its first packet, and its later ones come there, too, until a NAT gives the client
//! another address. Then the id has to show whose connection it is.
//!
//! An id is random, drawn until its keyed hash (SipHash) modulo the number of workers is the
//! worker's number. So nobody else can see which worker it is, or that two ids are of one
//! connection (RFC 9000 section 5.1), and a lasting key for resets never meets an id twice.

use std::hash::{BuildHasher, RandomState};

use quinn_proto::{
    ConnectionId, ConnectionIdGenerator, EndpointConfig, RandomConnectionIdGenerator,
};

/// Length of a server's connection ids. quinn's default has 24 random bits only.
const ID_BYTES: usize = 8;

/// Set in the first byte of packets that say how long their ids are (RFC 8999 section 5.1).
const LONG_HEADER: u8 = 0x80;

/// Where a long header says how long the id is, behind the first byte and the version.
const LONG_LENGTH: usize = 5;

/// How the ids of a server's connections name its workers. Clones have the same key.
#[derive(Clone, Debug)]
pub(super) struct Steering {
    key: RandomState,
    workers: u64,
}

impl Steering {
    /// With a key of its own, for at least one worker.
    pub(super) fn new(workers: usize) -> Self {
        Self {
            key: RandomState::new(),
            workers: workers.max(1) as u64,
        }
    }

    fn worker(&self, id: &[u8]) -> usize {
        match self.workers {
            1 => 0,
            workers => (self.key.hash_one(id) % workers) as usize,
        }
    }

    /// The worker that has the connection of a packet, if there is one. `None` of first packets,
    /// whose id the client has chosen: they are of the worker whose socket they came by. A client
    /// whose own ids are as long as ours sends all its first packets to one worker; ours takes
    /// longer ones.
    pub(super) fn owner(&self, packet: &[u8]) -> Option<usize> {
        let first = *packet.first()?;
        let id = match first & LONG_HEADER {
            0 => packet.get(1..=ID_BYTES)?,
            _ if usize::from(*packet.get(LONG_LENGTH)?) != ID_BYTES => return None,
            _ => packet.get(LONG_LENGTH + 1..=LONG_LENGTH + ID_BYTES)?,
        };
        Some(self.worker(id))
    }

    /// Has an endpoint's connections get ids of this worker.
    pub(super) fn apply(&self, endpoint: &mut EndpointConfig, worker: usize) {
        let steering = self.clone();
        endpoint.cid_generator(move || {
            Box::new(Ids {
                random: RandomConnectionIdGenerator::new(ID_BYTES),
                steering: steering.clone(),
                worker,
            })
        });
    }
}

/// Ids of one worker's connections.
struct Ids {
    random: RandomConnectionIdGenerator,
    steering: Steering,
    worker: usize,
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        // As many tries as there are workers, on average.
        loop {
            let id = self.random.generate_cid();
            if self.steering.worker(&id) == self.worker {
                return id;
            }
        }
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn ids(steering: &Steering, worker: usize) -> Ids {
        Ids {
            random: RandomConnectionIdGenerator::new(ID_BYTES),
            steering: steering.clone(),
            worker,
        }
    }

    /// A packet with a short header and one with a long header for this id.
    fn packets(id: &[u8]) -> [Vec<u8>; 2] {
        let short = [&[0x40], id, &[7; 20]].concat();
        let long = [&[0xe0, 0, 0, 0, 1, id.len() as u8], id, &[7; 20]].concat();
        [short, long]
    }

    #[test]
    fn packets_of_either_header_lead_to_the_worker_whose_id_they_carry() {
        for workers in [1, 2, 3, 8] {
            let steering = Steering::new(workers);
            for worker in 0..workers {
                let mut ids = ids(&steering, worker);
                let made: BTreeSet<Vec<u8>> =
                    (0..100).map(|_| ids.generate_cid().to_vec()).collect();
                assert_eq!(made.len(), 100);
                for packet in made.iter().flat_map(|id| packets(id)) {
                    assert_eq!(steering.owner(&packet), Some(worker));
                }
            }
        }
    }

    #[test]
    fn without_the_key_an_id_shows_nothing() {
        let (steering, stranger) = (Steering::new(2), Steering::new(2));
        let mut ids = ids(&steering, 0);
        let taken_for_ours = (0..2000).filter(|_| stranger.worker(&ids.generate_cid()) == 0);
        let count = taken_for_ours.count();
        assert!((800..1200).contains(&count), "{count} of 2000");
    }

    #[test]
    fn what_has_no_id_of_ours_is_nobody_s() {
        let steering = Steering::new(2);
        let [_, chosen] = packets(&[9; 20]);
        assert_eq!(steering.owner(&chosen), None);
        for packet in packets(&[9; ID_BYTES]) {
            let end = packet.len() - 20;
            assert!(steering.owner(&packet[..end]).is_some());
            assert!((0..end).all(|len| steering.owner(&packet[..len]).is_none()));
        }
    }
}
