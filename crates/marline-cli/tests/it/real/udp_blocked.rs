//! Networks that let no UDP through: paths run over TCP, come back when a connection is cut, and
//! say what is wrong when that is blocked too.

use super::harness::{Site, marline, socks_connect, tcp_echo, until};
use marline_cli::control::status::SessionStatus;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A way to a server that passes TCP on, and of UDP the first datagrams of each client, a number
/// that may change.
struct Way {
    addr: SocketAddr,
    first: Arc<AtomicU64>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl Way {
    fn without_udp(server: SocketAddr) -> Way {
        Way::to(server, 0)
    }

    fn to(server: SocketAddr, first: u64) -> Way {
        // A port that is free for both.
        let (udp, tcp) = until("a port", || {
            let udp = UdpSocket::bind("127.0.0.1:0").ok()?;
            let tcp = TcpListener::bind(udp.local_addr().ok()?).ok()?;
            Some((udp, tcp))
        });
        let addr = udp.local_addr().unwrap();
        let connections = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&connections);
        thread::spawn(move || {
            for inside in tcp.incoming() {
                let (Ok(inside), Ok(outside)) = (inside, TcpStream::connect(server)) else {
                    return;
                };
                let both = [&inside, &outside].map(|stream| stream.try_clone().unwrap());
                kept.lock().unwrap().extend(both);
                pass_on(inside.try_clone().unwrap(), outside.try_clone().unwrap());
                pass_on(outside, inside);
            }
        });
        let first = Arc::new(AtomicU64::new(first));
        let most = Arc::clone(&first);
        thread::spawn(move || pass_datagrams_on(&Arc::new(udp), server, &most));
        Way {
            addr,
            first,
            connections,
        }
    }

    /// Ends all connections that there are now.
    fn cut(&self) {
        for connection in self.connections.lock().unwrap().drain(..) {
            // It may have ended by itself.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

/// Each client has a socket of its own towards the server.
fn pass_datagrams_on(inside: &Arc<UdpSocket>, server: SocketAddr, most: &Arc<AtomicU64>) {
    let mut clients: HashMap<SocketAddr, (Arc<UdpSocket>, Arc<AtomicU64>)> = HashMap::new();
    let mut buffer = [0; 2048];
    while let Ok((length, client)) = inside.recv_from(&mut buffer) {
        let (outside, count) = clients.entry(client).or_insert_with(|| {
            let outside = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
            outside.connect(server).unwrap();
            let count = Arc::new(AtomicU64::new(0));
            let (from, to) = (Arc::clone(&outside), Arc::clone(inside));
            let (most, passed) = (Arc::clone(most), Arc::clone(&count));
            thread::spawn(move || {
                let mut buffer = [0; 2048];
                while let Ok(length) = from.recv(&mut buffer) {
                    if passed.fetch_add(1, Ordering::Relaxed) < most.load(Ordering::Relaxed) {
                        let _ = to.send_to(&buffer[..length], client);
                    }
                }
            });
            (outside, count)
        });
        if count.fetch_add(1, Ordering::Relaxed) < most.load(Ordering::Relaxed) {
            // The server may have ended.
            let _ = outside.send(&buffer[..length]);
        }
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
}

/// What carries the path of this name.
fn carrier<'a>(session: &'a SessionStatus, name: &str) -> Option<&'a str> {
    let path = session.paths.iter().find(|path| path.name == name)?;
    path.carrier.as_deref()
}

fn echoes(mut connection: TcpStream, length: usize) {
    let sent: Vec<u8> = (0..length).map(|n| (n ^ (n >> 8)) as u8).collect();
    let mut writer = connection.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            writer.write_all(&sent).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut got = Vec::new();
        connection.read_to_end(&mut got).unwrap();
        assert!(got == sent, "{} of {length} bytes came back", got.len());
    });
}

#[test]
fn a_path_without_udp_runs_over_tcp_beside_one_with_quic() {
    let site = Site::new();
    let server = site.server(&["--tcp-cc", "cubic"]);
    let blocked = Way::without_udp(server.addr);
    let paths = [
        format!("127.0.0.1,server={},name=blocked", blocked.addr),
        "127.0.0.1,name=open".to_owned(),
    ];
    let client = site.client(&server, &paths, &[]);
    let session = client.active(&["blocked", "open"]);
    assert_eq!(carrier(&session, "blocked"), Some("tcp"));
    assert_eq!(carrier(&session, "open"), Some("quic"));
    let (code, table, _) = marline(site.folder(), &["status", "--control", "client.sock"]);
    assert_eq!(code, 0);
    assert!(table.contains("carried by tcp"), "{table}");
    // The server tells people the same.
    let at_server = server.status().sessions.pop().unwrap();
    let mut carriers: Vec<_> = at_server.paths.into_iter().map(|p| p.carrier).collect();
    carriers.sort();
    assert_eq!(carriers, [Some("quic".into()), Some("tcp".into())]);
    // With the open path gone, the blocked one carries everything.
    client.paths(&["remove", "open"]);
    echoes(socks_connect(client.socks(), tcp_echo()), 4 << 20);
}

/// As some networks do: the handshake passes each time, so dialling QUIC again does not help.
#[test]
fn a_path_changes_over_to_tcp_where_each_flow_of_udp_is_cut_off() {
    let site = Site::new();
    let server = site.server(&[]);
    let way = Way::to(server.addr, 60);
    let paths = [
        format!("127.0.0.1,server={},name=cut", way.addr),
        "127.0.0.1,name=open".to_owned(),
    ];
    let client = site.client(&server, &paths, &[]);
    let session = client.active(&["cut", "open"]);
    assert_eq!(carrier(&session, "cut"), Some("quic"));
    let target = tcp_echo();
    echoes(socks_connect(client.socks(), target), 8 << 20);
    until("the path over TCP", || {
        let session = client.status().sessions.pop()?;
        (carrier(&session, "cut") == Some("tcp")).then_some(())
    });
    echoes(socks_connect(client.socks(), target), 1 << 20);
    let session = client.active(&["cut", "open"]);
    assert_eq!(carrier(&session, "cut"), Some("tcp"));
}

#[test]
fn a_path_over_tcp_changes_over_to_quic_once_udp_passes() {
    let site = Site::new();
    let server = site.server(&[]);
    let way = Way::without_udp(server.addr);
    let path = format!("127.0.0.1,server={},name=late", way.addr);
    let client = site.client(&server, &[path], &[]);
    assert_eq!(carrier(&client.active(&["late"]), "late"), Some("tcp"));
    let mut kept = socks_connect(client.socks(), tcp_echo());
    way.first.store(u64::MAX, Ordering::Relaxed);
    until("the path over QUIC", || {
        let session = client.status().sessions.pop()?;
        (carrier(&session, "late") == Some("quic")).then_some(())
    });
    kept.write_all(b"end").unwrap();
    let mut answer = [0; 3];
    kept.read_exact(&mut answer).unwrap();
    assert_eq!(client.status().sessions[0].id, 0, "still the first session");
}

#[test]
fn a_session_outlives_the_loss_of_its_tcp_connection() {
    let site = Site::new();
    let server = site.server(&[]);
    let blocked = Way::without_udp(server.addr);
    let path = format!("127.0.0.1,server={},name=blocked", blocked.addr);
    let client = site.client(&server, &[path], &[]);
    client.active(&["blocked"]);
    let target = tcp_echo();
    let mut kept = socks_connect(client.socks(), target);
    for word in [b"one", b"two", b"end"] {
        kept.write_all(word).unwrap();
        let mut answer = [0; 3];
        kept.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, word);
        blocked.cut();
    }
    echoes(socks_connect(client.socks(), target), 1 << 20);
    assert_eq!(client.status().sessions[0].id, 0, "still the first session");
}

#[test]
fn a_path_that_may_only_use_one_carrier_uses_no_other() {
    let site = Site::new();
    let server = site.server(&[]);
    let paths = [
        "127.0.0.1,carrier=tcp,tcp-cc=reno,name=tcp".to_owned(),
        "127.0.0.2,carrier=quic,name=quic".to_owned(),
    ];
    let client = site.client(&server, &paths, &[]);
    let session = client.active(&["tcp", "quic"]);
    assert_eq!(carrier(&session, "tcp"), Some("tcp"));
    assert_eq!(carrier(&session, "quic"), Some("quic"));

    let site = Site::new();
    let without = site.server(&["--tcp", "off"]);
    let words = [
        "client",
        "--server",
        &without.string,
        "--identity",
        "client",
    ];
    let fixed = [
        "--control",
        "off",
        "--socks",
        "off",
        "--wait",
        "2s",
        "--path",
    ];
    let words = [&words[..], &fixed, &["127.0.0.1,carrier=tcp"]].concat();
    let (code, _, error) = marline(site.folder(), &words);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("no connection to TCP 127.0.0.1:"), "{error}");
}

#[test]
fn a_congestion_control_that_the_kernel_lacks_is_named_with_those_that_it_has() {
    let site = Site::new();
    let server = site.server(&[]);
    let words = ["client", "--server", &server.string, "--identity", "client"];
    let fixed = ["--control", "off", "--socks", "off", "--path"];
    let words = [&words[..], &fixed, &["127.0.0.1,carrier=tcp,tcp-cc=vegan"]].concat();
    let (code, _, error) = marline(site.folder(), &words);
    assert_eq!(code, 2, "{error}");
    for word in ["`vegan`", "there are", "reno", "hint: correct `tcp-cc=`"] {
        assert!(error.contains(word), "no {word} in {error}");
    }
}
