use super::super::packet::tests::{hostile, v4, v6};
use super::super::tcp::{RST, SYN};
use super::*;
use proptest::prelude::*;

/// A segment of TCP with these flags, bytes of options and bytes of payload.
pub(in crate::tun) fn tcp(flags: u8, options: usize, payload: usize) -> Vec<u8> {
    let options = options / 4 * 4;
    let mut segment = vec![0x30, 0x39, 0x01, 0xbb, 0xff, 0xff, 0xf0, 0, 0, 0, 0, 9];
    segment.extend([((HEADER + options) as u8 / 4) << 4, flags, 1, 2, 0, 0, 0, 0]);
    segment.extend((0..options).map(|at| at as u8));
    segment.extend((0..payload).map(|at| (at * 7 % 251) as u8));
    segment
}

fn udp(payload: usize) -> Vec<u8> {
    let mut datagram = vec![0x30, 0x39, 0x01, 0xbb, 0, 0, 0, 0];
    datagram.extend((0..payload).map(|at| (at * 5 % 251) as u8));
    datagram
}

/// What a message of these packets is.
pub(in crate::tun) fn joined(packet: &[u8], segment: u16) -> Vec<u8> {
    [&[MARK][..], &segment.to_be_bytes(), packet].concat()
}

fn is_whole(bytes: &[u8]) -> bool {
    let packet = Packet::parse(bytes).unwrap();
    let transport = &bytes[packet.transport..];
    let sum = checksum::of(&[&pseudo(&packet, transport.len()), transport]);
    sum == 0 && (packet.source.is_ipv6() || checksum::of(&[&bytes[..packet.transport]]) == 0)
}

/// The packets of all these messages.
fn packets(messages: &[Bytes]) -> Vec<Bytes> {
    let mut packets = Vec::new();
    for bytes in messages {
        let message = Message::parse(bytes).unwrap();
        match message.is_joined() {
            true => message.split(bytes, &mut packets),
            false => packets.push(bytes.clone()),
        }
    }
    packets
}

/// A long packet of either protocol and family, and the size of its segments.
fn long() -> impl Strategy<Value = (Vec<u8>, u16)> {
    let flags = prop_oneof![
        Just(ACK),
        Just(ACK | PSH),
        Just(ACK | FIN | PSH),
        Just(ACK | ECE),
        Just(ACK | CWR),
        Just(ACK | SYN),
    ];
    let payload = prop_oneof![1..400usize, 1_000..60_000usize];
    (any::<[bool; 2]>(), flags, 0..=40usize, payload, 1..3_000u16).prop_map(
        |([is_v4, is_udp], flags, options, payload, segment)| {
            let (protocol, transport) = match is_udp {
                true => (UDP, udp(payload)),
                false => (TCP, tcp(flags, options, payload)),
            };
            match is_v4 {
                true => (v4(protocol, &transport), segment),
                false => (v6(protocol, &transport), segment),
            }
        },
    )
}

/// How `tun-rs` cuts it, which does as the kernel does.
#[cfg(target_os = "linux")]
fn reference(mut bytes: Vec<u8>, segment: u16) -> Vec<Vec<u8>> {
    use tun_rs::{
        VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP_L4,
        VirtioNetHdr, gso_split,
    };
    let packet = Packet::parse(&bytes).unwrap();
    let is_v6 = packet.source.is_ipv6();
    let header = VirtioNetHdr {
        flags: 1,
        gso_type: match (packet.protocol, is_v6) {
            (UDP, _) => VIRTIO_NET_HDR_GSO_UDP_L4,
            (_, true) => VIRTIO_NET_HDR_GSO_TCPV6,
            (_, false) => VIRTIO_NET_HDR_GSO_TCPV4,
        },
        hdr_len: headers(&packet, &bytes).unwrap() as u16,
        gso_size: segment,
        csum_start: packet.transport as u16,
        csum_offset: if packet.protocol == UDP { 6 } else { 16 },
    };
    let count = bytes.len().div_ceil(usize::from(segment));
    let mut buffers = vec![vec![0; 4_096]; count];
    let mut sizes = vec![0; count];
    let count = gso_split(&mut bytes, header, &mut buffers, &mut sizes, 0, is_v6).unwrap();
    let cut = buffers.iter().zip(sizes).take(count);
    cut.map(|(buffer, size)| buffer[..size].to_vec()).collect()
}

#[test]
fn a_connections_packets_are_joined_and_what_opens_or_ends_it_is_not() {
    let long = v4(TCP, &tcp(ACK | PSH, 12, 5_000));
    let bytes = joined(&long, 1_340);
    let message = Message::parse(&bytes).unwrap();
    assert!(message.is_joined());
    assert_eq!(message.packet(&bytes), long);
    assert_eq!(message.largest(&bytes), 52 + 1_340);
    let plain = Message::parse(&long).unwrap();
    assert_eq!(
        (plain.is_joined(), plain.largest(&long)),
        (false, long.len())
    );
    for (wrong, segment) in [
        (v4(TCP, &tcp(ACK | SYN, 0, 5_000)), 1_340),
        (v4(TCP, &tcp(ACK | RST, 0, 5_000)), 1_340),
        (v4(TCP, &tcp(ACK | CWR, 0, 5_000)), 1_340),
        (v4(TCP, &tcp(PSH, 0, 5_000)), 1_340),
        // One segment, segments that are next to nothing, and none.
        (v4(TCP, &tcp(ACK, 0, 1_340)), 1_340),
        (v4(TCP, &tcp(ACK, 0, 5_000)), LEAST_SEGMENT - 1),
        (v4(TCP, &tcp(ACK, 0, 5_000)), 0),
        (v4(TCP, &tcp(ACK, 0, 0)), 1_340),
        (v4(UDP, &udp(5_000)), 1_340),
        (v6(44, &tcp(ACK, 0, 5_000)), 1_340),
        (v4(TCP, &[0; 19]), 1_340),
    ] {
        let wrong = Message::parse(&joined(&wrong, segment));
        assert_eq!(wrong, Err(MessageError::Joined));
    }
    let cut_off = Message::parse(&[MARK, 1]);
    assert_eq!(cut_off, Err(PacketError::Version(1).into()));
}

#[test]
fn only_ends_that_know_of_joined_packets_are_sent_them_and_no_longer_ones_than_may_be() {
    let bytes = Bytes::from(joined(&v6(TCP, &tcp(ACK | PSH, 12, 60_000)), 1_340));
    let message = Message::parse(&bytes).unwrap();
    let (mut short, mut plain) = (Vec::new(), Vec::new());
    message.send(bytes.clone(), true, &mut short);
    message.send(bytes.clone(), false, &mut plain);
    assert_eq!(plain.len(), 60_000_usize.div_ceil(1_340));
    assert!(plain.iter().all(|packet| is_whole(packet)));
    assert!(short.len() < plain.len() / 8);
    assert!(short.iter().all(|message| message.len() <= MOST));
    assert_eq!(packets(&short), plain);
}

#[test]
fn a_loss_may_take_the_first_of_them_alone() {
    for payload in [2_000, 9_000] {
        let bytes = joined(&v4(TCP, &tcp(ACK | PSH, 12, payload)), 1_340);
        let mut expected = Vec::new();
        let message = Message::parse(&bytes).unwrap();
        message.split(&bytes, &mut expected);
        let left = without_first(&bytes).unwrap();
        assert_eq!(packets(&[left]), expected[1..]);
    }
    assert_eq!(without_first(&v4(TCP, &tcp(ACK, 0, 100))), None);
}

proptest! {
    /// It must not matter where packets are cut.
    #[cfg(target_os = "linux")]
    #[test]
    fn long_packets_of_the_kernel_are_cut_as_the_kernel_cuts_them((bytes, segment) in long()) {
        let mut messages = Vec::new();
        of_kernel(&mut bytes.clone(), segment, &mut messages);
        let expected = reference(bytes, segment);
        let found = packets(&messages);
        prop_assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert!(is_whole(found));
            prop_assert_eq!(found, expected);
        }
        let mut sent = Vec::new();
        for bytes in messages {
            Message::parse(&bytes).unwrap().send(bytes, true, &mut sent);
        }
        prop_assert_eq!(packets(&sent), expected);
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in hostile(), segment: u16, is_marked: bool) {
        let bytes = match is_marked {
            true => joined(&bytes, segment),
            false => bytes,
        };
        let mut messages = Vec::new();
        of_kernel(&mut bytes.clone(), segment, &mut messages);
        if let Ok(message) = Message::parse(&bytes) {
            for joined in [false, true] {
                message.send(bytes.clone().into(), joined, &mut messages);
            }
        }
        for bytes in &messages {
            prop_assert!(Message::parse(bytes).is_ok());
        }
    }

    /// Of what a client sends, a kernel makes packets that are about as long.
    #[test]
    fn joined_packets_are_no_more_than_they_cost((bytes, segment) in long()) {
        let bytes = joined(&bytes, segment);
        if let Ok(message) = Message::parse(&bytes) {
            let mut packets = Vec::new();
            message.split(&bytes, &mut packets);
            prop_assert!(packets.len() <= 1 + bytes.len() / usize::from(LEAST_SEGMENT));
        }
    }
}
