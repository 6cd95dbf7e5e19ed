//! TCP's maximum segment size, lowered to what fits a tunnel: connections then never meet the
//! packets that are too large.

use super::checksum;
use super::packet::{Fragment, Packet, TCP, u16_at};
use super::tcp::{CHECKSUM, FLAGS, HEADER, OFFSET, SYN};
use bytes::Bytes;
use std::net::IpAddr;

const END: u8 = 0;
const NOTHING: u8 = 1;
const MAX_SEGMENT: u8 = 2;

/// Lowers the segment size that a SYN announces to what fits packets of `mtu` bytes (RFC 9293
/// section 3.7.1), and keeps its checksum right. `packet` is what [`Packet::parse`] read from
/// `bytes`. True when something was changed.
pub fn clamp(bytes: &mut [u8], packet: &Packet, mtu: u16) -> bool {
    if packet.protocol != TCP || packet.fragment != Fragment::Whole {
        return false;
    }
    let headers = match packet.source {
        IpAddr::V4(_) => 40,
        IpAddr::V6(_) => 60,
    };
    let limit = mtu.saturating_sub(headers);
    let Some(segment) = bytes.get_mut(packet.transport..) else {
        return false;
    };
    if segment.get(FLAGS).is_none_or(|flags| flags & SYN == 0) {
        return false;
    }
    let header = usize::from(segment[OFFSET] >> 4) * 4;
    if header > segment.len() {
        return false;
    }
    let Some(at) = option(&segment[..header]) else {
        return false;
    };
    let (Some(old), Some(sum)) = (u16_at(segment, at), u16_at(segment, CHECKSUM)) else {
        return false;
    };
    if old <= limit {
        return false;
    }
    let sum = checksum::updated(sum, old, limit, at % 2 == 1);
    segment[at..at + 2].copy_from_slice(&limit.to_be_bytes());
    segment[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// The packet with its segment size lowered as [`clamp`] does. It is copied if it has one.
pub(super) fn clamped(bytes: Bytes, packet: &Packet, mtu: u16) -> Bytes {
    let flags = bytes.get(packet.transport + FLAGS);
    let is_syn = packet.protocol == TCP && flags.is_some_and(|flags| flags & SYN != 0);
    if !is_syn {
        return bytes;
    }
    let mut bytes = Vec::from(bytes);
    clamp(&mut bytes, packet, mtu);
    bytes.into()
}

/// Where the value of the option stands in a TCP header.
fn option(header: &[u8]) -> Option<usize> {
    let mut at = HEADER;
    loop {
        match *header.get(at)? {
            END => return None,
            NOTHING => at += 1,
            kind => {
                let length = usize::from(*header.get(at + 1)?);
                if kind == MAX_SEGMENT && length == 4 && at + 4 <= header.len() {
                    return Some(at + 2);
                }
                if length < 2 {
                    return None;
                }
                at += length;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::{hostile, v4, v6};
    use super::*;
    use proptest::prelude::*;

    /// A SYN with these options, whose checksum is right within IPv6.
    fn syn(options: &[u8]) -> Vec<u8> {
        let header = HEADER + options.len();
        let mut segment = vec![0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0];
        segment.extend([(header as u8 / 4) << 4, SYN, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend(options);
        segment
    }

    fn with_checksum(options: &[u8]) -> Vec<u8> {
        let mut bytes = v6(TCP, &syn(options));
        let packet = Packet::parse(&bytes).unwrap();
        let sum = checksum::of_v6(packet.source, packet.destination, TCP, &bytes[40..]);
        bytes[56..58].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Whether the checksum of an IPv6 packet's segment is right.
    fn is_whole(bytes: &[u8]) -> bool {
        let packet = Packet::parse(bytes).unwrap();
        checksum::of_v6(packet.source, packet.destination, TCP, &bytes[40..]) == 0
    }

    #[test]
    fn a_syn_is_lowered_and_stays_whole() {
        let plain = [2, 4, 0x05, 0xb4, 4, 2, 1, 1];
        // The value at an odd distance from the start of the header.
        let odd = [1, 2, 4, 0x05, 0xb4, 1, 1, 0];
        for (options, at) in [(plain, 62), (odd, 63)] {
            let mut bytes = with_checksum(&options);
            assert!(is_whole(&bytes));
            let packet = Packet::parse(&bytes).unwrap();
            assert!(clamp(&mut bytes, &packet, 1300));
            assert_eq!(u16_at(&bytes, at), Some(1240));
            assert!(is_whole(&bytes));
            // What fits is left alone.
            assert!(!clamp(&mut bytes, &packet, 1300));
        }
        let mut bytes = v4(TCP, &syn(&plain));
        let packet = Packet::parse(&bytes).unwrap();
        assert!(clamp(&mut bytes, &packet, 1300));
        assert_eq!(u16_at(&bytes, 42), Some(1260));
    }

    #[test]
    fn only_what_says_a_size_is_changed() {
        let sized = [2, 4, 0x05, 0xb4];
        let no_syn = {
            let mut bytes = with_checksum(&sized);
            bytes[53] = 0x10;
            bytes
        };
        let beyond_header = {
            let mut bytes = with_checksum(&sized);
            bytes[52] = 0xf0;
            bytes
        };
        let others = [
            no_syn,
            beyond_header,
            with_checksum(&[]),
            with_checksum(&[0, 2, 4, 0xff]),
            with_checksum(&[3, 0, 0, 0]),
            with_checksum(&[1, 1, 2, 4]),
            with_checksum(&[2, 3, 0xff, 0]),
        ];
        for bytes in others {
            let mut after = bytes.clone();
            let packet = Packet::parse(&bytes).unwrap();
            assert!(!clamp(&mut after, &packet, 1280));
            assert_eq!(after, bytes);
        }
    }

    proptest! {
        #[test]
        fn nothing_but_size_and_checksum_changes(
            bytes in hostile(),
            options in proptest::collection::vec(any::<u8>(), 0..10),
            mtu in any::<u16>(),
        ) {
            let options: Vec<u8> = options.iter().flat_map(|b| [b % 5, b % 7, *b, 9]).collect();
            for bytes in [bytes, v4(TCP, &syn(&options)), with_checksum(&options)] {
                let Ok(packet) = Packet::parse(&bytes) else {
                    continue;
                };
                let mut after = bytes.clone();
                let changed = clamp(&mut after, &packet, mtu);
                let different = bytes.iter().zip(&after).filter(|(a, b)| a != b).count();
                prop_assert!(different <= 4 && (changed || different == 0));
                prop_assert_eq!(Packet::parse(&after), Ok(packet));
            }
        }
    }
}
