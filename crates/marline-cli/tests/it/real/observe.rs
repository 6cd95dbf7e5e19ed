use super::harness::{
    Live, Program, Site, links, marline, path, roomy_socket, socks_connect, tcp_echo, transport,
};
use marline_cli::control::status::Role;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// What a program's metrics say.
fn scrape(program: &Program) -> String {
    let address: SocketAddr = program.logged("its metrics", |line| {
        let (_, rest) = line.split_once("metrics at http://")?;
        rest.strip_suffix("/metrics")?.parse().ok()
    });
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn metrics_and_status_tell_of_every_path_and_flow() {
    let target = tcp_echo();
    let site = Site::new();
    let metrics = ["--metrics", "127.0.0.1:0"];
    let server = site.server(&metrics);
    let links = links(server.addr, ["delay=2ms", "delay=5ms"], 1);
    let paths = [path("a", &links[0]), path("b", &links[1])];
    let client = site.client(&server, &paths, &metrics);
    client.active(&["a", "b"]);
    let mut stream = socks_connect(client.socks(), target);
    stream.write_all(&[7; 100_000]).unwrap();
    stream.read_exact(&mut [0; 100_000]).unwrap();

    for program in [&*client, &*server] {
        let page = scrape(program);
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        for family in [
            "marline_uptime_seconds ",
            "marline_path_rtt_seconds{",
            "marline_path_loss_ratio{",
            "marline_path_cwnd_bytes{",
            "marline_path_in_flight_bytes{",
            "marline_path_queue_bytes{",
            "marline_path_bytes_total{",
            "marline_path_state{",
            "marline_flow_bytes_total{",
            "marline_flow_delay_seconds{",
            "marline_flow_redundancy_ratio{",
            "marline_flow_retransmitted_bytes_total{",
        ] {
            assert!(
                page.lines().any(|line| line.starts_with(family)),
                "no {family} in\n{page}"
            );
        }
        assert!(page.contains("path=\"1\""), "{page}");
        // Numbers only: who and where is nobody's business who may read figures.
        assert!(
            !page.contains("127.0.0.1:") && !page.contains("marline-pub"),
            "{page}"
        );
    }

    let status = client.status();
    assert_eq!((status.role, status.sessions.len()), (Role::Client, 1));
    let session = &status.sessions[0];
    assert_eq!(session.state, "established");
    assert!(
        session.paths.iter().all(|path| path.rtt_ms.is_some()),
        "{session:?}"
    );
    let flow = &session.flows[0];
    // Before the echo comes the server's answer to the request for a connection.
    assert!(
        flow.sent_bytes == 100_000 && flow.delivered_bytes > 100_000,
        "{session:?}"
    );
    let status = server.status();
    assert_eq!((status.role, status.sessions.len()), (Role::Server, 1));
    assert_eq!(status.sessions[0].peer, site.public_key("client"));
    assert_eq!(status.sessions[0].paths.len(), 2);

    let words = ["status", "--control", "client.sock"];
    let (code, table, _) = marline(site.folder(), &words);
    assert_eq!(code, 0);
    assert!(
        table.contains("established") && table.contains("stream"),
        "{table}"
    );
}

#[test]
fn what_everybody_who_reaches_an_address_may_use_is_warned_of() {
    let site = Site::new();
    let server = site.server(&[]);
    let words = [
        "--forward",
        "tcp:0.0.0.0:0=192.0.2.1:22",
        "--forward",
        "udp:0.0.0.0:0=192.0.2.1:53",
        "--forward",
        "tcp:127.0.0.1:0=192.0.2.1:80",
    ];
    let client = site.client(&server, &["any".to_owned()], &words);
    client.active(&["any"]);
    // In this order: those for TCP come first.
    let mut warned = Vec::new();
    client.logged("two warnings", |line| {
        let (_, what) = line.split_once(" may use ")?;
        warned.push(what.to_owned());
        (warned.len() == 2).then_some(())
    });
    let expected = [
        "tcp:192.0.2.1:22 without a password",
        "udp:192.0.2.1:53 without a password",
    ];
    assert_eq!(warned, expected);
}

/// The number after `word` in a line of the running display.
fn count(line: &str, word: &str) -> Option<u64> {
    let (_, rest) = line.split_once(&format!(" {word} "))?;
    rest.split([',', ' ']).next()?.parse().ok()
}

/// The value of a metric with these labels.
fn metric(page: &str, name: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

#[test]
fn a_live_stream_is_shown_while_it_runs() {
    let target = roomy_socket();
    let links = [
        "rate=20mbit,delay=5ms,loss=2%,burst=5",
        "rate=20mbit,delay=20ms,loss=2%,burst=5",
    ];
    let live = Live::start(links, target.local_addr().unwrap(), "");
    thread::scope(|scope| {
        let shown = scope.spawn(|| {
            // There is no terminal, so it is a line of the log every ten seconds. The first of them
            // may have come before anything was lost.
            live.client.logged("what it is sent", |line| {
                let (_, line) = line.split_once("live live: in ")?;
                let known = ["lost", "late", "duplicated", "breaks"].map(|word| count(line, word));
                let repaired = count(line, "repaired")?;
                (known.iter().all(Option::is_some) && repaired > 0).then_some(())
            });
            live.server.logged("what it hands over", |line| {
                let (_, line) = line.split_once("live live: out ")?;
                let words = ["lost", "late", "reordered", "duplicated", "breaks"];
                let known = words.map(|word| count(line, word));
                known.iter().all(Option::is_some).then_some(())
            });
            let [client, server] = [&*live.client, &*live.server].map(scrape);
            for name in ["live_repaired_total", "live_redundancy_ratio"] {
                let value = metric(&client, &format!("marline_{name}{{live=\"0\"}}"));
                assert!(value > Some(0.0), "no {name} in\n{client}");
            }
            for name in ["lost", "late", "duplicated", "reordered"] {
                let value = metric(&server, &format!("marline_live_{name}_total{{live=\"0\"}}"));
                assert!(value.is_some(), "no {name} in\n{server}");
            }
            for (page, direction) in [(&client, "send"), (&server, "receive")] {
                let labels = format!("{{live=\"0\",direction=\"{direction}\"}}");
                let value = metric(page, &format!("marline_live_datagrams_total{labels}"));
                assert!(value > Some(1_000.0), "{value:?} datagrams in\n{page}");
            }
        });
        let socket = live.sender();
        for number in 0.. {
            if shown.is_finished() {
                break;
            }
            socket.send(&transport(number)).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// What a program's page answers at `path` below its token, or with another token.
fn page(program: &Program, token: Option<&str>, path: &str) -> String {
    // The log is no terminal: it does not have the token itself.
    let (address, file): (SocketAddr, String) = program.logged("its page", |line| {
        let (_, rest) = line.split_once("page at http://")?;
        let (address, file) = rest.split_once("/TOKEN/, with what is in ")?;
        let file = file.strip_suffix(" as TOKEN")?;
        Some((address.parse().ok()?, file.to_owned()))
    });
    let own = std::fs::read_to_string(&file).expect("the token's file");
    let own = own.trim().to_owned();
    assert_eq!(own.len(), 32);
    let mut stream = TcpStream::connect(address).unwrap();
    let token = token.unwrap_or(&own);
    write!(
        stream,
        "GET /{token}/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn the_page_shows_the_status_to_who_knows_its_token() {
    let site = Site::new();
    let web = ["--web", "127.0.0.1:0"];
    let server = site.server(&web);
    let links = links(server.addr, ["delay=2ms", "delay=5ms"], 1);
    let paths = [path("a", &links[0]), path("b", &links[1])];
    let client = site.client(&server, &paths, &web);
    client.active(&["a", "b"]);
    for program in [&*client, &*server] {
        let text = page(program, None, "");
        assert!(
            text.starts_with("HTTP/1.1 200") && text.contains("<title>"),
            "{text}"
        );
        let refused = page(program, Some("00000000000000000000000000000000"), "");
        assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    }
    // A look is a second old at most.
    let now = loop {
        let text = page(&client, None, "api/v1/now");
        let (_, body) = text.split_once("\r\n\r\n").expect("a body");
        let now: serde_json::Value = serde_json::from_str(body).expect("JSON");
        let paths = now["status"]["sessions"][0]["paths"]
            .as_array()
            .unwrap()
            .clone();
        if paths.iter().all(|path| path["state"] == "active") {
            break now;
        }
        thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(now["version"], 1);
    let status = client.status();
    let shown = now["status"]["sessions"][0]["paths"].as_array().unwrap();
    let names: Vec<_> = shown
        .iter()
        .map(|path| path["name"].as_str().unwrap())
        .collect();
    let known: Vec<_> = status.sessions[0]
        .paths
        .iter()
        .map(|path| path.name.as_str())
        .collect();
    assert_eq!(names, known);
}
