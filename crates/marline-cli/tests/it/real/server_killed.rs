use super::harness::{DEADLINE, Site, link, links, path, socks_connect, socks_reply, tcp_echo};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

fn greet(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(b"hello").unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"hello");
}

fn is_reset(stream: &mut TcpStream) {
    let error = stream.read(&mut [0; 64]).expect_err("not a graceful end");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
}

fn works(proxy: SocketAddr, target: SocketAddr) {
    greet(&mut socks_connect(proxy, target));
}

#[test]
fn applications_learn_of_a_dead_server_and_the_client_finds_it_again() {
    let target = tcp_echo();
    let site = Site::new();
    let limit = ["--idle-timeout", "3s"];
    let mut server = site.server(&limit);
    let links = links(server.addr, ["delay=2ms", "delay=5ms"], 1);
    let paths = [path("a", &links[0]), path("b", &links[1])];
    let client = site.client(&server, &paths, &limit);
    client.active(&["a", "b"]);
    let proxy = client.socks();
    let mut busy = socks_connect(proxy, target);
    let mut quiet = socks_connect(proxy, target);
    greet(&mut busy);
    greet(&mut quiet);

    server.kill();
    busy.write_all(b"is anybody there").unwrap();
    is_reset(&mut busy);
    is_reset(&mut quiet);
    let (_, code) = socks_reply(proxy, target).unwrap();
    assert_eq!(code, 3, "network unreachable");

    let server = site.server_at(&server.addr.to_string(), &limit);
    let session = client.active(&["a", "b"]);
    assert!(session.id > 0, "{session:?}");
    works(proxy, target);
    assert_eq!(server.status().sessions.len(), 1);
}

#[test]
fn a_server_that_is_back_before_anybody_noticed_ends_the_old_session() {
    let target = tcp_echo();
    let site = Site::new();
    // Long enough that it is not the idle limit that ends the session.
    let limit = ["--idle-timeout", "10min"];
    let mut server = site.server(&limit);
    let link = link(server.addr, "delay=2ms");
    let client = site.client(&server, &[path("a", &link)], &limit);
    client.active(&["a"]);
    let proxy = client.socks();
    let mut old = socks_connect(proxy, target);
    greet(&mut old);

    server.kill();
    let _server = site.server_at(&server.addr.to_string(), &limit);
    old.write_all(b"still there?").unwrap();
    is_reset(&mut old);
    client.session_is("a new session", |session| {
        session.id > 0 && session.state == "established"
    });
    works(proxy, target);
}
