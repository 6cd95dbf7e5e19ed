use super::harness::{Digest, Site, client_of, http_server, links, path, socks_connect};
use std::io::{Read, Write};
use std::thread;

const CLIENTS: usize = 8;

#[test]
fn one_server_serves_many_clients() {
    let (target, expected) = http_server(1_000_000);
    let site = Site::new();
    let names: Vec<String> = (0..CLIENTS).map(|index| format!("client{index}")).collect();
    let keys: Vec<String> = names.iter().map(|name| site.key(name)).collect();
    std::fs::write(site.folder().join("clients"), keys.join("\n")).unwrap();
    let server = site.server_with_list("clients");
    // Behind one address, as behind a NAT.
    let links = links(server.addr, ["delay=2ms", "delay=5ms"], 1);
    let paths = [path("a", &links[0]), path("b", &links[1])];
    let clients: Vec<_> = names
        .iter()
        .map(|name| client_of(&site, name, &server.string, &paths, &[]))
        .collect();
    for client in &clients {
        client.active(&["a", "b"]);
    }
    thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| {
                let mut stream = socks_connect(client.socks(), target);
                stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).unwrap();
                let head = answer
                    .windows(4)
                    .position(|four| four == b"\r\n\r\n")
                    .unwrap();
                let mut digest = Digest::new();
                digest.update(&answer[head + 4..]);
                assert_eq!(digest.finish(), expected);
            });
        }
    });
    let sessions = server.status().sessions;
    let peers: std::collections::BTreeSet<_> = sessions
        .iter()
        .map(|session| session.peer.clone())
        .collect();
    assert_eq!(peers, keys.into_iter().collect(), "{sessions:?}");
}
