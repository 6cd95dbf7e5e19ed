//! Whom a program has sent to: where its destinations are, which of them it may not reach, and
//! from which addresses it is answered.

use super::super::{Host, Target};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::time::Instant;

/// Destinations of an association that need not be looked up and judged again. One more takes the
/// place of the one that was quiet longest, which costs a look-up. A choice: some 100 KB of names.
const MOST_KNOWN: usize = 256;
/// Addresses from which an association is answered; one more takes the place of the one that was
/// quiet longest. A choice: a peer-to-peer program talks to hundreds, of some 100 bytes each.
const MOST_HEARD: usize = 1024;
/// How long a destination that was sent nothing is known, and heard. RFC 4787 REQ-5 and REQ-8 ask
/// for two minutes or more; somewhat longer than the client's flow stays open.
pub(super) const QUIET: Duration = Duration::from_secs(150);
/// How long a destination that was refused stays refused.
const REFUSED: Duration = Duration::from_secs(1);

/// What is known of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It is there.
    At(SocketAddr),
    /// It was refused a moment ago.
    Refused,
    /// Nothing.
    New,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    /// `None` where it was refused.
    at: Option<SocketAddr>,
    used: Instant,
}

/// All of one association.
#[derive(Debug, Default)]
pub(super) struct Contacts {
    known: HashMap<Target, Known>,
    /// The names by which addresses were asked for.
    named: HashMap<SocketAddr, Target>,
    /// When something was sent to an address last.
    heard: HashMap<IpAddr, Instant>,
}

impl Contacts {
    pub(super) fn state(&self, target: &Target) -> State {
        match self.known.get(target) {
            Some(Known { at: None, used }) if used.elapsed() < REFUSED => State::Refused,
            Some(Known { at: Some(at), used }) if used.elapsed() < QUIET => State::At(*at),
            _ => State::New,
        }
    }

    /// Something is sent to `target`, which is there.
    pub(super) fn sent(&mut self, target: &Target, at: SocketAddr) {
        let used = Instant::now();
        self.note(target, Some(at), used);
        if matches!(target.host(), Host::Name(_)) {
            self.named.insert(at, target.clone());
        } else {
            self.named.remove(&at);
        }
        make_room(&mut self.heard, &at.ip(), MOST_HEARD, |used| *used);
        self.heard.insert(at.ip(), used);
    }

    /// `target` may not be reached, or not any more.
    pub(super) fn refused(&mut self, target: &Target) {
        self.note(target, None, Instant::now());
    }

    fn note(&mut self, target: &Target, at: Option<SocketAddr>, used: Instant) {
        let evicted = make_room(&mut self.known, target, MOST_KNOWN, |known| known.used);
        let before = self.known.insert(target.clone(), Known { at, used });
        let gone = evicted.into_iter().chain(before);
        for gone in gone.filter_map(|known| known.at) {
            if Some(gone) != at {
                self.named.remove(&gone);
            }
        }
    }

    /// As what the sender of a datagram is known to the program; `None` for strangers.
    pub(super) fn heard(&self, from: SocketAddr) -> Option<Host> {
        let sent = self.heard.get(&from.ip())?;
        if sent.elapsed() >= QUIET {
            return None;
        }
        let named = self.named.get(&from);
        Some(named.map_or(Host::Ip(from.ip()), |target| target.host().clone()))
    }
}

/// Has the quietest of a full table make room for `key`, if that is not in it.
fn make_room<K: Hash + Eq + Clone, V>(
    table: &mut HashMap<K, V>,
    key: &K,
    most: usize,
    used: impl Fn(&V) -> Instant,
) -> Option<V> {
    if table.len() < most || table.contains_key(key) {
        return None;
    }
    let quietest = table.iter().min_by_key(|(_, value)| used(value));
    let key = quietest.map(|(key, _)| key.clone())?;
    table.remove(&key)
}

#[cfg(test)]
mod tests {
    use super::super::super::Protocol;
    use super::*;
    use tokio::time::advance;

    fn target(text: &str) -> Target {
        Target::parse(Protocol::Udp, text).unwrap()
    }

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn answers_come_from_addresses_that_were_sent_to_and_from_no_others() {
        let mut contacts = Contacts::default();
        let (one, named) = (target("192.0.2.1:1"), target("a.example:2"));
        assert_eq!(contacts.state(&one), State::New);
        contacts.sent(&one, at("192.0.2.1:1"));
        contacts.sent(&named, at("192.0.2.2:2"));
        assert_eq!(contacts.state(&named), State::At(at("192.0.2.2:2")));
        let ip = |text: &str| Some(Host::Ip(text.parse().unwrap()));
        assert_eq!(contacts.heard(at("192.0.2.1:1")), ip("192.0.2.1"));
        assert_eq!(
            contacts.heard(at("192.0.2.1:9")),
            ip("192.0.2.1"),
            "another port"
        );
        assert_eq!(
            contacts.heard(at("192.0.2.2:2")),
            Some(named.host().clone())
        );
        assert_eq!(contacts.heard(at("192.0.2.2:9")), ip("192.0.2.2"));
        assert_eq!(contacts.heard(at("192.0.2.3:1")), None, "a stranger");
        advance(QUIET).await;
        assert_eq!(contacts.heard(at("192.0.2.1:1")), None);
        assert_eq!(contacts.state(&one), State::New, "it is judged again");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_refused_is_asked_for_again_after_a_second() {
        let mut contacts = Contacts::default();
        let one = target("192.0.2.1:1");
        contacts.refused(&one);
        assert_eq!(contacts.state(&one), State::Refused);
        assert_eq!(contacts.heard(at("192.0.2.1:1")), None);
        advance(REFUSED).await;
        assert_eq!(contacts.state(&one), State::New);
    }

    #[tokio::test(start_paused = true)]
    async fn the_quietest_make_room() {
        let mut contacts = Contacts::default();
        for number in 0..2 * MOST_HEARD as u32 {
            let ip = IpAddr::from((0x0100_0000 + number).to_be_bytes());
            let name = target(&format!("n{number}.example:1"));
            contacts.sent(&name, SocketAddr::new(ip, 1));
            // The first is used again and again.
            contacts.sent(&target("192.0.2.1:1"), at("192.0.2.1:1"));
            advance(Duration::from_millis(1)).await;
        }
        assert_eq!(contacts.known.len(), MOST_KNOWN);
        assert_eq!(contacts.heard.len(), MOST_HEARD);
        assert_eq!(contacts.named.len(), MOST_KNOWN - 1);
        assert!(contacts.heard(at("192.0.2.1:1")).is_some());
        assert!(contacts.heard(at("1.0.0.0:1")).is_none());
    }
}
