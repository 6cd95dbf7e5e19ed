//! What a tunnel needs to know of an IP packet: who sends to whom, what, and where the parts are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Protocol number of ICMP (RFC 792).
pub(super) const ICMP: u8 = 1;
/// Protocol number of TCP.
pub(super) const TCP: u8 = 6;
/// Protocol number of UDP.
pub(super) const UDP: u8 = 17;
/// Protocol number of ICMPv6 (RFC 4443).
pub(super) const ICMP_V6: u8 = 58;
const DCCP: u8 = 33;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// IPv6 extension headers (RFC 8200 section 4) that are walked over.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
/// Most of them; what is behind more is not looked into.
const MAX_EXTENSIONS: usize = 8;

/// IPv4 options (RFC 791 section 3.1): the end of all, one byte of nothing, and loose and strict
/// source routes.
const NO_MORE: u8 = 0;
const NOTHING: u8 = 1;
const LOOSE_ROUTE: u8 = 131;
const STRICT_ROUTE: u8 = 137;

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;

/// A part of a packet that was sent in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fragment {
    /// The packet is whole.
    Whole,
    /// The part with the transport's header.
    First,
    /// Any other part.
    Later,
}

/// An IP packet whose header has been checked against its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Its sender.
    pub source: IpAddr,
    /// Its receiver.
    pub destination: IpAddr,
    /// Number of the transport protocol, or of the IPv6 header that could not be walked over.
    pub protocol: u8,
    /// Differentiated services code point (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// Routers must not cut it: every IPv6 packet, and IPv4 ones that say so.
    pub dont_fragment: bool,
    /// Whether it is whole.
    pub fragment: Fragment,
    /// Where the transport's header begins (bytes); at most the packet's length.
    pub transport: usize,
    /// The host at the destination may be asked to send it on to another one: it has a source
    /// route, or may have one behind more headers than are walked over.
    pub detour: bool,
    /// Source and destination port, where the protocol has them and they are in this packet.
    pub ports: Option<(u16, u16)>,
}

/// Why bytes are no IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Neither IPv4 nor IPv6: the version in the first byte.
    #[error("IP version {0} is neither 4 nor 6")]
    Version(u8),
    /// The header is cut off: the bytes that there are.
    #[error("{0} bytes are too few for an IP header")]
    Short(usize),
    /// Header lengths contradict each other or the packet's.
    #[error("a header of {header} bytes in a packet of {packet}")]
    Header {
        /// What the header says of itself.
        header: usize,
        /// Bytes of the packet.
        packet: usize,
    },
    /// The header gives another length than the packet has.
    #[error("the header says {said} bytes, there are {found}")]
    Length {
        /// What the header says.
        said: usize,
        /// Bytes of the packet.
        found: usize,
    },
}

/// The big-endian number at `at`.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

impl Packet {
    /// Reads the headers of `bytes`, which must hold one packet and nothing else. Any bytes are a
    /// packet or an error.
    ///
    /// # Errors
    /// See [`PacketError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, PacketError> {
        match bytes.first().map(|first| first >> 4) {
            Some(4) => Self::parse_v4(bytes),
            Some(6) => Self::parse_v6(bytes),
            Some(version) => Err(PacketError::Version(version)),
            None => Err(PacketError::Short(0)),
        }
    }

    fn parse_v4(bytes: &[u8]) -> Result<Self, PacketError> {
        let found = bytes.len();
        let Some((head, _)) = bytes.split_first_chunk::<V4_HEADER>() else {
            return Err(PacketError::Short(found));
        };
        let said = usize::from(u16::from_be_bytes([head[2], head[3]]));
        if said != found {
            return Err(PacketError::Length { said, found });
        }
        let header = usize::from(head[0] & 0x0f) * 4;
        if !(V4_HEADER..=found).contains(&header) {
            return Err(PacketError::Header {
                header,
                packet: found,
            });
        }
        let flags = u16::from_be_bytes([head[6], head[7]]);
        let (more, offset) = (flags & 0x2000 != 0, flags & 0x1fff);
        let address = |at: usize| {
            IpAddr::V4(Ipv4Addr::new(
                head[at],
                head[at + 1],
                head[at + 2],
                head[at + 3],
            ))
        };
        let mut packet = Packet {
            source: address(12),
            destination: address(16),
            protocol: head[9],
            dscp: head[1] >> 2,
            dont_fragment: flags & 0x4000 != 0,
            fragment: fragment(offset, more),
            transport: header,
            detour: has_source_route(&bytes[V4_HEADER..header]),
            ports: None,
        };
        packet.read_ports(bytes);
        Ok(packet)
    }

    fn parse_v6(bytes: &[u8]) -> Result<Self, PacketError> {
        let found = bytes.len();
        let Some((head, _)) = bytes.split_first_chunk::<V6_HEADER>() else {
            return Err(PacketError::Short(found));
        };
        let said = V6_HEADER + usize::from(u16::from_be_bytes([head[4], head[5]]));
        if said != found {
            return Err(PacketError::Length { said, found });
        }
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&head[at..at + 16]);
            IpAddr::V6(Ipv6Addr::from(octets))
        };
        let mut packet = Packet {
            source: address(8),
            destination: address(24),
            protocol: head[6],
            dscp: (head[0] & 0x0f) << 2 | head[1] >> 6,
            dont_fragment: true,
            fragment: Fragment::Whole,
            transport: V6_HEADER,
            detour: false,
            ports: None,
        };
        packet.walk_extensions(bytes)?;
        packet.read_ports(bytes);
        Ok(packet)
    }

    fn walk_extensions(&mut self, bytes: &[u8]) -> Result<(), PacketError> {
        for _ in 0..MAX_EXTENSIONS {
            // What follows in a later part is not a header.
            if self.fragment == Fragment::Later {
                return Ok(());
            }
            let length = |unit: usize, less: usize| {
                let length = bytes.get(self.transport + 1).copied();
                let length = length.ok_or(PacketError::Short(bytes.len()))?;
                Ok((usize::from(length) + less) * unit)
            };
            let header = match self.protocol {
                // Segments left: none once the last address is the destination.
                ROUTING if bytes.get(self.transport + 3) != Some(&0) => {
                    self.detour = true;
                    length(8, 1)?
                }
                HOP_BY_HOP | ROUTING | DESTINATION => length(8, 1)?,
                AUTHENTICATION => length(4, 2)?,
                FRAGMENT => {
                    let flags =
                        u16_at(bytes, self.transport + 2).ok_or(PacketError::Short(bytes.len()))?;
                    self.fragment = fragment(flags >> 3, flags & 1 != 0);
                    8
                }
                _ => return Ok(()),
            };
            if self.transport + header > bytes.len() {
                return Err(PacketError::Header {
                    header,
                    packet: bytes.len(),
                });
            }
            self.protocol = bytes[self.transport];
            self.transport += header;
        }
        self.detour = true;
        Ok(())
    }

    fn read_ports(&mut self, bytes: &[u8]) {
        if self.fragment == Fragment::Whole
            && matches!(self.protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
        {
            let port = |at| u16_at(bytes, self.transport + at);
            self.ports = port(0).zip(port(2));
        }
    }

    /// Does it ask for an echo, or answer that? A later part of an ICMP packet may belong to one.
    pub fn is_echo(&self, bytes: &[u8]) -> bool {
        let kind = bytes.get(self.transport);
        match (self.protocol, self.fragment, kind) {
            (ICMP | ICMP_V6, Fragment::Later, _) => true,
            (ICMP, _, Some(kind)) => matches!(kind, 0 | 8),
            (ICMP_V6, _, Some(kind)) => matches!(kind, 128 | 129),
            _ => false,
        }
    }

    /// An ICMP message that reports an error (RFC 792, RFC 4443 section 2.1), which is never
    /// answered with another.
    pub fn is_icmp_error(&self, bytes: &[u8]) -> bool {
        let kind = bytes.get(self.transport);
        self.fragment != Fragment::Later
            && match (self.protocol, kind) {
                (ICMP, Some(kind)) => matches!(kind, 3 | 4 | 5 | 11 | 12),
                (ICMP_V6, Some(kind)) => *kind < 128,
                _ => false,
            }
    }
}

fn fragment(offset: u16, more: bool) -> Fragment {
    match (offset, more) {
        (0, false) => Fragment::Whole,
        (0, true) => Fragment::First,
        _ => Fragment::Later,
    }
}

/// Is there a source route among the options of an IPv4 header?
fn has_source_route(options: &[u8]) -> bool {
    let mut rest = options;
    while let [kind, behind @ ..] = rest {
        rest = match *kind {
            LOOSE_ROUTE | STRICT_ROUTE => return true,
            NO_MORE => return false,
            NOTHING => behind,
            // Lengths of less than kind and length are wrong, and end what routers read, too.
            _ => match behind.first() {
                Some(length @ 2..) => rest.get(usize::from(*length)..).unwrap_or_default(),
                _ => return false,
            },
        };
    }
    false
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::tun::checksum;
    use proptest::prelude::*;

    /// An IPv4 packet of this protocol with this payload, from 10.77.0.2 to 192.0.2.1.
    pub(in crate::tun) fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let length = (V4_HEADER + payload.len()) as u16;
        let mut bytes = vec![0x45, 46 << 2];
        bytes.extend(length.to_be_bytes());
        bytes.extend([0x12, 0x34, 0x40, 0, 64, protocol, 0, 0]);
        bytes.extend([10, 77, 0, 2, 192, 0, 2, 1]);
        let sum = checksum::of(&[&bytes]);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    /// An IPv6 packet whose first header after the fixed one is `next`, from fd77::2 to
    /// 2001:db8::1.
    pub(in crate::tun) fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x6b, 0x80, 0, 0];
        bytes.extend((payload.len() as u16).to_be_bytes());
        bytes.extend([next, 64]);
        bytes.extend("fd77::2".parse::<Ipv6Addr>().unwrap().octets());
        bytes.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn both_families_are_read() {
        let udp = [0x30, 0x39, 0, 53, 0, 8, 0, 0];
        let packet = Packet::parse(&v4(UDP, &udp)).unwrap();
        assert_eq!(packet.source, "10.77.0.2".parse::<IpAddr>().unwrap());
        assert_eq!(packet.destination, "192.0.2.1".parse::<IpAddr>().unwrap());
        assert_eq!((packet.protocol, packet.dscp), (UDP, 46));
        assert!(packet.dont_fragment);
        assert_eq!(packet.ports, Some((12_345, 53)));
        let packet = Packet::parse(&v6(UDP, &udp)).unwrap();
        assert_eq!(packet.source, "fd77::2".parse::<IpAddr>().unwrap());
        assert_eq!((packet.protocol, packet.dscp), (UDP, 46));
        assert_eq!((packet.transport, packet.ports), (40, Some((12_345, 53))));
    }

    #[test]
    fn extension_headers_are_walked_over() {
        let udp = [0x30, 0x39, 0, 53, 0, 8, 0, 0];
        let options = [
            &[DESTINATION, 0, 1, 4, 0, 0, 0, 0][..],
            &[UDP, 0, 1, 4, 0, 0, 0, 0],
            &udp,
        ];
        let packet = Packet::parse(&v6(HOP_BY_HOP, &options.concat())).unwrap();
        assert_eq!((packet.protocol, packet.transport), (UDP, 56));
        assert_eq!(packet.ports, Some((12_345, 53)));
        // A header that says it is longer than the packet.
        let long = [UDP, 9, 0, 0, 0, 0, 0, 0];
        let header = PacketError::Header {
            header: 80,
            packet: 48,
        };
        assert_eq!(Packet::parse(&v6(ROUTING, &long)), Err(header));
        // More of them than anybody needs: carried, but not looked into.
        let many: Vec<u8> = (0..20)
            .flat_map(|_| [DESTINATION, 0, 1, 4, 0, 0, 0, 0])
            .collect();
        let packet = Packet::parse(&v6(DESTINATION, &many)).unwrap();
        assert_eq!((packet.protocol, packet.ports), (DESTINATION, None));
        assert!(packet.detour);
    }

    #[test]
    fn source_routes_are_seen() {
        let with = |options: &[u8]| {
            let mut bytes = v4(UDP, &[options, &[0; 8]].concat());
            bytes[0] = 0x45 + (options.len() / 4) as u8;
            Packet::parse(&bytes).unwrap().detour
        };
        assert!(!with(&[]));
        for kind in [LOOSE_ROUTE, STRICT_ROUTE] {
            assert!(with(&[kind, 7, 4, 10, 0, 0, 1, NO_MORE]));
            // Behind a router alert.
            assert!(with(&[148, 4, 0, 0, kind, 7, 4, 10, 0, 0, 1, NO_MORE]));
            assert!(with(&[NOTHING, kind, 3, 4]));
            assert!(!with(&[NO_MORE, kind, 3, 4]));
        }
        // A record of the route, and lengths that are wrong.
        assert!(!with(&[7, 7, 4, 0, 0, 0, 0, NO_MORE]));
        assert!(!with(&[148, 0, LOOSE_ROUTE, 3]));
        assert!(!with(&[148, 200, 0, 0]));
        let by = |left: u8| {
            let header = [UDP, 0, 0, left, 0, 0, 0, 0, 0x30, 0x39, 0, 53, 0, 8, 0, 0];
            Packet::parse(&v6(ROUTING, &header)).unwrap().detour
        };
        assert!(by(1) && !by(0));
    }

    #[test]
    fn parts_have_no_ports() {
        let udp = [0x30, 0x39, 0, 53, 0, 8, 0, 0];
        let mut bytes = v4(UDP, &udp);
        bytes[6] = 0x20;
        let first = Packet::parse(&bytes).unwrap();
        assert_eq!((first.fragment, first.ports), (Fragment::First, None));
        bytes[6..8].copy_from_slice(&[0, 5]);
        assert_eq!(Packet::parse(&bytes).unwrap().fragment, Fragment::Later);
        let part = [&[UDP, 0, 0, 9, 0, 0, 0, 1][..], &udp].concat();
        let packet = Packet::parse(&v6(FRAGMENT, &part)).unwrap();
        assert_eq!((packet.fragment, packet.ports), (Fragment::Later, None));
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        assert_eq!(Packet::parse(&[]), Err(PacketError::Short(0)));
        assert_eq!(Packet::parse(&[0x15; 40]), Err(PacketError::Version(1)));
        assert_eq!(Packet::parse(&[0x45; 19]), Err(PacketError::Short(19)));
        assert_eq!(Packet::parse(&[0x60; 39]), Err(PacketError::Short(39)));
        let mut bytes = v4(UDP, &[0; 8]);
        bytes.push(0);
        let length = PacketError::Length {
            said: 28,
            found: 29,
        };
        assert_eq!(Packet::parse(&bytes), Err(length));
        let mut bytes = v4(UDP, &[0; 8]);
        for (ihl, header) in [(4, 16), (8, 32)] {
            bytes[0] = 0x40 | ihl;
            let error = PacketError::Header { header, packet: 28 };
            assert_eq!(Packet::parse(&bytes), Err(error));
        }
    }

    /// Bytes that often get past the first checks.
    pub(in crate::tun) fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let tail = proptest::collection::vec(any::<u8>(), 0..200);
        let next = prop_oneof![
            any::<u8>(),
            Just(TCP),
            Just(FRAGMENT),
            Just(ICMP),
            Just(ICMP_V6)
        ];
        (0..3u8, next, tail, any::<u8>()).prop_map(|(kind, next, tail, ihl)| match kind {
            0 => tail,
            1 => {
                let mut bytes = v4(next, &tail);
                bytes[0] = 0x40 | if ihl & 1 == 0 { 5 } else { ihl >> 4 };
                bytes[6] = if ihl & 2 == 0 { 0 } else { ihl };
                bytes
            }
            _ => v6(next, &tail),
        })
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_packet_or_an_error(bytes in hostile()) {
            if let Ok(packet) = Packet::parse(&bytes) {
                prop_assert!(packet.transport <= bytes.len());
                packet.is_icmp_error(&bytes);
            }
        }
    }
}
