use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places for connections within their handshake: so many in all, and so many for one address,
/// so that one stranger cannot take them all.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    taken: Arc<Mutex<Taken>>,
    most: usize,
    most_per_address: usize,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

/// One place, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    taken: Arc<Mutex<Taken>>,
    address: IpAddr,
}

impl Slots {
    /// At least one place is given, in all and to an address.
    pub(super) fn new(most: usize, most_per_address: usize) -> Self {
        Self {
            taken: Arc::default(),
            most: most.max(1),
            most_per_address: most_per_address.max(1),
        }
    }

    /// Places taken.
    pub(super) fn len(&self) -> usize {
        lock(&self.taken).all
    }

    /// A place for a connection from this address, if there is one.
    pub(super) fn take(&self, ip: IpAddr) -> Option<Slot> {
        let address = site(ip);
        let mut taken = lock(&self.taken);
        let here = taken.by_address.get(&address).copied().unwrap_or(0);
        if taken.all >= self.most || here >= self.most_per_address {
            return None;
        }
        taken.all += 1;
        taken.by_address.insert(address, here + 1);
        Some(Slot {
            taken: Arc::clone(&self.taken),
            address,
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.all -= 1;
        if let Some(here) = taken.by_address.get_mut(&self.address) {
            *here -= 1;
            if *here == 0 {
                taken.by_address.remove(&self.address);
            }
        }
    }
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An IPv4 address, or the /64 of an IPv6 address, which one host usually has to itself.
fn site(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_cannot_take_all_places() {
        let slots = Slots::new(3, 2);
        let one = ip("192.0.2.1");
        let held = [slots.take(one).unwrap(), slots.take(one).unwrap()];
        // The same address as an IPv6 socket shows it.
        assert!(slots.take(ip("::ffff:192.0.2.1")).is_none());
        let other = slots.take(ip("192.0.2.2")).unwrap();
        assert!(slots.take(ip("192.0.2.3")).is_none());
        drop(held);
        assert_eq!(slots.len(), 1);
        assert!(slots.take(one).is_some());
        drop(other);
        assert_eq!(slots.len(), 0);
        assert!(lock(&slots.taken).by_address.is_empty());
    }

    #[test]
    fn an_ipv6_site_counts_as_one_address() {
        let slots = Slots::new(9, 1);
        let _held = slots.take(ip("2001:db8::1")).unwrap();
        assert!(slots.take(ip("2001:db8::ffff:2")).is_none());
        assert!(slots.take(ip("2001:db8:0:1::1")).is_some());
    }
}
