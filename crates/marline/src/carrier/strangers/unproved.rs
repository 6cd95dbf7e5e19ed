//! What is sent to addresses that have not proved to be there.
//!
//! RFC 9000 section 8.1 allows three times what was received from them. quinn counts so, too, but
//! sends whole datagrams as long as anything is left: of 1400 bytes, four for an attacker's 1200.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::lock;

/// How many times the bytes received may be sent (RFC 9000 section 8.1).
const FACTOR: u64 = 3;

/// Shortest datagram that a connection begins with (RFC 9000 section 14.1); its real length is not
/// known here.
const FIRST: u64 = 1200;

/// Set in the first byte of packets of the handshake (RFC 9000 section 17.2).
const LONG_HEADER: u8 = 0x80;

/// Addresses in question, with what was received from them and sent there. Bounded by the places
/// for connections within their handshake.
#[derive(Debug, Default)]
pub(in super::super) struct Unproved {
    accounts: Mutex<HashMap<SocketAddr, Account>>,
    /// Number of accounts, so that datagrams cost nothing while there are none.
    count: AtomicUsize,
}

#[derive(Debug)]
struct Account {
    received: u64,
    sent: u64,
    connections: usize,
}

/// One connection of an address, until it is dropped.
pub(super) struct Question {
    unproved: Arc<Unproved>,
    remote: SocketAddr,
}

impl Unproved {
    /// A connection has begun at an address as the socket shows it.
    pub(super) fn ask(self: &Arc<Self>, remote: SocketAddr) -> Question {
        let mut accounts = lock(&self.accounts);
        let account = accounts.entry(remote).or_insert(Account {
            received: FIRST,
            sent: 0,
            connections: 0,
        });
        account.connections += 1;
        self.count.store(accounts.len(), Ordering::Relaxed);
        Question {
            unproved: Arc::clone(self),
            remote,
        }
    }

    /// This many bytes came from there.
    pub(in super::super) fn received(&self, remote: SocketAddr, bytes: usize) {
        if self.count.load(Ordering::Relaxed) > 0
            && let Some(account) = lock(&self.accounts).get_mut(&remote)
        {
            account.received += bytes as u64;
        }
    }

    /// Counts what is to be sent; false when it must not be. Only packets of handshakes are held
    /// back: a connection that is up has proved its address, and somebody else may have begun
    /// another one in its name.
    pub(in super::super) fn may_send(&self, remote: SocketAddr, contents: &[u8]) -> bool {
        if self.count.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let mut accounts = lock(&self.accounts);
        let Some(account) = accounts.get_mut(&remote) else {
            return true;
        };
        let sent = account.sent + contents.len() as u64;
        let handshake = contents
            .first()
            .is_some_and(|first| first & LONG_HEADER != 0);
        if handshake && sent > FACTOR * account.received {
            return false;
        }
        account.sent = sent;
        true
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let mut accounts = lock(&self.unproved.accounts);
        if let Some(account) = accounts.get_mut(&self.remote) {
            account.connections -= 1;
            if account.connections == 0 {
                accounts.remove(&self.remote);
            }
        }
        self.unproved.count.store(accounts.len(), Ordering::Relaxed);
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Question").field(&self.remote).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_times_what_came_is_sent_and_a_connection_that_is_up_is_left_alone() {
        let unproved = Arc::new(Unproved::default());
        let remote = SocketAddr::from(([192, 0, 2, 1], 7));
        let (handshake, data) = ([0xc0; 1400], [0x40; 1400]);
        assert!((0..9).all(|_| unproved.may_send(remote, &handshake)));
        let question = unproved.ask(remote);
        assert!(unproved.may_send(remote, &handshake) && unproved.may_send(remote, &handshake));
        assert!(!unproved.may_send(remote, &handshake));
        assert!(unproved.may_send(remote, &handshake[..800]));
        unproved.received(remote, 467);
        assert!(unproved.may_send(remote, &handshake));
        assert!(!unproved.may_send(remote, &handshake[..2]));
        assert!(unproved.may_send(remote, &data));
        // A second connection adds nothing that was not received.
        let second = unproved.ask(remote);
        assert!(!unproved.may_send(remote, &handshake));
        drop(question);
        assert!(!unproved.may_send(remote, &handshake));
        drop(second);
        assert!(unproved.may_send(remote, &handshake));
        assert!(lock(&unproved.accounts).is_empty());
    }
}
