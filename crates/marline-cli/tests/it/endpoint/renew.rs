//! Sessions that end, and clients that get another.

use super::*;
use crate::quiet_address::{Test, quiet_address};
use marline_apps::live::Inlets;
use marline_apps::live::{LiveDefaults, LiveIn};
use marline_apps::proxy::Tasks;
use std::io;
use std::thread::JoinHandle;

use tokio::sync::oneshot;
use tokio::time::sleep;

/// A server in a thread and runtime of its own, which can be killed.
struct Process {
    addr: SocketAddr,
    kill: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Process {
    async fn start(identity: &Identity, client: &Identity, addr: SocketAddr) -> Self {
        let allow = AllowList::from_keys([client.public_key()]);
        let options = ServerOptions::new(vec![addr], identity.clone(), allow);
        let (kill, killed) = oneshot::channel();
        let (bound, listening) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let server = Server::bind(options).unwrap();
                bound.send(server.local_addrs()[0]).unwrap();
                tokio::spawn(echo(server));
                let _ = killed.await;
            });
            // Dropped with all its tasks: nobody says goodbye.
        });
        Self {
            addr: listening.await.unwrap(),
            kill: Some(kill),
            thread: Some(thread),
        }
    }

    fn kill(mut self) {
        drop(self.kill.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Reads until the stream fails, and says how.
async fn end_of(stream: &mut Carried) -> io::Error {
    let mut sink = Vec::new();
    soon(stream.read_to_end(&mut sink)).await.unwrap_err()
}

#[tokio::test]
async fn a_restarted_server_ends_the_old_session_at_once_and_gets_a_new_one() {
    let (identity, key) = (key(), key());
    let server = Process::start(&identity, &key, LOOPBACK).await;
    let addr = server.addr;
    let mut options = options(&identity, &key, addr, &["any,name=a", "any,name=b"]);
    // Far beyond the test's patience: the restart must be noticed, not waited for.
    options.session.idle_timeout = Duration::from_secs(3600);
    options.session.keep_alive = Duration::from_millis(50);
    let client = Client::start(options).unwrap();
    ready(&client).await;
    let mut stream = open(&client).await;
    ping(&mut stream).await;
    server.kill();
    let _server = Process::start(&identity, &key, addr).await;
    let error = end_of(&mut stream).await;
    assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    assert!(error.to_string().contains("no such session"), "{error}");
    until("there is a new session", async || {
        client.session().is_some()
    })
    .await;
    round_trip(&client, 1, 100_000).await;
    active(&client, "a").await;
    active(&client, "b").await;
    assert!(status(&client).await.id > 0);
}

#[tokio::test]
async fn a_killed_server_is_a_clear_error_within_the_idle_limit_and_found_again_later() {
    let (identity, key) = (key(), key());
    let server = Process::start(&identity, &key, LOOPBACK).await;
    let addr = server.addr;
    let mut options = options(&identity, &key, addr, &["any"]);
    options.session.idle_timeout = Duration::from_millis(500);
    options.session.keep_alive = Duration::from_millis(50);
    let client = Client::start(options).unwrap();
    ready(&client).await;
    let mut stream = open(&client).await;
    ping(&mut stream).await;
    server.kill();
    let error = end_of(&mut stream).await;
    assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    assert!(error.to_string().contains("idle timeout"), "{error}");
    let refused = client.open_stream(target()).await.unwrap_err();
    let OpenError::NoSession(reason) = refused else {
        panic!("{refused}");
    };
    assert!(reason.contains("idle timeout"), "{reason}");
    assert_eq!(status(&client).await.state, "connecting");
    let _server = Process::start(&identity, &key, addr).await;
    until("there is a new session", async || {
        client.session().is_some()
    })
    .await;
    round_trip(&client, 2, 1000).await;
}

#[tokio::test]
async fn a_server_that_stops_says_so() {
    let world = World::start();
    let client = world.connect(&["any,name=a", "any,name=b"]);
    ready(&client).await;
    let mut stream = open(&client).await;
    ping(&mut stream).await;
    world.server.stop("for maintenance").await;
    let error = end_of(&mut stream).await;
    assert!(error.to_string().contains("for maintenance"), "{error}");
    assert!(soon(world.server.accept()).await.is_none());
    client.stop("done").await;
}

#[tokio::test]
async fn a_client_that_stops_says_so() {
    let world = World::start();
    let client = world.connect(&["any,name=a", "any,name=b"]);
    ready(&client).await;
    let mut stream = open(&client).await;
    ping(&mut stream).await;
    soon(client.stop("enough for today")).await;
    soon(client.closed()).await;
    until("the server knows", async || {
        world.server.status().await.sessions.is_empty()
    })
    .await;
    assert!(end_of(&mut stream).await.to_string().contains("enough"));
    assert!(client.open_stream(target()).await.is_err());
}

#[tokio::test]
async fn a_client_that_is_taken_from_the_list_loses_its_session_and_gets_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clients");
    let (identity, leaver, stayer) = (key(), key(), key());
    let write = |keys: &[&Identity]| {
        let lines = keys.iter().map(|key| format!("{}\n", key.public_key()));
        std::fs::write(&file, lines.collect::<String>()).unwrap();
    };
    write(&[&leaver, &stayer]);
    let allow = AllowList::load(&file).unwrap();
    let server = Server::bind(ServerOptions::new(vec![LOOPBACK], identity.clone(), allow)).unwrap();
    tokio::spawn(echo(server.clone()));
    let addr = server.local_addrs()[0];
    let clients = [&leaver, &stayer]
        .map(|key| Client::start(options(&identity, key, addr, &["any"])).unwrap());
    let mut streams = Vec::new();
    for client in &clients {
        ready(client).await;
        let mut stream = open(client).await;
        ping(&mut stream).await;
        streams.push(stream);
    }
    write(&[&stayer]);
    let change = server.reload().unwrap();
    assert_eq!(change.removed, [leaver.public_key()]);
    let error = end_of(&mut streams[0]).await;
    assert!(
        error.to_string().contains("removed from the server's list"),
        "{error}"
    );
    ping(&mut streams[1]).await;
    until("the refusal shows", async || {
        path(&clients[0], "any")
            .await
            .reason
            .contains("--allow-client")
    })
    .await;
    write(&[&stayer, &leaver]);
    server.reload().unwrap();
    until("it is let in again", async || {
        clients[0].session().is_some()
    })
    .await;
}

/// What a live entry is sent while nobody knows yet that the server was killed arrives at its
/// successor.
async fn outlives_its_session(entry: &str) {
    let (identity, key) = (key(), key());
    let server = Process::start(&identity, &key, LOOPBACK).await;
    let addr = server.addr;
    let mut options = options(&identity, &key, addr, &["any"]);
    options.session.idle_timeout = Duration::from_secs(3600);
    options.session.keep_alive = Duration::from_millis(50);
    let client = Client::start(options).unwrap();
    ready(&client).await;
    let port = std::net::UdpSocket::bind(quiet_address(Test::Renew)).unwrap();
    let at = port.local_addr().unwrap();
    drop(port);
    let entry = LiveIn::parse(&format!("udp://{at}{entry}"), &LiveDefaults::default()).unwrap();
    let inlets = Inlets::bind(&[entry]).await.unwrap();
    let board = inlets.board();
    let tasks = Tasks::new();
    inlets.serve(&client, &tasks);
    let encoder = tokio::net::UdpSocket::bind(LOOPBACK).await.unwrap();
    encoder.connect(at).await.unwrap();
    let exchange = async |numbers: std::ops::Range<u8>| {
        for number in numbers.clone() {
            encoder.send(&rtp(number)).await.unwrap();
        }
        let mut missing: Vec<u8> = numbers.collect();
        let mut buffer = [0; 64];
        while !missing.is_empty() {
            let length = soon(encoder.recv(&mut buffer)).await.unwrap();
            missing.retain(|number| rtp(*number) != buffer[..length]);
        }
    };
    exchange(0..20).await;
    server.kill();
    let ended = async {
        // Some come before the client knows.
        sleep(Duration::from_millis(20)).await;
        Process::start(&identity, &key, addr).await
    };
    let (_server, ()) = tokio::join!(ended, exchange(20..60));
    exchange(60..80).await;
    let sent = board.status().remove(0).sent;
    assert_eq!((sent.datagrams, sent.refused, sent.given_up), (80, 0, 0));
}

/// A frame of one packet, so that none waits for its end.
fn rtp(number: u8) -> Vec<u8> {
    let time = u32::from(number).to_be_bytes();
    [
        &[0x80, 96 | 0x80, 0, number][..],
        &time,
        &[0, 0, 0, 8, number],
    ]
    .concat()
}

#[tokio::test]
async fn a_live_entry_s_datagrams_outlive_their_session() {
    outlives_its_session(",latency=60s").await;
}

#[tokio::test]
async fn a_live_entry_s_frames_outlive_their_session() {
    outlives_its_session(",deadline=10s").await;
}

#[tokio::test]
async fn a_live_entry_s_objects_outlive_their_session() {
    outlives_its_session(",latency=60s,objects=on").await;
}

/// A client whose server answers nothing any more, and does not end the session; and a live entry's
/// flow of each kind.
async fn unanswered(budget: &str) -> (Client, Packets, Frames, Media) {
    let (identity, key) = (key(), key());
    let server = Process::start(&identity, &key, LOOPBACK).await;
    let mut options = options(&identity, &key, server.addr, &["any"]);
    options.session.idle_timeout = Duration::from_secs(3600);
    let client = Client::start(options).unwrap();
    ready(&client).await;
    server.kill();
    let entry = |options: &str| {
        let text = format!("udp://127.0.0.1:5000,{options}");
        LiveIn::parse(&text, &LiveDefaults::default()).unwrap()
    };
    let packets = entry(&format!("latency={budget}"));
    let packets = client.open_packets(packets.options()).await.unwrap();
    let frames = entry(&format!("deadline={budget}"));
    let blocks = client.open_blocks(frames.options()).await.unwrap();
    let frames = Frames::new(blocks, frames.frames);
    let media = entry(&format!("latency={budget},objects=on"));
    let objects = client.open_objects(media.options_of_objects()).await;
    let media = Media::new(objects.unwrap(), Some(media.latency));
    (client, packets, frames, media)
}

#[tokio::test]
async fn what_goes_over_the_next_session_is_as_old_as_its_datagrams() {
    async fn age<P: PacketFlow>(flow: &P) -> Duration {
        // Longer than there has been a session.
        let waited = Duration::from_secs(5);
        flow.send_waited(rtp(1).into(), waited).await.unwrap();
        let unsettled = flow.unsettled();
        let [(datagram, age)] = &unsettled[..] else {
            panic!("{unsettled:?}");
        };
        assert_eq!(datagram[..], rtp(1));
        *age
    }
    let (_client, packets, frames, media) = unanswered("10s").await;
    let ages = [age(&packets).await, age(&frames).await, age(&media).await];
    let five = Duration::from_secs(5)..Duration::from_secs(9);
    assert!(ages.iter().all(|age| five.contains(age)), "{ages:?}");
}

#[tokio::test]
async fn what_is_given_up_without_an_answer_is_counted_when_the_session_ends() {
    async fn sent<P: PacketFlow>(flow: &P) {
        for number in 0..20 {
            flow.send(rtp(number).into()).await.unwrap();
        }
    }
    fn given_up<P: PacketFlow>(flow: &P) -> u64 {
        let counters = flow.counters().unwrap();
        counters.expired_messages + counters.units.lost + counters.units.cancelled
    }
    let (client, packets, frames, media) = unanswered("100ms").await;
    sent(&packets).await;
    sent(&frames).await;
    sent(&media).await;
    // It gives objects up while somebody receives.
    let receiving = async { while media.recv().await.is_some() {} };
    let _ = tokio::time::timeout(Duration::from_secs(1), receiving).await;
    client.session().unwrap().close(0, "enough");
    until("all are counted", async || {
        let counts = [given_up(&packets), given_up(&frames), given_up(&media)];
        counts == [20; 3]
    })
    .await;
    let left = [packets.unsettled(), frames.unsettled(), media.unsettled()];
    assert_eq!(left, [vec![], vec![], vec![]]);
}

#[tokio::test]
async fn what_is_written_to_a_session_that_is_over_is_left_for_the_next() {
    let (client, _, frames, media) = unanswered("10s").await;
    // No marker: the frame is open until the next one begins.
    let mut open = rtp(1);
    open[1] &= 0x7f;
    let last = rtp(2);
    client.session().unwrap().close(0, "enough");
    for datagram in [&open, &last] {
        frames.send(datagram.clone().into()).await.unwrap();
        media.send(datagram.clone().into()).await.unwrap();
    }
    for left in [frames.unsettled(), media.unsettled()] {
        let left: Vec<Bytes> = left.into_iter().map(|(datagram, _)| datagram).collect();
        assert_eq!(left, [open.clone(), last.clone()]);
    }
}

#[tokio::test]
async fn a_backlog_waits_for_room_and_is_not_refused() {
    async fn fill<P: PacketFlow>(flow: &P) {
        let datagram = |number: u32| {
            let mut datagram = rtp(0);
            datagram[4..8].copy_from_slice(&number.to_be_bytes());
            datagram.resize(1200, 0);
            Bytes::from(datagram)
        };
        for number in 0..20_000 {
            let sent = flow.send(datagram(number));
            match tokio::time::timeout(Duration::from_millis(500), sent).await {
                Ok(sent) => sent.expect("it is not refused"),
                Err(_) => return,
            }
        }
        panic!("20 MB were taken");
    }
    let (_client, _, frames, media) = unanswered("10s").await;
    fill(&frames).await;
    fill(&media).await;
}
