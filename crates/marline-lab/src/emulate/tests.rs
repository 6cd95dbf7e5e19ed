//! Real sockets on the loopback interface. Nothing here measures time: waits only end early.

use super::{Direction, EmulateError, Emulator, EmulatorConfig, Stats};
use marline_link::{LinkConfig, Reason};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Longer than anything takes that goes well.
const PATIENCE: Duration = Duration::from_secs(20);

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// A target, and an emulator in front of it.
fn emulator(link: &str) -> (UdpSocket, Emulator) {
    let target = socket();
    let mut config = EmulatorConfig::new(target.local_addr().unwrap(), link.parse().unwrap());
    config.seed = 1;
    let emulator = Emulator::start(config).unwrap();
    (target, emulator)
}

fn client(emulator: &Emulator) -> UdpSocket {
    let client = socket();
    client.connect(emulator.addr()).unwrap();
    client
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 65_536];
    let (len, from) = socket.recv_from(&mut buffer).unwrap();
    (buffer[..len].to_vec(), from)
}

/// Waits until the emulator's numbers are as they should be.
fn wait_until(emulator: &Emulator, done: impl Fn(&Stats) -> bool) -> Stats {
    let start = std::time::Instant::now();
    loop {
        let stats = emulator.stats();
        if done(&stats) {
            return stats;
        }
        assert!(start.elapsed() < PATIENCE, "{stats:?}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn datagrams_keep_their_boundaries_and_order() {
    let (target, emulator) = emulator("rate=200mbit,delay=2ms,jitter=1ms");
    let client = client(&emulator);
    // Few enough for the default buffer of a receiving socket.
    let datagrams: Vec<Vec<u8>> = (0..40_usize)
        .map(|i| vec![i as u8; [0, 1, 1_200, 5_000][i % 4] + i])
        .collect();
    for datagram in &datagrams {
        client.send(datagram).unwrap();
    }
    for datagram in &datagrams {
        let (got, from) = receive(&target);
        assert!(
            got == *datagram,
            "{} bytes came, not {}",
            got.len(),
            datagram.len()
        );
        target.send_to(&got, from).unwrap();
    }
    for datagram in &datagrams {
        assert!(receive(&client).0 == *datagram);
    }
    let stats = wait_until(&emulator, |stats| stats.down.sent == 40);
    let bytes: usize = datagrams.iter().map(|datagram| datagram.len() + 28).sum();
    assert_eq!(stats.up.sent_bytes, bytes as u64);
    assert_eq!(stats.up.link.offered_bytes, bytes as u64);
    assert_eq!((stats.up.in_flight, stats.down.in_flight), (0, 0));
    assert_eq!(stats.lateness.count, 80);
}

/// Which of 1000 datagrams, sent one by one, come through a link that loses a tenth.
fn survivors(seed: u64) -> Vec<u16> {
    let target = socket();
    let mut config = EmulatorConfig::new(target.local_addr().unwrap(), "loss=10%".parse().unwrap());
    config.seed = seed;
    let emulator = Emulator::start(config).unwrap();
    let client = client(&emulator);
    let mut survivors = Vec::new();
    // One at a time, so that no buffer overflows.
    for number in 0..1_000_u16 {
        client.send(&number.to_be_bytes()).unwrap();
        let stats = wait_until(&emulator, |stats| {
            stats.up.link.offered == u64::from(number) + 1
        });
        if stats.up.link.delivered > survivors.len() as u64 {
            let (got, _) = receive(&target);
            survivors.push(u16::from_be_bytes([got[0], got[1]]));
        }
    }
    let lost = emulator.stats().up.link.dropped_for(Reason::Loss);
    assert_eq!(lost as usize, 1_000 - survivors.len());
    survivors
}

#[test]
fn the_seed_decides_what_is_lost() {
    let first = survivors(5);
    // Six standard errors of a tenth of 1000 are 57.
    assert!((843..=957).contains(&first.len()), "{}", first.len());
    assert_eq!(first, survivors(5));
    assert_ne!(first, survivors(6));
}

#[test]
fn links_that_are_told_no_seed_draw_each_their_own() {
    let config = || EmulatorConfig::new(socket().local_addr().unwrap(), LinkConfig::default());
    assert_ne!(config().seed, config().seed);
}

#[test]
fn a_full_queue_drops() {
    // 64 kbit/s: the 16 datagrams come within the 125 ms that the first one takes.
    let (_target, emulator) = emulator("rate=64kbit,queue=4p");
    let client = client(&emulator);
    for _ in 0..16 {
        client.send(&[0; 972]).unwrap();
    }
    let stats = wait_until(&emulator, |stats| stats.up.link.offered == 16);
    let dropped = stats.up.link.dropped_for(Reason::QueueFull);
    assert!(
        dropped > 0 && dropped + stats.up.link.delivered == 16,
        "{stats:?}"
    );
    wait_until(&emulator, |stats| {
        stats.up.queued_bytes == 0 && stats.up.sent == 16 - dropped
    });
}

#[test]
fn a_dark_link_carries_nothing_until_it_is_lit() {
    let (target, emulator) = emulator("delay=1ms");
    let client = client(&emulator);
    client.send(b"before").unwrap();
    let (_, upstream) = receive(&target);

    emulator.set_dark(true);
    client.send(b"dark").unwrap();
    target.send_to(b"dark", upstream).unwrap();
    let both = |stats: &Stats| {
        stats.up.link.dropped_for(Reason::Outage) + stats.down.link.dropped_for(Reason::Outage) == 2
    };
    wait_until(&emulator, both);

    emulator.set_dark(false);
    client.send(b"after").unwrap();
    assert_eq!(receive(&target).0, b"after");

    emulator.set_direction_dark(Direction::Down, true);
    client.send(b"one way").unwrap();
    assert_eq!(receive(&target).0, b"one way");
    target.send_to(b"answer", upstream).unwrap();
    wait_until(&emulator, |stats| {
        stats.down.link.dropped_for(Reason::Outage) == 2
    });
}

#[test]
fn going_dark_cuts_the_queue_but_not_the_wire() {
    // The first datagram leaves the queue at once and travels for 1 s; each of the others takes
    // a minute to leave.
    let (target, emulator) = emulator("rate=1kbit,delay=1s");
    let client = client(&emulator);
    client.send(b"").unwrap();
    wait_until(&emulator, |stats| stats.up.link.offered == 1);
    wait_until(&emulator, |stats| stats.up.queued_bytes == 0);
    for _ in 0..3 {
        client.send(&[1; 7_472]).unwrap();
    }
    let stats = wait_until(&emulator, |stats| stats.up.link.offered == 4);
    assert_eq!(stats.up.queued_bytes, 3 * 7_500);
    emulator.set_dark(true);
    let stats = emulator.stats();
    assert_eq!((stats.up.cut, stats.up.queued_bytes), (3, 0));
    assert!(receive(&target).0.is_empty());
    assert_eq!(emulator.stats().up.in_flight, 0);
}

#[test]
fn a_changed_link_holds_for_what_comes_then() {
    let (target, emulator) = emulator("delay=1ms,mtu=100");
    let client = client(&emulator);
    client.send(&[1; 200]).unwrap();
    wait_until(&emulator, |stats| {
        stats.up.link.dropped_for(Reason::TooBig) == 1
    });
    let up: LinkConfig = "delay=1ms,mtu=1000".parse().unwrap();
    emulator.reconfigure(Direction::Up, up).unwrap();
    client.send(&[2; 200]).unwrap();
    let (got, upstream) = receive(&target);
    assert_eq!(got, [2; 200]);
    // The other direction is as it was.
    target.send_to(&[3; 200], upstream).unwrap();
    wait_until(&emulator, |stats| {
        stats.down.link.dropped_for(Reason::TooBig) == 1
    });
    let wrong = "rate=1bit".parse().unwrap();
    let error = emulator.reconfigure(Direction::Down, wrong).unwrap_err();
    assert!(error.to_string().contains("rate=1 bit/s"), "{error}");
}

#[test]
fn clients_share_the_link_but_not_the_port() {
    let (target, emulator) = emulator("delay=1ms");
    let clients: Vec<UdpSocket> = (0..5).map(|_| client(&emulator)).collect();
    let mut ports = BTreeSet::new();
    for (i, client) in clients.iter().enumerate() {
        client.send(&[i as u8]).unwrap();
        let (got, from) = receive(&target);
        ports.insert(from.port());
        target.send_to(&[got[0], 99], from).unwrap();
        assert_eq!(receive(client).0, [i as u8, 99]);
    }
    assert_eq!(ports.len(), 5);
    let stats = emulator.stats();
    assert_eq!((stats.clients, stats.up.link.offered), (5, 5));
}

#[test]
fn the_table_of_clients_is_bounded_and_forgets() {
    let target = socket();
    let mut config = EmulatorConfig::new(target.local_addr().unwrap(), LinkConfig::default());
    config.max_clients = 2;
    config.idle = Duration::from_millis(500);
    let emulator = Emulator::start(config).unwrap();
    for _ in 0..3 {
        client(&emulator).send(b"x").unwrap();
    }
    let stats = wait_until(&emulator, |stats| stats.refused + stats.up.sent == 3);
    assert_eq!((stats.refused, stats.up.sent), (1, 2));
    wait_until(&emulator, |stats| stats.clients == 0);
    client(&emulator).send(b"x").unwrap();
    wait_until(&emulator, |stats| stats.up.sent == 3);
}

#[test]
fn rebinding_gives_a_client_a_new_port() {
    let (target, emulator) = emulator("delay=1ms");
    let client = client(&emulator);
    client.send(b"one").unwrap();
    let (_, before) = receive(&target);
    emulator.rebind();
    client.send(b"two").unwrap();
    let (_, after) = receive(&target);
    assert_ne!(before.port(), after.port());
    target.send_to(b"back", after).unwrap();
    assert_eq!(receive(&client).0, b"back");
}

#[test]
fn copies_arrive_twice() {
    let (target, emulator) = emulator("dup=100%");
    client(&emulator).send(b"twin").unwrap();
    assert_eq!(receive(&target).0, b"twin");
    assert_eq!(receive(&target).0, b"twin");
    assert_eq!(emulator.stats().up.link.copied, 1);
}

#[test]
fn a_target_that_is_not_there_yet_does_not_end_the_link() {
    let (target, emulator) = emulator("delay=1ms");
    let addr = target.local_addr().unwrap();
    drop(target);
    let client = client(&emulator);
    for _ in 0..3 {
        client.send(b"nobody").unwrap();
    }
    wait_until(&emulator, |stats| stats.up.sent + stats.up.send_errors == 3);
    let target = UdpSocket::bind(addr).unwrap();
    target.set_read_timeout(Some(PATIENCE)).unwrap();
    // The refusals may still lie on the client's socket, one for each datagram.
    for _ in 0..5 {
        client.send(b"somebody").unwrap();
    }
    assert_eq!(receive(&target).0, b"somebody");
}

#[test]
fn dropping_an_emulator_frees_its_port() {
    let (_target, emulator) = emulator("delay=60s");
    let addr = emulator.addr();
    client(&emulator).send(b"never arrives").unwrap();
    wait_until(&emulator, |stats| stats.up.in_flight == 1);
    drop(emulator);
    UdpSocket::bind(addr).unwrap();
}

#[test]
fn errors_say_what_and_where() {
    let target = socket().local_addr().unwrap();
    let taken = socket();
    let mut config = EmulatorConfig::new(target, LinkConfig::default());
    config.listen = taken.local_addr().unwrap();
    let error = Emulator::start(config.clone()).unwrap_err();
    assert!(matches!(error, EmulateError::Listen { addr, .. } if addr == config.listen));

    config.listen.set_port(0);
    config.down = "loss=2".parse().unwrap();
    let error = Emulator::start(config).unwrap_err();
    assert_eq!(
        error.to_string(),
        "down link: loss=2: must be from 0 to 1 (0% to 100%)"
    );
}
