//! Local ports of connections to targets: each client, and all together.
//!
//! The end that closes a connection first keeps its port in TIME-WAIT for a minute. A client that
//! opens and closes quickly would use up a host's ports, and the kernel searches most of them for
//! a free one in each `connect()`, on the thread that serves everybody.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline::identity::PublicKey;
use tokio::time::Instant;

use super::places::{Place, Places};

/// How long a port stays taken after its connection has ended in order: Linux's TIME-WAIT
/// (`TCP_TIMEWAIT_LEN`), and its wait for a peer's FIN (`tcp_fin_timeout`).
const TIME_WAIT: Duration = Duration::from_secs(60);
/// Ports for outgoing connections where the system does not say (RFC 6335 §6).
const DYNAMIC: usize = 65_535 - 49_152 + 1;

/// Ports for connections of all clients; one client takes at most half of the free ones.
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ports {
    places: Places,
    /// Ports of connections that have ended, and until when they stay taken.
    waiting: Arc<Mutex<VecDeque<(Instant, Place)>>>,
}

/// A connection's port, free again when it is dropped: a reset leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Port {
    place: Place,
    waiting: Arc<Mutex<VecDeque<(Instant, Place)>>>,
}

impl Ports {
    /// As many ports as this host has for connections to one target.
    pub fn of_this_host() -> Self {
        let file = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
        let range = file.ok().and_then(|text| parse_range(&text));
        Self::new(range.unwrap_or(DYNAMIC))
    }

    /// `all` ports.
    pub fn new(all: usize) -> Self {
        Self {
            places: Places::new(all, all),
            waiting: Arc::default(),
        }
    }

    /// A port for a connection of this client, if there is one.
    pub(crate) fn take(&self, client: Option<PublicKey>) -> Option<Port> {
        let now = Instant::now();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.front().is_some_and(|(until, _)| *until <= now) {
            waiting.pop_front();
        }
        Some(Port {
            place: self.places.take(client)?,
            waiting: Arc::clone(&self.waiting),
        })
    }
}

impl Port {
    /// The connection has ended in order: the port stays taken for a while.
    pub(crate) fn wait(self) {
        let Self { place, waiting } = self;
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back((Instant::now() + TIME_WAIT, place));
    }
}

/// The number of ports in a line of a first and a last one.
fn parse_range(text: &str) -> Option<usize> {
    let mut ends = text.split_whitespace().map(str::parse);
    let (first, last): (usize, usize) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some(last.checked_sub(first)? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ports_of_what_has_ended_in_order_are_free_after_a_minute() {
        let ports = Ports::new(8);
        let take = || -> Vec<Port> { std::iter::from_fn(|| ports.take(None)).collect() };
        let mut taken = take();
        assert_eq!(taken.len(), 4, "half of the free ones");
        taken.pop().unwrap().wait();
        assert!(ports.take(None).is_none());
        drop(taken.pop());
        taken.push(ports.take(None).expect("a reset leaves its port"));
        tokio::time::advance(TIME_WAIT).await;
        taken.extend(take());
        assert_eq!(taken.len(), 4);
    }

    #[test]
    fn ranges_are_counted() {
        assert_eq!(parse_range("32768\t60999\n"), Some(28_232));
        assert_eq!(parse_range("9 8"), None);
        assert_eq!(parse_range(""), None);
    }
}
