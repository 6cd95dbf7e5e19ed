//! Whole sessions over relays on loopback that drop what is too long.

use std::time::Duration;

use marline_proto::FlowOptions;
use marline_proto::path::PathState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use super::{Accepted, Client, ClientOptions, Incomings, Server, ServerOptions, Session};
use crate::carrier::tests::{LOOPBACK, Relay, soon};
use crate::carrier::{CarrierChoice, QuicConfig};
use crate::identity::{AllowList, ConnectionString, Identity};
use crate::path::Path;

/// What a client's packet (UDP payload) holds beside a datagram, and a server's, which has no
/// connection id.
const OVERHEAD: usize = 38;
const SERVER_OVERHEAD: usize = 30;
/// Paths through a tunnel of IP packets of 1300 bytes.
const NARROW: usize = 1272;
const MEGABYTES: usize = 1_000_000;

struct World {
    relays: Vec<Relay>,
    session: Session,
    incomings: Incomings,
    _client: Client,
    _server: Server,
}

impl World {
    /// A session over this many paths, QUIC only, with relays of packets that long, there and back.
    async fn new(widths: &[(usize, usize)]) -> Self {
        Self::with(widths, QuicConfig::default()).await
    }

    /// The same, with such carriers at both ends.
    async fn with(widths: &[(usize, usize)], quic: QuicConfig) -> Self {
        let (ours, theirs) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let allow = AllowList::from_keys([ours.public_key()]);
        let mut options = ServerOptions::new(vec![LOOPBACK], theirs, allow);
        options.listen.quic = quic.clone();
        let server = Server::bind(options).unwrap();
        let address = server.local_addrs()[0];
        let (mut relays, mut paths) = (Vec::new(), Vec::new());
        for (number, &(there, back)) in widths.iter().enumerate() {
            let relay = Relay::start(address, number as u64).await;
            relay.narrow(there, back);
            let host = relay.addr.to_string().parse().unwrap();
            let path = Path::any().named(format!("path{number}")).server(host);
            paths.push(path.carrier(CarrierChoice::Quic));
            relays.push(relay);
        }
        let host = address.to_string().parse().unwrap();
        let string = ConnectionString::new(server.public_key(), vec![host]).unwrap();
        let mut options = ClientOptions::new(&string, ours, paths);
        options.quic = quic;
        let client = Client::start(options).unwrap();
        let session = client.connect(Duration::from_secs(30)).await.unwrap();
        let incomings = soon(server.accept()).await.unwrap();
        while session.stats().paths.len() < widths.len() {
            sleep(Duration::from_millis(10)).await;
        }
        Self {
            relays,
            session,
            incomings,
            _client: client,
            _server: server,
        }
    }

    /// Sends bytes there and back, all of which have to come; `after` as many, something happens.
    async fn echo(&mut self, bytes: usize, after: usize, happens: impl FnOnce(&[Relay])) {
        let mut near = self.session.open_stream(FlowOptions::default()).unwrap();
        near.write_all(b"!").await.unwrap();
        let (_, accepted) = soon(self.incomings.accept()).await.unwrap();
        let Accepted::Stream(far) = accepted else {
            panic!("not a stream");
        };
        let data: Vec<u8> = (0..bytes as u32).map(|n| (n ^ (n >> 8)) as u8).collect();
        let (mut from_far, mut to_far) = near.into_split();
        let (mut from_near, mut to_near) = far.into_split();
        let write = async {
            to_far.write_all(&data).await.unwrap();
            to_far.shutdown().await.unwrap();
        };
        let copy = async {
            assert_eq!(from_near.read_u8().await.unwrap(), b'!');
            tokio::io::copy(&mut from_near, &mut to_near).await.unwrap();
            to_near.shutdown().await.unwrap();
        };
        let read = async {
            let mut got = vec![0; after];
            from_far.read_exact(&mut got).await.unwrap();
            happens(&self.relays);
            from_far.read_to_end(&mut got).await.unwrap();
            assert!(got == data, "{} of {bytes} bytes, or others", got.len());
        };
        soon(async { tokio::join!(write, copy, read) }).await;
    }

    /// Waits until the datagrams of this path at both ends fit packets of such lengths.
    async fn reach(&self, path: usize, there: usize, back: usize) {
        let ends = [
            (&self.session, there, OVERHEAD),
            (self.incomings.handle(), back, SERVER_OVERHEAD),
        ];
        for (end, packets, overhead) in ends {
            soon(async {
                let longest = || end.stats().paths[path].max_datagram + overhead;
                while !(packets - 7..=packets).contains(&longest()) {
                    sleep(Duration::from_millis(10)).await;
                }
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_session_comes_up_over_the_narrowest_path_that_quic_knows() {
    let mut world = World::new(&[(1200, 1200)]).await;
    world.echo(MEGABYTES, 0, |_| {}).await;
    world.reach(0, 1200, 1200).await;
}

#[tokio::test]
async fn a_path_that_shrinks_under_load_loses_nothing_and_finds_its_size() {
    let wide = 1472;
    for (there, back) in [(NARROW, wide), (wide, NARROW), (NARROW, NARROW)] {
        let mut world = World::new(&[(wide, wide)]).await;
        world.echo(MEGABYTES, 0, |_| {}).await;
        world.reach(0, wide, wide).await;
        let shrink = |relays: &[Relay]| relays[0].narrow(there, back);
        world.echo(20 * MEGABYTES, 5 * MEGABYTES, shrink).await;
        world.reach(0, there, back).await;
        world.echo(MEGABYTES, 0, |_| {}).await;
        let stats = world.session.stats();
        assert_eq!(stats.paths.len(), 1);
        assert_eq!(stats.paths[0].id.0, 0, "the path was not dialled again");
        assert_eq!(stats.paths[0].state, PathState::Active);
    }
}

#[tokio::test]
async fn a_narrow_and_a_wide_path_carry_one_stream_together() {
    let mut world = World::new(&[(NARROW, NARROW), (1472, 1472)]).await;
    world.echo(20 * MEGABYTES, 0, |_| {}).await;
    let stats = world.session.stats();
    for path in &stats.paths {
        let sent = path.counters.sent_bytes;
        assert!(sent > MEGABYTES as u64, "path {}: {sent}", path.id.0);
    }
    // It goes on over what is left, and in pieces where it was cut for another.
    let shrink = |relays: &[Relay]| relays[1].narrow(1200, 1200);
    world.echo(10 * MEGABYTES, MEGABYTES, shrink).await;
}

#[tokio::test]
async fn a_path_that_loses_batches_of_packets_carries_them_one_by_one() {
    let quic = QuicConfig {
        loses_batches: true,
        ..QuicConfig::default()
    };
    let mut world = World::with(&[(1472, 1472)], quic).await;
    world.echo(4 * MEGABYTES, 0, |_| {}).await;
    assert_eq!(
        world.session.stats().paths[0].id.0,
        0,
        "it was dialled again"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn clients_of_a_server_with_two_workers_are_shared_out_and_served_on_their_threads() {
    let theirs = Identity::generate().unwrap();
    let keys: Vec<Identity> = (0..4).map(|_| Identity::generate().unwrap()).collect();
    let allow = AllowList::from_keys(keys.iter().map(Identity::public_key));
    let mut options = ServerOptions::new(vec![LOOPBACK], theirs, allow);
    options.workers = 2;
    let server = Server::bind(options).unwrap();
    assert_eq!(server.workers(), 2);
    let host = server.local_addrs()[0].to_string().parse().unwrap();
    let string = ConnectionString::new(server.public_key(), vec![host]).unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let mut clients = Vec::new();
    for key in keys {
        let path = |name: &str| Path::any().named(name).carrier(CarrierChoice::Quic);
        let paths = vec![path("one"), path("two")];
        let client = Client::start(ClientOptions::new(&string, key, paths)).unwrap();
        let session = client.connect(Duration::from_secs(30)).await.unwrap();
        let mut incomings = soon(server.accept()).await.unwrap();
        let tell = tell.clone();
        let runtime = incomings.handle().runtime().clone();
        runtime.spawn(async move {
            let _ = tell.send(std::thread::current().id());
            while let Ok((_, Accepted::Stream(stream))) = incomings.accept().await {
                let (mut from, mut to) = stream.into_split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
            }
        });
        while session.stats().paths.len() < 2 {
            sleep(Duration::from_millis(10)).await;
        }
        clients.push((client, session));
    }
    let here = std::thread::current().id();
    let mut ours = 0;
    for _ in 0..clients.len() {
        ours += usize::from(soon(told.recv()).await.unwrap() == here);
    }
    assert_eq!(ours, 2, "each worker has as many as the other");
    let echoes = clients.iter().map(|(_, session)| async move {
        let data: Vec<u8> = (0..MEGABYTES as u32)
            .map(|n| (n ^ (n >> 8)) as u8)
            .collect();
        let stream = session.open_stream(FlowOptions::default()).unwrap();
        let (mut from, mut to) = stream.into_split();
        let write = async {
            to.write_all(&data).await.unwrap();
            to.shutdown().await.unwrap();
        };
        let mut got = Vec::new();
        let (read, ()) = tokio::join!(from.read_to_end(&mut got), write);
        read.unwrap();
        assert!(got == data, "{} bytes, or others", got.len());
    });
    for echo in echoes {
        soon(echo).await;
    }
    soon(server.stop("that was all")).await;
    for (_, session) in &clients {
        let reason = soon(session.closed()).await.to_string();
        assert!(reason.contains("that was all"), "{reason}");
    }
}
