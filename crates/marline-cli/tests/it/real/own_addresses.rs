//! Services of the server's own host, which its firewall or their place hides from outside. Needs
//! root.

use super::harness::namespace::Namespace;
use super::harness::namespaces::{Namespaces, SERVER};
use super::harness::{Program, Site, socks_reply, until};
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// What clients may reach: a public address, behind the router.
const PUBLIC: [&str; 2] = ["8.8.8.8", "2606:4700::8"];
/// The server's own public addresses, at first, and one that it has only where it is advertised.
const OWN: [&str; 2] = ["9.9.9.9", "2606:4700::9"];
const ADVERTISED: &str = "8.8.4.4";
/// In the tunnel.
const INSIDE: [&str; 2] = ["10.77.0.1", "fd77::1"];
/// Where the client's SOCKS5 proxy listens.
const SOCKS: &str = "127.0.0.1:1080";
/// Codes of RFC 1928 section 6.
const SUCCEEDED: u8 = 0;
const NOT_ALLOWED: u8 = 2;

struct World {
    client: Program,
    _server: Program,
    _site: Site,
    net: Namespaces,
}

impl World {
    /// A client with a proxy and a tunnel, a server with these words more; at every address behind
    /// and of the server something takes connections to port 80. `None` where this machine cannot
    /// have that.
    fn start(more: &[&str]) -> Option<World> {
        let net = Namespaces::new()?;
        for (namespace, addresses) in [(&net.server, &OWN[..]), (&net.anchor, &PUBLIC)] {
            for address in addresses {
                add(namespace, address);
            }
        }
        add(&net.anchor, ADVERTISED);
        for (namespace, words) in [
            (&net.server, "address add fd01::2/64 dev s0 nodad"),
            (&net.anchor, "address add fd01::1/64 dev a0 nodad"),
            (&net.server, "-6 route add default via fd01::1"),
            // Back into the tunnel.
            (&net.anchor, "route add 10.77.0.0/24 via 10.201.0.2"),
            (&net.anchor, "-6 route add fd77::/64 via fd01::2"),
        ] {
            namespace.ip(words).expect(words);
        }
        for namespace in [&net.server, &net.anchor] {
            greet(namespace.inside(|| TcpListener::bind("[::]:80").unwrap()));
        }
        let site = Site::new();
        let (key, listen) = (site.public_key("client"), format!("{SERVER}:4433"));
        let words = [
            &["server", "--identity", "server", "--listen", &listen][..],
            &["--allow-client", &key, "--control", "off"],
            &["--tun=tun-s", "--tun-setup=no-nat", "--tun-state", "off"],
            &["--tun-pool", "10.77.0.0/24,fd77::/64"],
            more,
        ];
        let server = net
            .server
            .start("the server", site.folder(), &words.concat());
        let string = server.first_line();
        let words = [
            &["client", "--identity", "client", "--server", &string][..],
            &["--control", "off", "--socks", SOCKS, "--path", "c1"],
            &["--tun=tun-c", "--tun-setup"],
            &["--tun-route", "8.0.0.0/7", "--tun-route", "2606:4700::/32"],
        ];
        let client = net
            .client
            .start("the client", site.folder(), &words.concat());
        let world = World {
            client,
            _server: server,
            _site: site,
            net,
        };
        world.client.logged("the tunnel's addresses", |line| {
            line.contains("packets of up to").then_some(())
        });
        Some(world)
    }

    /// Whether a connection by the proxy, if it takes such addresses, and one through the tunnel
    /// succeed. Refused ones are refused by the rules.
    fn reaches(&self, address: &str) -> bool {
        let target = SocketAddr::new(address.parse::<IpAddr>().unwrap(), 80);
        self.net.client.inside(|| {
            let by_tunnel = TcpStream::connect_timeout(&target, Duration::from_secs(20));
            let by_tunnel = by_tunnel.map(|mut stream| stream.read(&mut [0; 8]).unwrap());
            let found = match by_tunnel {
                Ok(greeting) => greeting > 0,
                Err(error) => {
                    let told = [ErrorKind::HostUnreachable, ErrorKind::PermissionDenied];
                    assert!(told.contains(&error.kind()), "{address}: {error:?}");
                    false
                }
            };
            if target.is_ipv4() {
                let (_stream, code) = socks_reply(SOCKS.parse().unwrap(), target).unwrap();
                let expected = if found { SUCCEEDED } else { NOT_ALLOWED };
                assert_eq!(code, expected, "{address}");
            }
            found
        })
    }
}

/// Gives a namespace one more address.
fn add(namespace: &Namespace, address: &str) {
    namespace
        .ip(&format!("address add {address} dev lo"))
        .expect("an address");
}

/// Says hello to whoever connects.
fn greet(listener: TcpListener) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let hello = |mut stream| std::io::Write::write_all(&mut stream, b"hello");
            let _ = stream.and_then(hello);
        }
    });
}

#[test]
fn the_servers_own_addresses_are_closed_as_they_come_and_go() {
    let Some(world) = World::start(&["--advertise", SERVER, "--advertise", ADVERTISED]) else {
        return;
    };
    for address in PUBLIC {
        until("a public address", || world.reaches(address).then_some(()));
    }
    for address in OWN.into_iter().chain(INSIDE).chain([ADVERTISED]) {
        assert!(!world.reaches(address), "{address}");
    }
    let server = &world.net.server;
    // What the server comes to have is closed from then on, also where no interface has it, and is
    // open again when gone.
    for (words, address) in [
        ("address add 8.8.8.8 dev lo", PUBLIC[0]),
        ("address add 2606:4700::8 dev lo", PUBLIC[1]),
        ("route add local 8.8.8.0/24 dev lo", PUBLIC[0]),
        ("-6 route add local 2606:4700::8 dev lo", PUBLIC[1]),
    ] {
        server.ip(words).expect(words);
        // A new IPv6 address is the host's only after a short while, in which the kernel answers
        // that no route leads there.
        until("the server's own address", || {
            let route = server.ip(&format!("route get {address}"))?;
            route.starts_with("local").then_some(())
        });
        assert!(!world.reaches(address), "{words}");
        server.ip(&words.replace(" add ", " del ")).expect(words);
        assert!(world.reaches(address), "{words}");
    }
}

#[test]
fn an_address_rule_opens_what_it_names() {
    let rules = ["*", "0.0.0.0/0", OWN[0], "10.77.0.1:80"];
    let words: Vec<&str> = rules
        .iter()
        .flat_map(|rule| ["--allow-target", rule])
        .collect();
    let Some(world) = World::start(&words) else {
        return;
    };
    for address in [PUBLIC[0], OWN[0], INSIDE[0]] {
        until("what is open", || world.reaches(address).then_some(()));
    }
    for address in [OWN[1], INSIDE[1]] {
        assert!(!world.reaches(address), "{address}");
    }
}
