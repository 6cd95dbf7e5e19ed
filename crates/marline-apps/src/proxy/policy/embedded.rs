//! IPv4 addresses inside IPv6 ones: where a translator or the other end of a built-in tunnel would
//! deliver.

use super::translators::Prefix;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Every IPv4 address that `address` may lead to. `known` are the prefixes of this network's
/// translators. IPv4-mapped addresses are not meant: they are turned into IPv4 before.
pub(super) fn embedded_v4(address: Ipv6Addr, known: &[Prefix]) -> Vec<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    let mut found: Vec<Ipv4Addr> = known.iter().filter_map(|p| p.v4_of(address)).collect();
    match address.segments() {
        // :: and ::1 are addresses of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => {}
        // IPv4-compatible (RFC 4291 section 2.5.5.1), IPv4-translated (RFC 2765 section 2.1), NAT64
        // (RFC 6052 section 2.1).
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => found.push(join(high, low)),
        // For translation within a site (RFC 8215), with prefixes of any length: unless they are
        // known, each that it may be.
        [0x64, 0xff9b, 1, ..] if found.is_empty() => {
            let lengths = [48, 56, 64, 96];
            let all = lengths.map(|length| Prefix::around(address, length));
            let all = all.into_iter().flatten();
            let all = all.filter_map(|prefix| prefix.v4_of(address));
            // 0.0.0.0/8 is where a longer prefix has its zeros, and no destination (RFC 1122
            // section 3.2.1.3).
            found.extend(all.filter(|v4| v4.octets()[0] != 0));
        }
        // 6to4 (RFC 3056 section 2).
        [0x2002, high, low, ..] => found.push(join(high, low)),
        // Teredo (RFC 4380 section 4): its server, and the client with every bit turned over.
        [0x2001, 0, a, b, _, _, high, low] => found.extend([join(a, b), join(!high, !low)]),
        // ISATAP (RFC 5214 section 6.1), under any prefix.
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => found.push(join(high, low)),
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_shows_its_address() {
        let known: Vec<Prefix> = [
            "2001:db8:1:2:3:4::/96",
            "2a00:1:2::/48",
            "64:ff9b:1:7f00::/96",
        ]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
        for (address, inner) in [
            ("::", &[][..]),
            ("::1", &[]),
            ("2606:4700::1111", &[]),
            ("::127.0.0.1", &["127.0.0.1"]),
            ("::ffff:0:127.0.0.1", &["127.0.0.1"]),
            ("64:ff9b::10.0.0.1", &["10.0.0.1"]),
            ("2002:7f00:1::", &["127.0.0.1"]),
            ("2001:0:102:304::8000:1", &["1.2.3.4", "127.255.255.254"]),
            ("2606:4700::5efe:10.0.0.1", &["10.0.0.1"]),
            ("2606:4700::200:5efe:10.0.0.1", &["10.0.0.1"]),
            ("2001:db8:1:2:3:4:10.0.0.1", &["10.0.0.1"]),
            ("2001:db8:1:2:3:5:10.0.0.1", &[]),
            ("2a00:1:2:a00:0:100::", &["10.0.0.1"]),
            // Of a local translator of any length, and of one that is known.
            ("64:ff9b:1::127.0.0.1", &["127.0.0.1"]),
            ("64:ff9b:1:7f00:0:100::", &["127.0.0.1"]),
            ("64:ff9b:1:7f:0:1::", &["127.0.0.1"]),
            ("64:ff9b:1::7f:0:100:0", &["127.0.0.1"]),
            ("64:ff9b:1:7f00::8.8.8.8", &["8.8.8.8"]),
            ("64:ff9b:1::8.8.8.8", &["8.8.8.8"]),
        ] {
            let found = embedded_v4(address.parse().unwrap(), &known);
            let inner: Vec<Ipv4Addr> = inner.iter().map(|text| text.parse().unwrap()).collect();
            assert!(
                inner.iter().all(|v4| found.contains(v4)),
                "{address}: {found:?}"
            );
            assert_eq!(found.is_empty(), inner.is_empty(), "{address}: {found:?}");
        }
    }
}
