//! The SOCKS5 proxy: CONNECT, its refusals, and its authentication.

use crate::world::{World, closed_port, socks_command, socks_reply, tcp_echo};
use marline_apps::proxy::SocksLogin;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECT: u8 = 1;
const BIND: u8 = 2;

#[tokio::test]
async fn bytes_go_both_ways_and_a_half_close_is_kept() {
    let world = World::open();
    let (proxy, target) = (world.socks(None).await, tcp_echo().await);
    let (stream, code, bound) = socks_command(proxy, CONNECT, "127.0.0.1", target.port()).await;
    assert_eq!(code, 0);
    assert!(bound.ip().is_loopback() && bound.port() != 0, "{bound}");

    let sent: Vec<u8> = (0..3_000_000_u32)
        .map(|index| (index % 251) as u8)
        .collect();
    let (mut reader, mut writer) = stream.into_split();
    let copy = sent.clone();
    let writing = tokio::spawn(async move {
        writer.write_all(&copy).await.unwrap();
        // The echo answers to the end only if our end reaches it while the way back stays open.
        writer.shutdown().await.unwrap();
        writer
    });
    let mut received = Vec::new();
    reader.read_to_end(&mut received).await.unwrap();
    writing.await.unwrap();
    assert!(
        received == sent,
        "{} of {} bytes came back",
        received.len(),
        sent.len()
    );
}

#[tokio::test]
async fn a_host_name_is_resolved_by_the_server() {
    let world = World::open();
    let (proxy, target) = (world.socks(None).await, tcp_echo().await);
    let (mut stream, code, _) = socks_command(proxy, CONNECT, "localhost", target.port()).await;
    assert_eq!(code, 0);
    stream.write_all(b"hello").await.unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"hello");
}

#[tokio::test]
async fn refusals_have_the_codes_of_rfc_1928() {
    let (open, closed) = (World::open(), World::with(&[], 1024));
    let (proxy, strict) = (open.socks(None).await, closed.socks(None).await);
    let (_refuses, nobody) = closed_port();
    let (target, nobody) = (tcp_echo().await.port(), nobody.port());
    for (proxy, command, host, port, expected) in [
        // Not allowed by ruleset: by address and by a name that resolves to it.
        (strict, CONNECT, "127.0.0.1", target, 2),
        (strict, CONNECT, "localhost", target, 2),
        (proxy, CONNECT, "10.0.0.1", target, 2),
        // Host unreachable: the name has no address, or is none.
        (proxy, CONNECT, "does-not-exist.invalid", target, 4),
        (proxy, CONNECT, "not a name", target, 4),
        // Connection refused.
        (proxy, CONNECT, "127.0.0.1", nobody, 5),
        // Command not supported.
        (proxy, BIND, "127.0.0.1", target, 7),
    ] {
        let (mut stream, code, _) = socks_command(proxy, command, host, port).await;
        assert_eq!(code, expected, "{host}:{port}");
        assert_eq!(
            stream.read(&mut [0; 8]).await.unwrap_or(0),
            0,
            "the connection is closed after {host}"
        );
    }
}

#[tokio::test]
async fn without_a_session_the_network_is_unreachable() {
    let world = World::open();
    let proxy = world.socks(None).await;
    world.server.cut();
    world.server.finish(std::time::Duration::ZERO).await;
    let (_, code, _) = socks_command(proxy, CONNECT, "127.0.0.1", 80).await;
    assert_eq!(code, 3);
}

#[tokio::test]
async fn a_client_gets_no_more_flows_than_it_may_have() {
    let world = World::with(&["127.0.0.0/8"], 2);
    let (proxy, target) = (world.socks(None).await, tcp_echo().await.port());
    let (first, code, _) = socks_command(proxy, CONNECT, "127.0.0.1", target).await;
    assert_eq!(code, 0);
    let (_second, code, _) = socks_command(proxy, CONNECT, "127.0.0.1", target).await;
    assert_eq!(code, 0);
    let (_, code, _) = socks_command(proxy, CONNECT, "127.0.0.1", target).await;
    assert_eq!(code, 1);
    // An ended flow gives its place back, once the server has noticed.
    drop(first);
    loop {
        let (_stream, code, _) = socks_command(proxy, CONNECT, "127.0.0.1", target).await;
        if code == 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn user_and_password_are_demanded_when_set() {
    let world = World::open();
    let login = SocksLogin {
        user: "ann".into(),
        password: "secret".into(),
    };
    let (proxy, target) = (world.socks(Some(login)).await, tcp_echo().await);

    // Without a password nothing is acceptable.
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(&[5, 1, 0]).await.unwrap();
    let mut method = [0; 2];
    stream.read_exact(&mut method).await.unwrap();
    assert_eq!(method, [5, 0xff]);

    for (user, password, accepted) in [
        ("ann", "secret", true),
        ("ann", "secreT", false),
        ("bob", "secret", false),
        ("ann", "secret2", false),
    ] {
        let mut stream = TcpStream::connect(proxy).await.unwrap();
        stream.write_all(&[5, 1, 2]).await.unwrap();
        stream.read_exact(&mut method).await.unwrap();
        assert_eq!(method, [5, 2]);
        let login = [
            &[1, user.len() as u8][..],
            user.as_bytes(),
            &[password.len() as u8],
            password.as_bytes(),
        ];
        stream.write_all(&login.concat()).await.unwrap();
        let mut status = [0; 2];
        stream.read_exact(&mut status).await.unwrap();
        assert_eq!(status[1] == 0, accepted, "{user} {password}");
        if accepted {
            let mut request = vec![5, CONNECT, 0, 1, 127, 0, 0, 1];
            request.extend(target.port().to_be_bytes());
            stream.write_all(&request).await.unwrap();
            assert_eq!(socks_reply(&mut stream).await.0, 0);
        }
    }
}

#[tokio::test]
async fn two_hundred_connections_at_once() {
    let world = World::open();
    let (proxy, target) = (world.socks(None).await, tcp_echo().await);
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..200_u32 {
        clients.spawn(async move {
            let (mut stream, code, _) =
                socks_command(proxy, CONNECT, "127.0.0.1", target.port()).await;
            assert_eq!(code, 0);
            let sent: Vec<u8> = number.to_be_bytes().repeat(2000);
            stream.write_all(&sent).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).await.unwrap();
            assert_eq!(received, sent);
        });
    }
    assert_eq!(clients.join_all().await.len(), 200);
}
