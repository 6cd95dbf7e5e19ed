//! `marline link` between two network namespaces, with what the kernel itself sends. Needs root. Of
//! times only lower bounds are asked: a busy machine makes nothing quicker.

use super::harness::namespace::Namespace;
use super::harness::{DEADLINE, Program, marline, until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

const NEAR: &str = "10.9.0.1";
const FAR: &str = "10.9.0.2";

/// Two namespaces with nothing between them but a link; those go last.
struct Joined {
    link: Program,
    _folder: tempfile::TempDir,
    near: Namespace,
    far: Namespace,
}

impl Joined {
    /// Over a link with these keys; `None` where this machine cannot have one.
    fn start(keys: &[&str]) -> Option<Joined> {
        let (near, far) = (Namespace::new("near")?, Namespace::new("far")?);
        let folder = tempfile::tempdir().unwrap();
        let places = [
            format!("wan0@{near}={NEAR}/30"),
            format!("wan0@{far}={FAR}/30"),
        ];
        let words = ["link", "--json", "--near", &places[0], "--far", &places[1]];
        let link = Program::start("the link", folder.path(), &[&words[..], keys].concat());
        link.logged("what it joins", |line| {
            line.contains("joining wan0@").then_some(())
        });
        Some(Joined {
            link,
            _folder: folder,
            near,
            far,
        })
    }

    /// Ends it as Ctrl-C does, and returns what it counted.
    fn end(mut self) -> Value {
        self.link.signal(Signal::INT);
        let output = self.link.finish();
        assert!(output.status.success());
        for namespace in [&self.near, &self.far] {
            namespace.device_is_gone("wan0");
        }
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

#[test]
fn datagrams_take_the_time_of_the_way_there_and_back() {
    let Some(joined) = Joined::start(&["--delay", "30ms", "--down-delay", "20ms"]) else {
        return;
    };
    let service = joined.far.inside(|| UdpSocket::bind((FAR, 53)).unwrap());
    let client = joined.near.inside(|| UdpSocket::bind((NEAR, 0)).unwrap());
    client.connect((FAR, 53)).unwrap();
    for socket in [&client, &service] {
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
    }
    let mut buffer = [0; 2000];
    for length in [1, 100, 1472] {
        let start = Instant::now();
        client.send(&buffer[..length]).unwrap();
        let (got, from) = service.recv_from(&mut buffer).unwrap();
        assert_eq!((got, from), (length, client.local_addr().unwrap()));
        assert!(start.elapsed() >= Duration::from_millis(30));
        service.send_to(&buffer[..got], from).unwrap();
        assert_eq!(client.recv(&mut buffer).unwrap(), length);
        assert!(start.elapsed() >= Duration::from_millis(50));
    }
    let counted = joined.end();
    // Nothing else crossed it, and a packet counts with its headers of IP and UDP as it is.
    for direction in ["up", "down"] {
        assert_eq!(counted[direction]["sent"], 3);
        assert_eq!(counted[direction]["sent_bytes"], 1 + 100 + 1472 + 3 * 28);
    }
}

#[test]
fn tcp_gets_no_more_than_the_rate_in_packets_of_the_mtu() {
    const BYTES: usize = 400_000;
    let keys = ["--rate", "8mbit", "--mtu", "1000", "--queue", "1000p"];
    let Some(joined) = Joined::start(&keys) else {
        return;
    };
    let listener = joined.far.inside(|| TcpListener::bind((FAR, 80)).unwrap());
    let mut client = joined
        .near
        .inside(|| TcpStream::connect((FAR, 80)).unwrap());
    let start = Instant::now();
    let received = thread::scope(|scope| {
        scope.spawn(|| {
            client.write_all(&[7; BYTES]).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        listener
            .accept()
            .unwrap()
            .0
            .read_to_end(&mut received)
            .unwrap();
        received
    });
    assert_eq!(received.len(), BYTES);
    assert!(start.elapsed() >= Duration::from_millis(400));
    let counted = joined.end();
    let sent = |key: &str| counted["up"][key].as_u64().unwrap();
    // Larger ones would have been dropped.
    assert_eq!(counted["up"]["dropped"]["too-big"], 0);
    assert!(sent("sent_bytes") >= BYTES as u64);
    assert!(sent("sent") >= BYTES as u64 / 1000);
}

#[test]
fn the_link_loses_what_it_says() {
    let keys = ["--up-loss", "30%", "--seed", "3"];
    let Some(joined) = Joined::start(&keys) else {
        return;
    };
    let service = joined.far.inside(|| UdpSocket::bind((FAR, 53)).unwrap());
    service
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let client = joined.near.inside(|| UdpSocket::bind((NEAR, 0)).unwrap());
    let mut buffer = [0; 100];
    // One by one, so that none waits for room. What comes late is counted all the same, with
    // another's number.
    let arrived = (0..200_u8).filter(|number| {
        client.send_to(&[*number], (FAR, 53)).unwrap();
        service.recv(&mut buffer).is_ok()
    });
    let arrived = arrived.count() as u64;
    let counted = joined.end();
    let lost = counted["up"]["dropped"]["loss"].as_u64().unwrap();
    // Five standard errors of 30 % of 200 are 32.
    assert!((28..=92).contains(&lost), "{lost}");
    let offered = counted["up"]["offered"].as_u64().unwrap();
    assert!(offered <= 200 && arrived <= offered - lost);
}

#[test]
fn what_is_wrong_with_an_end_is_named_with_the_mend() {
    let Some(there) = Namespace::new("there") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let near = format!("wan0@{there}");
    for (far, code, part) in [
        ("wan0@marline-nowhere", 1, "ip netns add marline-nowhere"),
        (&*near, 2, "the same network namespace"),
    ] {
        let words = ["link", "--near", &near, "--far", far];
        let (ended, _, said) = marline(folder.path(), &words);
        assert!(ended == code && said.contains(part), "{said}");
        // What was opened before is not left behind.
        there.device_is_gone("wan0");
    }
}

#[test]
fn a_link_that_is_killed_leaves_no_device() {
    let Some(mut joined) = Joined::start(&["--delay", "1ms"]) else {
        return;
    };
    joined.link.kill();
    for namespace in [&joined.near, &joined.far] {
        namespace.device_is_gone("wan0");
    }
    // A device that somebody takes away is said to be gone.
    let Some(joined) = Joined::start(&["--delay", "1ms"]) else {
        return;
    };
    until("the device to be taken away", || {
        joined.near.ip("link delete wan0").map(drop)
    });
    joined.link.logged("that it is gone", |line| {
        line.contains("a device is gone").then_some(())
    });
}
