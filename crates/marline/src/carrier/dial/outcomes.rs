use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::carrier::Bind;

/// Networks that are remembered.
const MOST: usize = 64;
/// For how long.
const MEMORY: Duration = Duration::from_secs(600);

/// A network, as far as a host can distinguish it from others: the interface or address asked for,
/// the source address that it has there, and where it leads.
pub(super) type Network = (Bind, IpAddr, SocketAddr);

/// Networks that let TLS over TCP through and no QUIC, the latest 64 of them, each for ten minutes.
/// Clones share what they remember.
#[derive(Clone, Debug, Default)]
pub struct Outcomes(Arc<Mutex<BTreeMap<Network, Instant>>>);

impl Outcomes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Network, Instant>> {
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
        found.is_some_and(|at| now.saturating_duration_since(at) < MEMORY)
    }

    /// Notes what got through.
    pub(super) fn note(&self, now: Instant, network: Network, needs_tcp: bool) {
        let mut all = self.lock();
        if !needs_tcp {
            all.remove(&network);
            return;
        }
        all.insert(network, now);
        if all.len() > MOST {
            let oldest = all.iter().min_by_key(|(_, at)| **at);
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
