use super::harness::{Site, links, marline, path, socks_connect, tcp_echo};
use marline::control::status::Role;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

fn scrape(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n")
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
        let address = program.logged("its metrics", |line| {
            let (_, rest) = line.split_once("metrics at http://")?;
            rest.strip_suffix("/metrics")?.parse().ok()
        });
        let page = scrape(address);
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        for family in [
            "marline_uptime_seconds ",
            "marline_path_rtt_seconds{",
            "marline_path_loss_ratios{",
            "marline_path_cwnd_bytes{",
            "marline_path_in_flight_bytes{",
            "marline_path_queue_bytes{",
            "marline_path_bytes_total{",
            "marline_path_state{",
            "marline_flow_bytes_total{",
            "marline_flow_delay_seconds{",
            "marline_flow_redundancy_ratios{",
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
