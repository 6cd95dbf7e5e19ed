use super::socket;
use marline_base::Instant;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// Who sends through the emulator, each with a socket of its own towards the target.
#[derive(Debug)]
pub(super) struct Clients {
    target: SocketAddr,
    limit: usize,
    idle: Duration,
    table: BTreeMap<SocketAddr, Client>,
    /// Changes with every change of the table.
    generation: u64,
}

#[derive(Debug)]
struct Client {
    upstream: Arc<UdpSocket>,
    last_seen: Instant,
}

/// Why a datagram has no way to the target.
#[derive(Debug)]
pub(super) enum NoUpstream {
    /// The table is full.
    Full,
    /// No socket could be made.
    Socket(io::Error),
}

impl Clients {
    pub(super) const fn new(target: SocketAddr, limit: usize, idle: Duration) -> Self {
        Self {
            target,
            limit,
            idle,
            table: BTreeMap::new(),
            generation: 0,
        }
    }

    pub(super) const fn target(&self) -> SocketAddr {
        self.target
    }

    /// The socket of the client at `addr`, who sent at `now`.
    pub(super) fn upstream(
        &mut self,
        addr: SocketAddr,
        now: Instant,
    ) -> Result<Arc<UdpSocket>, NoUpstream> {
        if let Some(client) = self.table.get_mut(&addr) {
            client.last_seen = now;
            return Ok(Arc::clone(&client.upstream));
        }
        if self.table.len() >= self.limit {
            return Err(NoUpstream::Full);
        }
        let upstream = Arc::new(socket::connect(self.target).map_err(NoUpstream::Socket)?);
        let client = Client {
            upstream: Arc::clone(&upstream),
            last_seen: now,
        };
        self.table.insert(addr, client);
        self.generation += 1;
        Ok(upstream)
    }

    /// Notes that the target answered the client at `addr`.
    pub(super) fn answered(&mut self, addr: SocketAddr, now: Instant) {
        if let Some(client) = self.table.get_mut(&addr) {
            client.last_seen = now;
        }
    }

    /// Forgets who has been silent for too long.
    pub(super) fn expire(&mut self, now: Instant) {
        let before = self.table.len();
        self.table
            .retain(|_, client| now.since(client.last_seen) < self.idle);
        if self.table.len() != before {
            self.generation += 1;
        }
    }

    /// Forgets everybody: who sends again appears to the target at a new port.
    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.generation += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Every client with its socket.
    pub(super) fn sockets(&self) -> Vec<(SocketAddr, Arc<UdpSocket>)> {
        let sockets = self.table.iter();
        sockets
            .map(|(addr, client)| (*addr, Arc::clone(&client.upstream)))
            .collect()
    }
}
