//! Which network an address belongs to, and who reaches it.

use marline::identity::{Host, HostPort};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Does no host of another network reach any of `addresses`? Names may stand for anything.
pub(super) fn are_hidden(addresses: &[HostPort]) -> bool {
    let hidden = |address: &HostPort| match address.host {
        Host::Ip(ip) => kind(ip) != Kind::Public,
        Host::Name(_) => false,
    };
    addresses.iter().all(hidden)
}

/// Where an address is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Everywhere.
    Public,
    /// Of a network of its own; which kind.
    Private(Network),
    /// Within a host that translates IPv4 to IPv6 itself (RFC 7335).
    Clat,
    /// Loopback, link-local, unspecified, multicast, or made for documents.
    Other,
}

/// Networks of one's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    /// RFC 1918.
    Home,
    /// RFC 6598.
    Carrier,
    /// RFC 4193.
    UniqueLocal,
}

/// The kind of an address.
pub(super) fn kind(ip: IpAddr) -> Kind {
    match ip {
        IpAddr::V4(ip) => of_ipv4(ip),
        IpAddr::V6(ip) => of_ipv6(ip),
    }
}

fn of_ipv4(ip: Ipv4Addr) -> Kind {
    let [a, b, c, d] = ip.octets();
    match ip {
        // 192.0.0.0/29, RFC 7335.
        _ if [a, b, c] == [192, 0, 0] && d < 8 => Kind::Clat,
        ip if ip.is_private() => Kind::Private(Network::Home),
        // 100.64.0.0/10.
        _ if a == 100 && b & 0xC0 == 64 => Kind::Private(Network::Carrier),
        // 0.0.0.0/8 and what begins with 224 are of no host (RFC 6890).
        ip if ip.is_loopback() || ip.is_link_local() || a == 0 || a >= 224 => Kind::Other,
        _ => Kind::Public,
    }
}

fn of_ipv6(ip: Ipv6Addr) -> Kind {
    match ip {
        ip if ip.is_unique_local() => Kind::Private(Network::UniqueLocal),
        // 2000::/3 is what is given out (RFC 4291, and IANA's list).
        ip if ip.segments()[0] >> 13 == 1 => Kind::Public,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_elsewhere_reaches_is_hidden() {
        let hidden = |addresses: &[&str]| {
            let read = |address: &&str| address.parse().unwrap();
            let addresses: Vec<HostPort> = addresses.iter().map(read).collect();
            are_hidden(&addresses)
        };
        for private in [
            "10.0.0.2",
            "172.31.1.1",
            "192.168.1.4",
            "100.64.0.1",
            "[fd00::1]",
        ] {
            assert!(hidden(&[&format!("{private}:4433"), "127.0.0.1:4433"]));
            assert!(!hidden(&[&format!("{private}:4433"), "198.51.100.1:4433"]));
            assert!(!hidden(&[&format!("{private}:4433"), "example.com:4433"]));
        }
    }
}
