//! The Internet checksum (RFC 1071) and its update in place (RFC 1624).

use std::net::IpAddr;

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The checksum over `parts` one after the other, each of which but the last must have an even
/// length. At most 64 KiB together, so that the sum of 32 bits cannot overflow.
pub(super) fn of(parts: &[&[u8]]) -> u16 {
    let mut sum = 0;
    for part in parts {
        let (words, odd) = part.as_chunks::<2>();
        sum += words
            .iter()
            .map(|word| u32::from(u16::from_be_bytes(*word)))
            .sum::<u32>();
        sum += odd.first().map_or(0, |byte| u32::from(*byte) << 8);
    }
    !fold(sum)
}

/// The checksum of a transport's header and payload with the pseudo-header of IPv6 (RFC 8200
/// section 8.1) before them.
pub(super) fn of_v6(source: IpAddr, destination: IpAddr, protocol: u8, payload: &[u8]) -> u16 {
    let octets = |address| match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
    };
    let mut tail = [0; 8];
    tail[..4].copy_from_slice(&(payload.len() as u32).to_be_bytes());
    tail[7] = protocol;
    of(&[&octets(source), &octets(destination), &tail, payload])
}

/// The checksum after one word of what it covers has changed from `old` to `new` (RFC 1624 equation
/// 3). `odd` says that the word begins at an odd distance from the start.
pub(super) fn updated(checksum: u16, old: u16, new: u16, odd: bool) -> u16 {
    let (old, new) = match odd {
        true => (old.swap_bytes(), new.swap_bytes()),
        false => (old, new),
    };
    !fold(u32::from(!checksum) + u32::from(!old) + u32::from(new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(of(&[&bytes]), !0xddf2);
        assert_eq!(of(&[&bytes[..4], &bytes[4..]]), !0xddf2);
        assert_eq!(of(&[&[0xab]]), !0xab00);
    }

    proptest! {
        #[test]
        fn an_update_is_what_a_new_sum_would_be(
            mut bytes in proptest::collection::vec(any::<u8>(), 4..100),
            at in any::<prop::sample::Index>(),
            new in any::<u16>(),
        ) {
            let at = at.index(bytes.len() - 1);
            let (before, old) = (of(&[&bytes]), [bytes[at], bytes[at + 1]]);
            bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
            let after = updated(before, u16::from_be_bytes(old), new, at % 2 == 1);
            // Both zeros of the ones' complement mean the same.
            let same = |a: u16, b: u16| a == b || (a ^ b == 0xffff && (a == 0 || b == 0));
            prop_assert!(same(after, of(&[&bytes])), "{after:04x} {:04x}", of(&[&bytes]));
        }
    }
}
