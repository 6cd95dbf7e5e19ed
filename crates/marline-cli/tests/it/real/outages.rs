use super::harness::{DEADLINE, Site, links, path, pattern, socks_connect, socks_reply, tcp_echo};
use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time::Duration;

#[test]
fn the_session_comes_up_when_the_first_listed_path_is_dead() {
    let target = tcp_echo();
    let site = Site::new();
    let server = site.server(&[]);
    let links = links(server.addr, ["delay=1ms", "delay=30ms"], 1);
    links[0].set_dark(true);
    let paths = [path("dead", &links[0]), path("alive", &links[1])];
    let client = site.client(&server, &paths, &[]);
    client.active(&["alive"]);
    let mut stream = socks_connect(client.socks(), target);
    stream.write_all(b"hello").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();

    // And joins when it comes to life.
    links[0].set_dark(false);
    client.active(&["dead", "alive"]);
}

#[test]
fn flows_stall_and_resume_when_all_paths_are_dark_for_a_while() {
    const LENGTH: usize = 8_000_000;
    let target = tcp_echo();
    let site = Site::new();
    let server = site.server(&[]);
    let configs = [
        "rate=20mbit,delay=5ms,queue=100ms",
        "rate=20mbit,delay=15ms,queue=100ms",
    ];
    let links = links(server.addr, configs, 1);
    let paths = [path("a", &links[0]), path("b", &links[1])];
    let client = site.client(&server, &paths, &[]);
    client.active(&["a", "b"]);
    let stream = socks_connect(client.socks(), target);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            (&stream).write_all(&pattern(3, 0, LENGTH)).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut echoed = vec![0; LENGTH / 8];
        (&stream).read_exact(&mut echoed).unwrap();
        links.iter().for_each(|link| link.set_dark(true));
        thread::sleep(Duration::from_secs(2));
        client.session_is("a stalled session", |session| session.state == "stalled");
        links.iter().for_each(|link| link.set_dark(false));
        (&stream).read_to_end(&mut echoed).unwrap();
        writer.join().unwrap();
        assert_eq!(echoed.len(), LENGTH);
        assert!(echoed == pattern(3, 0, LENGTH));
    });
    // The same session: nothing was begun anew.
    assert_eq!(client.status().sessions[0].id, 0);
}

#[test]
fn an_outage_beyond_the_idle_limit_is_an_error_to_applications() {
    let target = tcp_echo();
    let site = Site::new();
    let limit = ["--idle-timeout", "2s"];
    let server = site.server(&limit);
    let links = links(server.addr, ["delay=5ms", "delay=15ms"], 1);
    let paths = [path("a", &links[0]), path("b", &links[1])];
    let forward = format!("tcp:127.0.0.1:0={target}");
    let more = [&limit[..], &["--forward", &forward]].concat();
    let client = site.client(&server, &paths, &more);
    client.active(&["a", "b"]);
    let socks = client.socks();
    let mut busy = socks_connect(socks, target);
    let mut quiet = std::net::TcpStream::connect(client.forward(target)).unwrap();
    for stream in [&mut busy, &mut quiet] {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(b"hello").unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
    }

    links.iter().for_each(|link| link.set_dark(true));
    busy.write_all(b"into the dark").unwrap();
    for stream in [&mut busy, &mut quiet] {
        let error = stream.read(&mut [0; 64]).expect_err("not a graceful end");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
    // And to those who ask now, at once: network unreachable.
    let (_, code) = socks_reply(socks, target).unwrap();
    assert_eq!(code, 3);

    links.iter().for_each(|link| link.set_dark(false));
    let session = client.active(&["a"]);
    assert!(session.id > 0, "{session:?}");
    let mut stream = socks_connect(socks, target);
    stream.write_all(b"hello").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
}
