use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::carrier::{Bind, SocketSpec};

/// Networks that are remembered.
const MOST: usize = 64;
/// For how long.
const MEMORY: Duration = Duration::from_secs(600);
/// For how long those that police QUIC: what a plan has run out of stays so, and to find out again
/// takes ten seconds at the policer's rate.
const POLICED: Duration = Duration::from_secs(3_600);

/// A network, as far as a host can distinguish it from others: the interface or address asked for,
/// the source address that it has there, and where it leads.
pub(super) type Network = (Bind, IpAddr, SocketAddr);

/// What a network did to QUIC.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    at: Instant,
    /// From then on.
    memory: Duration,
    /// The handshake passed, and what came after it did not, or not all.
    cut: bool,
}

impl Outcome {
    /// How much longer it is remembered.
    fn lasts(&self, now: Instant) -> Duration {
        self.memory
            .saturating_sub(now.saturating_duration_since(self.at))
    }
}

/// Networks that let TLS over TCP through and no QUIC, or little of it, the latest 64 of them, each
/// for ten minutes or an hour.
/// Clones share what they remember.
#[derive(Clone, Debug, Default)]
pub struct Outcomes(Arc<Mutex<BTreeMap<Network, Outcome>>>);

impl Outcomes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Network, Outcome>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many networks are remembered, however long ago.
    #[cfg(test)]
    pub(in crate::carrier) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Did only TCP get through there, not long ago?
    pub(super) fn needs_tcp(&self, now: Instant, network: &Network) -> bool {
        let found = self.lock().get(network).copied();
        found.is_some_and(|outcome| !outcome.lasts(now).is_zero())
    }

    /// QUIC's handshake passed from this socket to `remote`, and then the network dropped its
    /// packets, while TLS over TCP passes.
    pub fn cut_off(&self, socket: &SocketSpec, remote: SocketAddr) {
        self.insert_cut(socket, remote, MEMORY);
    }

    /// The network holds QUIC from this socket to `remote` to a rate, and TLS over TCP not.
    pub fn policed(&self, socket: &SocketSpec, remote: SocketAddr) {
        self.insert_cut(socket, remote, POLICED);
    }

    fn insert_cut(&self, socket: &SocketSpec, remote: SocketAddr, memory: Duration) {
        if let Ok(source) = socket.source(remote) {
            let network = (socket.bind.clone(), source, remote);
            self.insert(Instant::now(), network, (memory, true));
        }
    }

    /// For how long that is remembered: a handshake that passes shows nothing there.
    pub fn cut_off_for(&self, socket: &SocketSpec, remote: SocketAddr) -> Option<Duration> {
        let source = socket.source(remote).ok()?;
        let outcome = *self.lock().get(&(socket.bind.clone(), source, remote))?;
        let lasts = outcome.lasts(Instant::now());
        (outcome.cut && !lasts.is_zero()).then_some(lasts)
    }

    /// Notes what got through.
    pub(super) fn note(&self, now: Instant, network: Network, needs_tcp: bool) {
        match needs_tcp {
            true => self.insert(now, network, (MEMORY, false)),
            false => {
                self.lock().remove(&network);
            }
        }
    }

    fn insert(&self, at: Instant, network: Network, (memory, cut): (Duration, bool)) {
        let mut all = self.lock();
        all.insert(network, Outcome { at, memory, cut });
        if all.len() > MOST {
            let oldest = all.iter().min_by_key(|(_, outcome)| outcome.at);
            let oldest = oldest.map(|(network, _)| network.clone());
            oldest.and_then(|network| all.remove(&network));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(last: u8) -> Network {
        let address = IpAddr::from([192, 0, 2, last]);
        (Bind::Any, address, ([198, 51, 100, 1], 4433).into())
    }

    #[test]
    fn a_network_is_remembered_until_quic_gets_through_or_ten_minutes_passed() {
        let (outcomes, now) = (Outcomes::default(), Instant::now());
        assert!(!outcomes.needs_tcp(now, &network(1)));
        outcomes.note(now, network(1), true);
        outcomes.note(now, network(2), true);
        assert!(outcomes.clone().needs_tcp(now, &network(1)));
        outcomes.note(now, network(1), false);
        assert!(!outcomes.needs_tcp(now, &network(1)));
        let just_before = now + MEMORY - Duration::from_nanos(1);
        assert!(outcomes.needs_tcp(just_before, &network(2)));
        assert!(!outcomes.needs_tcp(now + MEMORY, &network(2)));
    }

    #[test]
    fn a_network_that_cuts_quic_off_is_tried_again_when_that_is_forgotten() {
        let (outcomes, socket) = (Outcomes::default(), SocketSpec::default());
        let remote = SocketAddr::from(([127, 0, 0, 1], 4433));
        assert_eq!(outcomes.cut_off_for(&socket, remote), None);
        outcomes.cut_off(&socket, remote);
        let lasts = outcomes.cut_off_for(&socket, remote).unwrap();
        assert!(lasts <= MEMORY && lasts > MEMORY / 2);
        let network = (Bind::Any, remote.ip(), remote);
        assert!(outcomes.needs_tcp(Instant::now(), &network));
        outcomes.policed(&socket, remote);
        let lasts = outcomes.cut_off_for(&socket, remote).unwrap();
        assert!(lasts <= POLICED && lasts > POLICED / 2);
        // One that let no handshake through may be tried at any time.
        outcomes.note(Instant::now(), network, true);
        assert_eq!(outcomes.cut_off_for(&socket, remote), None);
    }

    #[test]
    fn no_more_are_remembered_than_the_latest() {
        let (outcomes, start) = (Outcomes::default(), Instant::now());
        let mut now = start;
        for last in 0..=MOST as u8 {
            now += Duration::from_millis(1);
            outcomes.note(now, network(last), true);
        }
        assert_eq!(outcomes.lock().len(), MOST);
        assert!(!outcomes.needs_tcp(now, &network(0)));
        assert!(outcomes.needs_tcp(now, &network(1)));
        assert!(outcomes.needs_tcp(now, &network(MOST as u8)));
    }
}
