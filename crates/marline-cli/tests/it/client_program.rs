//! A client from its flags to its end, over a session in memory: proxy, metrics, control, stop.

use crate::memory::{MemoryPackets, MemoryStream, MemoryTunnel};
use crate::quiet_address::{Test, quiet_address};
use crate::world::{World, socks_command, tcp_echo};
use clap::{Args as _, FromArgMatches as _};
use marline::identity::{ConnectionString, Identity};
use marline_apps::proxy::{OpenError, Tunnel};
use marline_cli::commands::CliError;
use marline_cli::commands::client::{Args, Client};
use marline_cli::control::client::ask;
use marline_cli::control::protocol::{Outcome, Request};
use marline_cli::control::status::{Role, Status};
use marline_cli::control::{Manage, Problem};
use marline_proto::FlowOptions;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A session in memory that can be asked for its status.
#[derive(Clone)]
struct Session(MemoryTunnel);

impl Tunnel for Session {
    type Stream = MemoryStream;
    type Packets = MemoryPackets;

    async fn open_stream(&self, options: FlowOptions) -> Result<MemoryStream, OpenError> {
        self.0.open_stream(options).await
    }

    async fn open_packets(&self, options: FlowOptions) -> Result<MemoryPackets, OpenError> {
        self.0.open_packets(options).await
    }
}

impl Manage for Session {
    async fn status(&self) -> Status {
        Status {
            clients: Vec::new(),
            published: Vec::new(),
            role: Role::Client,
            version: "test".into(),
            uptime_s: 12.5,
            sessions: Vec::new(),
            live: Vec::new(),
            tunnel: None,
        }
    }

    async fn add_path(&self, _: marline::Path) -> Result<(), Problem> {
        Ok(())
    }

    async fn remove_path(&self, _: &str) -> Result<(), Problem> {
        Ok(())
    }

    async fn set_standby(&self, _: &str, _: bool) -> Result<(), Problem> {
        Ok(())
    }
}

fn args(words: &[&str]) -> Args {
    let command = Args::augment_args(clap::Command::new("client").no_binary_name(true));
    Args::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
}

/// A connection string, and a key file in `folder`.
fn identities(folder: &Path) -> (String, String) {
    let identity = Identity::generate().unwrap();
    let key = folder.join("identity");
    identity.save_new(&key).unwrap();
    let address = vec!["127.0.0.1".parse().unwrap()];
    let server = ConnectionString::new(identity.public_key(), address).unwrap();
    (server.to_string(), key.to_str().unwrap().to_owned())
}

/// Ports that stay free until the client takes them and after it gave them up.
fn free_ports() -> [SocketAddr; 2] {
    let own = quiet_address(Test::Client);
    let listeners = [(); 2].map(|()| std::net::TcpListener::bind(own).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap())
}

async fn http(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn it_serves_all_that_its_flags_ask_for_and_stops_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("control.sock");
    let (server, key) = identities(folder.path());
    let [socks, metrics] = free_ports();
    let (socks_text, metrics_text) = (socks.to_string(), metrics.to_string());
    let client = Client::bind(args(&[
        "--server",
        &server,
        "--identity",
        &key,
        "--socks",
        &socks_text,
        "--metrics",
        &metrics_text,
        "--control",
        control.to_str().unwrap(),
    ]))
    .await
    .unwrap();
    let world = World::open();
    let session = Session(world.tunnel());
    let running = client.serve(session, std::future::pending::<CliError>());
    let (result, ()) = tokio::join!(running, use_and_stop(socks, metrics, &control));
    result.unwrap();
    assert!(!control.exists());
    // Not at once: a process that another test begins has a copy of every socket until it is
    // another program.
    let closed = async {
        while TcpStream::connect(socks).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(30), closed).await;
    in_time.expect("nobody listens");
}

async fn use_and_stop(socks: SocketAddr, metrics: SocketAddr, control: &Path) {
    let target = tcp_echo().await;
    let (mut stream, code, _) = socks_command(socks, 1, "127.0.0.1", target.port()).await;
    assert_eq!(code, 0);

    let page = http(
        metrics,
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("\nmarline_uptime_seconds 12.5\n"),
        "{page}"
    );
    let page = http(
        metrics,
        "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert!(page.starts_with("HTTP/1.1 404"), "{page}");
    let page = http(
        metrics,
        "POST /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    assert!(page.starts_with("HTTP/1.1 405"), "{page}");

    let answer = ask(control, Request::Status).await.unwrap();
    assert!(matches!(answer, Outcome::Status { status } if status.version == "test"));
    assert_eq!(ask(control, Request::Stop).await.unwrap(), Outcome::DONE);
    // The open connection still works and may finish.
    stream.write_all(b"last words").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "last words");
}

#[tokio::test]
async fn a_busy_port_and_a_second_instance_are_named_before_anything_is_dialled() {
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("control.sock");
    let control = control.to_str().unwrap();
    let (server, key) = identities(folder.path());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let busy = args(&[
        "--server",
        &server,
        "--identity",
        &key,
        "--control",
        "off",
        "--socks",
        &taken,
    ]);
    let error = format!("{:?}", Client::bind(busy).await.unwrap_err());
    assert!(
        error.contains(&format!("--socks {taken}: cannot listen there")),
        "{error}"
    );

    // From a file, the line and the key are named, whatever of the two asks.
    let file = folder.path().join("client.toml");
    let file = file.to_str().unwrap();
    let fixed = format!("server = \"{server}\"\nidentity = \"{key}\"\ncontrol = \"off\"\n");
    for (keys, value) in [
        (format!("socks = \"{taken}\"\n"), &taken),
        (
            format!("socks = \"off\"\nforward = [\n  \"tcp:{taken}=h:1\",\n]\n"),
            &format!("tcp:{taken}=h:1"),
        ),
        (format!("socks = \"off\"\nmetrics = \"{taken}\"\n"), &taken),
    ] {
        std::fs::write(file, format!("{fixed}{keys}")).unwrap();
        let error = Client::bind(args(&["--config", file])).await.unwrap_err();
        let error = format!("{error:?}");
        let line = 1 + format!("{fixed}{keys}")
            .lines()
            .position(|line| line.contains(&taken))
            .unwrap();
        let key = keys
            .lines()
            .rev()
            .find_map(|line| line.split_once(" = "))
            .unwrap()
            .0;
        for part in [
            format!("{file}:{line}: key `{key}`: \\\"{value}\\\": cannot listen there"),
            format!("choose another with `{key}` in {file}"),
        ] {
            assert!(error.contains(&part), "{part} is not in {error}");
        }
    }

    let words = [
        "--server",
        &server,
        "--identity",
        &key,
        "--control",
        control,
        "--socks",
        "off",
    ];
    let _first = Client::bind(args(&words)).await.unwrap();
    let error = format!("{:?}", Client::bind(args(&words)).await.unwrap_err());
    assert!(error.contains("another instance is running"), "{error}");
}
