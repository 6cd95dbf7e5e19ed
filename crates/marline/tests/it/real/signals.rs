use super::harness::{
    ClientProgram, DEADLINE, ServerProgram, Site, client_of, link, links, path, socks_connect,
    tcp_echo, until,
};
use marline::emulate::Emulator;
use rustix::process::Signal;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

struct Running {
    site: Site,
    server: ServerProgram,
    client: ClientProgram,
    proxy: SocketAddr,
    target: SocketAddr,
    _link: Emulator,
}

fn running() -> Running {
    let target = tcp_echo();
    let site = Site::new();
    let server = site.server(&[]);
    let link = link(server.addr, "delay=2ms");
    let client = site.client(&server, &[path("a", &link)], &[]);
    client.active(&["a"]);
    let proxy = client.socks();
    Running {
        site,
        server,
        client,
        proxy,
        target,
        _link: link,
    }
}

impl Running {
    fn connection(&self) -> TcpStream {
        let mut stream = socks_connect(self.proxy, self.target);
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(b"hello").unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
        stream
    }
}

fn logs_stopping(line: &str) -> Option<()> {
    line.contains("stopping").then_some(())
}

#[test]
fn a_client_that_is_told_to_stop_lets_connections_finish() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut all = running();
        let mut stream = all.connection();
        // `timeout` signals a program, and then its group: that is one wish.
        all.client.signal(signal);
        all.client.signal(signal);
        all.client.logged("that it stops", logs_stopping);
        until("nothing new to be begun", || {
            TcpStream::connect(all.proxy).is_err().then_some(())
        });
        stream.write_all(b"last words").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "last words");
        assert_eq!(all.client.wait().code(), Some(0));
        assert!(!all.site.folder().join("client.sock").exists());
        // The server was told, and does not wait for a client that does not come back.
        until("no session", || {
            all.server.status().sessions.is_empty().then_some(())
        });
    }
}

#[test]
fn connections_that_do_not_finish_are_reset() {
    let mut all = running();
    let mut stream = all.connection();
    all.client.signal(Signal::TERM);
    let error = stream.read(&mut [0; 64]).expect_err("not a graceful end");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    assert_eq!(all.client.wait().code(), Some(0));
}

#[test]
fn a_second_signal_resets_open_connections_at_once() {
    let mut all = running();
    let mut stream = all.connection();
    all.client.signal(Signal::INT);
    all.client.logged("that it stops", logs_stopping);
    // Sooner it would be the same wish.
    std::thread::sleep(Duration::from_millis(600));
    all.client.signal(Signal::INT);
    all.client.logged("that it stopped at once", |line| {
        line.contains("at once; open").then_some(())
    });
    let error = stream.read(&mut [0; 64]).expect_err("not a graceful end");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    assert_eq!(all.client.wait().code(), Some(0));
    assert!(!all.site.folder().join("client.sock").exists());
}

#[test]
fn a_server_that_is_told_to_stop_ends_its_sessions_and_the_client_says_so() {
    let mut all = running();
    let mut stream = all.connection();
    all.server.signal(Signal::TERM);
    let error = stream.read(&mut [0; 64]).expect_err("not a graceful end");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    assert_eq!(all.server.wait().code(), Some(0));
    assert!(!all.site.folder().join("server.sock").exists());
    all.client.logged("why", |line| {
        line.contains("the server stops").then_some(())
    });
}

#[test]
fn sighup_reads_paths_and_allowed_clients_again() {
    let site = Site::new();
    site.key("other");
    let allow = |keys: &[&str]| {
        let keys: String = keys
            .iter()
            .map(|key| format!("{}\n", site.public_key(key)))
            .collect();
        std::fs::write(site.folder().join("clients"), keys).unwrap();
    };
    allow(&["client"]);
    let server = site.server_with_list("clients");
    let links = links(server.addr, ["delay=2ms", "delay=5ms"], 1);
    let config = |paths: &[String]| {
        let text = format!("server = \"{}\"\npath = {paths:?}\n", server.string);
        std::fs::write(site.folder().join("client.toml"), text).unwrap();
    };
    let [a, b] = [path("a", &links[0]), path("b", &links[1])];
    config(std::slice::from_ref(&a));
    let client = client_of(
        &site,
        "client",
        &server.string,
        &[],
        &["--config", "client.toml"],
    );
    client.active(&["a"]);

    config(&[a, b.clone()]);
    client.signal(Signal::HUP);
    client.active(&["a", "b"]);
    config(&[b]);
    client.signal(Signal::HUP);
    client.session_is("only path b", |session| {
        session.paths.len() == 1 && session.paths[0].name == "b"
    });
    // What is wrong with a new configuration changes nothing.
    std::fs::write(site.folder().join("client.toml"), "pth = []\n").unwrap();
    client.signal(Signal::HUP);
    client.logged("the error", |line| {
        let parts = ["not reloaded", "pth", "did you mean the key `path`?"];
        parts.iter().all(|part| line.contains(part)).then_some(())
    });
    client.active(&["b"]);

    allow(&["client", "other"]);
    server.signal(Signal::HUP);
    server.logged("the new list", |line| {
        line.contains("1 added").then_some(())
    });
    let other = client_of(&site, "other", &server.string, &["any".to_owned()], &[]);
    other.active(&["any"]);
}
