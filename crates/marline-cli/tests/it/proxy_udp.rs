//! UDP forwards and SOCKS UDP associations: boundaries, many peers, strangers.

use crate::memory::MAX_MESSAGE;
use crate::world::{World, socks_address, socks_command, udp_echo};
use std::net::SocketAddr;
use tokio::net::UdpSocket;

const UDP_ASSOCIATE: u8 = 3;

async fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").await.unwrap()
}

/// Sends `payload` and returns the port that the target saw, and the payload that came back.
async fn exchange(socket: &UdpSocket, to: SocketAddr, payload: &[u8]) -> (u16, Vec<u8>) {
    socket.send_to(payload, to).await.unwrap();
    let mut buffer = vec![0; 65_535];
    let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
    assert_eq!(from, to);
    (
        u16::from_be_bytes([buffer[0], buffer[1]]),
        buffer[2..length].to_vec(),
    )
}

#[tokio::test]
async fn a_forward_keeps_boundaries_and_one_flow_a_peer() {
    let world = World::open();
    let forward = world.forward_udp(udp_echo().await).await;
    let (a, b) = (socket().await, socket().await);
    let (port_a, answer) = exchange(&a, forward, b"first").await;
    assert_eq!(answer, b"first");
    let (port_b, answer) = exchange(&b, forward, b"").await;
    assert_eq!(answer, b"");
    assert_ne!(
        port_a, port_b,
        "each peer has a socket of its own at the server"
    );
    for size in [1, 1500, 20_000] {
        let (port, answer) = exchange(&a, forward, &vec![7; size]).await;
        assert_eq!((port, answer.len()), (port_a, size));
    }
}

#[tokio::test]
async fn a_datagram_that_is_too_large_harms_no_other() {
    let world = World::open();
    let forward = world.forward_udp(udp_echo().await).await;
    let socket = socket().await;
    let (port, _) = exchange(&socket, forward, b"before").await;
    socket
        .send_to(&vec![0; MAX_MESSAGE + 1], forward)
        .await
        .unwrap();
    assert_eq!(
        exchange(&socket, forward, b"after").await,
        (port, b"after".to_vec())
    );
}

#[tokio::test]
async fn an_association_reaches_many_targets() {
    let world = World::open();
    let proxy = world.socks(None).await;
    let (control, code, relay) = socks_command(proxy, UDP_ASSOCIATE, "0.0.0.0", 0).await;
    assert_eq!(code, 0);
    let socket = socket().await;
    for host in ["127.0.0.1", "localhost"] {
        let header = [
            &[0, 0, 0][..],
            &socks_address(host, udp_echo().await.port()),
        ]
        .concat();
        let datagram = [&header[..], b"payload"].concat();
        // A fragment, a stranger's datagram and rubbish are dropped; what is meant still arrives.
        let mut fragment = datagram.clone();
        fragment[2] = 1;
        socket.send_to(&fragment, relay).await.unwrap();
        socket.send_to(b"rubbish", relay).await.unwrap();
        socket.send_to(&datagram, relay).await.unwrap();
        let mut buffer = [0; 1500];
        let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
        assert_eq!(from, relay);
        let (answer_header, answer) = buffer[..length].split_at(header.len());
        assert_eq!(answer_header, header);
        assert_eq!(&answer[2..], b"payload");
    }
    drop(control);
}

#[tokio::test]
async fn an_association_belongs_to_its_first_port_and_ends_with_its_connection() {
    let world = World::open();
    let proxy = world.socks(None).await;
    let (control, _, relay) = socks_command(proxy, UDP_ASSOCIATE, "0.0.0.0", 0).await;
    let target = udp_echo().await;
    let datagram = [
        &[0, 0, 0][..],
        &socks_address("127.0.0.1", target.port()),
        b"mine",
    ]
    .concat();
    let (owner, stranger) = (socket().await, socket().await);
    let mut buffer = [0; 100];
    owner.send_to(&datagram, relay).await.unwrap();
    owner.recv_from(&mut buffer).await.unwrap();
    stranger.send_to(&datagram, relay).await.unwrap();
    // The relay serves one datagram after the other: when the owner's is answered, the stranger's
    // has been dropped.
    owner.send_to(&datagram, relay).await.unwrap();
    owner.recv_from(&mut buffer).await.unwrap();
    assert!(stranger.try_recv_from(&mut buffer).is_err());

    drop(control);
    owner.connect(relay).await.unwrap();
    // Once the relay's socket is closed, the system answers for it.
    while owner.send(&datagram).await.is_ok() {
        tokio::task::yield_now().await;
    }
}
