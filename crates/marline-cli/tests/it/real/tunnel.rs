//! The kernel's own TCP, UDP and pings through a tunnel, between network namespaces. Needs root.

use super::harness::namespaces::{Namespaces, SERVER};
use super::harness::{DEADLINE, Digest, Program, Site, pattern, skipped, status, until};
use marline_apps::tun::status::TunnelStanding;
use marline_proto::path::PathState;
use rustix::process::Signal;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Addresses behind the server: clients may reach those, and not these.
const ALLOWED: [&str; 2] = ["198.51.100.7", "fd99::7"];
const FORBIDDEN: [&str; 2] = ["203.0.113.7", "fd98::7"];
const RULES: [&str; 2] = ["198.51.100.0/24", "fd99::/64"];
/// What the server switches on.
const FORWARDING: [&str; 2] = ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"];

struct Tunnel {
    client: Program,
    server: Program,
    string: String,
    site: Site,
    net: Namespaces,
}

impl Tunnel {
    /// A client and a server with a tunnel that is up; `None` where this machine cannot have one.
    fn start() -> Option<Tunnel> {
        Tunnel::start_after(|_| {})
    }

    /// The same after something was done to the networks.
    fn start_after(prepare: impl FnOnce(&Namespaces)) -> Option<Tunnel> {
        let net = Namespaces::new()?;
        prepare(&net);
        for (allowed, forbidden) in ALLOWED.iter().zip(FORBIDDEN) {
            for address in [allowed, forbidden] {
                let words = format!("address add {address} dev lo");
                net.server.ip(&words).expect("an address behind the server");
            }
        }
        let site = Site::new();
        let server = start_server(&net, &site);
        let string = server.first_line();
        let client = start_client(&net, &site, &string);
        let tunnel = Tunnel {
            client,
            server,
            string,
            site,
            net,
        };
        tunnel.is_up();
        Some(tunnel)
    }

    /// Waits until the client has its addresses, and returns them.
    fn is_up(&self) -> Vec<IpAddr> {
        self.client.logged("the tunnel's addresses", |line| {
            let (_, rest) = line.split_once("tunnel tun-c: ")?;
            let (addresses, _) = rest.split_once(", packets of up to")?;
            let address = |net: &str| net.split_once('/')?.0.parse().ok();
            addresses.split(", ").map(address).collect()
        })
    }

    /// Forwarding at the server, of IPv4 and IPv6.
    fn forwards(&self) -> [String; 2] {
        FORWARDING.map(|name| self.net.server.setting(name))
    }
}

fn start_server(net: &Namespaces, site: &Site) -> Program {
    let (key, listen) = (site.public_key("client"), format!("{SERVER}:4433"));
    let words = [
        &["server", "--identity", "server", "--listen", &listen][..],
        &["--allow-client", &key, "--control", "server.sock"],
        &["--allow-target", RULES[0], "--allow-target", RULES[1]],
        &[
            "--tun=tun-s",
            "--tun-setup=no-nat",
            "--tun-state",
            "tunnel.toml",
        ],
        &["--tun-pool", "10.77.0.0/24,fd77::/64"],
    ];
    net.server
        .start("the server", site.folder(), &words.concat())
}

fn start_client(net: &Namespaces, site: &Site, string: &str) -> Program {
    let words = [
        &["client", "--identity", "client", "--server", string][..],
        &["--control", "client.sock", "--socks", "off"],
        &["--path", "c1", "--path", "c2,cost=3"],
        &["--tun=tun-c", "--tun-setup"],
        &["--tun-route", RULES[0], "--tun-route", RULES[1]],
        &["--tun-route", "203.0.113.0/24", "--tun-route", "fd98::/64"],
        &["--tun-rule", "proto=icmp,priority=0,scheduler=redundant"],
    ];
    net.client
        .start("the client", site.folder(), &words.concat())
}

/// Pings until there is an answer.
fn ping(to: IpAddr) {
    let (domain, protocol, kind) = match to {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4, 8),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6, 128),
    };
    let socket = Socket::new(domain, Type::DGRAM, Some(protocol)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    socket.connect(&SocketAddr::new(to, 0).into()).unwrap();
    until(&format!("{to} to answer a ping"), || {
        // Type, code, checksum and identity (the kernel's), sequence, and something to be sent
        // back.
        let request = [&[kind, 0, 0, 0, 0, 0, 0, 1], &b"marline"[..]].concat();
        socket.send(&request).ok()?;
        let mut answer = [0; 64];
        let length = (&socket).read(&mut answer).ok()?;
        answer[..length].ends_with(b"marline").then_some(())
    });
}

/// A connected UDP socket that does not wait for ever.
fn udp(to: IpAddr) -> UdpSocket {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).unwrap();
    socket.connect((to, 53)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    socket
}

fn parse(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn kernel_traffic_goes_through_and_only_where_it_may() {
    let Some(tunnel) = Tunnel::start() else {
        return;
    };
    let net = &tunnel.net;
    assert_eq!(tunnel.is_up(), ["10.77.0.2", "fd77::2"].map(parse));

    // The server learns what only the client knows.
    let at_server = || status(tunnel.site.folder(), "server.sock")?.sessions.pop();
    until("the costs of the paths at the server", || {
        let paths = at_server()?.paths;
        let mut costs: Vec<u32> = paths.iter().map(|path| path.cost).collect();
        costs.sort_unstable();
        (costs == [0, 3]).then_some(())
    });

    net.client.inside(|| {
        for address in ["10.77.0.1", "fd77::1", ALLOWED[0], ALLOWED[1]] {
            ping(parse(address));
        }
    });

    // A question and its answer, as of a name server.
    for (allowed, forbidden) in ALLOWED.into_iter().zip(FORBIDDEN) {
        let (allowed, forbidden) = (parse(allowed), parse(forbidden));
        let service = net
            .server
            .inside(|| UdpSocket::bind((allowed, 53)).unwrap());
        let secret = net
            .server
            .inside(|| UdpSocket::bind((forbidden, 53)).unwrap());
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut question = [0; 64];
                service.set_read_timeout(Some(DEADLINE)).unwrap();
                let (length, from) = service.recv_from(&mut question).unwrap();
                assert!(from.ip().to_string().ends_with('2'), "{from}");
                service.send_to(&question[..length], from).unwrap();
            });
            net.client.inside(|| {
                let socket = udp(allowed);
                socket.send(b"who?").unwrap();
                let mut answer = [0; 64];
                socket.set_read_timeout(Some(DEADLINE)).unwrap();
                assert_eq!(socket.recv(&mut answer).unwrap(), 4);
                // The sender is told at once that it may not, rather than left to wait.
                let socket = udp(forbidden);
                let error = until("the refusal", || {
                    socket.send(b"who?").err().or_else(|| {
                        let error = socket.recv(&mut answer).err()?;
                        (error.kind() != ErrorKind::WouldBlock).then_some(error)
                    })
                });
                let told = [ErrorKind::HostUnreachable, ErrorKind::PermissionDenied];
                assert!(told.contains(&error.kind()), "{error:?}");
            });
        });
        secret.set_nonblocking(true).unwrap();
        assert_eq!(
            secret.recv(&mut [0; 64]).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
    }
    let flows = at_server().unwrap().flows;
    assert!(
        flows.iter().any(|flow| flow.scheduler == "brim"),
        "{flows:?}"
    );
}

#[test]
fn packets_that_are_too_large_go_in_parts() {
    let Some(tunnel) = Tunnel::start() else {
        return;
    };
    let net = &tunnel.net;
    // More than the client's device takes at once, and less than the server's.
    let question = pattern(5, 0, 1_400);
    for address in ALLOWED.map(parse) {
        let service = net
            .server
            .inside(|| UdpSocket::bind((address, 53)).unwrap());
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut buffer = [0; 2_000];
                service
                    .set_read_timeout(Some(Duration::from_millis(100)))
                    .unwrap();
                // Also when the other thread fails.
                let end = Instant::now() + 2 * DEADLINE;
                while !done.load(Ordering::Relaxed) && Instant::now() < end {
                    if let Ok((length, from)) = service.recv_from(&mut buffer) {
                        // The first is too large, as the kernel learns then.
                        let _ = service.send_to(&buffer[..length], from);
                    }
                }
            });
            net.client.inside(|| {
                let socket = udp(address);
                let mut answer = [0; 2_000];
                until("a large answer", || {
                    socket.send(&question).ok()?;
                    let length = socket.recv(&mut answer).ok()?;
                    (answer[..length] == question).then_some(())
                });
            });
            done.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn devices_that_were_there_are_used_as_they_are() {
    const SIZE: usize = 8 << 20;
    let made = |net: &Namespaces| {
        let made = net.client.ip("tuntap add tun-c mode tun multi_queue");
        made.expect("a device with several queues");
        let made = net.server.ip("tuntap add tun-s mode tun vnet_hdr");
        made.expect("a device with long packets");
    };
    let Some(tunnel) = Tunnel::start_after(made) else {
        return;
    };
    let net = &tunnel.net;
    let body = pattern(9, 0, SIZE);
    for address in ALLOWED.map(parse) {
        let listener = net
            .server
            .inside(|| TcpListener::bind((address, 80)).unwrap());
        // Long packets go both ways, and come out as what went in.
        let back = thread::scope(|scope| {
            scope.spawn(|| {
                let (mut connection, _) = listener.accept().unwrap();
                let mut received = Vec::new();
                connection.read_to_end(&mut received).unwrap();
                connection.write_all(&received).unwrap();
            });
            net.client.inside(|| {
                let mut connection = TcpStream::connect((address, 80)).unwrap();
                connection.set_read_timeout(Some(DEADLINE)).unwrap();
                connection.write_all(&body).unwrap();
                connection.shutdown(std::net::Shutdown::Write).unwrap();
                let mut back = Vec::new();
                connection.read_to_end(&mut back).unwrap();
                back
            })
        });
        assert!(back == body, "{} bytes came back", back.len());
    }
}

#[test]
fn a_download_outlives_a_path() {
    const SIZE: usize = 24 << 20;
    let Some(tunnel) = Tunnel::start() else {
        return;
    };
    let net = &tunnel.net;
    let body = pattern(7, 0, SIZE);
    let mut expected = Digest::new();
    expected.update(&body);
    let expected = expected.finish();
    for address in ALLOWED.map(parse) {
        let listener = net
            .server
            .inside(|| TcpListener::bind((address, 80)).unwrap());
        let digest = thread::scope(|scope| {
            scope.spawn(|| {
                let (mut connection, from) = listener.accept().unwrap();
                assert!(tunnel.is_up().contains(&from.ip()), "{from}");
                connection.write_all(&body).unwrap();
            });
            net.client.inside(|| {
                let mut connection = TcpStream::connect((address, 80)).unwrap();
                connection.set_read_timeout(Some(DEADLINE)).unwrap();
                let (mut digest, mut read) = (Digest::new(), 0);
                let mut buffer = vec![0; 1 << 16];
                let mut cut = false;
                loop {
                    let count = connection.read(&mut buffer).unwrap();
                    if count == 0 {
                        break digest.finish();
                    }
                    digest.update(&buffer[..count]);
                    read += count;
                    if read > SIZE / 4 && !cut {
                        cut = true;
                        net.anchor.ip("link set a1 down").unwrap();
                    }
                }
            })
        });
        assert_eq!(digest, expected);
        net.anchor.ip("link set a1 up").unwrap();
    }
}

#[test]
fn a_path_whose_udp_is_blocked_goes_on_over_tcp() {
    let Some(tunnel) = Tunnel::start() else {
        return;
    };
    let (net, anchor) = (&tunnel.net, tunnel.net.anchor.to_string());
    let chain = "type filter hook forward priority 0;";
    for words in [
        "add table inet lab".to_owned(),
        format!("add chain inet lab blocked {{ {chain} }}"),
        "add rule inet lab blocked iifname a1 meta l4proto udp drop".to_owned(),
    ] {
        let mut nft = std::process::Command::new("ip");
        nft.args(["netns", "exec", &anchor, "nft", &words]);
        if !nft.status().is_ok_and(|status| status.success()) {
            skipped(&format!(
                "`nft {words}` failed; this test blocks UDP with it"
            ));
            return;
        }
    }
    until("a path over TCP", || {
        let session = status(tunnel.site.folder(), "client.sock")?
            .sessions
            .pop()?;
        let mut paths = session.paths.into_iter();
        let blocked = paths.find(|path| path.name == "c1")?;
        let over_tcp = blocked.carrier.as_deref() == Some("tcp");
        (over_tcp && blocked.state == PathState::Active).then_some(())
    });
    // The other path alone is gone; what is left carries pings.
    net.anchor.ip("link set a2 down").unwrap();
    net.client.inside(|| {
        for address in ALLOWED {
            ping(parse(address));
        }
    });
}

/// Another machine with the client's key: the router is one, too.
fn start_second(tunnel: &Tunnel) -> Program {
    let words = [
        &["client", "--identity", "client", "--server", &tunnel.string][..],
        &["--control", "second.sock", "--socks", "off", "--path", "a0"],
        &["--tun=tun-d", "--tun-setup"],
    ];
    let folder = tunnel.site.folder();
    tunnel
        .net
        .anchor
        .start("the second client", folder, &words.concat())
}

#[test]
fn the_first_of_two_machines_with_one_key_goes_on_when_the_second_leaves() {
    let Some(tunnel) = Tunnel::start() else {
        return;
    };
    let net = &tunnel.net;
    net.anchor.set("net/ipv4/ping_group_range", "0 0");
    let pings = || {
        ["10.77.0.1", "fd77::1"]
            .into_iter()
            .map(parse)
            .for_each(ping)
    };
    net.client.inside(pings);
    for _ in 0..2 {
        let mut second = start_second(&tunnel);
        second.logged("that the key is in use twice", |line| {
            line.contains("another machine uses this one's key")
                .then_some(())
        });
        net.anchor.inside(pings);
        let standing = |expected: TunnelStanding| {
            until(
                &format!("{expected:?} in the first client's status"),
                || {
                    let tunnel = status(tunnel.site.folder(), "client.sock")?.tunnel?;
                    (tunnel.standing == expected).then_some(())
                },
            );
        };
        standing(TunnelStanding::SetAside);
        for (program, word) in [
            (&tunnel.client, "has the addresses now"),
            (&tunnel.server, "is in use twice"),
        ] {
            program.logged(word, |line| line.contains(word).then_some(()));
        }
        second.signal(Signal::TERM);
        assert!(second.wait().success());
        net.client.inside(pings);
        standing(TunnelStanding::Alone);
    }
}

#[test]
fn a_machine_that_crashed_has_its_addresses_again_at_once_and_is_one() {
    let Some(mut tunnel) = Tunnel::start() else {
        return;
    };
    let pings = || {
        ["10.77.0.1", "fd77::1"]
            .into_iter()
            .map(parse)
            .for_each(ping)
    };
    for _ in 0..2 {
        tunnel.client.kill();
        tunnel.net.client.device_is_gone("tun-c");
        tunnel.client = start_client(&tunnel.net, &tunnel.site, &tunnel.string);
        assert_eq!(tunnel.is_up(), ["10.77.0.2", "fd77::2"].map(parse));
        tunnel.net.client.inside(pings);
    }
    let sessions = status(tunnel.site.folder(), "server.sock")
        .unwrap()
        .sessions;
    assert!(
        sessions.len() > 1,
        "the older ones are not over: {sessions:?}"
    );
    let standing = status(tunnel.site.folder(), "client.sock").and_then(|status| status.tunnel);
    assert_eq!(standing.unwrap().standing, TunnelStanding::Alone);
    assert!(!tunnel.server.has_logged("in use twice"));
}

#[test]
fn nothing_is_left_behind_and_addresses_stay() {
    let Some(mut tunnel) = Tunnel::start() else {
        return;
    };
    assert_eq!(tunnel.forwards(), ["1", "1"]);
    let routes = tunnel.net.client.ip("route show dev tun-c").unwrap();
    assert!(routes.contains("198.51.100.0/24"), "{routes}");
    assert!(!routes.contains("10.77.0.0"), "{routes}");

    // As a crash does.
    tunnel.client.kill();
    tunnel.net.client.device_is_gone("tun-c");
    tunnel.client = start_client(&tunnel.net, &tunnel.site, &tunnel.string);
    assert_eq!(tunnel.is_up()[0], parse("10.77.0.2"));

    tunnel.client.signal(Signal::TERM);
    assert!(tunnel.client.wait().success());
    tunnel.net.client.device_is_gone("tun-c");
    tunnel.server.signal(Signal::INT);
    assert!(tunnel.server.wait().success());
    tunnel.net.server.device_is_gone("tun-s");
    assert_eq!(tunnel.forwards(), ["0", "0"]);
    assert!(!tunnel.site.folder().join("tunnel.toml.undo").exists());

    // A server that begins anew knows its clients.
    let state = tunnel.site.folder().join("tunnel.toml");
    let text = std::fs::read_to_string(&state).unwrap();
    std::fs::write(&state, text.replace("number = 2", "number = 9")).unwrap();
    tunnel.server = start_server(&tunnel.net, &tunnel.site);
    tunnel.server.first_line();
    tunnel.client = start_client(&tunnel.net, &tunnel.site, &tunnel.string);
    assert_eq!(tunnel.is_up(), ["10.77.0.9", "fd77::9"].map(parse));
}

#[test]
fn what_a_killed_server_switched_on_is_switched_off() {
    let Some(mut tunnel) = Tunnel::start() else {
        return;
    };
    assert_eq!(tunnel.forwards(), ["1", "1"]);
    tunnel.server.kill();
    until("forwarding is off", || {
        (tunnel.forwards() == ["0", "0"]).then_some(())
    });
    // A server that is killed and started at once is not undone by what outlives the first one.
    for _ in 0..2 {
        tunnel.server = start_server(&tunnel.net, &tunnel.site);
        tunnel.server.first_line();
        assert_eq!(tunnel.forwards(), ["1", "1"]);
        tunnel.server.kill();
    }
}

#[test]
fn what_is_left_on_is_switched_off_after_the_next_one() {
    let Some(mut tunnel) = Tunnel::start() else {
        return;
    };
    let crash_and_start = |tunnel: &mut Tunnel| {
        tunnel.server.kill_all();
        tunnel.net.server.device_is_gone("tun-s");
        assert_eq!(tunnel.forwards(), ["1", "1"]);
        tunnel.server = start_server(&tunnel.net, &tunnel.site);
        tunnel.server.first_line();
    };
    let end = |tunnel: &mut Tunnel| {
        tunnel.server.signal(Signal::TERM);
        assert!(tunnel.server.wait().success());
    };
    // Twice: the one that knew of it was killed, too.
    for _ in 0..2 {
        crash_and_start(&mut tunnel);
        for name in FORWARDING {
            tunnel.server.logged("what was left on", |line| {
                (line.contains(name) && line.contains("killed")).then_some(())
            });
        }
    }
    end(&mut tunnel);
    assert_eq!(tunnel.forwards(), ["0", "0"]);

    // What somebody else switched on stays on, whoever is killed.
    for name in FORWARDING {
        tunnel.net.server.set(name, "1");
    }
    tunnel.server = start_server(&tunnel.net, &tunnel.site);
    tunnel.server.first_line();
    crash_and_start(&mut tunnel);
    end(&mut tunnel);
    assert_eq!(tunnel.forwards(), ["1", "1"]);
}
