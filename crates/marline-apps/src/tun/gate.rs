//! What a server lets through a tunnel: the rules for targets ([`Judge`]) applied to packets.

use super::packet::{ICMP, ICMP_V6, Packet};
use super::pool::Pool;
use crate::proxy::policy::{Judge, Port};
use std::net::IpAddr;

/// The rules of a server's tunnel.
#[derive(Debug, Clone)]
pub struct Gate {
    pool: Pool,
    judge: Judge,
    peers: bool,
}

impl Gate {
    /// Of these rules; `peers` lets clients reach each other.
    pub fn new(pool: Pool, judge: Judge, peers: bool) -> Self {
        Gate { pool, judge, peers }
    }

    /// The same for a client whose targets this one judges.
    #[must_use]
    pub fn judged_by(&self, judge: Judge) -> Self {
        Gate {
            judge,
            ..self.clone()
        }
    }

    /// May a client with these addresses send this packet? It comes from the client's own address
    /// and goes to the server's address in the tunnel, if it is a ping or a rule opens that, to
    /// another client if that is allowed, or to what the rules allow; and to nowhere else by way of
    /// these.
    pub fn out(&self, own: &[IpAddr], bytes: &[u8], packet: &Packet) -> bool {
        let port = port(packet, |ports| ports.1);
        own.contains(&packet.source)
            && !packet.detour
            && self.allows(packet.destination, port, packet.is_echo(bytes))
    }

    /// Is it too early to say what may go to `address`? The sender tries again.
    pub fn is_undecided(&self, address: IpAddr) -> bool {
        self.judge.is_undecided(address)
    }

    /// May this packet go to the client that has its destination? Answers may, from wherever the
    /// client may send to; and reports of errors, from any router on the way.
    pub fn back(&self, bytes: &[u8], packet: &Packet) -> bool {
        let port = port(packet, |ports| ports.0);
        let error = packet.is_icmp_error(bytes);
        self.allows(packet.source, port, error || packet.is_echo(bytes))
            || (error && !self.pool.contains(packet.source))
    }

    /// May packets go to or come from `address`? `free` are those for which the server's own needs
    /// no rule.
    fn allows(&self, address: IpAddr, port: Port, free: bool) -> bool {
        if !self.pool.contains(address) {
            return self.judge.check_packet(address, port).is_ok();
        }
        // What listens there need not count on strangers: it is this host.
        let server = self.pool.server().iter().any(|net| net.addr() == address);
        let open = match server {
            true => free || self.judge.opens(address, port),
            false => self.peers && self.is_client(address),
        };
        open && !self.judge.denies_packet(address, port)
    }

    /// Neither the network itself nor all of it at once, nor this host.
    fn is_client(&self, address: IpAddr) -> bool {
        let mut networks = self.pool.networks();
        networks.all(|net| net.network() != address && net.broadcast() != address)
            && !self.judge.is_own(address)
    }
}

/// The port that rules are about.
fn port(packet: &Packet, which: impl Fn((u16, u16)) -> u16) -> Port {
    match packet.ports {
        Some(ports) => Port::Number(which(ports)),
        None if matches!(packet.protocol, ICMP | ICMP_V6) => Port::Without,
        // A part of a packet, or of a protocol that this program does not look into.
        None => Port::Hidden,
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::UDP;
    use super::super::packet::tests::{hostile, v4, v6};
    use super::*;
    use crate::proxy::policy::tests::judge;
    use proptest::prelude::*;

    /// From 10.77.0.2 or fd77::2 to this address.
    fn to(destination: &str, port: u16) -> Vec<u8> {
        let [high, low] = port.to_be_bytes();
        let udp = [0x30, 0x39, high, low, 0, 8, 0, 0];
        match destination.parse().unwrap() {
            IpAddr::V4(address) => {
                let mut bytes = v4(UDP, &udp);
                bytes[16..20].copy_from_slice(&address.octets());
                bytes
            }
            IpAddr::V6(address) => {
                let mut bytes = v6(UDP, &udp);
                bytes[24..40].copy_from_slice(&address.octets());
                bytes
            }
        }
    }

    fn gate(allow: &[&str], deny: &[&str], peers: bool) -> Gate {
        let pool = "10.77.0.0/24,fd77::/64".parse().unwrap();
        let host = ["9.9.9.9", "2606:4700::9", "10.77.0.7"];
        Gate::new(pool, judge(allow, deny, &host, &[]), peers)
    }

    fn own() -> [IpAddr; 2] {
        ["10.77.0.2".parse().unwrap(), "fd77::2".parse().unwrap()]
    }

    fn out(gate: &Gate, bytes: &[u8]) -> bool {
        gate.out(&own(), bytes, &Packet::parse(bytes).unwrap())
    }

    /// An echo request, or whatever else is of this type, to this address.
    fn icmp(destination: &str, kind: u8) -> Vec<u8> {
        match destination.parse().unwrap() {
            IpAddr::V4(address) => {
                let mut bytes = v4(ICMP, &[kind, 0, 0, 0, 0, 0, 0, 0]);
                bytes[16..20].copy_from_slice(&address.octets());
                bytes
            }
            IpAddr::V6(address) => {
                let mut bytes = v6(ICMP_V6, &[kind, 0, 0, 0, 0, 0, 0, 0]);
                bytes[24..40].copy_from_slice(&address.octets());
                bytes
            }
        }
    }

    #[test]
    fn by_default_clients_reach_the_public_network_and_not_the_server() {
        let gate = gate(&[], &[], false);
        for (destination, fine) in [
            ("10.77.0.1", false),
            ("fd77::1", false),
            ("9.9.9.9", false),
            ("2606:4700::9", false),
            ("64:ff9b::9.9.9.9", false),
            ("1.1.1.1", true),
            ("2606:4700::1", true),
            ("10.77.0.3", false),
            ("fd77::3", false),
            ("10.77.0.255", false),
            ("192.168.1.1", false),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("fe80::1", false),
            ("224.0.0.251", false),
        ] {
            assert_eq!(out(&gate, &to(destination, 80)), fine, "{destination}");
        }
        let spoofed = {
            let mut bytes = to("1.1.1.1", 80);
            bytes[15] = 3;
            bytes
        };
        assert!(!out(&gate, &spoofed));
    }

    #[test]
    fn the_server_answers_pings_and_what_an_address_rule_opens() {
        for (allow, destination, echo, web, ssh) in [
            (&[][..], "10.77.0.1", true, false, false),
            (&[], "fd77::1", true, false, false),
            (&["1.1.1.1:443"], "10.77.0.1", true, false, false),
            (&["*", "0.0.0.0/0", "::/0"], "10.77.0.1", true, false, false),
            (&["*", "0.0.0.0/0", "::/0"], "fd77::1", true, false, false),
            (&["10.77.0.1:80"], "10.77.0.1", true, true, false),
            (&["10.77.0.0/24"], "10.77.0.1", true, true, true),
            (&["fd77::1"], "fd77::1", true, true, true),
            (&["fd77::1"], "10.77.0.1", true, false, false),
            // Its other addresses answer nothing.
            (&[], "9.9.9.9", false, false, false),
            (&["9.9.9.9:80"], "9.9.9.9", false, true, false),
            (&["9.9.9.9"], "9.9.9.9", true, true, true),
        ] {
            let gate = gate(allow, &[], false);
            // Request and answer, and what is neither: a redirect.
            let (request, reply, redirect) = match destination.contains(':') {
                true => (128, 129, 137),
                false => (8, 0, 5),
            };
            let what = format!("{allow:?} {destination}");
            assert_eq!(out(&gate, &icmp(destination, request)), echo, "{what}");
            assert_eq!(out(&gate, &icmp(destination, reply)), echo, "{what}");
            assert_eq!(out(&gate, &icmp(destination, redirect)), ssh, "{what}");
            assert_eq!(out(&gate, &to(destination, 80)), web, "{what}");
            assert_eq!(out(&gate, &to(destination, 22)), ssh, "{what}");
        }
        let gate = gate(&[], &["10.77.0.1"], false);
        assert!(!out(&gate, &icmp("10.77.0.1", 8)) && out(&gate, &icmp("fd77::1", 128)));
    }

    #[test]
    fn rules_and_peers_open_and_close() {
        let rules = gate(&["10.1.0.0/16:443", "10.2.0.0/16"], &["10.2.9.9"], true);
        for (destination, port, fine) in [
            ("10.1.0.1", 443, true),
            ("10.1.0.1", 80, false),
            ("10.2.0.1", 80, true),
            ("10.2.9.9", 80, false),
            ("1.1.1.1", 80, false),
            ("10.77.0.3", 80, true),
            ("10.77.0.255", 80, false),
            ("10.77.0.0", 80, false),
            // Not a client: this host has it.
            ("10.77.0.7", 80, false),
        ] {
            assert_eq!(
                out(&rules, &to(destination, port)),
                fine,
                "{destination}:{port}"
            );
        }
        // Without ports only rules for all ports count.
        let mut ping = v4(ICMP, &[8, 0, 0, 0]);
        ping[16..20].copy_from_slice(&[10, 1, 0, 1]);
        assert!(!out(&rules, &ping));
        ping[16..20].copy_from_slice(&[10, 2, 0, 1]);
        assert!(out(&rules, &ping));
    }

    #[test]
    fn what_is_denied_is_denied_inside_the_tunnel_as_well() {
        let denied = ["10.77.0.1:22", "[fd77::/64]:22", "10.77.0.9"];
        let gate = gate(&["10.77.0.0/24", "fd77::1"], &denied, true);
        for (destination, port, fine) in [
            ("10.77.0.1", 22, false),
            ("10.77.0.1", 80, true),
            ("fd77::1", 22, false),
            ("fd77::3", 80, true),
            ("10.77.0.3", 22, true),
            ("10.77.0.9", 80, false),
        ] {
            let packet = to(destination, port);
            assert_eq!(out(&gate, &packet), fine, "{destination}:{port}");
        }
    }

    #[test]
    fn nothing_leaves_by_a_detour() {
        let gate = gate(&["*", "10.77.0.1"], &[], false);
        for destination in ["1.1.1.1", "10.77.0.1"] {
            let mut bytes = to(destination, 80);
            // A loose source route to 192.168.1.1.
            let route = [131, 7, 4, 192, 168, 1, 1, 0];
            bytes.splice(20..20, route);
            (bytes[0], bytes[3]) = (0x47, bytes[3] + 8);
            assert!(!out(&gate, &bytes), "{destination}");
            bytes[20..28].fill(1);
            assert!(out(&gate, &bytes), "{destination}");
        }
    }

    #[test]
    fn a_part_of_a_packet_does_not_get_past_a_rule_for_its_port() {
        let gate = gate(&[], &["*:25"], false);
        let mut part = to("1.1.1.1", 80);
        assert!(out(&gate, &part));
        part[7] = 1;
        assert!(!out(&gate, &part));
        let mut ping = v4(ICMP, &[8, 0, 0, 0]);
        ping[16..20].fill(1);
        assert!(out(&gate, &ping));
    }

    #[test]
    fn only_answers_and_errors_come_back() {
        let gate = gate(&["10.1.0.0/16:443"], &[], false);
        let back = |bytes: &[u8]| gate.back(bytes, &Packet::parse(bytes).unwrap());
        let from = |a: [u8; 4], port: u16| {
            let [high, low] = port.to_be_bytes();
            let mut bytes = v4(UDP, &[high, low, 0x30, 0x39, 0, 8, 0, 0]);
            bytes[12..16].copy_from_slice(&a);
            bytes
        };
        assert!(back(&from([10, 1, 0, 1], 443)));
        assert!(!back(&from([10, 1, 0, 1], 80)));
        assert!(!back(&from([10, 77, 0, 1], 80)));
        for kind in [0, 3, 8, 11] {
            let mut told = v4(ICMP, &[kind, 0, 0, 0, 0, 0, 0, 0]);
            told[12..16].copy_from_slice(&[10, 77, 0, 1]);
            assert!(back(&told), "{kind}");
        }
        assert!(!back(&from([10, 77, 0, 3], 80)));
        let mut error = v4(ICMP, &[3, 4, 0, 0, 0, 0, 5, 0]);
        error[12..16].copy_from_slice(&[192, 168, 7, 1]);
        assert!(back(&error));
        error[12..16].copy_from_slice(&[10, 77, 0, 3]);
        assert!(!back(&error));
    }

    proptest! {
        #[test]
        fn nothing_leaves_under_a_strange_name(bytes in hostile()) {
            if let Ok(packet) = Packet::parse(&bytes) {
                let open = gate(&["*", "0.0.0.0/0", "10.0.0.0/8"], &[], true);
                prop_assert!(!open.out(&own(), &bytes, &packet) || own().contains(&packet.source));
            }
        }
    }
}
