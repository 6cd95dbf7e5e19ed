//! Clients and servers over real sockets on the loopback interface. Nothing here measures time:
//! waits only end early.

mod connect;
mod memory;
mod paths;
mod relay;
mod renew;
mod target;
mod traffic;
mod units;

use marline_apps::options::flow_to;
use marline_proto::FlowOptions;
use marline_proto::wire::FlowKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};

use marline::Path;
use marline::endpoint::client::PathFailure;
use marline::endpoint::{Client, ClientOptions, ConnectError, Packets, Server, ServerOptions};
use marline::identity::{AllowList, ConnectionString, Identity};
use marline_apps::Carried;
use marline_apps::live::{Frames, Media};
use marline_apps::proxy::{Accept, IncomingFlow, OpenError, PacketFlow, Tunnel};
use marline_base::Rng;
use marline_cli::control::Manage as _;
use marline_cli::control::status::{PathStatus, SessionStatus};
use marline_lab::emulate::{Emulator, EmulatorConfig};
use marline_proto::path::PathState;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Longer than anything takes that goes well.
const LIMIT: Duration = Duration::from_secs(60);

/// A server that sends back what it gets, and the key of a client that it lets in.
struct World {
    server: Server,
    identity: Identity,
    client: Identity,
}

impl World {
    fn start() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut ServerOptions)) -> Self {
        let (identity, client) = (key(), key());
        let allow = AllowList::from_keys([client.public_key()]);
        let mut options = ServerOptions::new(vec![LOOPBACK], identity.clone(), allow);
        change(&mut options);
        let server = Server::bind(options).unwrap();
        tokio::spawn(echo(server.clone()));
        Self {
            server,
            identity,
            client,
        }
    }

    fn addr(&self) -> SocketAddr {
        self.server.local_addrs()[0]
    }

    /// Options of the client with these paths.
    fn options(&self, paths: &[&str]) -> ClientOptions {
        options(&self.identity, &self.client, self.addr(), paths)
    }

    fn connect(&self, paths: &[&str]) -> Client {
        Client::start(self.options(paths)).unwrap()
    }

    /// A link of 200 Mb/s and 1 ms to the server.
    fn link(&self) -> Emulator {
        let link = "rate=200mbit,delay=1ms".parse().unwrap();
        Emulator::start(EmulatorConfig::new(self.addr(), link)).unwrap()
    }
}

fn options(
    server: &Identity,
    client: &Identity,
    addr: SocketAddr,
    paths: &[&str],
) -> ClientOptions {
    let string =
        ConnectionString::new(server.public_key(), vec![addr.to_string().parse().unwrap()]);
    let paths = paths.iter().map(|text| text.parse().unwrap()).collect();
    ClientOptions::new(&string.unwrap(), client.clone(), paths)
}

fn key() -> Identity {
    Identity::generate().unwrap()
}

/// A path through an emulated link.
fn through(link: &Emulator, name: &str) -> String {
    format!("any,server={},name={name}", link.addr())
}

async fn echo_packets<P: PacketFlow>(flow: P) {
    while let Some(message) = flow.recv().await {
        if flow.send(message).await.is_err() {
            return;
        }
    }
}

/// Serves every session: streams and messages come back as they went.
async fn echo(server: Server) {
    while let Some(mut session) = server.accept().await {
        tokio::spawn(async move {
            while let Some(incoming) = session.next_flow().await {
                tokio::spawn(async move {
                    match incoming.flow {
                        IncomingFlow::Stream(stream) => echo_stream(stream).await,
                        IncomingFlow::Packets(packets) => echo_packets(packets).await,
                        IncomingFlow::Blocks(blocks) => {
                            echo_packets(Frames::new(blocks, None)).await
                        }
                        IncomingFlow::Objects(objects) => {
                            echo_packets(Media::new(objects, None)).await
                        }
                    }
                });
            }
        });
    }
}

async fn echo_stream(stream: Carried) {
    let (mut reader, mut writer) = split(stream);
    if copy(&mut reader, &mut writer).await.is_ok() {
        let _ = writer.shutdown().await;
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future)
        .await
        .expect("it should have happened by now")
}

/// Waits until it is so.
async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let result = tokio::time::timeout(LIMIT, waiting).await;
    assert!(result.is_ok(), "not so by now: {what}");
}

async fn status(client: &Client) -> SessionStatus {
    client.status().await.sessions.remove(0)
}

async fn path(client: &Client, name: &str) -> PathStatus {
    let paths = status(client).await.paths;
    let found = paths.into_iter().find(|path| path.name == name);
    found.unwrap_or_else(|| panic!("no path {name}"))
}

async fn active(client: &Client, name: &str) {
    let state = async || path(client, name).await.state == PathState::Active;
    until(&format!("{name} is active"), state).await;
}

async fn ready(client: &Client) {
    client.connect(LIMIT).await.unwrap();
}

fn target() -> FlowOptions {
    flow_to(FlowKind::Stream, Bytes::from_static(b"echo"))
}

async fn open(client: &Client) -> Carried {
    client.open_stream(target()).await.unwrap()
}

/// Bytes that follow from a seed.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

/// Sends so much through a new stream and expects it back.
async fn round_trip(client: &Client, seed: u64, len: usize) {
    let (mut reader, mut writer) = split(open(client).await);
    let sent = bytes(seed, len);
    let mut back = Vec::with_capacity(len);
    let (written, read) = soon(async {
        tokio::join!(
            async {
                writer.write_all(&sent).await?;
                writer.shutdown().await
            },
            reader.read_to_end(&mut back)
        )
    })
    .await;
    written.unwrap();
    assert_eq!(read.unwrap(), len);
    assert!(back == sent, "stream {seed} came back changed");
}

/// One little message over a stream and back: proof that it is connected.
async fn ping(stream: &mut Carried) {
    stream.write_all(b"ping").await.unwrap();
    let mut back = [0; 4];
    soon(stream.read_exact(&mut back)).await.unwrap();
    assert_eq!(&back, b"ping");
}
