//! Reads what the kernel passes on of a router's advertisement: the prefix of a NAT64 translator
//! (RFC 8781).
//!
//! ```text
//! nlmsghdr: length (4) | type (2): 68 RTM_NEWNDUSEROPT | flags (2) | sequence (4) | sender (4)
//! nduseroptmsg: family (1) | pad (1) | bytes of options (2) | interface (4)
//!     | ICMP type (1) | ICMP code (1) | pad (6)
//! options, each: type (1) | length in units of 8 bytes (1) | ...
//!     PREF64: 38 | 2 | seconds / 8 (13 bits), code of the prefix's length (3 bits) | prefix (12)
//! ```
//! Numbers of the kernel are in this host's order (linux/netlink.h, linux/rtnetlink.h), those of
//! the option big-endian (RFC 8781 section 4).

use std::net::Ipv6Addr;
use std::time::Duration;

/// `RTM_NEWNDUSEROPT`.
const NEW_OPTION: u16 = 68;
/// Bytes of `nlmsghdr` and of `nduseroptmsg`.
const HEADER: usize = 16;
const MESSAGE: usize = 16;
/// `AF_INET6` of Linux, and the type of a router's advertisement (RFC 4861 section 4.2).
const INET6: u8 = 10;
const ADVERTISEMENT: u8 = 134;
const PREF64: u8 = 38;
/// Lengths of prefixes by their code (bytes).
const LENGTHS: [u8; 6] = [12, 8, 7, 6, 5, 4];

/// A prefix as a router announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pref64 {
    /// Number of the interface by which it came.
    pub interface: u32,
    /// The prefix, and zeros behind it.
    pub prefix: Ipv6Addr,
    /// Its length (bytes): 4 to 8, or 12.
    pub length: u8,
    /// How long it holds, up to 18 hours; zero takes it back.
    pub lifetime: Duration,
}

/// The prefixes in what a socket of `NETLINK_ROUTE` received, in their order. Any bytes are some or
/// none.
pub fn read(mut bytes: &[u8]) -> Vec<Pref64> {
    let mut found = Vec::new();
    while let Some(length) = number(bytes, 0) {
        let Some(message) = bytes.get(..length as usize).filter(|it| it.len() >= HEADER) else {
            break;
        };
        if half(message, 4) == Some(NEW_OPTION) {
            found.extend(of_message(&message[HEADER..]).into_iter().flatten());
        }
        // Messages begin at multiples of four (NLMSG_ALIGN).
        bytes = bytes
            .get(message.len().next_multiple_of(4)..)
            .unwrap_or_default();
    }
    found
}

fn of_message(message: &[u8]) -> Option<impl Iterator<Item = Pref64>> {
    let interface = number(message, 4)?;
    let is_one = *message.first()? == INET6 && *message.get(8)? == ADVERTISEMENT;
    let count = usize::from(half(message, 2)?);
    let mut options = message.get(MESSAGE..MESSAGE + count).filter(|_| is_one)?;
    let each = std::iter::from_fn(move || {
        let length = 8 * usize::from(*options.get(1)?);
        let (option, rest) = options.split_at_checked(length).filter(|_| length > 0)?;
        options = rest;
        Some(of_option(interface, option))
    });
    Some(each.flatten())
}

fn of_option(interface: u32, option: &[u8]) -> Option<Pref64> {
    let [PREF64, 2, high, low, prefix @ ..] = option else {
        return None;
    };
    let field = u16::from_be_bytes([*high, *low]);
    // Unknown codes: the option is ignored (section 4).
    let length = *LENGTHS.get(usize::from(field & 7))?;
    let mut whole = [0; 16];
    let length_bytes = usize::from(length);
    whole[..length_bytes].copy_from_slice(prefix.get(..length_bytes)?);
    Some(Pref64 {
        interface,
        prefix: whole.into(),
        length,
        lifetime: Duration::from_secs(u64::from(field & !7)),
    })
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A notice of these options that came by interface 7.
    fn notice(options: &[u8]) -> Vec<u8> {
        let mut message = vec![INET6, 0];
        message.extend((options.len() as u16).to_ne_bytes());
        message.extend(7u32.to_ne_bytes());
        message.extend([ADVERTISEMENT, 0, 0, 0, 0, 0, 0, 0]);
        message.extend(options);
        let mut bytes = Vec::from(((HEADER + message.len()) as u32).to_ne_bytes());
        bytes.extend(NEW_OPTION.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(message);
        bytes
    }

    /// The option of RFC 8781's figure 1 with this field and prefix.
    fn option(field: u16, prefix: &str) -> Vec<u8> {
        let prefix: Ipv6Addr = prefix.parse().unwrap();
        [
            &[PREF64, 2],
            &field.to_be_bytes()[..],
            &prefix.octets()[..12],
        ]
        .concat()
    }

    #[test]
    fn prefixes_of_all_lengths_are_read() {
        for (code, length, prefix) in [
            (0, 12, "64:ff9b::"),
            (1, 8, "2001:db8:122:344::"),
            (2, 7, "2001:db8:122:300::"),
            (3, 6, "2001:db8:122::"),
            (4, 5, "2001:db8:100::"),
            (5, 4, "2001:db8::"),
        ] {
            // 1800 s are 225 units of 8 s: 0000 0111 0000 1 and the code.
            let found = read(&notice(&option(0x0708 | code, prefix)));
            let expected = Pref64 {
                interface: 7,
                prefix: prefix.parse().unwrap(),
                length,
                lifetime: Duration::from_secs(1800),
            };
            assert_eq!(found, [expected]);
        }
        // What stands behind the prefix is no part of it.
        let found = read(&notice(&option(
            0xfff8 | 5,
            "2001:db8:ffff:ffff:ffff:ffff::",
        )));
        assert_eq!(found[0].prefix, "2001:db8::".parse::<Ipv6Addr>().unwrap());
        assert_eq!(found[0].lifetime, Duration::from_secs(65_528));
    }

    #[test]
    fn other_options_and_messages_are_left_out() {
        let good = option(0x0708, "64:ff9b::");
        let dns = [&[25, 3, 0, 0], &[0; 20][..]].concat();
        let mut two = notice(&[&dns[..], &good].concat());
        two.extend(notice(&good));
        assert_eq!(read(&two).len(), 2);
        for field in [6, 7] {
            assert_eq!(
                read(&notice(&option(field, "64:ff9b::"))),
                [],
                "reserved codes"
            );
        }
        let change = |at: usize, byte: u8| {
            let mut bytes = notice(&good);
            bytes[at] = byte;
            read(&bytes)
        };
        assert_eq!(change(4, 24), [], "a route");
        assert_eq!(change(HEADER, 2), [], "IPv4");
        assert_eq!(change(HEADER + 8, 135), [], "no advertisement");
        assert_eq!(
            change(HEADER + MESSAGE + 1, 0),
            [],
            "an option without a length"
        );
        assert_eq!(change(HEADER + MESSAGE + 1, 3), [], "beyond the end");
        let whole = notice(&good);
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]), [], "{length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_some_or_none(bytes: Vec<u8>, options: Vec<u8>) {
            let _ = read(&bytes);
            for found in read(&notice(&options)) {
                prop_assert!(found.length <= 12);
            }
        }
    }
}
