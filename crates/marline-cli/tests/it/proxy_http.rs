//! HTTP CONNECT on the port of the SOCKS5 proxy.

use crate::world::{World, closed_port, tcp_echo};
use marline_apps::proxy::SocksLogin;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What the proxy says to these bytes, until the empty line; and the connection.
async fn asked(proxy: SocketAddr, request: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    (stream, String::from_utf8(head).unwrap())
}

#[tokio::test]
async fn bytes_go_both_ways_from_the_first_on() {
    let world = World::open();
    let (proxy, target) = (world.socks(None).await, tcp_echo().await);
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\nearly,");
    let (mut stream, head) = asked(proxy, &request).await;
    assert_eq!(head, "HTTP/1.1 200 Connection established\r\n\r\n");
    stream.write_all(b"late").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "early,late");
}

#[tokio::test]
async fn what_is_not_served_is_answered() {
    let (open, closed) = (World::open(), World::with(&[], 1024));
    let (proxy, strict) = (open.socks(None).await, closed.socks(None).await);
    let (_refuses, nobody) = closed_port();
    let target = tcp_echo().await;
    for (proxy, request, status) in [
        (proxy, format!("GET http://{target}/ HTTP/1.1"), 405),
        (proxy, "CONNECT nowhere HTTP/1.1".to_owned(), 400),
        (strict, format!("CONNECT {target} HTTP/1.1"), 403),
        (proxy, format!("CONNECT {nobody} HTTP/1.1"), 502),
    ] {
        let (mut stream, head) = asked(proxy, &format!("{request}\r\n\r\n")).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        let mut why = String::new();
        stream.read_to_string(&mut why).await.unwrap();
        assert!(
            head.contains(&format!("Content-Length: {}\r\n", why.len())),
            "{head}{why}"
        );
    }
}

#[tokio::test]
async fn the_login_is_the_same() {
    let world = World::open();
    let login = SocksLogin {
        user: "ann".into(),
        password: "secret".into(),
    };
    let (proxy, target) = (world.socks(Some(login)).await, tcp_echo().await);
    let connect = format!("CONNECT {target} HTTP/1.1\r\n");
    let (_stream, head) = asked(proxy, &format!("{connect}\r\n")).await;
    assert!(head.starts_with("HTTP/1.1 407 "), "{head}");
    assert!(head.contains("Proxy-Authenticate: Basic"), "{head}");
    // ann:secret
    let field = "Proxy-Authorization: Basic YW5uOnNlY3JldA==";
    let (_stream, head) = asked(proxy, &format!("{connect}{field}\r\n\r\n")).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
}
