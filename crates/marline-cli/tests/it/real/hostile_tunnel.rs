//! A client whose server is hostile: it offers addresses and networks that are not its own to give,
//! and sends packets that come from nowhere. Needs root.

use super::harness::namespaces::{Namespaces, SERVER};
use super::harness::{Program, Site, status, until};
use marline::endpoint::{Server, ServerOptions};
use marline::identity::{AllowList, ConnectionString, Identity};
use marline_apps::proxy::{Accept, Incoming, IncomingFlow};
use marline_apps::tun::{Offer, Place, Role};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;

/// The client's `--tun-route`.
const ROUTE: &str = "198.51.100.0/24";
const OWN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const PORT: u16 = 7000;

/// A server that offers its clients this, and sends them these packets over and over.
struct Hostile {
    string: String,
    stop: Option<oneshot::Sender<()>>,
    running: Option<thread::JoinHandle<()>>,
}

impl Hostile {
    fn start(net: &Namespaces, site: &Site, offer: Offer, packets: Vec<Vec<u8>>) -> Hostile {
        let identity = Identity::load(&site.folder().join("server")).unwrap();
        let key = site.public_key("client").parse().unwrap();
        let address = format!("{SERVER}:4433");
        let options = ServerOptions::new(
            vec![address.parse().unwrap()],
            identity.clone(),
            AllowList::from_keys([key]),
        );
        let (stop, stopped) = oneshot::channel();
        let (ready, begun) = mpsc::channel();
        let namespace = net.server.to_string();
        let running = thread::spawn(move || {
            super::harness::namespace::enter(&namespace);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let server = Server::bind(options).unwrap();
                ready.send(()).unwrap();
                tokio::select! {
                    () = serve(&server, &offer, &packets) => {}
                    _ = stopped => {}
                }
            });
        });
        begun.recv().unwrap();
        let addresses = vec![address.parse().unwrap()];
        let string = ConnectionString::new(identity.public_key(), addresses).unwrap();
        Hostile {
            string: string.to_string(),
            stop: Some(stop),
            running: Some(running),
        }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(running) = self.running.take() {
            let _ = running.join();
        }
    }
}

async fn serve(server: &Server, offer: &Offer, packets: &[Vec<u8>]) {
    let mut leases = Vec::new();
    while let Some(mut session) = server.accept().await {
        while let Some(Incoming { target, flow }) = session.next_flow().await {
            match (Role::decode(&target), flow) {
                (Some(Role::Lease { .. }), IncomingFlow::Stream(mut flow)) => {
                    flow.write_all(&offer.encode()).await.unwrap();
                    flow.flush().await.unwrap();
                    leases.push(flow);
                }
                (Some(Role::Common), IncomingFlow::Packets(flow)) => {
                    let packets = packets.to_vec();
                    tokio::spawn(async move {
                        for packet in packets.iter().cycle() {
                            if flow.send(packet.clone().into()).await.is_err() {
                                return;
                            }
                            tokio::time::sleep(Duration::from_millis(20)).await;
                        }
                    });
                }
                _ => {}
            }
        }
    }
}

fn granted(places: &[(&str, &str)]) -> Offer {
    let place = |(own, server): &(&str, &str)| Place {
        own: own.parse().unwrap(),
        server: server.parse().unwrap(),
    };
    Offer::Granted {
        mtu: 9000,
        places: places.iter().map(place).collect(),
        joined: false,
    }
}

/// A datagram to the client's port, that holds its sender.
fn datagram(from: [u8; 4]) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0];
    bytes.extend(from);
    bytes.extend(OWN.octets());
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    let sum = !((sum >> 16) + (sum & 0xffff)) as u16;
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    // Without a checksum of its own (RFC 768).
    bytes.extend([0, 53, (PORT >> 8) as u8, PORT as u8, 0, 12, 0, 0]);
    bytes.extend(from);
    bytes
}

fn start_client(net: &Namespaces, site: &Site, server: &Hostile) -> Program {
    let words = [
        &["client", "--identity", "client", "--server", &server.string][..],
        &["--control", "client.sock", "--socks", "off", "--path", "c1"],
        &["--tun=tun-c", "--tun-setup", "--tun-route", ROUTE],
    ];
    net.client
        .start("the client", site.folder(), &words.concat())
}

fn words(text: &str) -> Vec<&str> {
    text.split_ascii_whitespace().collect()
}

#[test]
fn a_hostile_server_gets_no_route_that_the_client_did_not_give() {
    let Some(net) = Namespaces::new() else {
        return;
    };
    let site = Site::new();
    let senders = [
        [8, 0, 0, 1],
        [10, 77, 0, 9],
        [10, 201, 1, 1],
        [127, 0, 0, 1],
        [198, 51, 100, 7],
        [10, 77, 0, 1],
    ];
    let packets = senders.map(datagram).to_vec();
    // As if everything belonged to the tunnel's network.
    let offer = granted(&[
        ("10.77.0.2/0", "10.77.0.1"),
        ("2001:db8::2/1", "2001:db8::1"),
    ]);
    let server = Hostile::start(&net, &site, offer, packets);
    let client = start_client(&net, &site, &server);
    client.logged("what it does not accept", |line| {
        line.contains("2001:db8::2 is a public address")
            .then_some(())
    });
    client.logged("the tunnel's addresses", |line| {
        line.contains("tunnel tun-c: 10.77.0.2/32, packets of")
            .then_some(())
    });
    let addresses = net
        .client
        .ip("-o address show dev tun-c scope global")
        .unwrap();
    assert!(addresses.contains("inet 10.77.0.2/32 "), "{addresses}");
    assert_eq!(addresses.lines().count(), 1, "{addresses}");
    let routes = net.client.ip("route show dev tun-c").unwrap();
    let mut to: Vec<&str> = routes.lines().map(|line| words(line)[0]).collect();
    to.sort_unstable();
    assert_eq!(to, ["10.77.0.1", ROUTE], "{routes}");
    let link = net.client.ip("-o link show dev tun-c").unwrap();
    let link = words(&link);
    let mtu = link.iter().position(|word| *word == "mtu").unwrap();
    let mtu: u32 = link[mtu + 1].parse().unwrap();
    assert!((1280..=1500).contains(&mtu), "{mtu}");

    // Strict checks of the kernel would hide ours.
    for device in ["all", "tun-c"] {
        net.client
            .set(&format!("net/ipv4/conf/{device}/rp_filter"), "0");
    }
    let socket = net.client.inside(|| UdpSocket::bind((OWN, PORT)).unwrap());
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let mut from = [0; 4];
    for _ in 0..20 {
        socket.recv(&mut from).unwrap();
        assert!([senders[4], senders[5]].contains(&from), "{from:?}");
    }
    until("the dropped packets in the status", || {
        let tunnel = status(site.folder(), "client.sock")?.tunnel?;
        (tunnel.dropped_packets >= 20).then_some(())
    });
    client.logged("what was dropped", |line| {
        line.contains("the server sent a packet from").then_some(())
    });
}

#[test]
fn a_hostile_server_gets_none_of_the_client_s_own_addresses() {
    let Some(net) = Namespaces::new() else {
        return;
    };
    let site = Site::new();
    // The client's own, and its router's.
    for (own, server, reason) in [
        ("10.201.1.2/24", "10.77.0.1", "this host's own, of c1"),
        ("10.77.0.2/24", "10.201.2.1", "reached by c2"),
        ("8.0.0.2/8", "8.0.0.1", "a public address"),
    ] {
        let server = Hostile::start(&net, &site, granted(&[(own, server)]), Vec::new());
        let mut client = start_client(&net, &site, &server);
        client.logged(reason, |line| line.contains(reason).then_some(()));
        let addresses = net.client.ip("-o -4 address show dev tun-c").unwrap();
        assert_eq!(addresses, "", "{own}");
        client.kill();
        net.client.device_is_gone("tun-c");
    }
}
