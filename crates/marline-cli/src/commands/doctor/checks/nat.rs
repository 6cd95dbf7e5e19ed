//! Is the path's address translated on its way?

use super::super::finding::Finding;
use crate::commands::networks::{Kind, kind};
use std::net::IpAddr;

const NAME: &str = "nat";

pub(in super::super) fn check(source: IpAddr, remote: IpAddr) -> Finding {
    if remote.is_loopback() {
        return Finding::fine(NAME, "none: the server is on this host");
    }
    if is_nat64(remote) {
        let text = format!("{source} is translated to IPv4 on its way (NAT64)");
        return Finding::fine(NAME, text);
    }
    match (kind(source), kind(remote)) {
        (Kind::Other, _) => Finding::unknown(
            NAME,
            format!("{source} is no address that leaves this host as it is"),
        ),
        (Kind::Public, _) => Finding::fine(NAME, format!("none: {source} is a public address")),
        (Kind::Clat, _) => Finding::fine(
            NAME,
            format!("{source} is this host's own translator's (464XLAT): IPv6 carries it"),
        ),
        (Kind::Private(_), Kind::Public) => Finding::fine(
            NAME,
            // The wire has no word for the address that the server sees.
            format!("{source} is private, and so translated on its way; to what, is unknown here"),
        ),
        (Kind::Private(one), Kind::Private(other)) if one == other => Finding::fine(
            NAME,
            format!("none is needed where {source} and {remote}, both private, are in one network"),
        ),
        (Kind::Private(_), _) => Finding::unknown(
            NAME,
            format!("{source} and {remote} are private addresses of different kinds"),
        ),
    }
}

/// 64:ff9b::/96, RFC 6052.
fn is_nat64(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0])
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;

    #[test]
    fn what_is_not_public_is_translated_or_unknown() {
        let server = "198.51.100.5";
        for (from, to, verdict, said) in [
            (
                "192.168.1.4",
                server,
                Verdict::Fine,
                "is private, and so translated",
            ),
            (
                "100.127.1.4",
                server,
                Verdict::Fine,
                "is private, and so translated",
            ),
            ("192.0.0.4", server, Verdict::Fine, "464XLAT"),
            ("192.0.0.9", server, Verdict::Fine, "is a public address"),
            (
                "198.51.100.9",
                server,
                Verdict::Fine,
                "none: 198.51.100.9 is a public",
            ),
            ("10.0.0.1", "10.0.0.2", Verdict::Fine, "in one network"),
            (
                "10.0.0.1",
                "100.64.0.2",
                Verdict::Unknown,
                "of different kinds",
            ),
            ("127.0.0.2", "127.0.0.1", Verdict::Fine, "on this host"),
            (
                "127.0.0.2",
                server,
                Verdict::Unknown,
                "no address that leaves",
            ),
            (
                "169.254.1.2",
                server,
                Verdict::Unknown,
                "no address that leaves",
            ),
            (
                "0.0.0.0",
                server,
                Verdict::Unknown,
                "no address that leaves",
            ),
            (
                "2001:db8::1",
                "2001:db8::2",
                Verdict::Fine,
                "is a public address",
            ),
            ("fd00::1", "2001:db8::2", Verdict::Fine, "so translated"),
            ("2001:db8::1", "64:ff9b::c633:6405", Verdict::Fine, "NAT64"),
        ] {
            let found = check(from.parse().unwrap(), to.parse().unwrap());
            assert_eq!(found.verdict, verdict, "{from} {found:?}");
            assert!(found.text.contains(said), "{from} {found:?}");
        }
    }
}
