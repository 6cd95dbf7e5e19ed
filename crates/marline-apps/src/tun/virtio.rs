//! What the kernel writes before each packet of a device that takes and hands over long ones
//! (`struct virtio_net_hdr` of its virtio_net.h): how to cut it, and which checksum is missing.
//! Numbers have the machine's own order of bytes.

use super::checksum;
use super::joined::{Message, of_kernel, prepare};
use super::packet::u16_at;
use super::tcp::CHECKSUM;
use bytes::Bytes;

/// Bytes of the header.
pub(super) const HEADER: usize = 10;
/// Most bytes of IP and TCP header without IPv6's extensions.
const HEADERS: usize = 60 + 60;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: a checksum is missing.
const NEEDS_CHECKSUM: u8 = 1;
/// Values of `gso_type`: a packet as it is, one of TCP over IPv4 or IPv6, one of UDP.
const PACKET: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP: u8 = 5;
/// A bit beside it: the sender has slowed down (CWR), which only the first segment may say.
const ECN: u8 = 0x80;

/// Where the fields are.
const FLAGS: usize = 0;
const TYPE: usize = 1;
const HEADERS_LENGTH: usize = 2;
const SEGMENT: usize = 4;
const CHECKSUM_START: usize = 6;
const CHECKSUM_OFFSET: usize = 8;

/// Adds to `messages` what the kernel has handed over, `bytes` with the header before it: packets
/// with all checksums, or joined ones. What makes no sense is left out.
pub(super) fn read(bytes: &mut [u8], messages: &mut Vec<Bytes>) {
    let Some((header, packet)) = bytes.split_first_chunk_mut::<HEADER>() else {
        return;
    };
    let number = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    match header[TYPE] & !ECN {
        PACKET => {
            if header[FLAGS] & NEEDS_CHECKSUM != 0 {
                let (start, offset) = (number(CHECKSUM_START), number(CHECKSUM_OFFSET));
                complete(packet, start.into(), offset.into());
            }
            messages.push(Bytes::copy_from_slice(packet));
        }
        TCP_V4 | TCP_V6 | UDP => of_kernel(packet, number(SEGMENT), messages),
        other => tracing::debug!(kind = other, "the kernel handed over what is not known"),
    }
}

/// Completes the checksum of what begins at `start`: the field has what it covers besides.
fn complete(packet: &mut [u8], start: usize, offset: usize) {
    let Some(covered) = packet.get(start..) else {
        return;
    };
    if u16_at(covered, offset).is_none() {
        return;
    }
    let sum = match checksum::of(&[covered]) {
        // UDP has another meaning for none at all (RFC 768); TCP has both zeros mean the same.
        0 => u16::MAX,
        sum => sum,
    };
    let at = start + offset;
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// What is written for joined packets before their payload, and that; `None` if `bytes` are no
/// joined packets.
pub(super) fn written(bytes: &[u8]) -> Option<(Written, &[u8])> {
    let message = Message::parse(bytes).ok()?;
    let (headers, segment) = message.joined()?;
    let packet = message.packet(bytes);
    let (head, payload) = packet.split_at_checked(headers)?;
    let mut written = Written {
        bytes: [0; HEADER + HEADERS],
        length: HEADER + headers,
    };
    let (header, own) = written.bytes.split_first_chunk_mut::<HEADER>()?;
    let own = own.get_mut(..headers)?;
    own.copy_from_slice(head);
    prepare(&message.packet, own, packet.len());
    header[FLAGS] = NEEDS_CHECKSUM;
    header[TYPE] = match message.packet.source.is_ipv4() {
        true => TCP_V4,
        false => TCP_V6,
    };
    for (at, value) in [
        (HEADERS_LENGTH, headers as u16),
        (SEGMENT, segment),
        (CHECKSUM_START, message.packet.transport as u16),
        (CHECKSUM_OFFSET, CHECKSUM as u16),
    ] {
        header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    }
    Some((written, payload))
}

/// The header that the kernel wants, and those of the packet.
pub(super) struct Written {
    bytes: [u8; HEADER + HEADERS],
    length: usize,
}

impl Written {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::super::joined::tests::{joined, tcp};
    use super::super::packet::tests::{hostile, v4, v6};
    use super::super::packet::{Packet, TCP};
    use super::super::tcp::ACK;
    use super::*;
    use proptest::prelude::*;
    use tun_rs::VirtioNetHdr;

    fn is_whole(bytes: &[u8]) -> bool {
        let packet = Packet::parse(bytes).unwrap();
        let mut pseudo = Vec::from([0, packet.protocol]);
        match bytes[0] >> 4 {
            4 => pseudo.extend(&bytes[12..20]),
            _ => pseudo.extend(&bytes[8..40]),
        }
        let transport = &bytes[packet.transport..];
        pseudo.extend((transport.len() as u16).to_be_bytes());
        checksum::of(&[&pseudo, transport]) == 0
    }

    fn read_all(bytes: &[u8]) -> Vec<Bytes> {
        let mut messages = Vec::new();
        read(&mut bytes.to_vec(), &mut messages);
        messages
    }

    /// As the kernel writes a packet whose sum has only what the pseudo-header comes to.
    fn partial(packet: &[u8]) -> Vec<u8> {
        let read = Packet::parse(packet).unwrap();
        let mut packet = packet.to_vec();
        let length = packet.len();
        prepare(&read, &mut packet, length);
        let mut header = [0; HEADER];
        header[FLAGS] = NEEDS_CHECKSUM;
        header[CHECKSUM_START..][..2].copy_from_slice(&(read.transport as u16).to_ne_bytes());
        header[CHECKSUM_OFFSET..][..2].copy_from_slice(&(CHECKSUM as u16).to_ne_bytes());
        [&header[..], &packet].concat()
    }

    #[test]
    fn a_checksum_that_the_kernel_left_out_is_completed() {
        let segment = tcp(ACK, 12, 1_001);
        for packet in [v4(TCP, &segment), v6(TCP, &segment)] {
            let bytes = partial(&packet);
            assert!(!is_whole(&bytes[HEADER..]));
            let messages = read_all(&bytes);
            assert_eq!(messages.len(), 1);
            assert!(is_whole(&messages[0]));
            // One that is there is left alone.
            let bytes = [&[0; HEADER][..], &messages[0]].concat();
            assert_eq!(read_all(&bytes), messages);
        }
    }

    #[test]
    fn joined_packets_are_written_as_the_kernel_hands_them_over() {
        let segment = tcp(ACK, 12, 9_000);
        for (packet, kind, headers) in [
            (v4(TCP, &segment), TCP_V4, 52),
            (v6(TCP, &segment), TCP_V6, 72),
        ] {
            let bytes = joined(&packet, 1_340);
            let (head, payload) = written(&bytes).unwrap();
            let header = VirtioNetHdr::decode(head.bytes()).unwrap();
            assert_eq!((header.flags, header.gso_type), (NEEDS_CHECKSUM, kind));
            assert_eq!((header.hdr_len, header.gso_size), (headers, 1_340));
            assert_eq!((header.csum_start, header.csum_offset), (headers - 32, 16));
            let all = [head.bytes(), payload].concat();
            assert_eq!(all.len(), HEADER + packet.len());
            // The kernel completes what is written in the same way.
            let plain = {
                let mut all = all.clone();
                all[TYPE] = PACKET;
                read_all(&all)
            };
            assert!(is_whole(&plain[0]));
            let back = read_all(&all);
            assert_eq!(written(&back[0]).unwrap().0.bytes(), head.bytes());
            assert_eq!(written(&packet).map(drop), None);
        }
    }

    proptest! {
        #[test]
        fn whatever_the_kernel_writes_is_messages_or_nothing(
            header: [u8; HEADER],
            kind in prop_oneof![Just(PACKET), Just(TCP_V4), Just(TCP_V6), Just(UDP), any::<u8>()],
            packet in hostile(),
            length in 0..40usize,
        ) {
            let mut bytes = [&header[..], &packet].concat();
            bytes[TYPE] = kind;
            for bytes in [&bytes[..], &bytes[..length.min(bytes.len())]] {
                for message in read_all(bytes) {
                    written(&message);
                }
            }
        }
    }
}
