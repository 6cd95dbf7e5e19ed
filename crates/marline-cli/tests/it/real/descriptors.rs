use super::harness::{Site, client_of, until};
use std::io::{ErrorKind, Read};
use std::net::TcpStream;

/// A shell that starts what follows with this limit of descriptors, as `ulimit` takes it.
fn limited(limit: &str) -> [String; 4] {
    let line = format!("ulimit {limit} && exec \"$@\"");
    ["sh".into(), "-c".into(), line, "sh".into()]
}

/// Connections that the server has not closed.
fn open(connections: &mut [TcpStream]) -> usize {
    let is_open = |connection: &mut TcpStream| match connection.read(&mut [0]) {
        Ok(0) => false,
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    };
    connections
        .iter_mut()
        .map(is_open)
        .filter(|open| *open)
        .count()
}

#[test]
fn a_server_without_descriptors_turns_connections_away_and_lets_clients_in_over_quic() {
    const LIMIT: usize = 64;
    let site = Site::new();
    let words = limited(&format!("-n {LIMIT}"));
    // Each further worker takes five.
    let more = ["--workers", "1"];
    let server = site.server_within(&words.each_ref().map(String::as_str), &more);
    let connect = |_| {
        let connection = TcpStream::connect(server.addr).unwrap();
        connection.set_nonblocking(true).unwrap();
        connection
    };
    let mut silent: Vec<TcpStream> = (0..2 * LIMIT).map(connect).collect();
    // Those that find no descriptor are closed before the silence of the others is.
    let left = until("what is too much to be closed", || {
        let left = open(&mut silent);
        (left <= LIMIT).then_some(left)
    });
    assert!(left >= LIMIT / 2, "{left} are left");
    let client = client_of(&site, "client", &server.string, &["any".to_owned()], &[]);
    client.active(&["any"]);
    drop((client, silent));
    let path = ["any,carrier=tcp".to_owned()];
    let client = client_of(&site, "client", &server.string, &path, &[]);
    client.active(&["any"]);
}

#[test]
fn a_server_raises_its_limit_of_descriptors_as_far_as_it_may() {
    let site = Site::new();
    let words = limited("-S -n 64");
    let words = words.each_ref().map(String::as_str);
    let server = site.server_within(&words, &["--log", "debug"]);
    server.logged("the new limit", |line| {
        let before = line.strip_suffix(", 64 before")?;
        let now = before.split_once("at most ")?.1.split(' ').next()?;
        now.parse::<usize>().is_ok_and(|now| now > 64).then_some(())
    });
}
