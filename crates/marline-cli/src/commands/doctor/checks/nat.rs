//! Is the path's address translated on its way?

use super::super::finding::Finding;
use std::net::{IpAddr, Ipv4Addr};

const NAME: &str = "nat";

pub(in super::super) fn check(source: IpAddr, remote: IpAddr) -> Finding {
    let (IpAddr::V4(from), IpAddr::V4(to)) = (source, remote) else {
        return Finding::fine(NAME, format!("none is usual from {source}"));
    };
    match (kind(from), kind(to)) {
        _ if to.is_loopback() => Finding::fine(NAME, "none: the server is on this host"),
        (None, _) => Finding::fine(NAME, format!("none: {source} is a public address")),
        (Some(_), Some(_)) => Finding::fine(
            NAME,
            format!("none is needed: {source} and the server's {remote} are both private"),
        ),
        // The wire has no word for the address that the server sees.
        (Some(kind), None) => Finding::fine(
            NAME,
            format!("{source} is {kind}, and so translated on its way; to what, is unknown here"),
        ),
    }
}

/// What kind of address it is that is none of the public network.
fn kind(ip: Ipv4Addr) -> Option<&'static str> {
    // RFC 6598.
    let is_of_a_carrier = ip.octets()[0] == 100 && ip.octets()[1] & 0xC0 == 64;
    match ip {
        ip if is_of_a_carrier || ip.is_loopback() => Some("an address within a carrier's network"),
        ip if ip.is_private() => Some("private"),
        ip if ip.is_link_local() => Some("of the link alone"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_and_carriers_addresses_are_translated() {
        let text = |from: &str, to: &str| check(from.parse().unwrap(), to.parse().unwrap()).text;
        assert!(text("192.168.1.4", "203.0.113.5").contains("is private, and so translated"));
        assert!(text("100.127.1.4", "203.0.113.5").contains("a carrier's network"));
        assert!(text("198.51.100.9", "203.0.113.5").starts_with("none: 198.51.100.9 is a public"));
        assert!(text("10.0.0.1", "10.0.0.2").starts_with("none is needed"));
        assert!(text("127.0.0.2", "127.0.0.1").contains("on this host"));
        assert!(text("2001:db8::1", "2001:db8::2").starts_with("none is usual"));
    }
}
