//! SOCKS UDP associations seen from outside: one external port for all destinations (RFC 4787
//! REQ-1), answers from the addresses that were sent to and no others (REQ-8).

use crate::memory::{MemoryPackets, MemoryStream, MemoryTunnel};
use crate::world::{World, socks_address, socks_command, udp_echo};
use bytes::Bytes;
use marline_apps::destination::Association;
use marline_apps::proxy::socks5::{self, SocksOptions};
use marline_apps::proxy::{OpenError, Tasks, Tunnel};
use marline_proto::FlowOptions;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

const UDP_ASSOCIATE: u8 = 3;
/// Longer than anything takes that goes well.
const LIMIT: Duration = Duration::from_secs(60);

/// A program with an association.
struct Program {
    socket: UdpSocket,
    relay: SocketAddr,
    _control: TcpStream,
}

impl Program {
    async fn of(proxy: SocketAddr) -> Self {
        let (control, code, relay) = socks_command(proxy, UDP_ASSOCIATE, "0.0.0.0", 0).await;
        assert_eq!(code, 0);
        Program {
            socket: UdpSocket::bind("127.0.0.1:0").await.unwrap(),
            relay,
            _control: control,
        }
    }

    async fn send(&self, host: &str, port: u16, payload: &[u8]) {
        let datagram = [&[0, 0, 0][..], &socks_address(host, port), payload].concat();
        self.socket.send_to(&datagram, self.relay).await.unwrap();
    }

    async fn send_to(&self, to: SocketAddr, payload: &[u8]) {
        self.send(&to.ip().to_string(), to.port(), payload).await;
    }

    /// Whose datagram comes next, and what is in it.
    async fn recv(&self) -> (SocketAddr, Vec<u8>) {
        let mut buffer = [0; 1500];
        let received = timeout(LIMIT, self.socket.recv_from(&mut buffer)).await;
        let (length, from) = received.expect("it comes").unwrap();
        assert_eq!((from, &buffer[..4]), (self.relay, &[0, 0, 0, 1][..]));
        let ip: [u8; 4] = buffer[4..8].try_into().unwrap();
        let port = u16::from_be_bytes([buffer[8], buffer[9]]);
        ((ip, port).into(), buffer[10..length].to_vec())
    }

    /// The port that an echo has seen.
    async fn seen_by(&self, echo: SocketAddr) -> u16 {
        self.send_to(echo, b"stun").await;
        let (from, answer) = self.recv().await;
        assert_eq!((from, &answer[2..]), (echo, &b"stun"[..]));
        u16::from_be_bytes([answer[0], answer[1]])
    }
}

/// A socket at an address of its own.
async fn host(ip: &str) -> UdpSocket {
    UdpSocket::bind((ip, 0)).await.unwrap()
}

#[tokio::test]
async fn all_destinations_see_one_port_of_an_association_and_another_one_of_another() {
    let world = World::open();
    let proxy = world.socks(None).await;
    let (one, two) = (Program::of(proxy).await, Program::of(proxy).await);
    let (a, b) = (udp_echo().await, udp_echo().await);
    let port = one.seen_by(a).await;
    for echo in [b, a, b] {
        assert_eq!(one.seen_by(echo).await, port);
    }
    assert_ne!(two.seen_by(a).await, port);
    // Also one by name.
    one.send("localhost", b.port(), b"by name").await;
    let mut buffer = [0; 1500];
    let received = timeout(LIMIT, one.socket.recv_from(&mut buffer));
    let (length, _) = received.await.expect("it comes").unwrap();
    let head = [&[0, 0, 0][..], &socks_address("localhost", b.port())].concat();
    assert_eq!(buffer[..head.len()], head);
    let answer = [&port.to_be_bytes()[..], b"by name"].concat();
    assert_eq!(buffer[head.len()..length], answer);
}

#[tokio::test]
async fn who_was_never_sent_to_cannot_get_in_and_other_ports_of_who_was_can() {
    let world = World::open();
    let program = Program::of(world.socks(None).await).await;
    let port = program.seen_by(udp_echo().await).await;
    let external = SocketAddr::from(([127, 0, 0, 1], port));
    let (stranger, friend) = (host("127.0.0.3").await, host("127.0.0.1").await);
    for _ in 0..2 {
        stranger.send_to(b"let me in", external).await.unwrap();
        // It comes to the same socket later, so the stranger's was dropped when this is here.
        friend
            .send_to(b"from another port", external)
            .await
            .unwrap();
        let (from, what) = program.recv().await;
        assert_eq!(from, friend.local_addr().unwrap());
        assert_eq!(what, b"from another port");
    }
    // Once the program has sent to it, it is no stranger.
    let at = stranger.local_addr().unwrap();
    program.send_to(at, b"hello").await;
    let mut buffer = [0; 100];
    let (length, from) = stranger.recv_from(&mut buffer).await.unwrap();
    assert_eq!((&buffer[..length], from.port()), (&b"hello"[..], port));
    stranger.send_to(b"thanks", external).await.unwrap();
    assert_eq!(program.recv().await, (at, b"thanks".to_vec()));
}

#[tokio::test]
async fn each_destination_of_an_association_is_judged() {
    let world = World::with(&["127.0.0.1"], 1024);
    let program = Program::of(world.socks(None).await).await;
    let (forbidden, allowed) = (host("127.0.0.2").await, udp_echo().await);
    for _ in 0..3 {
        program
            .send_to(forbidden.local_addr().unwrap(), b"no")
            .await;
        program.seen_by(allowed).await;
    }
    assert!(forbidden.try_recv_from(&mut [0; 8]).is_err());
    // It is no contact either.
    let port = program.seen_by(allowed).await;
    forbidden.send_to(b"no", ("127.0.0.1", port)).await.unwrap();
    program.seen_by(allowed).await;
}

/// A session with a server that knows no associations.
#[derive(Clone)]
struct Older(MemoryTunnel);

impl Tunnel for Older {
    type Stream = MemoryStream;
    type Packets = MemoryPackets;

    async fn open_stream(&self, options: FlowOptions) -> Result<MemoryStream, OpenError> {
        self.0.open_stream(options).await
    }

    async fn open_packets(&self, mut options: FlowOptions) -> Result<MemoryPackets, OpenError> {
        if options.target == Association.encode() {
            // As little known to it.
            options.target = Bytes::from_static(&[200]);
        }
        self.0.open_packets(options).await
    }
}

async fn proxy<T: Tunnel>(tunnel: T, options: SocksOptions, tasks: &Tasks) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tasks.spawn(socks5::serve(listener, tunnel, options, tasks.clone()));
    address
}

#[tokio::test]
async fn at_an_older_server_each_destination_has_a_port_of_its_own_and_nothing_is_lost() {
    let world = World::open();
    let older = Older(world.tunnel());
    let proxy = proxy(older, SocksOptions::default(), &world.client).await;
    for _ in 0..2 {
        let program = Program::of(proxy).await;
        // `recv` waits for the very first one: nobody sends it again.
        let (a, b) = (udp_echo().await, udp_echo().await);
        let port = program.seen_by(a).await;
        assert_ne!(program.seen_by(b).await, port);
        assert_eq!(program.seen_by(a).await, port);
    }
}

#[tokio::test]
async fn programs_are_told_the_address_that_was_chosen_for_their_datagrams() {
    let world = World::open();
    let options = SocksOptions {
        udp_address: Some("192.0.2.7".parse().unwrap()),
        ..SocksOptions::default()
    };
    let proxy = proxy(world.tunnel(), options, &world.client).await;
    let mut program = Program::of(proxy).await;
    assert_eq!(program.relay.ip().to_string(), "192.0.2.7");
    // Where that leads is the business of who has chosen it; here to the proxy's own address.
    program.relay.set_ip(proxy.ip());
    program.seen_by(udp_echo().await).await;
}
