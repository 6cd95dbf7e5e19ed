//! Which packets belong together: those of one conversation keep their order, and wait for nobody
//! else's.

use super::packet::{Fragment, Packet, UDP};
use std::net::IpAddr;

/// A conversation inside the tunnel, as its packets in one direction show it: addresses, protocol,
/// and ports where there are any. Packets that came in parts, and protocols without ports, go by
/// addresses and protocol alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    ports: (u16, u16),
}

impl Key {
    /// The conversation of a packet.
    pub fn of(packet: &Packet) -> Self {
        let ports = packet.ports.filter(|_| packet.fragment == Fragment::Whole);
        Key {
            source: packet.source,
            destination: packet.destination,
            protocol: packet.protocol,
            ports: ports.unwrap_or_default(),
        }
    }

    /// Is it one of questions and answers, a packet each (DNS over UDP), as who asks shows it?
    pub(super) fn is_question(&self) -> bool {
        /// The port of name servers (RFC 1035 section 4.2.1).
        const DNS: u16 = 53;
        self.protocol == UDP && self.ports.1 == DNS
    }

    /// The same conversation as its answers show it.
    #[must_use]
    pub fn reversed(self) -> Self {
        Key {
            source: self.destination,
            destination: self.source,
            protocol: self.protocol,
            ports: (self.ports.1, self.ports.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::{v4, v6};
    use super::super::packet::{ICMP, TCP};
    use super::*;

    fn key(bytes: &[u8]) -> Key {
        Key::of(&Packet::parse(bytes).unwrap())
    }

    #[test]
    fn conversations_differ_by_ports_protocol_and_family() {
        let ports = [0x30, 0x39, 0, 53, 0, 8, 0, 0];
        let other = [0x30, 0x39, 0, 54, 0, 8, 0, 0];
        let keys = [
            key(&v4(UDP, &ports)),
            key(&v4(UDP, &other)),
            key(&v4(TCP, &ports)),
            key(&v6(UDP, &ports)),
            key(&v4(ICMP, &ports)),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[index + 1..].contains(key), "{key:?}");
        }
        assert_eq!(key(&v4(ICMP, &ports)), key(&v4(ICMP, &other)));
    }

    #[test]
    fn the_answer_belongs_to_the_question() {
        let question = v4(UDP, &[0x30, 0x39, 0, 53, 0, 8, 0, 0]);
        let mut reply = v4(UDP, &[0, 53, 0x30, 0x39, 0, 8, 0, 0]);
        reply[12..20].rotate_left(4);
        assert_eq!(key(&reply).reversed(), key(&question));
        assert_ne!(key(&reply), key(&question));
    }

    #[test]
    fn all_parts_of_a_packet_go_together() {
        let mut first = v4(UDP, &[0x30, 0x39, 0, 53, 0, 8, 0, 0]);
        first[6] = 0x20;
        let mut later = v4(UDP, &[9; 8]);
        later[7] = 1;
        assert_eq!(key(&first), key(&later));
    }
}
