//! A server that has only IPv4, from a network that has only IPv6: through its translator (NAT64).
//!
//! Such a network answers a look-up of [`NAME`], which has only IPv4 addresses, with IPv6 ones that
//! embed them (RFC 7050). What stands before and behind is the translator's prefix, in which any
//! IPv4 address is embedded alike (RFC 6052). Where a router has announced that prefix (RFC 8781),
//! it is not asked for.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::interfaces::pref64::Pref64;

/// The name that has only IPv4 addresses (RFC 7050 section 2.2).
pub(super) const NAME: &str = "ipv4only.arpa";
/// Those addresses.
const KNOWN: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];
/// Lengths that a prefix may have (bytes; RFC 6052 section 2.2).
const LENGTHS: [usize; 6] = [12, 8, 7, 6, 5, 4];
/// The byte that no address is embedded in.
const RESERVED: usize = 8;

/// A translator's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    /// An address of it; the bytes in which an IPv4 address is embedded do not count.
    address: Ipv6Addr,
    length: usize,
}

/// Where the bytes of an IPv4 address are embedded behind a prefix of `length` bytes.
fn places(length: usize) -> impl Iterator<Item = usize> {
    (length..).filter(|place| *place != RESERVED).take(4)
}

impl From<Pref64> for Prefix {
    fn from(announced: Pref64) -> Self {
        Self {
            address: announced.prefix,
            length: announced.length.into(),
        }
    }
}

impl Prefix {
    /// The prefix of an address that [`NAME`] was found to have, if it embeds one of the known
    /// ones.
    pub(super) fn of(address: Ipv6Addr) -> Option<Self> {
        let bytes = address.octets();
        let embeds = |length: &usize| {
            let embedded = || places(*length).map(|place| bytes[place]);
            KNOWN.iter().any(|known| embedded().eq(known.octets()))
        };
        let length = LENGTHS.into_iter().find(embeds)?;
        Some(Self { address, length })
    }

    /// The address by which the translator reaches `ip`.
    pub(super) fn embed(self, ip: Ipv4Addr) -> Ipv6Addr {
        let mut bytes = self.address.octets();
        for (place, byte) in places(self.length).zip(ip.octets()) {
            bytes[place] = byte;
        }
        bytes.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_embedded_as_in_the_table_of_rfc_6052() {
        // Section 2.4: 192.0.2.33 behind prefixes of each length.
        let known = Ipv4Addr::new(192, 0, 0, 170);
        for (length, prefix, expected) in [
            (4, "2001:db8::", "2001:db8:c000:221::"),
            (5, "2001:db8:100::", "2001:db8:1c0:2:21::"),
            (6, "2001:db8:122::", "2001:db8:122:c000:2:2100::"),
            (7, "2001:db8:122:300::", "2001:db8:122:3c0:0:221::"),
            (8, "2001:db8:122:344::", "2001:db8:122:344:c0:2:2100::"),
            (12, "2001:db8:122:344::", "2001:db8:122:344::c000:221"),
            (12, "64:ff9b::", "64:ff9b::c000:221"),
        ] {
            let address = prefix.parse().unwrap();
            let answered = Prefix { address, length }.embed(known);
            let found = Prefix::of(answered).unwrap();
            assert_eq!(found.length, length, "{prefix}");
            let embedded = found.embed(Ipv4Addr::new(192, 0, 2, 33));
            assert_eq!(embedded, expected.parse::<Ipv6Addr>().unwrap());
        }
    }

    #[test]
    fn an_address_that_embeds_none_of_the_known_ones_has_no_prefix() {
        for address in ["::", "2001:db8::1", "64:ff9b::c000:221", "::ffff:192.0.2.1"] {
            assert_eq!(Prefix::of(address.parse().unwrap()), None, "{address}");
        }
    }
}
