//! Connections that are carried as objects: curl over SOCKS, and what status says of them.

use super::harness::{
    Digest, Site, http_server, link, links, not_installed, path, pattern, socks_connect, tcp_echo,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::process::Command;
use std::thread;

/// Serves two responses on each connection: chunked, and of known length.
fn chunked_server(body: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut head = BufReader::new(connection.try_clone().unwrap()).lines();
            let mut request = || {
                head.by_ref()
                    .map_while(Result::ok)
                    .take_while(|l| !l.is_empty())
                    .count()
                    > 0
            };
            if !request() {
                continue;
            }
            let mut answer =
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nPriority: u=1, i\r\n\r\n"
                    .to_vec();
            for (number, chunk) in body.chunks(70_001).enumerate() {
                write!(answer, "{:x}; number={number}\r\n", chunk.len()).unwrap();
                answer.extend_from_slice(chunk);
                answer.extend_from_slice(b"\r\n");
            }
            answer.extend_from_slice(b"0\r\nTrailer: yes\r\n\r\n");
            connection.write_all(&answer).unwrap();
            if request() {
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nPriority: u=6\r\n\r\n",
                    body.len()
                );
                connection.write_all(head.as_bytes()).unwrap();
                connection.write_all(&body).unwrap();
            }
            let _ = connection.shutdown(Shutdown::Write);
        }
    });
    address
}

/// What curl gets from these URLs over one connection; `None` where there is no curl.
fn curl(proxy: SocketAddr, urls: &[String]) -> Option<Vec<u8>> {
    let output = Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--fail",
            "--max-time",
            "60",
            "--proxy",
        ])
        .arg(format!("socks5h://{proxy}"))
        .args(urls)
        .output();
    let Ok(output) = output else {
        not_installed("curl");
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(output.stdout)
}

fn digest(bytes: &[u8]) -> String {
    let mut digest = Digest::new();
    digest.update(bytes);
    digest.finish()
}

#[test]
fn curl_gets_every_byte_of_chunked_and_plain_responses() {
    let site = Site::new();
    let server = site.server(&["--scheduler", "objects=sos"]);
    let links = ["rate=50mbit,delay=3ms,loss=1%", "rate=30mbit,delay=9ms"];
    let links = self::links(server.addr, links, 1);
    let paths = [path("a", &links[0]), path("b", &links[1])];
    let client = site.client(&server, &paths, &["--objects", "on"]);
    client.active(&["a", "b"]);
    let proxy = client.socks();

    let (plain, expected) = http_server(3_000_001);
    let Some(body) = curl(proxy, &[format!("http://{plain}/")]) else {
        return;
    };
    assert_eq!(digest(&body), expected);

    let body = pattern(5, 0, 900_000);
    let chunked = chunked_server(body.clone());
    let urls = [format!("http://{chunked}/1"), format!("http://{chunked}/2")];
    let both = curl(proxy, &urls).unwrap();
    assert_eq!(digest(&both), digest(&[&body[..], &body].concat()));
}

#[test]
fn records_come_back_as_they_were_and_status_says_what_carries_them() {
    let site = Site::new();
    let echo = tcp_echo();
    let server = site.server(&[]);
    let only = link(server.addr, "delay=2ms");
    let forward = format!("tcp:127.0.0.1:0={echo},objects,scheduler=sos-fec");
    let client = site.client(&server, &[path("a", &only)], &["--forward", &forward]);
    client.active(&["a"]);
    let mut stream = std::net::TcpStream::connect(client.forward(echo)).unwrap();
    // Records of a handshake and of data, of which the last is cut short by its end.
    let mut sent = Vec::new();
    for (kind, length) in [(22, 512), (20, 1), (23, 16_384), (23, 16_384), (23, 9)] {
        sent.extend_from_slice(&[kind, 3, 3]);
        sent.extend_from_slice(&u16::to_be_bytes(length));
        sent.extend(pattern(u64::from(length), 0, length.into()));
    }
    sent.truncate(sent.len() - 4);
    stream.write_all(&sent).unwrap();
    let session = client.session_is("a flow of objects", |session| !session.flows.is_empty());
    assert_eq!(session.flows[0].kind, "objects");
    assert_eq!(session.flows[0].scheduler, "sos-fec");
    stream.shutdown(Shutdown::Write).unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    assert!(back == sent, "{} bytes of {}", back.len(), sent.len());

    // SOCKS is not told to, and this is no port of HTTPS.
    let _plain = socks_connect(client.socks(), echo);
    client.session_is("a stream", |session| {
        session.flows.iter().any(|flow| flow.kind == "stream")
    });
}
