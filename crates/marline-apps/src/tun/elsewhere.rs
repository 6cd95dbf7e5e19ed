//! What this host reaches without the tunnel: its other addresses, the networks that its other
//! interfaces have routes to, and its name servers. What is there is no server's to give away.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kernel's routes (proc_pid_net(5)); other systems have no tunnels yet.
const ROUTES_V4: &str = "/proc/net/route";
const ROUTES_V6: &str = "/proc/net/ipv6_route";
/// Files with `nameserver` lines (resolv.conf(5)): the usual one, and the one that systemd-resolved
/// asks.
const NAME_SERVERS: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/// Bytes of each file that are read (some 8000 routes): a router that has all routes of the
/// internet has better things to do.
const LONGEST: u64 = 1 << 20;
/// Routes to more than a quarter of all addresses are default routes, or the halves of one.
const DEFAULT: u8 = 1;
/// Routes that refuse, and those to this host's own addresses (`RTF_REJECT` and `RTF_LOCAL` of the
/// kernel's route.h).
const NOWHERE: u32 = 0x200 | 0x8000_0000;

/// Networks and addresses that are not the tunnel's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Elsewhere {
    /// Of this host, by interface.
    own: Vec<(String, IpAddr)>,
    /// Networks that other interfaces lead to, but no default routes.
    routes: Vec<(String, IpNet)>,
    name_servers: Vec<IpAddr>,
}

impl Elsewhere {
    /// As it is now, without the interface `device`. What cannot be read is left out.
    pub(super) fn read(device: &str) -> Self {
        let interfaces = if_addrs::get_if_addrs().unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot list this host's addresses");
            Vec::new()
        });
        let own = interfaces.into_iter().map(|each| {
            let address = each.ip();
            (each.name, address)
        });
        let texts = NAME_SERVERS.map(beginning);
        Elsewhere::of(
            device,
            own.collect(),
            &beginning(ROUTES_V4),
            &beginning(ROUTES_V6),
            &texts.join("\n"),
        )
    }

    fn of(
        device: &str,
        own: Vec<(String, IpAddr)>,
        routes_v4: &str,
        routes_v6: &str,
        name_servers: &str,
    ) -> Self {
        let v4 = routes_v4.lines().filter_map(route_v4);
        let routes = v4.chain(routes_v6.lines().filter_map(route_v6));
        let is_other = |name: &str| name != device;
        let counts = |net: &IpNet| net.prefix_len() > DEFAULT;
        let name_server = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let is_one = words.next() == Some("nameserver");
            words.next().filter(|_| is_one)?.parse().ok()
        };
        Elsewhere {
            own: own.into_iter().filter(|(name, _)| is_other(name)).collect(),
            routes: routes
                .filter(|(name, net)| is_other(name) && counts(net))
                .collect(),
            name_servers: name_servers.lines().filter_map(name_server).collect(),
        }
    }

    /// The interface that has `address`.
    pub(super) fn has(&self, address: IpAddr) -> Option<&str> {
        let found = self.own.iter().find(|(_, own)| *own == address);
        found.map(|(name, _)| name.as_str())
    }

    /// The most specific route to `address` except for default routes: the interface and the
    /// network.
    pub(super) fn leads_to(&self, address: IpAddr) -> Option<(&str, IpNet)> {
        let routes = self.routes.iter().filter(|(_, net)| net.contains(&address));
        let best = routes.max_by_key(|(_, net)| net.prefix_len());
        best.map(|(name, net)| (name.as_str(), *net))
    }

    /// A name server in the network of a link, and that link.
    pub(super) fn resolver_of_one_link(&self) -> Option<(IpAddr, &str)> {
        let servers = self.name_servers.iter().filter(|it| !it.is_loopback());
        let mut found = servers.filter_map(|server| Some((*server, self.leads_to(*server)?.0)));
        found.find(|(_, link)| *link != "lo")
    }

    pub(super) fn is_name_server(&self, address: IpAddr) -> bool {
        self.name_servers.contains(&address)
    }
}

/// The beginning of a file, up to the last whole line; nothing of what cannot be read.
fn beginning(file: &str) -> String {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
    if let Err(error) = read
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::debug!(%error, "cannot read {file}");
    }
    if bytes.len() as u64 == LONGEST {
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        bytes.truncate(end.unwrap_or_default());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Interface, destination, gateway, flags, three numbers, mask, …: addresses in the machine's own
/// order of bytes.
fn route_v4(line: &str) -> Option<(String, IpNet)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [name, destination, _, flags, _, _, _, mask, ..] = words[..] else {
        return None;
    };
    let number = |text| u32::from_str_radix(text, 16).ok();
    let address = |text| number(text).map(|bits| Ipv4Addr::from(bits.to_ne_bytes()));
    if number(flags)? & NOWHERE != 0 {
        return None;
    }
    let net = Ipv4Net::with_netmask(address(destination)?, address(mask)?).ok()?;
    Some((name.to_owned(), net.into()))
}

/// Destination, its prefix, source, its prefix, next hop, three numbers, flags, interface.
fn route_v6(line: &str) -> Option<(String, IpNet)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [destination, prefix, _, _, _, _, _, _, flags, name] = words[..] else {
        return None;
    };
    if u32::from_str_radix(flags, 16).ok()? & NOWHERE != 0 || destination.len() != 32 {
        return None;
    }
    let address = Ipv6Addr::from(u128::from_str_radix(destination, 16).ok()?);
    let net = Ipv6Net::new(address, u8::from_str_radix(prefix, 16).ok()?).ok()?;
    Some((name.to_owned(), net.into()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A host in 192.168.1.0/24 and 2001:db8:1::/64, with a default route of each family, a private
    /// network behind another router, and what a tunnel `tun7` has left.
    const V4: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
eth0\t0000020A\t0201A8C0\t0003\t0\t0\t0\t0000FFFF\t0\t0\t0
tun7\t014D000A\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0
tun9\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0
*\t0000630A\t00000000\t0201\t0\t0\t0\t0000FFFF\t0\t0\t0
";
    const V6: &str = "\
20010db8000100000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
fd550000000000000000000000000000 30 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0
fd770000000000000000000000000002 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo
";
    const NAMES: &str = "# comment\nnameserver 10.0.0.53\nsearch example\nnameserver fd44::53\n";

    #[cfg(target_endian = "little")]
    pub(in super::super) fn example() -> Elsewhere {
        let own = [
            ("eth0", "192.168.1.7"),
            ("eth0", "2001:db8:1::7"),
            ("tun7", "10.77.0.2"),
            ("lo", "172.31.5.5"),
        ];
        let own = own.map(|(name, address)| (name.to_owned(), address.parse().unwrap()));
        Elsewhere::of("tun7", own.to_vec(), V4, V6, NAMES)
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn networks_of_other_interfaces_are_known_but_no_default_routes() {
        let host = example();
        let leads = |address: &str| {
            let found = host.leads_to(address.parse().unwrap());
            found.map(|(name, net)| format!("{name} {net}"))
        };
        assert_eq!(leads("192.168.1.99").unwrap(), "eth0 192.168.1.0/24");
        assert_eq!(leads("10.2.3.4").unwrap(), "eth0 10.2.0.0/16");
        assert_eq!(leads("2001:db8:1::9").unwrap(), "eth0 2001:db8:1::/64");
        assert_eq!(leads("fd55::9").unwrap(), "eth0 fd55::/48");
        for address in [
            "1.1.1.1",
            "10.77.0.1",
            "10.99.0.1",
            "2001:db8:2::1",
            "fd77::2",
        ] {
            assert_eq!(leads(address), None, "{address}");
        }
        assert_eq!(host.has("192.168.1.7".parse().unwrap()), Some("eth0"));
        assert_eq!(host.has("10.77.0.2".parse().unwrap()), None);
        assert!(host.is_name_server("10.0.0.53".parse().unwrap()));
        assert!(host.is_name_server("fd44::53".parse().unwrap()));
    }

    #[test]
    fn this_host_can_be_read() {
        let host = Elsewhere::read("no-such-device");
        assert_eq!(host.has("127.0.0.1".parse().unwrap()), Some("lo"));
    }

    proptest! {
        #[test]
        fn any_text_is_routes_or_none(text in "[0-9a-fA-F \t\n*lo]{0,300}") {
            let host = Elsewhere::of("tun7", Vec::new(), &text, &text, &text);
            prop_assert!(host.routes.len() <= text.lines().count() * 2);
        }
    }
}
