//! Clients and a server with a tunnel, in memory: only their devices are missing, and the session
//! between them.

use super::client::serve;
use super::elsewhere::Elsewhere;
use super::gate::Gate;
use super::guests::Guests;
use super::hello::{OFFER_HEAD, Offer, Place, Standing};
use super::lease_file::LeaseFile;
use super::packet::tests::{v4, v6};
use super::packet::{ICMP, ICMP_V6, UDP};
use super::server::{Hub, Visitor};
use super::shared::Shared;
use super::{Port, Rules};
use crate::destination::Role;
use crate::proxy::policy::tests::{judge, judge_by};
use crate::proxy::policy::{Judge, Policy, Translators};
use crate::proxy::{OpenError, PacketFlow, Tasks, Tunnel};
use crate::tun::{ClientSetup, Prefix, Prefixes, TunIn};
use bytes::Bytes;
use marline::identity::PublicKey;
use marline::support::lock;
use marline_proto::FlowOptions;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

mod acks;
mod hostile;
mod joins;
mod many;

const OWN: [u8; 4] = [10, 77, 0, 2];
const SERVER: [u8; 4] = [10, 77, 0, 1];
/// More than anything here takes except for what is waited for on purpose.
const SOON: Duration = Duration::from_millis(900);

/// A flow that a client opened, at the server.
#[derive(Debug)]
enum Opened {
    Stream(DuplexStream),
    Packets(Pipe),
}

/// The client's end of a session.
#[derive(Debug, Clone)]
struct Session(mpsc::UnboundedSender<(Bytes, Opened)>);

#[derive(Debug)]
struct Pipe {
    out: mpsc::Sender<Bytes>,
    incoming: AsyncMutex<mpsc::Receiver<Bytes>>,
}

fn pipe() -> (Pipe, Pipe) {
    let ((to_far, at_far), (to_near, at_near)) = (mpsc::channel(64), mpsc::channel(64));
    let end = |out, incoming| Pipe {
        out,
        incoming: AsyncMutex::new(incoming),
    };
    (end(to_far, at_near), end(to_near, at_far))
}

impl PacketFlow for Pipe {
    async fn send(&self, message: Bytes) -> io::Result<()> {
        let sent = self.out.send(message).await;
        sent.map_err(|_| io::ErrorKind::ConnectionReset.into())
    }

    async fn recv(&self) -> Option<Bytes> {
        self.incoming.lock().await.recv().await
    }
}

impl Session {
    fn open(&self, options: FlowOptions, flow: Opened) -> Result<(), OpenError> {
        let over = |_| OpenError::NoSession("it is over".into());
        self.0.send((options.target, flow)).map_err(over)
    }
}

impl Tunnel for Session {
    type Stream = DuplexStream;
    type Packets = Pipe;

    fn room(&self) -> Option<usize> {
        Some(1400)
    }

    async fn open_stream(&self, options: FlowOptions) -> Result<DuplexStream, OpenError> {
        let (near, far) = duplex(4096);
        self.open(options, Opened::Stream(far))?;
        Ok(near)
    }

    async fn open_packets(&self, options: FlowOptions) -> Result<Pipe, OpenError> {
        let (near, far) = pipe();
        self.open(options, Opened::Packets(far))?;
        Ok(near)
    }
}

/// A client with a tunnel, and what goes between it and its kernel.
struct Machine {
    from_kernel: mpsc::Sender<Bytes>,
    to_kernel: mpsc::Receiver<Bytes>,
    shared: Arc<Shared>,
    _tasks: Tasks,
}

impl Machine {
    fn new(session: Session, routes: &[&str]) -> Machine {
        let (from_kernel, incoming) = mpsc::channel(64);
        let (outgoing, to_kernel) = mpsc::channel(64);
        let config = TunIn {
            device: "tun7".into(),
            setup: ClientSetup::default(),
            announced: Vec::new(),
            resolvers: Vec::new(),
            routes: routes.iter().map(|net| net.parse().unwrap()).collect(),
            rules: Rules::default(),
        };
        let device = config.device.clone();
        let look = |_: &str| Elsewhere::default();
        let shared = Shared::new(device, config, outgoing.clone(), look);
        let tasks = Tasks::new();
        let port = Port { incoming, outgoing };
        serve(Arc::clone(&shared), port, &session, &tasks);
        Machine {
            from_kernel,
            to_kernel,
            shared,
            _tasks: tasks,
        }
    }

    /// The last byte of the next packet for its kernel, if one comes.
    async fn gets(&mut self) -> Option<u8> {
        let packet = timeout(SOON, self.to_kernel.recv()).await.ok()??;
        packet.last().copied()
    }

    async fn leased(&self) -> Option<(u16, Vec<String>)> {
        sleep(SOON).await;
        let lease = self.shared.lease()?;
        let own = lease.places.iter().map(|place| place.own.to_string());
        Some((lease.mtu.get(), own.collect()))
    }
}

/// A server with a tunnel, and what its kernel sends.
struct Server {
    hub: Hub,
    from_kernel: mpsc::Sender<Bytes>,
    to_kernel: mpsc::Receiver<Bytes>,
    judge: Judge,
    _tasks: Tasks,
}

impl Server {
    fn new() -> Server {
        Server::with("10.77.0.0/24", judge(&["10.77.0.1"], &[], &[], &[]))
    }

    fn with(pool: &str, judge: Judge) -> Server {
        let (from_kernel, incoming) = mpsc::channel(64);
        let (outgoing, to_kernel) = mpsc::channel(64);
        let pool = pool.parse().unwrap();
        let gate = Gate::new(pool, judge.clone(), false);
        let (port, tasks) = (Port { incoming, outgoing }, Tasks::new());
        let leases = LeaseFile::load(None).unwrap();
        Server {
            judge,
            hub: Hub::serve(gate, pool, leases, Guests::default(), None, port, &tasks),
            from_kernel,
            to_kernel,
            _tasks: tasks,
        }
    }

    fn visitor(&self) -> Arc<Visitor> {
        let key = PublicKey::from_bytes([7; 32]);
        Arc::new(self.hub.visitor(key, None, self.judge.clone()))
    }

    /// A machine, and its session at this server, which is over when that is dropped.
    fn machine(&self) -> (Machine, Over) {
        self.machine_as(false)
    }

    /// The same, of a server as it was before it knew of joined packets, if it is `older`.
    fn machine_as(&self, older: bool) -> (Machine, Over) {
        let (opened, mut flows) = mpsc::unbounded_channel::<(Bytes, Opened)>();
        let visitor = self.visitor();
        let conversations = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&conversations);
        let session = tokio::spawn(async move {
            let mut running = JoinSet::new();
            while let Some((target, flow)) = flows.recv().await {
                let visitor = Arc::clone(&visitor);
                let role = Role::decode(&target);
                if older && matches!(role, Some(Role::Lease { joined: true, .. })) {
                    continue;
                }
                count.fetch_add(usize::from(role == Some(Role::Conversation)), Relaxed);
                running.spawn(async move {
                    match (role.unwrap(), flow) {
                        (Role::Lease { mtu, joined }, Opened::Stream(flow)) => {
                            visitor.lease(flow, mtu, joined).await;
                        }
                        (Role::Standing, Opened::Stream(flow)) => visitor.tell_standing(flow).await,
                        (role, Opened::Packets(flow)) => visitor.carry(role, flow).await,
                        (role, flow) => panic!("{role:?} by {flow:?}"),
                    }
                });
            }
        });
        let over = Over {
            session,
            conversations,
        };
        (Machine::new(Session(opened), &[]), over)
    }

    /// Its kernel sends this byte to the clients' address.
    async fn sends(&self, byte: u8) {
        self.from_kernel
            .send(packet(SERVER, OWN, byte).into())
            .await
            .unwrap();
    }
}

struct Over {
    session: JoinHandle<()>,
    /// Conversations that had a flow of their own.
    conversations: Arc<AtomicUsize>,
}

impl Drop for Over {
    fn drop(&mut self) {
        self.session.abort();
    }
}

fn packet(from: impl Into<Ipv4Addr>, to: impl Into<Ipv4Addr>, byte: u8) -> Vec<u8> {
    let mut bytes = v4(UDP, &[0, 53, 0x30, 0x39, 0, 9, 0, 0, byte]);
    bytes[12..16].copy_from_slice(&from.into().octets());
    bytes[16..20].copy_from_slice(&to.into().octets());
    bytes
}

/// What is logged from here on in this thread, at the levels that everybody sees.
fn log() -> (Arc<Mutex<Vec<u8>>>, impl Drop) {
    struct Into(Arc<Mutex<Vec<u8>>>);
    impl io::Write for Into {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let log = Arc::<Mutex<Vec<u8>>>::default();
    let its = Arc::clone(&log);
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .with_writer(move || Into(Arc::clone(&its)))
        .finish();
    (log, tracing::subscriber::set_default(subscriber))
}

fn lines(log: &Mutex<Vec<u8>>, what: &str) -> usize {
    let bytes = lock(log);
    let text = String::from_utf8_lossy(&bytes);
    text.lines().filter(|line| line.contains(what)).count()
}

#[tokio::test(start_paused = true)]
async fn the_first_of_two_machines_with_one_key_goes_on_when_the_second_leaves() {
    let (log, _guard) = log();
    let server = Server::new();
    let (mut first, _session) = server.machine();
    sleep(SOON).await;
    server.sends(1).await;
    assert_eq!(first.gets().await, Some(1));
    assert_eq!(first.shared.standing(), Standing::Alone);

    let (mut second, session) = server.machine();
    sleep(SOON).await;
    server.sends(2).await;
    assert_eq!((second.gets().await, first.gets().await), (Some(2), None));
    assert_eq!(first.shared.standing(), Standing::SetAside);
    assert_eq!(second.shared.standing(), Standing::Shared);
    assert_eq!(lines(&log, "is in use twice"), 1);
    assert_eq!(lines(&log, "has the addresses now"), 1);
    assert_eq!(lines(&log, "that one gets nothing"), 1);

    drop(session);
    sleep(SOON).await;
    server.sends(3).await;
    assert_eq!(first.gets().await, Some(3));
    assert_eq!(first.shared.standing(), Standing::Alone);
    assert_eq!(lines(&log, "not in use twice any more"), 1);
    assert_eq!(lines(&log, "this machine's alone"), 1);
}

#[tokio::test(start_paused = true)]
async fn two_machines_that_alternate_do_not_flood_the_log() {
    let (log, _guard) = log();
    let server = Server::new();
    let (_first, _session) = server.machine();
    for _ in 0..50 {
        let (_second, _over) = server.machine();
        sleep(Duration::from_millis(100)).await;
    }
    let all = [
        "has the addresses now",
        "this machine's alone",
        "is in use twice",
        "not in use twice",
    ]
    .map(|what| lines(&log, what));
    assert!(all.iter().all(|count| *count <= 4), "{all:?}");
    assert!(all[0] > 0 && all[2] > 0, "{all:?}");
}

/// A session that has a lease and does nothing more, as a machine that crashed leaves it.
async fn lingering(visitor: Arc<Visitor>) -> DuplexStream {
    let (mut near, far) = duplex(4096);
    tokio::spawn(async move { visitor.lease(far, 1400, false).await });
    let mut head = [0; OFFER_HEAD];
    near.read_exact(&mut head).await.unwrap();
    near
}

#[tokio::test(start_paused = true)]
async fn what_a_crash_has_left_of_a_session_is_no_second_machine() {
    let (log, _guard) = log();
    let server = Server::new();
    let visitor = server.visitor();
    let _lease = lingering(Arc::clone(&visitor)).await;
    let (mut again, _session) = server.machine();
    sleep(SOON).await;
    server.sends(1).await;
    assert_eq!(again.gets().await, Some(1));
    // What was under way when it crashed.
    let (late, flow) = pipe();
    let its = Arc::clone(&visitor);
    tokio::spawn(async move { its.carry(Role::Conversation, flow).await });
    late.send(packet(OWN, SERVER, 1).into()).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(again.shared.standing(), Standing::Alone);
    assert_eq!(lines(&log, "twice"), 0);
    // A machine that lives, with a program that knows nothing of standings.
    late.send(packet(OWN, SERVER, 2).into()).await.unwrap();
    sleep(SOON).await;
    assert_eq!(again.shared.standing(), Standing::Shared);
    assert_eq!(lines(&log, "is in use twice"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_has_one_lease_however_often_it_asks() {
    let (log, _guard) = log();
    let server = Server::new();
    let visitor = server.visitor();
    let mut first = lingering(Arc::clone(&visitor)).await;
    let mut leases = Vec::new();
    for _ in 0..1000 {
        leases.push(lingering(Arc::clone(&visitor)).await);
    }
    let mut rest = Vec::new();
    let ended = timeout(SOON, first.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the first is over");
    let all = lines(&log, "");
    assert!(all <= 5, "{all} lines");
    drop(leases);
    sleep(SOON).await;
    let (mut machine, _session) = server.machine();
    sleep(SOON).await;
    server.sends(1).await;
    assert_eq!(machine.gets().await, Some(1));
}

#[tokio::test(start_paused = true)]
async fn an_address_that_the_operator_gives_is_the_client_s_at_once() {
    let server = Server::new();
    let (key, other) = (
        PublicKey::from_bytes([7; 32]),
        PublicKey::from_bytes([8; 32]),
    );
    let (machine, _session) = server.machine();
    let own = || async { machine.leased().await.map(|(_, own)| own) };
    assert_eq!(own().await.unwrap(), ["10.77.0.2/32"]);
    let none = Prefixes::default();
    // Its own address is given to another client, and then it has one that was given to it.
    let grant = |key: PublicKey, address: &str| {
        let addresses = [(key, address.parse().unwrap())].into();
        server.hub.grant(&none, &addresses);
    };
    grant(other, "10.77.0.2");
    sleep(SOON).await;
    assert_eq!(own().await.unwrap(), ["10.77.0.3/32"]);
    grant(key, "10.77.0.9");
    sleep(SOON).await;
    assert_eq!(own().await.unwrap(), ["10.77.0.9/32"]);
    // What changes for others leaves it alone.
    let lease = machine.shared.lease().unwrap();
    let addresses = [(key, "10.77.0.9"), (other, "10.77.0.5")];
    let addresses = addresses.map(|(key, address)| (key, address.parse().unwrap()));
    server.hub.grant(&none, &addresses.into());
    sleep(SOON).await;
    assert!(Arc::ptr_eq(&lease, &machine.shared.lease().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_network_comes_behind_a_client_that_is_there_and_goes() {
    let server = Server::new();
    let (_machine, _session) = server.machine();
    sleep(SOON).await;
    let key = PublicKey::from_bytes([7; 32]);
    let behind = || {
        let guests = lock(server.hub.guests());
        let guest = guests.at([192, 168, 7, 9].into())?;
        Some(guest.key)
    };
    assert_eq!(behind(), None);
    let mut prefixes = Prefixes::default();
    let prefix = Prefix::of(key, "192.168.7.0/24").unwrap();
    prefixes.add(prefix).unwrap();
    server.hub.grant(&prefixes, &HashMap::new());
    assert_eq!(behind(), Some(key));
    server.hub.grant(&Prefixes::default(), &HashMap::new());
    assert_eq!(behind(), None);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_judged_yet_is_dropped_without_an_answer() {
    let translators = Arc::new(Translators::to_be_discovered());
    let judge = judge_by(Policy::default(), &[], Arc::clone(&translators));
    let mut server = Server::with("10.77.0.0/24,fd77::/64", judge);
    let visitor = server.visitor();
    let _lease = lingering(Arc::clone(&visitor)).await;
    let (client, flow) = pipe();
    tokio::spawn(async move { visitor.carry(Role::Conversation, flow).await });
    let to = |address: &str| {
        let mut bytes = v6(UDP, &[0x30, 0x39, 0, 80, 0, 8, 0, 0]);
        let address: Ipv6Addr = address.parse().unwrap();
        bytes[24..40].copy_from_slice(&address.octets());
        Bytes::from(bytes)
    };
    let (public, private) = (to("2606:4700::1"), to("fd99::1"));
    for packet in [&public, &private] {
        client.send(packet.clone()).await.unwrap();
        let answer = timeout(SOON, client.recv()).await;
        assert!(
            answer.is_err(),
            "a program would take it for final: {answer:?}"
        );
    }
    // IPv4 needs no discovery.
    let forbidden = packet(OWN, [10, 9, 9, 9], 1);
    client.send(forbidden.into()).await.unwrap();
    let answer = timeout(SOON, client.recv()).await.unwrap().unwrap();
    assert_eq!(answer[9], ICMP);
    assert!(server.to_kernel.try_recv().is_err(), "nothing went on");

    translators.discovered(Some(&[]));
    client.send(private).await.unwrap();
    let answer = timeout(SOON, client.recv()).await.unwrap().unwrap();
    assert_eq!(answer[6], ICMP_V6);
    client.send(public.clone()).await.unwrap();
    let sent = timeout(SOON, server.to_kernel.recv()).await.unwrap();
    assert_eq!(sent, Some(public));
}

#[tokio::test(start_paused = true)]
async fn a_client_is_told_of_its_standing_by_one_stream_however_often_it_asks() {
    let server = Server::new();
    let visitor = server.visitor();
    let _lease = lingering(Arc::clone(&visitor)).await;
    let mut streams = Vec::new();
    for _ in 0..100 {
        let (mut near, far) = duplex(64);
        let visitor = Arc::clone(&visitor);
        tokio::spawn(async move { visitor.tell_standing(far).await });
        assert_eq!(near.read_u8().await.unwrap(), Standing::Alone.encode());
        streams.push(near);
    }
    let mut last = streams.pop().unwrap();
    for mut stream in streams {
        assert!(timeout(SOON, stream.read_u8()).await.unwrap().is_err());
    }
    let (_second, _session) = server.machine();
    assert_eq!(last.read_u8().await.unwrap(), Standing::SetAside.encode());
}
