//! A client's and a server's proxies around a tunnel, and targets to reach.

use crate::memory::{MemoryTunnel, tunnel};
use marline_apps::live::Outlets;
use marline_apps::measure::Measures;
use marline_apps::options::flow_to;
use marline_apps::proxy::policy::{Judge, Policy};
use marline_apps::proxy::socks5::{self, SocksOptions};
use marline_apps::proxy::{
    FlowsByClient, Places, Ports, Protocol, Target, Targets, Tasks, tcp, udp,
};
use marline_apps::publish::Publisher;
use marline_apps::serve::{ServerSettings, serve};
use marline_apps::{live::LiveOut, proxy::SocksLogin};
use marline_proto::FlowOptions;
use marline_proto::wire::FlowKind;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};

/// Both sides' proxies over one session in memory.
pub(crate) struct World {
    pub(crate) client: Tasks,
    pub(crate) server: Tasks,
    tunnel: MemoryTunnel,
}

impl World {
    /// A server that lets clients reach loopback.
    pub(crate) fn open() -> World {
        World::with(&["127.0.0.0/8", "::1"], 1024)
    }

    pub(crate) fn with(allow: &[&str], max_flows: usize) -> World {
        let allow = allow.iter().map(|rule| rule.parse().unwrap()).collect();
        World::of(ServerSettings {
            targets: targets(Policy::new(allow, Vec::new())),
            live: Outlets::default(),
            tunnel: None,
            publisher: Publisher::default(),
            places: Places::new(2 * max_flows, max_flows),
            ports: Ports::of_this_host(),
            measures: Measures::default(),
            flows: FlowsByClient::default(),
        })
    }

    /// A server that hands live flows to `target`.
    pub(crate) fn live(target: SocketAddr) -> World {
        let entry: LiveOut = format!("udp://{target}").parse().unwrap();
        World::of(ServerSettings {
            targets: targets(Policy::default()),
            live: Outlets::new(&[entry]),
            tunnel: None,
            publisher: Publisher::default(),
            places: Places::new(2, 1),
            ports: Ports::of_this_host(),
            measures: Measures::default(),
            flows: FlowsByClient::default(),
        })
    }

    fn of(settings: ServerSettings) -> World {
        let (tunnel, accept) = tunnel();
        let world = World {
            client: Tasks::new(),
            server: Tasks::new(),
            tunnel,
        };
        world
            .server
            .spawn(serve(accept, Arc::new(settings), world.server.clone()));
        world
    }

    /// The client's end of the session.
    pub(crate) fn tunnel(&self) -> MemoryTunnel {
        self.tunnel.clone()
    }

    /// Starts a SOCKS proxy.
    pub(crate) async fn socks(&self, login: Option<SocksLogin>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        self.client.spawn(socks5::serve(
            listener,
            self.tunnel.clone(),
            SocksOptions {
                login,
                ..SocksOptions::default()
            },
            self.client.clone(),
        ));
        address
    }

    /// Starts a TCP forward.
    pub(crate) async fn forward_tcp(&self, target: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let options = options(Protocol::Tcp, target);
        self.client.spawn(tcp::forward(
            listener,
            self.tunnel.clone(),
            options,
            self.client.clone(),
        ));
        address
    }

    /// Starts a UDP forward.
    pub(crate) async fn forward_udp(&self, target: SocketAddr) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let options = options(Protocol::Udp, target);
        self.client.spawn(udp::forward(
            socket,
            self.tunnel.clone(),
            options,
            self.client.clone(),
        ));
        address
    }
}

/// Judged at this host.
fn targets(policy: Policy) -> Targets {
    Targets::new(Judge::here(policy).unwrap())
}

fn options(protocol: Protocol, target: SocketAddr) -> FlowOptions {
    let kind = match protocol {
        Protocol::Tcp => FlowKind::Stream,
        Protocol::Udp => FlowKind::Packets,
    };
    let target = Target::parse(protocol, &target.to_string()).unwrap();
    flow_to(kind, target.encode())
}

/// A TCP server that sends back what it gets, and ends when its peer has ended.
pub(crate) async fn tcp_echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut reader, mut writer) = connection.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = writer.shutdown().await;
            });
        }
    });
    address
}

/// A UDP server that sends back what it gets, preceded by the port that it came from.
pub(crate) async fn udp_echo() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_535];
        loop {
            let (length, peer) = socket.recv_from(&mut buffer).await.unwrap();
            let answer = [&peer.port().to_be_bytes(), &buffer[..length]].concat();
            let _ = socket.send_to(&answer, peer).await;
        }
    });
    address
}

/// An address that refuses connections while the socket lives: bound, so that no other test is
/// given the port, but not listening.
pub(crate) fn closed_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// The bytes of a SOCKS5 address.
pub(crate) fn socks_address(host: &str, port: u16) -> Vec<u8> {
    let mut bytes = match host.parse::<std::net::Ipv4Addr>() {
        Ok(address) => [&[1][..], &address.octets()].concat(),
        Err(_) => [&[3, host.len() as u8][..], host.as_bytes()].concat(),
    };
    bytes.extend(port.to_be_bytes());
    bytes
}

/// Says hello without authentication and sends one command; returns the connection, the reply code
/// and the address in the reply.
pub(crate) async fn socks_command(
    proxy: SocketAddr,
    command: u8,
    host: &str,
    port: u16,
) -> (TcpStream, u8, SocketAddr) {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(&[5, 1, 0]).await.unwrap();
    let mut method = [0; 2];
    stream.read_exact(&mut method).await.unwrap();
    assert_eq!(method, [5, 0]);
    let request = [&[5, command, 0][..], &socks_address(host, port)].concat();
    stream.write_all(&request).await.unwrap();
    let (code, bound) = socks_reply(&mut stream).await;
    (stream, code, bound)
}

/// Reads a reply with an IPv4 address.
pub(crate) async fn socks_reply(stream: &mut TcpStream) -> (u8, SocketAddr) {
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).await.unwrap();
    assert_eq!((reply[0], reply[2], reply[3]), (5, 0, 1), "{reply:?}");
    let address: [u8; 4] = reply[4..8].try_into().unwrap();
    (
        reply[1],
        (address, u16::from_be_bytes([reply[8], reply[9]])).into(),
    )
}
