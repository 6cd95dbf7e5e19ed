//! Who has a port: the newest session of the key that asked for it first. Older sessions of that
//! key stand in line, and have the port back when the newer ones have gone: usually one is what a
//! crash or a lost link has left of the same machine. Other keys are refused meanwhile.

use crate::destination::ServerPort;
use marline::identity::PublicKey;
use marline::support::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedMutexGuard, watch};

/// All ports that somebody has.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines(Arc<Mutex<HashMap<ServerPort, Line>>>);

#[derive(Debug)]
struct Line {
    key: PublicKey,
    next: u64,
    /// Those who asked, the newest last. As many as the key's sessions may have flows.
    asked: watch::Sender<Vec<u64>>,
    /// Held by who listens: the next one listens after that.
    listens: Arc<tokio::sync::Mutex<()>>,
}

/// A place in the line, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    lines: Lines,
    port: ServerPort,
    number: u64,
    asked: watch::Receiver<Vec<u64>>,
    listens: Arc<tokio::sync::Mutex<()>>,
}

impl Lines {
    /// The newest place in the line for `port`; `None` while another key has it.
    pub(super) fn enter(&self, port: ServerPort, key: PublicKey) -> Option<Turn> {
        let mut lines = lock(&self.0);
        let line = lines.entry(port).or_insert_with(|| Line {
            key,
            next: 0,
            asked: watch::Sender::default(),
            listens: Arc::default(),
        });
        if line.key != key {
            return None;
        }
        let number = line.next;
        line.next += 1;
        line.asked.send_modify(|asked| asked.push(number));
        Some(Turn {
            lines: self.clone(),
            port,
            number,
            asked: line.asked.subscribe(),
            listens: Arc::clone(&line.listens),
        })
    }
}

impl Turn {
    /// Waits until the port is this one's and nobody else listens. It may be passed on meanwhile.
    pub(super) async fn comes(&self) -> OwnedMutexGuard<()> {
        self.is_newest(true).await;
        Arc::clone(&self.listens).lock_owned().await
    }

    /// Waits until a newer one has the port.
    pub(super) async fn passes(&self) {
        self.is_newest(false).await;
    }

    async fn is_newest(&self, wanted: bool) {
        let is = |asked: &Vec<u64>| (asked.last() == Some(&self.number)) == wanted;
        // The line is there for as long as somebody stands in it.
        let _ = self.asked.clone().wait_for(is).await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut lines = lock(&self.lines.0);
        let Some(line) = lines.get_mut(&self.port) else {
            return;
        };
        let own = self.number;
        line.asked
            .send_modify(|asked| asked.retain(|number| *number != own));
        if line.asked.borrow().is_empty() {
            lines.remove(&self.port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use marline::identity::Identity;

    fn key() -> PublicKey {
        Identity::generate().unwrap().public_key()
    }

    #[tokio::test]
    async fn the_newest_session_of_a_key_has_the_port_and_older_ones_have_it_back() {
        let (lines, key) = (Lines::default(), key());
        let port = "tcp:8443".parse().unwrap();
        let old = lines.enter(port, key).unwrap();
        let listens = old.comes().now_or_never().expect("nobody else wants it");
        assert!(old.passes().now_or_never().is_none());
        let new = lines.enter(port, key).unwrap();
        assert!(old.passes().now_or_never().is_some());
        assert!(new.comes().now_or_never().is_none(), "the old one listens");
        drop(listens);
        drop(new.comes().now_or_never().expect("nobody listens any more"));
        assert!(old.comes().now_or_never().is_none());
        drop(new);
        assert!(old.comes().now_or_never().is_some());
        drop(old);
        assert!(lock(&lines.0).is_empty());
    }

    #[test]
    fn another_key_has_a_port_when_nobody_has_it_any_more() {
        let (lines, [one, two]) = (Lines::default(), [key(), key()]);
        let port = "udp:53".parse().unwrap();
        let turn = lines.enter(port, one).unwrap();
        assert!(lines.enter(port, two).is_none());
        let other: ServerPort = "tcp:53".parse().unwrap();
        assert!(lines.enter(other, two).is_some());
        drop(turn);
        assert!(lines.enter(port, two).is_some());
    }
}
