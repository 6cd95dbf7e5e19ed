//! What a client takes from its server: addresses, and packets. The configuration decides; the
//! server only names.
//!
//! * An address, the client's own or the server's, is a single one, and no other way leads there:
//!   it is private (RFC 1918, RFC 4193) or shared (RFC 6598), neither this host's nor in a network
//!   that another interface has a route to nor a name server's; or `--tun-route` covers it, more
//!   closely than the other route.
//! * What comes in comes from where packets of this host go out through the tunnel: the server's
//!   address and what `--tun-route` covers. Errors (ICMP) come from any router, if they are about
//!   such a packet.
//! * It goes to the client's own address, or to a network behind it that it announces, by no
//!   detour.
//!
//! So a hostile server has of this host what it was asked to carry.

use super::elsewhere::Elsewhere;
use super::hello::Place;
use super::packet::{Fragment, ICMP, ICMP_V6, Packet};
use ipnet::{IpNet, Ipv4Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses of servers without a `--tun-pool`: a name server that is given as one of these is
/// meant to be the tunnel's.
const USUAL: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 77, 0, 0), 24);
/// Shared address space (RFC 6598).
const SHARED: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 10);

/// The client's side of it.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    /// What is behind the tunnel.
    routes: Vec<IpNet>,
    /// Networks behind this host that the server may send to.
    announced: Vec<IpNet>,
}

/// Why an address is not taken from a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unwelcome {
    #[error("{0} is no host's address")]
    NoHost(IpAddr),
    #[error("{0} is this host's own, of {1}")]
    Own(IpAddr, String),
    #[error("{0} is the server's and the client's at once")]
    Both(IpAddr),
    #[error("{0} is a public address; --tun-route {1} would take it")]
    Public(IpAddr, IpNet),
    #[error("{0} is reached by {1}, which has a route to {2}; --tun-route {3} would take it")]
    Reached(IpAddr, String, IpNet, IpNet),
    #[error("{0} is a name server of this host; --tun-route {1} would take it")]
    NameServer(IpAddr, IpNet),
}

/// Why a packet from a server goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stray {
    #[error("it is not for this host")]
    Destination,
    #[error("it is to go on by a source route")]
    Detour,
    #[error("it is to change this host's routes")]
    Routing,
    #[error("what comes from there does not come through the tunnel")]
    Source,
}

impl Terms {
    pub(super) fn new(routes: Vec<IpNet>, announced: Vec<IpNet>) -> Self {
        Terms { routes, announced }
    }

    /// Networks behind this host that the server may send to.
    pub(super) fn announced(&self) -> &[IpNet] {
        &self.announced
    }

    /// Is the address in one of those?
    pub(super) fn announces(&self, address: IpAddr) -> bool {
        self.announced.iter().any(|net| net.contains(&address))
    }

    /// What is behind the tunnel.
    pub(super) fn routes(&self) -> &[IpNet] {
        &self.routes
    }

    /// May these addresses be used? With `before`, which are in use.
    ///
    /// # Errors
    /// See [`Unwelcome`].
    pub(super) fn place(
        &self,
        place: &Place,
        before: &[Place],
        elsewhere: &Elsewhere,
    ) -> Result<(), Unwelcome> {
        let (own, server) = (place.own.addr(), place.server);
        if own == server {
            return Err(Unwelcome::Both(own));
        }
        self.address(own, elsewhere)?;
        self.address(server, elsewhere)?;
        let usual = matches!(server, IpAddr::V4(server) if USUAL.contains(&server));
        let is_used = usual || before.iter().any(|before| before.server == server);
        for (address, may_serve_names) in [(own, false), (server, is_used)] {
            let may = may_serve_names || self.covers(address).is_some();
            if elsewhere.is_name_server(address) && !may {
                return Err(Unwelcome::NameServer(address, address.into()));
            }
        }
        Ok(())
    }

    fn address(&self, address: IpAddr, elsewhere: &Elsewhere) -> Result<(), Unwelcome> {
        if !is_host(address) {
            return Err(Unwelcome::NoHost(address));
        }
        if let Some(interface) = elsewhere.has(address) {
            return Err(Unwelcome::Own(address, interface.to_owned()));
        }
        let route = self.covers(address);
        if route.is_none() && !is_private(address) {
            return Err(Unwelcome::Public(address, address.into()));
        }
        match elsewhere.leads_to(address) {
            Some((interface, net)) if !is_as_close(route, net) => Err(Unwelcome::Reached(
                address,
                interface.to_owned(),
                net,
                address.into(),
            )),
            _ => Ok(()),
        }
    }

    /// The most specific route into the tunnel that covers `address`.
    fn covers(&self, address: IpAddr) -> Option<IpNet> {
        let routes = self.routes.iter().filter(|net| net.contains(&address));
        routes.max_by_key(|net| net.prefix_len()).copied()
    }

    /// Do packets of this host to `address` go through the tunnel of `places`?
    fn goes_out(&self, address: IpAddr, places: &[Place], elsewhere: &Elsewhere) -> bool {
        let is_place = |place: &Place| place.own.addr() == address;
        if !is_host(address) || places.iter().any(is_place) || elsewhere.has(address).is_some() {
            return false;
        }
        places.iter().any(|place| place.server == address)
            || match (self.covers(address), elsewhere.leads_to(address)) {
                (None, _) => false,
                (Some(_), None) => true,
                (route, Some((_, net))) => is_as_close(route, net),
            }
    }

    /// May this host's kernel have a packet that came from the server to `places`?
    ///
    /// # Errors
    /// See [`Stray`].
    pub(super) fn packet(
        &self,
        bytes: &[u8],
        packet: &Packet,
        places: &[Place],
        elsewhere: &Elsewhere,
    ) -> Result<(), Stray> {
        let own = |address| {
            self.announces(address) || places.iter().any(|place| place.own.addr() == address)
        };
        if !own(packet.destination) {
            return Err(Stray::Destination);
        }
        if packet.detour {
            return Err(Stray::Detour);
        }
        if is_routing(bytes, packet) {
            return Err(Stray::Routing);
        }
        if self.goes_out(packet.source, places, elsewhere) {
            return Ok(());
        }
        let about_ours = || {
            quoted(bytes, packet)
                .is_some_and(|(from, to)| own(from) && self.goes_out(to, places, elsewhere))
        };
        let router = is_host(packet.source) && !own(packet.source);
        match router && elsewhere.has(packet.source).is_none() && about_ours() {
            true => Ok(()),
            false => Err(Stray::Source),
        }
    }
}

/// Is a route into the tunnel at least as specific as another?
fn is_as_close(route: Option<IpNet>, other: IpNet) -> bool {
    route.is_some_and(|route| route.prefix_len() >= other.prefix_len())
}

/// An address that one host can have, in more than one link.
fn is_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let first = address.octets()[0];
            // Without "this network", loopback, and everything behind class C.
            !matches!(first, 0 | 127 | 224..) && !address.is_link_local()
        }
        IpAddr::V6(address) => {
            let [first, ..] = address.segments();
            // Unspecified, loopback and embedded IPv4 begin with zeroes.
            !address.is_multicast() && first & 0xffc0 != 0xfe80 && address.to_bits() >> 96 != 0
        }
    }
}

/// An address that means something only where it is given.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_private() || SHARED.contains(&address),
        IpAddr::V6(address) => address.is_unique_local(),
    }
}

/// Redirects and neighbour discovery (RFC 792, RFC 4861): nobody in a tunnel has a link to speak
/// of.
fn is_routing(bytes: &[u8], packet: &Packet) -> bool {
    let kind = bytes.get(packet.transport);
    packet.fragment != Fragment::Later
        && match (packet.protocol, kind) {
            (ICMP, Some(kind)) => matches!(kind, 5 | 9 | 10),
            (ICMP_V6, Some(kind)) => matches!(kind, 133..=137),
            _ => false,
        }
}

/// Source and destination of the packet that an ICMP error is about.
fn quoted(bytes: &[u8], packet: &Packet) -> Option<(IpAddr, IpAddr)> {
    let kind = bytes.get(packet.transport)?;
    let behind = bytes.get(packet.transport + 8..)?;
    match (packet.protocol, kind, packet.fragment) {
        (_, _, Fragment::Later) => None,
        // Unreachable, time exceeded, parameter problem.
        (ICMP, 3 | 11 | 12, _) => {
            let (head, _) = behind.split_first_chunk::<20>()?;
            let address = |at: usize| {
                let octets = head[at..].first_chunk::<4>().copied();
                octets.map(|octets| IpAddr::V4(Ipv4Addr::from(octets)))
            };
            (head[0] >> 4 == 4).then_some(())?;
            address(12).zip(address(16))
        }
        // The same, and too big.
        (ICMP_V6, 1..=4, _) => {
            let (head, _) = behind.split_first_chunk::<40>()?;
            let address = |at: usize| {
                let octets = head[at..].first_chunk::<16>().copied();
                octets.map(|octets| IpAddr::V6(Ipv6Addr::from(octets)))
            };
            (head[0] >> 4 == 6).then_some(())?;
            address(8).zip(address(24))
        }
        _ => None,
    }
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::super::elsewhere::tests::example;
    use super::super::packet::UDP;
    use super::super::packet::tests::{hostile, v4, v6};
    use super::*;
    use proptest::prelude::*;

    fn place(own: &str, server: &str) -> Place {
        Place {
            own: own.parse::<IpAddr>().unwrap().into(),
            server: server.parse().unwrap(),
        }
    }

    fn terms(routes: &[&str]) -> Terms {
        Terms::new(
            routes.iter().map(|net| net.parse().unwrap()).collect(),
            Vec::new(),
        )
    }

    fn why(routes: &[&str], own: &str, server: &str) -> String {
        let verdict = terms(routes).place(&place(own, server), &[], &example());
        verdict.err().map_or(String::new(), |why| why.to_string())
    }

    #[test]
    fn a_server_names_private_addresses_that_lead_nowhere_else() {
        for (own, server) in [
            ("10.77.0.2", "10.77.0.1"),
            ("100.64.7.2", "100.64.7.1"),
            ("fd77::2", "fd77::1"),
        ] {
            assert_eq!(why(&[], own, server), "", "{own} {server}");
        }
        for (address, reason) in [
            ("8.0.0.9", "public"),
            ("198.51.100.7", "public"),
            ("2001:db8:9::1", "public"),
            ("192.168.1.7", "this host's own, of eth0"),
            ("172.31.5.5", "this host's own, of lo"),
            ("192.168.1.1", "eth0, which has a route to 192.168.1.0/24"),
            ("10.2.3.4", "eth0, which has a route to 10.2.0.0/16"),
            ("fd55::1", "eth0, which has a route to fd55::/48"),
            ("10.0.0.53", "a name server"),
            ("fd44::53", "a name server"),
        ] {
            let four = address.contains('.');
            let (own, server) = match four {
                true => ("10.77.0.2", "10.77.0.1"),
                false => ("fd77::2", "fd77::1"),
            };
            for why in [why(&[], address, server), why(&[], own, address)] {
                assert!(why.contains(reason) && why.contains(address), "{why}");
            }
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "169.254.169.254",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.77.0.9",
            "fe80::1",
            "ff02::1",
        ] {
            let why = why(&["0.0.0.0/0", "::/0"], address, "10.77.0.1");
            assert!(why.contains("no host's address"), "{address}: {why}");
        }
        let why = why(&[], "10.77.0.1", "10.77.0.1");
        assert!(why.contains("at once"), "{why}");
    }

    #[test]
    fn what_the_configuration_covers_more_closely_is_accepted() {
        let all = &["0.0.0.0/0", "::/0"];
        for (routes, address, fine) in [
            (&["8.0.0.0/24"][..], "8.0.0.9", true),
            (&["8.0.1.0/24"], "8.0.0.9", false),
            (&["8.0.0.9/32"], "8.0.0.9", true),
            (all, "8.0.0.9", true),
            (all, "2001:db8:9::9", true),
            (all, "192.168.1.9", false),
            (all, "10.2.0.9", false),
            (&["192.168.1.0/24"], "192.168.1.9", true),
            (&["192.168.0.0/16"], "192.168.1.9", false),
            (&["10.2.7.0/24"], "10.2.7.9", true),
            (&["192.168.1.7/32"], "192.168.1.7", false),
            (&["10.0.0.0/8"], "10.0.0.53", true),
        ] {
            let other = if address.contains('.') {
                "10.77.0.1"
            } else {
                "fd77::1"
            };
            let why = why(routes, address, other);
            assert_eq!(why.is_empty(), fine, "{routes:?} {address}: {why}");
        }
    }

    #[test]
    fn a_name_server_may_be_that_of_the_tunnel_in_use() {
        let terms = terms(&[]);
        let offered = place("fd44::2", "fd44::53");
        assert!(terms.place(&offered, &[], &example()).is_err());
        assert_eq!(terms.place(&offered, &[offered], &example()), Ok(()));
    }

    fn places() -> [Place; 2] {
        [place("10.77.0.2", "10.77.0.1"), place("fd77::2", "fd77::1")]
    }

    fn verdict(routes: &[&str], bytes: &[u8]) -> Result<(), Stray> {
        let packet = Packet::parse(bytes).unwrap();
        terms(routes).packet(bytes, &packet, &places(), &example())
    }

    /// A datagram between these addresses.
    fn datagram(from: &str, to: &str) -> Vec<u8> {
        ip(from, to, UDP, &[0, 53, 0x30, 0x39, 0, 8, 0, 0])
    }

    fn ip(from: &str, to: &str, protocol: u8, payload: &[u8]) -> Vec<u8> {
        match (from.parse().unwrap(), to.parse().unwrap()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let mut bytes = v4(protocol, payload);
                bytes[12..16].copy_from_slice(&from.octets());
                bytes[16..20].copy_from_slice(&to.octets());
                bytes
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let mut bytes = v6(protocol, payload);
                bytes[8..24].copy_from_slice(&from.octets());
                bytes[24..40].copy_from_slice(&to.octets());
                bytes
            }
            _ => panic!("of one family"),
        }
    }

    #[test]
    fn packets_come_from_where_they_go() {
        let some = &["198.51.100.0/24", "fd99::/64"][..];
        let all = &["0.0.0.0/0", "::/0"][..];
        for (routes, from, fine) in [
            (&[][..], "10.77.0.1", true),
            (&[], "fd77::1", true),
            (&[], "10.77.0.3", false),
            (&["10.77.0.0/24"], "10.77.0.3", true),
            (some, "198.51.100.7", true),
            (some, "fd99::7", true),
            (some, "198.51.101.7", false),
            (some, "fd98::7", false),
            (all, "1.1.1.1", true),
            (all, "2001:db8:9::9", true),
            // The host's own addresses and networks, whatever is routed.
            (all, "10.77.0.2", false),
            (all, "192.168.1.7", false),
            (all, "192.168.1.1", false),
            (all, "10.2.0.1", false),
            (all, "2001:db8:1::1", false),
            (&["192.168.1.0/24"], "192.168.1.1", true),
            (all, "127.0.0.1", false),
            (all, "169.254.169.254", false),
            (all, "224.0.0.1", false),
            (all, "0.0.0.0", false),
            (all, "::1", false),
            (all, "fe80::1", false),
        ] {
            let to = if from.contains('.') {
                "10.77.0.2"
            } else {
                "fd77::2"
            };
            let verdict = verdict(routes, &datagram(from, to));
            let expected = if fine { Ok(()) } else { Err(Stray::Source) };
            assert_eq!(verdict, expected, "{routes:?} {from}");
        }
    }

    #[test]
    fn packets_go_to_this_host_and_no_further() {
        let all = &["0.0.0.0/0", "::/0"][..];
        for to in [
            "10.77.0.3",
            "192.168.1.7",
            "192.168.1.9",
            "10.77.0.255",
            "224.0.0.251",
        ] {
            let packet = datagram("10.77.0.1", to);
            assert_eq!(verdict(all, &packet), Err(Stray::Destination), "{to}");
        }
        assert_eq!(
            verdict(all, &datagram("fd77::1", "ff02::1")),
            Err(Stray::Destination)
        );
        let mut routed = datagram("10.77.0.1", "10.77.0.2");
        routed.splice(20..20, [131, 7, 4, 192, 168, 1, 9, 0]);
        (routed[0], routed[3]) = (0x47, routed[3] + 8);
        assert_eq!(verdict(all, &routed), Err(Stray::Detour));
    }

    #[test]
    fn routes_and_neighbours_are_nobody_s_to_announce() {
        let all = &["0.0.0.0/0", "::/0"][..];
        let redirect = [5, 1, 0, 0, 192, 168, 1, 66];
        let packet = ip("10.77.0.1", "10.77.0.2", ICMP, &redirect);
        assert_eq!(verdict(all, &packet), Err(Stray::Routing));
        for kind in 133..=137 {
            let packet = ip("fd77::1", "fd77::2", ICMP_V6, &[kind, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(verdict(all, &packet), Err(Stray::Routing), "{kind}");
        }
        let ping = ip("fd77::1", "fd77::2", ICMP_V6, &[129, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(verdict(all, &ping), Ok(()));
    }

    #[test]
    fn a_router_reports_what_became_of_a_packet_of_this_host() {
        let routes = &["198.51.100.0/24", "fd99::/64"][..];
        for (router, own, target, stranger, protocol, kind) in [
            (
                "203.0.113.1",
                "10.77.0.2",
                "198.51.100.7",
                "203.0.113.9",
                ICMP,
                3,
            ),
            ("2001:db8:5::1", "fd77::2", "fd99::7", "fd98::9", ICMP_V6, 2),
        ] {
            let about = |kind: u8, from: &str, to: &str| {
                let head = [kind, 4, 0, 0, 0, 0, 5, 0];
                let payload = [&head[..], &datagram(from, to)].concat();
                verdict(routes, &ip(router, own, protocol, &payload))
            };
            assert_eq!(about(kind, own, target), Ok(()));
            assert_eq!(about(kind, own, stranger), Err(Stray::Source));
            assert_eq!(about(kind, stranger, own), Err(Stray::Source));
            // No error at all.
            assert_eq!(
                about(if protocol == ICMP { 0 } else { 129 }, own, target),
                Err(Stray::Source)
            );
            let short = ip(router, own, protocol, &[kind, 4, 0, 0, 0, 0, 5, 0, 0x45]);
            assert_eq!(verdict(routes, &short), Err(Stray::Source));
        }
    }

    proptest! {
        #[test]
        fn what_comes_in_is_for_this_host(bytes in hostile(), all: bool) {
            let routes = &["0.0.0.0/0", "::/0"][..if all { 2 } else { 0 }];
            if let Ok(packet) = Packet::parse(&bytes)
                && terms(routes).packet(&bytes, &packet, &places(), &example()).is_ok()
            {
                prop_assert!(places().iter().any(|place| place.own.addr() == packet.destination));
                prop_assert!(is_host(packet.source));
                prop_assert!(example().has(packet.source).is_none());
            }
        }

        #[test]
        fn no_offer_is_an_address_of_this_host_or_of_its_networks(own: u32, server: u128, all: bool) {
            let terms = terms(&["0.0.0.0/0", "::/0"][..if all { 2 } else { 0 }]);
            let own = IpAddr::V4(Ipv4Addr::from(own));
            let server = IpAddr::V6(Ipv6Addr::from(server));
            for address in [own, server] {
                if terms.address(address, &example()).is_ok() {
                    prop_assert!(is_host(address) && example().leads_to(address).is_none());
                    prop_assert!(all || is_private(address));
                }
            }
        }
    }
}
