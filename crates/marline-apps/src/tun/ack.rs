//! TCP's packets that only acknowledge.
//!
//! They need no order: the latest says what all before it said (RFC 9293 section 3.4). In the
//! conversation's flow, which keeps the order, they would wait for each one that was lost, and the
//! sender would take that for a path that has become slow: with a tenth lost it stopped its slow
//! start at a quarter of what the paths carry. So they travel in the common flow.

use super::packet::{Fragment, Packet, TCP};
use super::tcp::{ACK, FIN, FLAGS, HEADER, OFFSET, RST, SYN};

/// Does the packet acknowledge, and nothing else? `packet` is what [`Packet::parse`] read from
/// `bytes`.
pub(super) fn is_pure(bytes: &[u8], packet: &Packet) -> bool {
    if packet.protocol != TCP || packet.fragment != Fragment::Whole {
        return false;
    }
    let segment = bytes.get(packet.transport..).unwrap_or_default();
    let Some(head) = segment.first_chunk::<HEADER>() else {
        return false;
    };
    let header = usize::from(head[OFFSET] >> 4) * 4;
    header == segment.len() && head[FLAGS] & (ACK | FIN | SYN | RST) == ACK
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::packet::tests::{hostile, v4, v6};
    use super::*;
    use proptest::prelude::*;

    /// A segment with these flags, this payload, and 12 bytes of options.
    pub(in crate::tun) fn segment(flags: u8, payload: &[u8]) -> Vec<u8> {
        let mut segment = vec![0; HEADER + 12];
        segment[..4].copy_from_slice(&[0x30, 0x39, 0x01, 0xbb]);
        segment[OFFSET] = 8 << 4;
        segment[FLAGS] = flags;
        segment.extend(payload);
        segment
    }

    fn is(bytes: &[u8]) -> bool {
        is_pure(bytes, &Packet::parse(bytes).unwrap())
    }

    #[test]
    fn only_what_brings_nothing_else_needs_no_order() {
        assert!(is(&v4(TCP, &segment(ACK, &[]))));
        assert!(is(&v6(TCP, &segment(ACK, &[]))));
        for other in [
            segment(ACK, &[1]),
            segment(ACK | FIN, &[]),
            segment(ACK | SYN, &[]),
            segment(ACK | RST, &[]),
            segment(SYN, &[]),
        ] {
            assert!(!is(&v4(TCP, &other)));
        }
        assert!(!is(&v4(17, &segment(ACK, &[]))));
    }

    proptest! {
        #[test]
        fn any_packet_is_one_or_is_not(bytes in hostile()) {
            if let Ok(packet) = Packet::parse(&bytes) {
                is_pure(&bytes, &packet);
            }
        }
    }
}
