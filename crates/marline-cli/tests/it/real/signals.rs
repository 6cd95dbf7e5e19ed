use super::harness::{
    ClientProgram, DEADLINE, ServerProgram, Site, client_of, link, links, path, socks_connect,
    tcp_echo, until,
};
use marline_lab::emulate::Emulator;
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
    config(std::slice::from_ref(&b));
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
    let text = format!(
        "server = \"{}\"\npath = {:?}\nmetrics = \"127.0.0.1:0\"\n",
        server.string,
        [b]
    );
    std::fs::write(site.folder().join("client.toml"), text).unwrap();
    client.signal(Signal::HUP);
    client.logged("the key that waits", |line| {
        let waits = "changed in client.toml, takes a restart: metrics";
        line.contains(waits).then_some(())
    });

    allow(&["client", "other"]);
    server.signal(Signal::HUP);
    server.logged("the new list", |line| {
        line.contains("1 added").then_some(())
    });
    let other = client_of(&site, "other", &server.string, &["any".to_owned()], &[]);
    other.active(&["any"]);
}

#[test]
fn sighup_reads_a_servers_configuration_again() {
    let site = Site::new();
    let [client, other] = [site.public_key("client"), site.key("other")];
    let write = |text: &str| std::fs::write(site.folder().join("server.toml"), text).unwrap();
    write(&format!("allow-client = [\"{client}\"]\n"));
    let server = site.server_with_config("server.toml");
    let first = client_of(&site, "client", &server.string, &["any".to_owned()], &[]);
    first.active(&["any"]);
    let logs = |parts: &[&str]| {
        server.logged(&format!("{parts:?}"), |line| {
            parts.iter().all(|part| line.contains(part)).then_some(())
        });
    };

    write(&format!(
        "allow-client = [\n  \"{client}\",\n  \"{other}\",\n]\n"
    ));
    server.signal(Signal::HUP);
    logs(&["1 added, 0 removed"]);
    let second = client_of(&site, "other", &server.string, &["any".to_owned()], &[]);
    second.active(&["any"]);
    let number_of = |peer: &str| {
        let sessions = server.status().sessions;
        sessions
            .iter()
            .filter(|session| session.peer == peer)
            .count()
    };
    assert_eq!((number_of(&client), number_of(&other)), (1, 1));

    // Whatever is wrong changes nothing.
    write(&format!(
        "allow-client = [\n  \"{other}\",\n  \"marline-pub:x\",\n]\n"
    ));
    server.signal(Signal::HUP);
    logs(&[
        "everything stays as it was",
        "server.toml:3: key `allow-client`",
        "hint: ",
    ]);
    assert_eq!((number_of(&client), number_of(&other)), (1, 1));

    // Of a file of clients now, and with another key that takes a restart.
    std::fs::write(site.folder().join("clients"), format!("{other}\n")).unwrap();
    write("allow-clients-file = \"clients\"\nmax-flows = \"7\"\n");
    server.signal(Signal::HUP);
    logs(&["0 added, 1 removed"]);
    logs(&["changed in server.toml, takes a restart: max-flows"]);
    until("the end of the removed client's session", || {
        (number_of(&client) == 0).then_some(())
    });
    assert_eq!(number_of(&other), 1);

    write("");
    server.signal(Signal::HUP);
    logs(&["the list of clients is empty"]);
    until("no session", || (number_of(&other) == 0).then_some(()));
}

#[test]
fn sighup_says_when_there_is_nothing_to_read_again() {
    let all = running();
    for program in [&*all.client, &*all.server] {
        program.signal(Signal::HUP);
        program.logged("that there is nothing", |line| {
            line.contains("nothing to read again").then_some(())
        });
    }
    all.client.active(&["a"]);
}
