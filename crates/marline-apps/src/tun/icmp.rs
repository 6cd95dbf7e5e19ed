//! What a tunnel answers to packets that it does not carry (RFC 792, RFC 1191, RFC 4443).

use super::checksum;
use super::packet::{Fragment, ICMP, ICMP_V6, Packet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most bytes of an answer: RFC 1812 section 4.3.2.3, and RFC 4443 section 2.4 (c).
const LONGEST_V4: usize = 576;
const LONGEST_V6: usize = 1280;
const TTL: u8 = 64;

/// Why a packet is not carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It is larger than the tunnel's packets: the most bytes that these may have.
    TooBig(u16),
    /// The server's rules forbid it.
    Prohibited,
}

/// The packet that informs the sender of `bytes`, from the address `from`; `None` where no answer
/// is allowed: errors, later parts, broadcasts, and addresses of another family than `from`.
/// `packet` is what [`Packet::parse`] read from `bytes`.
pub fn answer(bytes: &[u8], packet: &Packet, from: IpAddr, refusal: Refusal) -> Option<Vec<u8>> {
    let nobody = packet.source.is_unspecified() || packet.source.is_multicast();
    let many = packet.destination.is_multicast() && !matches!(refusal, Refusal::TooBig(_));
    if nobody || many || packet.fragment == Fragment::Later || packet.is_icmp_error(bytes) {
        return None;
    }
    match (from, packet.source) {
        (IpAddr::V4(from), IpAddr::V4(to)) if to != Ipv4Addr::BROADCAST => {
            Some(answer_v4(bytes, from, to, refusal))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => Some(answer_v6(bytes, from, to, refusal)),
        _ => None,
    }
}

fn answer_v4(bytes: &[u8], from: Ipv4Addr, to: Ipv4Addr, refusal: Refusal) -> Vec<u8> {
    let quoted = &bytes[..bytes.len().min(LONGEST_V4 - 28)];
    // Destination unreachable: fragmentation needed, or communication administratively prohibited
    // (RFC 1812).
    let (code, mtu) = match refusal {
        Refusal::TooBig(mtu) => (4, mtu),
        Refusal::Prohibited => (13, 0),
    };
    let mut body = vec![3, code, 0, 0, 0, 0];
    body.extend(mtu.to_be_bytes());
    body.extend(quoted);
    let sum = checksum::of(&[&body]);
    body[2..4].copy_from_slice(&sum.to_be_bytes());

    let mut answer = vec![0x45, 0];
    answer.extend((20 + body.len() as u16).to_be_bytes());
    answer.extend([0, 0, 0, 0, TTL, ICMP, 0, 0]);
    answer.extend(from.octets());
    answer.extend(to.octets());
    let sum = checksum::of(&[&answer]);
    answer[10..12].copy_from_slice(&sum.to_be_bytes());
    answer.extend(body);
    answer
}

fn answer_v6(bytes: &[u8], from: Ipv6Addr, to: Ipv6Addr, refusal: Refusal) -> Vec<u8> {
    let quoted = &bytes[..bytes.len().min(LONGEST_V6 - 48)];
    // Packet too big, or destination unreachable: administratively prohibited.
    let (kind, code, mtu) = match refusal {
        Refusal::TooBig(mtu) => (2, 0, u32::from(mtu)),
        Refusal::Prohibited => (1, 1, 0),
    };
    let mut body = vec![kind, code, 0, 0];
    body.extend(mtu.to_be_bytes());
    body.extend(quoted);
    let sum = checksum::of_v6(from.into(), to.into(), ICMP_V6, &body);
    body[2..4].copy_from_slice(&sum.to_be_bytes());

    let mut answer = vec![0x60, 0, 0, 0];
    answer.extend((body.len() as u16).to_be_bytes());
    answer.extend([ICMP_V6, TTL]);
    answer.extend(from.octets());
    answer.extend(to.octets());
    answer.extend(body);
    answer
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::{hostile, v4, v6};
    use super::super::packet::{UDP, u16_at};
    use super::*;
    use proptest::prelude::*;

    const FROM: [&str; 2] = ["10.77.0.1", "fd77::1"];

    fn told(bytes: &[u8], from: &str, refusal: Refusal) -> Option<Vec<u8>> {
        let packet = Packet::parse(bytes).unwrap();
        answer(bytes, &packet, from.parse().unwrap(), refusal)
    }

    #[test]
    fn the_sender_learns_the_size_that_fits() {
        let large = v4(UDP, &[7; 1480]);
        let told_v4 = told(&large, FROM[0], Refusal::TooBig(1330)).unwrap();
        let packet = Packet::parse(&told_v4).unwrap();
        assert_eq!(
            (packet.source, packet.protocol),
            (FROM[0].parse().unwrap(), ICMP)
        );
        assert_eq!(packet.destination, "10.77.0.2".parse::<IpAddr>().unwrap());
        assert_eq!(told_v4.len(), LONGEST_V4);
        assert_eq!(told_v4[20..22], [3, 4]);
        assert_eq!(u16_at(&told_v4, 26), Some(1330));
        assert_eq!(told_v4[28..], large[..548]);
        assert_eq!(checksum::of(&[&told_v4[..20]]), 0);
        assert_eq!(checksum::of(&[&told_v4[20..]]), 0);

        let large = v6(UDP, &[7; 1480]);
        let told_v6 = told(&large, FROM[1], Refusal::TooBig(1330)).unwrap();
        let packet = Packet::parse(&told_v6).unwrap();
        assert_eq!(
            (packet.source, packet.protocol),
            (FROM[1].parse().unwrap(), ICMP_V6)
        );
        assert_eq!(told_v6.len(), LONGEST_V6);
        assert_eq!(told_v6[40..42], [2, 0]);
        assert_eq!(told_v6[44..48], 1330u32.to_be_bytes());
        let sum = checksum::of_v6(packet.source, packet.destination, ICMP_V6, &told_v6[40..]);
        assert_eq!(sum, 0);
    }

    #[test]
    fn what_is_forbidden_is_said_so() {
        let told_v4 = told(&v4(UDP, &[0; 8]), FROM[0], Refusal::Prohibited).unwrap();
        assert_eq!(told_v4[20..22], [3, 13]);
        let told_v6 = told(&v6(UDP, &[0; 8]), FROM[1], Refusal::Prohibited).unwrap();
        assert_eq!(told_v6[40..42], [1, 1]);
    }

    #[test]
    fn errors_are_not_answered_nor_are_strangers_to_the_family() {
        let prohibited = Refusal::Prohibited;
        let error = told(&v4(UDP, &[0; 8]), FROM[0], prohibited).unwrap();
        assert_eq!(told(&error, FROM[0], prohibited), None);
        let error = told(&v6(UDP, &[0; 8]), FROM[1], prohibited).unwrap();
        assert_eq!(told(&error, FROM[1], prohibited), None);
        assert_eq!(told(&v4(UDP, &[0; 8]), FROM[1], prohibited), None);
        let mut part = v4(UDP, &[0; 8]);
        part[7] = 1;
        assert_eq!(told(&part, FROM[0], prohibited), None);
        let mut from_all = v4(UDP, &[0; 8]);
        from_all[12..16].fill(255);
        assert_eq!(told(&from_all, FROM[0], prohibited), None);
        // A ping may be answered.
        assert!(told(&v4(ICMP, &[8, 0, 0, 0]), FROM[0], prohibited).is_some());
    }

    proptest! {
        #[test]
        fn answers_are_packets_to_the_sender(bytes in hostile(), mtu in any::<u16>()) {
            let Ok(packet) = Packet::parse(&bytes) else {
                return Ok(());
            };
            for from in FROM {
                for refusal in [Refusal::TooBig(mtu), Refusal::Prohibited] {
                    if let Some(told) = told(&bytes, from, refusal) {
                        let answer = Packet::parse(&told).unwrap();
                        prop_assert_eq!(answer.destination, packet.source);
                        prop_assert!(answer.is_icmp_error(&told));
                    }
                }
            }
        }
    }
}
