use super::harness::{DEADLINE, Site, links, path, pattern, udp_echo};
use std::collections::BTreeSet;
use std::net::UdpSocket;

/// Bytes on their way at a time: what two sockets' default buffers hold in any case.
const WINDOW: usize = 48_000;

#[test]
fn a_udp_forward_keeps_message_boundaries() {
    let target = udp_echo();
    let site = Site::new();
    let server = site.server(&[]);
    // Datagrams of one message may overtake each other on two paths.
    let links = links(server.addr, ["delay=1ms", "delay=4ms"], 1);
    let paths = [path("a", &links[0]), path("b", &links[1])];
    let forward = format!("udp:127.0.0.1:0={target}");
    let client = site.client(&server, &paths, &["--forward", &forward]);
    client.active(&["a", "b"]);

    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(client.forward(target)).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    // A message says by its length which one it is.
    let sizes = (0..=1600)
        .chain((1600..9000).step_by(97).skip(1))
        .chain([8000, 9000]);
    let mut waiting = BTreeSet::new();
    let mut buffer = vec![0; 65_536];
    let mut take = |waiting: &mut BTreeSet<usize>| {
        let length = socket.recv(&mut buffer).unwrap_or_else(|error| {
            panic!("no answer of {waiting:?} bytes: {error}");
        });
        assert!(
            waiting.remove(&length),
            "{length} bytes came twice or from nothing"
        );
        assert!(
            buffer[..length] == pattern(length as u64, 0, length),
            "{length}"
        );
    };
    for size in sizes {
        // A quarter of the flow's queue, which drops when it is full.
        while waiting.len() >= 16 || waiting.iter().sum::<usize>() + size > WINDOW {
            take(&mut waiting);
        }
        let sent = socket.send(&pattern(size as u64, 0, size)).unwrap();
        assert_eq!(sent, size);
        waiting.insert(size);
    }
    while !waiting.is_empty() {
        take(&mut waiting);
    }
}
