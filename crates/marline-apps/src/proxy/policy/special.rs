//! Ranges of addresses that are not the public network.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of addresses that is not the public network.
#[derive(Debug, Clone, Copy)]
pub(super) struct Special {
    pub(super) net: IpNet,
    pub(super) what: &'static str,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8, what: &'static str) -> Special {
    Special {
        net: IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)),
        what,
    }
}

const fn v6(head: [u16; 4], tail: [u16; 4], prefix: u8, what: &'static str) -> Special {
    let [a, b, c, d] = head;
    let [e, f, g, h] = tail;
    Special {
        net: IpNet::V6(Ipv6Net::new_assert(
            Ipv6Addr::new(a, b, c, d, e, f, g, h),
            prefix,
        )),
        what,
    }
}

/// The IANA special-purpose registries (RFC 6890 and its updates), and multicast.
static SPECIAL: &[Special] = &[
    v4(0, 0, 0, 0, 8, "unspecified"),
    v4(10, 0, 0, 0, 8, "private"),
    v4(100, 64, 0, 0, 10, "shared by carriers (RFC 6598)"),
    v4(127, 0, 0, 0, 8, "loopback"),
    v4(169, 254, 0, 0, 16, "link-local"),
    v4(172, 16, 0, 0, 12, "private"),
    v4(192, 0, 0, 0, 24, "reserved for protocols"),
    v4(192, 0, 2, 0, 24, "for documentation"),
    v4(192, 168, 0, 0, 16, "private"),
    v4(198, 18, 0, 0, 15, "for benchmarks"),
    v4(198, 51, 100, 0, 24, "for documentation"),
    v4(203, 0, 113, 0, 24, "for documentation"),
    v4(224, 0, 0, 0, 4, "multicast"),
    v4(240, 0, 0, 0, 4, "reserved"),
    v6([0, 0, 0, 0], [0, 0, 0, 0], 128, "unspecified"),
    v6([0, 0, 0, 0], [0, 0, 0, 1], 128, "loopback"),
    v6(
        [0x64, 0xff9b, 1, 0],
        [0, 0, 0, 0],
        48,
        "for local translation",
    ),
    v6([0x100, 0, 0, 0], [0, 0, 0, 0], 64, "discarded"),
    v6([0x2001, 0, 0, 0], [0, 0, 0, 0], 32, "Teredo"),
    v6([0x2001, 2, 0, 0], [0, 0, 0, 0], 48, "for benchmarks"),
    v6([0x2001, 0xdb8, 0, 0], [0, 0, 0, 0], 32, "for documentation"),
    v6([0x3fff, 0, 0, 0], [0, 0, 0, 0], 20, "for documentation"),
    v6([0x5f00, 0, 0, 0], [0, 0, 0, 0], 16, "for segment routing"),
    v6([0xfc00, 0, 0, 0], [0, 0, 0, 0], 7, "private"),
    v6([0xfe80, 0, 0, 0], [0, 0, 0, 0], 10, "link-local"),
    v6([0xfec0, 0, 0, 0], [0, 0, 0, 0], 10, "site-local"),
    v6([0xff00, 0, 0, 0], [0, 0, 0, 0], 8, "multicast"),
];

/// The special range that `address` lies in.
pub(super) fn special(address: IpAddr) -> Option<&'static Special> {
    SPECIAL
        .iter()
        .find(|special| special.net.contains(&address))
}
