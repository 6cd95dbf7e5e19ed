//! Ports at a server that lead to services behind its clients, over real sessions on loopback: who
//! may have them, who has them, and what a hostile server gets of a client.

use crate::world::{tcp_echo, udp_echo};
use bytes::Bytes;
use marline::endpoint::{Client, ClientOptions, Incomings, Server, ServerOptions};
use marline::identity::{AllowList, ConnectionString, Identity};
use marline_apps::destination::{PortRole, ServerPort, Target};
use marline_apps::live::Outlets;
use marline_apps::measure::Measures;
use marline_apps::options::{datagrams_to, flow_to, stream_to};
use marline_apps::proxy::policy::{Judge, Policy};
use marline_apps::proxy::reply::{self, Refusal};
use marline_apps::proxy::{
    ByteFlow, FlowsByClient, PacketFlow, Places, Ports, Protocol, Targets, Tasks, Tunnel,
};
use marline_apps::publish::{self, Permits, Publisher};
use marline_apps::serve::{ServerSettings, serve};
use marline_proto::wire::{DeliveryOrder, FlowKind};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::{sleep, timeout};

/// Longer than anything takes that goes well.
const LIMIT: Duration = Duration::from_secs(60);

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future)
        .await
        .expect("it should have happened by now")
}

/// Where this test's server publishes: no other test uses the address, so its ports are free.
fn own_address() -> IpAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    Ipv4Addr::new(127, 0, 11, NEXT.fetch_add(1, Ordering::Relaxed)).into()
}

fn port(text: &str) -> ServerPort {
    text.parse().unwrap()
}

/// A server that publishes at an address of its own, and its clients' keys.
struct Site {
    server: Server,
    identity: Identity,
    keys: [Identity; 2],
    address: IpAddr,
    tasks: Tasks,
    publisher: Option<Publisher>,
}

impl Site {
    /// Whose first client may publish these ports, and the second one the last of them.
    fn start(ports: &[&str]) -> Self {
        let mut permits = Vec::new();
        let site = Site::bound();
        for (key, ports) in site
            .keys
            .iter()
            .zip([ports, &ports[ports.len().max(1) - 1..]])
        {
            let text = |port| format!("{}={port}", key.public_key());
            permits.extend(ports.iter().map(|port| text(*port).parse().unwrap()));
        }
        let publisher = Publisher::new(Permits::new(permits), &[site.address]);
        let settings = Arc::new(ServerSettings {
            targets: Targets::new(Judge::here(Policy::default()).unwrap()),
            live: Outlets::default(),
            tunnel: None,
            publisher: publisher.clone(),
            places: Places::new(64, 32),
            ports: Ports::of_this_host(),
            measures: Measures::default(),
            flows: FlowsByClient::default(),
        });
        let (server, tasks) = (site.server.clone(), site.tasks.clone());
        tokio::spawn(async move {
            while let Some(session) = server.accept().await {
                tokio::spawn(serve(session, Arc::clone(&settings), tasks.clone()));
            }
        });
        Site {
            publisher: Some(publisher),
            ..site
        }
    }

    /// That serves nobody by itself.
    fn bound() -> Self {
        let (identity, keys) = (key(), [key(), key()]);
        let allow = AllowList::from_keys(keys.each_ref().map(Identity::public_key));
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = Server::bind(ServerOptions::new(vec![any], identity.clone(), allow)).unwrap();
        Site {
            server,
            identity,
            keys,
            address: own_address(),
            tasks: Tasks::new(),
            publisher: None,
        }
    }

    fn client(&self, number: usize, takes_flows: bool) -> Client {
        let address = self.server.local_addrs()[0].to_string().parse().unwrap();
        let string = ConnectionString::new(self.identity.public_key(), vec![address]).unwrap();
        let paths = vec!["any".parse().unwrap()];
        Client::start(ClientOptions {
            takes_flows,
            ..ClientOptions::new(&string, self.keys[number].clone(), paths)
        })
        .unwrap()
    }

    /// A client that publishes these.
    fn publishing(&self, number: usize, publications: &[String]) -> (Client, Tasks) {
        let (client, tasks) = (self.client(number, true), Tasks::new());
        let all: Vec<_> = publications
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        publish::serve(&all, self.keys[number].public_key(), &client, &tasks);
        (client, tasks)
    }

    /// A connection to a published port, once it is open.
    async fn visit(&self, number: u16) -> TcpStream {
        let address = SocketAddr::new(self.address, number);
        soon(async {
            loop {
                match TcpStream::connect(address).await {
                    Ok(stream) => return stream,
                    Err(_) => sleep(Duration::from_millis(5)).await,
                }
            }
        })
        .await
    }

    /// Asks for a port by hand.
    async fn ask(&self, client: &Client, asked: &str) -> (impl ByteFlow, reply::Reply) {
        soon(client.session_is_there()).await;
        let options = stream_to(PortRole::Ask.encode(port(asked)));
        let mut flow = Tunnel::open_stream(client, options).await.unwrap();
        let answer = soon(reply::read(&mut flow)).await.unwrap();
        (flow, answer)
    }
}

fn key() -> Identity {
    Identity::generate().unwrap()
}

async fn echoes(stream: &mut TcpStream, text: &[u8]) {
    stream.write_all(text).await.unwrap();
    let mut answer = vec![0; text.len()];
    soon(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(answer, text);
}

/// A service that says its name and ends.
async fn greeter(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let _ = connection.write_all(name.as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn a_service_behind_a_client_is_reached_at_the_server_and_ends_are_kept_apart() {
    let site = Site::start(&["tcp:8443"]);
    let text = format!("tcp:8443={}", tcp_echo().await);
    let (_client, _tasks) = site.publishing(0, &[text]);
    let mut one = site.visit(8443).await;
    let mut two = site.visit(8443).await;
    echoes(&mut one, b"one").await;
    echoes(&mut two, b"two").await;
    echoes(&mut one, &[7; 100_000]).await;
    one.shutdown().await.unwrap();
    assert_eq!(soon(one.read(&mut [0; 8])).await.unwrap(), 0);
    echoes(&mut two, b"still there").await;
}

#[tokio::test]
async fn a_service_that_is_not_there_shows_as_a_reset() {
    let site = Site::start(&["tcp:8443"]);
    let (_held, nobody) = crate::world::closed_port();
    let (_client, _tasks) = site.publishing(0, &[format!("tcp:8443={nobody}")]);
    let mut visit = site.visit(8443).await;
    let error = soon(visit.read(&mut [0; 8])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn each_asker_of_a_udp_port_has_a_flow_of_its_own_and_answers_come_from_the_port() {
    let site = Site::start(&["udp:9000"]);
    let text = format!("udp:9000={}", udp_echo().await);
    let (client, _tasks) = site.publishing(0, &[text]);
    soon(client.session_is_there()).await;
    let at = SocketAddr::new(site.address, 9000);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let asker = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut buffer = [0; 100];
        // Until the port is open nobody takes them.
        let (length, from) = soon(async {
            loop {
                let _ = asker.send_to(b"ping", at).await;
                let answer = timeout(Duration::from_millis(50), asker.recv_from(&mut buffer));
                if let Ok(Ok(answer)) = answer.await {
                    return answer;
                }
            }
        })
        .await;
        assert_eq!(from, at);
        assert_eq!(&buffer[2..length], b"ping");
        seen.push([buffer[0], buffer[1]]);
    }
    assert_ne!(seen[0], seen[1]);
}

#[tokio::test]
async fn only_permitted_ports_are_opened_and_a_port_is_one_key_s() {
    let site = Site::start(&["tcp:8443", "tcp:9443"]);
    let (one, two) = (site.client(0, true), site.client(1, true));
    for asked in ["tcp:8444", "udp:8443"] {
        assert_eq!(site.ask(&one, asked).await.1, Err(Refusal::NotAllowed));
    }
    assert_eq!(site.ask(&two, "tcp:8443").await.1, Err(Refusal::NotAllowed));
    let (held, answer) = site.ask(&one, "tcp:9443").await;
    assert_eq!(answer, Ok(SocketAddr::new(site.address, 9443)));
    assert_eq!(site.ask(&two, "tcp:9443").await.1, Err(Refusal::PortTaken));
    // It is free when the one who has it gives it up.
    drop(held);
    soon(async {
        loop {
            match site.ask(&two, "tcp:9443").await {
                (_, Err(Refusal::PortTaken)) => sleep(Duration::from_millis(5)).await,
                (_, answer) => return answer.unwrap(),
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_port_that_is_withdrawn_is_closed_and_one_that_is_granted_opens() {
    let site = Site::start(&["tcp:8443"]);
    let publisher = site.publisher.as_ref().unwrap();
    let client = site.client(0, true);
    let (mut flow, answer) = site.ask(&client, "tcp:8443").await;
    assert!(answer.is_ok());
    let shown = publisher.board().status();
    assert_eq!((shown.len(), shown[0].port.as_str()), (1, "tcp:8443"));
    let permit = format!("{}=tcp:9443", site.keys[0].public_key());
    publisher.permit(Permits::new([permit.parse().unwrap()]));
    assert!(soon(flow.read_u8()).await.is_err(), "it is over");
    assert_eq!(
        site.ask(&client, "tcp:8443").await.1,
        Err(Refusal::NotAllowed)
    );
    assert!(site.ask(&client, "tcp:9443").await.1.is_ok());
}

#[tokio::test]
async fn what_a_client_publishes_changes_while_connections_go_on() {
    let site = Site::start(&["tcp:8443", "tcp:9443"]);
    let client = site.client(0, false);
    let tasks = Tasks::new();
    let published = publish::serve(&[], site.keys[0].public_key(), &client, &tasks);
    let replace = |texts: &[String]| {
        let all: Vec<_> = texts.iter().map(|text| text.parse().unwrap()).collect();
        published.replace(&all);
    };
    // It took no flows before.
    replace(&[format!("tcp:8443={}", tcp_echo().await)]);
    let mut first = site.visit(8443).await;
    echoes(&mut first, b"one").await;
    replace(&[format!("tcp:9443={}", tcp_echo().await)]);
    let mut second = site.visit(9443).await;
    echoes(&mut second, b"two").await;
    let address = SocketAddr::new(site.address, 8443);
    soon(async {
        while TcpStream::connect(address).await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    echoes(&mut first, b"goes on").await;
    let shown = published.board().status();
    assert_eq!((shown.len(), shown[0].port.as_str()), (1, "tcp:9443"));
}

#[tokio::test]
async fn a_live_port_s_datagrams_are_in_order_and_have_a_budget() {
    let site = Site::start(&["udp:9000"]);
    let client = site.client(0, true);
    soon(client.session_is_there()).await;
    let latency = Duration::from_millis(150);
    let ask = PortRole::AskLive(latency).encode(port("udp:9000"));
    let mut flow = Tunnel::open_stream(&client, stream_to(ask)).await.unwrap();
    let at = soon(reply::read(&mut flow)).await.unwrap().unwrap();
    let caller = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    caller.send_to(b"call", at).await.unwrap();
    let session = client.session().unwrap();
    let (info, _visit) = soon(session.accept()).await.unwrap();
    assert_eq!(info.lifetime, Some(latency));
    assert_eq!(info.order, DeliveryOrder::InOrder);
    assert!(info.priority < 3);
}

#[tokio::test]
async fn a_port_that_another_program_has_is_refused() {
    let site = Site::start(&["tcp:8443"]);
    let _other = TcpListener::bind((site.address, 8443)).await.unwrap();
    let client = site.client(0, true);
    assert_eq!(
        site.ask(&client, "tcp:8443").await.1,
        Err(Refusal::PortTaken)
    );
}

#[tokio::test]
async fn the_newest_session_of_a_key_has_the_port_and_the_older_one_has_it_back() {
    let site = Site::start(&["tcp:8443", "udp:9000"]);
    let publish = async |name| {
        let text = [
            format!("tcp:8443={}", greeter(name).await),
            format!("udp:9000={}", udp_echo().await),
        ];
        site.publishing(0, &text)
    };
    let who = async || {
        let mut name = String::new();
        let _ = soon(site.visit(8443).await.read_to_string(&mut name)).await;
        name
    };
    let becomes = async |name: &str| {
        soon(async {
            while who().await != name {
                sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    };
    let (_old, _old_tasks) = publish("old").await;
    becomes("old").await;
    let (new, _new_tasks) = publish("new").await;
    becomes("new").await;
    new.stop("the test goes on").await;
    becomes("old").await;
}

#[tokio::test]
async fn a_port_goes_with_its_client() {
    let site = Site::start(&["tcp:8443"]);
    let text = format!("tcp:8443={}", tcp_echo().await);
    let (client, _tasks) = site.publishing(0, &[text]);
    let mut visit = site.visit(8443).await;
    echoes(&mut visit, b"there").await;
    client.stop("the test goes on").await;
    let address = SocketAddr::new(site.address, 8443);
    soon(async {
        while TcpStream::connect(address).await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(soon(visit.read(&mut [0; 8])).await.is_err(), "it is reset");
}

/// What a hostile server opens towards a client comes to nothing: `nothing` names a port, which the
/// client does not publish.
async fn nothing_is_taken(session: &Incomings, nothing: ServerPort, service: SocketAddr) {
    let session = session.handle();
    let target = |protocol| {
        Target::parse(protocol, &service.to_string())
            .unwrap()
            .encode()
    };
    let visit = PortRole::Visit.encode(nothing);
    for destination in [visit.clone(), target(Protocol::Tcp), Bytes::new()] {
        for kind in [FlowKind::Stream, FlowKind::Objects] {
            let options = flow_to(kind, destination.clone());
            let mut flow = Tunnel::open_stream(session, options).await.unwrap();
            let _ = flow.write_all(b"let me in").await;
            let read = soon(flow.read(&mut [0; 8])).await;
            assert!(read.is_err(), "{destination:?}: {read:?}");
        }
    }
    for destination in [visit, target(Protocol::Udp), Bytes::new()] {
        let flow = session.open_packets(datagrams_to(destination)).unwrap();
        let _ = PacketFlow::send(&flow, Bytes::from_static(b"let me in")).await;
        assert_eq!(soon(PacketFlow::recv(&flow)).await, None);
    }
    let options = flow_to(FlowKind::Blocks, Bytes::new());
    let flow = session.open_blocks(options).unwrap();
    assert!(soon(flow.recv()).await.is_none());
}

#[tokio::test]
async fn a_client_that_publishes_nothing_takes_no_flow_of_a_server() {
    let site = Site::bound();
    let client = site.client(0, false);
    let session = soon(site.server.accept()).await.unwrap();
    nothing_is_taken(&session, port("tcp:8443"), tcp_echo().await).await;
    assert!(client.session().is_some(), "the session goes on");
}

#[tokio::test]
async fn a_hostile_server_reaches_what_a_client_publishes_and_nothing_else() {
    let site = Site::bound();
    let (service, other) = (greeter("hello").await, tcp_echo().await);
    let (client, _tasks) = site.publishing(0, &[format!("tcp:8443={service}")]);
    let session = soon(site.server.accept()).await.unwrap();
    for nothing in ["tcp:443", "udp:8443"] {
        nothing_is_taken(&session, port(nothing), other).await;
    }
    // Of the wrong kind, also what is published.
    let published = PortRole::Visit.encode(port("tcp:8443"));
    let flow = session
        .handle()
        .open_packets(datagrams_to(published.clone()));
    assert_eq!(soon(PacketFlow::recv(&flow.unwrap())).await, None);
    // It need not have been asked for the port.
    let stream = Tunnel::open_stream(session.handle(), stream_to(published)).await;
    let mut stream = stream.unwrap();
    assert!(soon(reply::read(&mut stream)).await.unwrap().is_ok());
    let mut said = [0; 5];
    soon(stream.read_exact(&mut said)).await.unwrap();
    assert_eq!(&said, b"hello");
    assert!(client.session().is_some(), "the session goes on");
}

#[tokio::test]
async fn a_server_that_knows_no_such_ports_says_that_it_does_not_understand() {
    // As every server does with a destination that it does not know.
    let site = Site::start(&["tcp:8443"]);
    let client = site.client(0, true);
    soon(client.session_is_there()).await;
    let unknown = Bytes::from_static(&[200, 0, 6, 0x20, 0xfb]);
    let mut flow = Tunnel::open_stream(&client, stream_to(unknown))
        .await
        .unwrap();
    let answer = soon(reply::read(&mut flow)).await.unwrap();
    assert_eq!(answer, Err(Refusal::BadTarget));
}
