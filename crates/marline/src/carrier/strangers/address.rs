use std::net::{IpAddr, Ipv6Addr};

/// Whose a connection is, as far as its address says: an IPv4 address, or the /64 of an IPv6
/// address, which one host usually has to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Site(IpAddr);

impl From<IpAddr> for Site {
    fn from(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
            v4 => v4,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_is_one_site_and_a_mapped_address_is_its_ipv4_one() {
        let site = |text: &str| Site::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(site("2001:db8::1"), site("2001:db8::ffff:2"));
        assert_ne!(site("2001:db8::1"), site("2001:db8:0:1::1"));
        assert_eq!(site("192.0.2.1"), site("::ffff:192.0.2.1"));
        assert_ne!(site("192.0.2.1"), site("192.0.2.2"));
    }
}
