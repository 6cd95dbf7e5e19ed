//! Crowds of strangers, and the clients among them.

use std::net::IpAddr;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use super::*;
use crate::carrier::handshake::RefuseCode;
use crate::carrier::{Bind, DialError, QuicConfig, SocketSpec, tls};

/// Another address of this host.
fn address(number: u16) -> IpAddr {
    let [high, low] = number.to_be_bytes();
    IpAddr::from([127, 1, high, low])
}

/// A connection from there that has said these bytes.
async fn says(hosts: &Hosts, from: IpAddr, bytes: &[u8]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let mut stream = socket.connect(hosts.addr).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// The first bytes of a real client.
fn client_hello(hosts: &Hosts) -> Vec<u8> {
    let config = tls::client(&hosts.client, hosts.server, Arc::default()).unwrap();
    let name = ServerName::try_from(tls::SERVER_NAME).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

/// Has the server take in what has come.
async fn settle(hosts: &mut Hosts) {
    for _ in 0..8 {
        let pause = tokio::time::sleep(Duration::from_millis(1));
        tokio::select! {
            () = pause => {}
            attempt = hosts.listener.accept() => panic!("{attempt:?}"),
        }
    }
}

/// Which of them the server has not closed.
fn open(streams: &[TcpStream]) -> Vec<usize> {
    let pending = |stream: &TcpStream| match stream.try_read(&mut [0; 4096]) {
        Ok(0) => false,
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    };
    let open = streams.iter().enumerate();
    open.filter_map(|(number, stream)| pending(stream).then_some(number))
        .collect()
}

async fn gets_in(hosts: &mut Hosts, dial: &Dial) {
    let (mut opened, mut carrier, _) = hosts.open(dial).await;
    ping_pong(&mut opened.carrier, &mut carrier).await;
}

#[tokio::test(start_paused = true)]
async fn silent_connections_give_way_to_those_who_speak_and_to_newer_ones() {
    let mut hosts = Hosts::with(|c| (c.max_silent, c.max_half_open_per_address) = (32, 8));
    let mut silent = Vec::new();
    // 300 of one address, 200 of 200 addresses.
    for number in 0..500_u16 {
        let from = address(number.saturating_sub(299));
        silent.push(says(&hosts, from, b"").await);
        settle(&mut hosts).await;
    }
    assert_eq!(open(&silent), (468..500).collect::<Vec<_>>());
    for dial in [hosts.dial_tcp(), hosts.dial()] {
        gets_in(&mut hosts, &dial).await;
    }
    // Only the oldest had to go for it.
    assert_eq!(open(&silent), (469..500).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn of_one_address_that_is_silent_the_newest_stay_and_others_are_spared() {
    let mut hosts = Hosts::with(|c| (c.max_silent, c.max_half_open_per_address) = (32, 8));
    let other = [says(&hosts, address(1), b"").await];
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(says(&hosts, address(0), b"").await);
        settle(&mut hosts).await;
    }
    assert_eq!(open(&silent), (92..100).collect::<Vec<_>>());
    assert_eq!(open(&other), [0]);
}

#[tokio::test(start_paused = true)]
async fn who_says_one_byte_a_second_is_silent() {
    let mut hosts = Hosts::new();
    let hello = client_hello(&hosts);
    let mut slow = says(&hosts, address(0), &hello[..1]).await;
    let drip = async {
        let mut said = 1;
        for byte in &hello[1..] {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if slow.write_all(&[*byte]).await.is_err()
                || open(std::slice::from_ref(&slow)).is_empty()
            {
                break;
            }
            said += 1;
        }
        said
    };
    let said = tokio::select! {
        said = drip => said,
        attempt = hosts.listener.accept() => panic!("{attempt:?}"),
    };
    assert!((4..=6).contains(&said), "{said}");
}

#[tokio::test(start_paused = true)]
async fn handshakes_that_stall_give_way_after_a_second_and_not_before() {
    let mut hosts = Hosts::with(|c| (c.max_half_open, c.reserved_half_open) = (8, 0));
    let hello = client_hello(&hosts);
    let mut stalled = Vec::new();
    for number in 0..8 {
        stalled.push(says(&hosts, address(number), &hello).await);
        settle(&mut hosts).await;
    }
    let late = [says(&hosts, address(8), &hello).await];
    settle(&mut hosts).await;
    assert_eq!(open(&late), [0; 0]);
    assert_eq!(open(&stalled).len(), 8);
    // QUIC has places of its own.
    let quic = hosts.dial();
    gets_in(&mut hosts, &quic).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let tcp = hosts.dial_tcp();
    gets_in(&mut hosts, &tcp).await;
    assert_eq!(open(&stalled), (1..8).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn addresses_that_clients_came_from_have_places_of_their_own() {
    let mut hosts = Hosts::with(|c| (c.max_half_open, c.reserved_half_open) = (8, 2));
    let (tcp, quic) = (hosts.dial_tcp(), hosts.dial());
    gets_in(&mut hosts, &quic).await;
    let hello = client_hello(&hosts);
    let mut stalled = Vec::new();
    for number in 0..9 {
        stalled.push(says(&hosts, address(number), &hello).await);
        settle(&mut hosts).await;
    }
    assert_eq!(open(&stalled), (0..6).collect::<Vec<_>>());
    gets_in(&mut hosts, &tcp).await;
    assert_eq!(open(&stalled), (0..6).collect::<Vec<_>>());
}

/// Dials with a key that is not listed, and stays.
async fn unlisted(hosts: &mut Hosts, dial: &Dial) -> (DialError, Option<Connection>) {
    let stranger = Identity::generate().unwrap();
    let asked = async {
        match dial.connect(&stranger).await {
            Ok(dialled) => {
                let quic = match &dialled.link {
                    Link::Quic(link) => Some(link.connection.clone()),
                    Link::Tcp(_) => None,
                };
                (
                    dialled.open(PathId(0), Bytes::new()).await.unwrap_err(),
                    quic,
                )
            }
            Err(error) => (error, None),
        }
    };
    tokio::select! {
        answer = soon(asked) => answer,
        attempt = hosts.listener.accept() => panic!("{attempt:?}"),
    }
}

fn is_unlisted(error: &DialError) -> bool {
    let code = RefuseCode::UnknownClient;
    matches!(error, DialError::Refused { code: told, .. } if *told == code)
}

#[tokio::test]
async fn strangers_begin_only_so_many_handshakes_and_clients_any_number() {
    for tcp in [false, true] {
        let mut hosts = Hosts::with(|c| (c.handshake_burst, c.handshakes_per_second) = (4, 1));
        let dial = if tcp { hosts.dial_tcp() } else { hosts.dial() };
        for _ in 0..8 {
            gets_in(&mut hosts, &dial).await;
        }
        let mut refused = 0;
        let last = loop {
            let (error, _) = unlisted(&mut hosts, &dial).await;
            if !is_unlisted(&error) {
                break error;
            }
            refused += 1;
            assert!(refused < 40, "nobody is turned away");
        };
        assert!(refused >= 4, "{refused}");
        match tcp {
            false => assert!(matches!(last, DialError::Busy { .. }), "{last}"),
            true => assert!(matches!(last, DialError::NotMarline { .. }), "{last}"),
        }
        // The other carrier has tokens of its own.
        let other = if tcp { hosts.dial() } else { hosts.dial_tcp() };
        gets_in(&mut hosts, &other).await;
    }
}

#[tokio::test]
async fn refused_connections_keep_their_places_until_nothing_is_left_of_them() {
    let mut hosts = Hosts::with(|c| {
        (c.max_half_open, c.max_half_open_per_address) = (8, 8);
        c.handshake_burst = 1_000;
    });
    let dial = hosts.dial();
    let (mut most, mut stay) = (0, Vec::new());
    let (mut told, mut busy) = (0, 0);
    for _ in 0..64 {
        let (error, connection) = unlisted(&mut hosts, &dial).await;
        match error {
            DialError::Busy { .. } => busy += 1,
            error => {
                assert!(is_unlisted(&error), "{error}");
                told += 1;
            }
        }
        stay.push(connection);
        most = most.max(hosts.listener.open_quic());
    }
    assert!(most <= 8, "{most} at once, {told} told, {busy} turned away");
    // As many as may linger; how many more depends on how quickly those are gone.
    assert!(told >= 4, "{told} told, {busy} turned away");
}

/// What a server answers to the first datagram of a client, of 1200 bytes, that never comes back to
/// it.
#[tokio::test(start_paused = true)]
async fn an_address_that_does_not_answer_gets_three_times_what_came_from_it() {
    let mut hosts = Hosts::new();
    let tap = UdpSocket::bind(LOOPBACK).await.unwrap();
    let victim = UdpSocket::bind(LOOPBACK).await.unwrap();
    let small = QuicConfig {
        mtu: 1200,
        ..QuicConfig::default()
    };
    let dial = Dial {
        remote: tap.local_addr().unwrap(),
        quic: small,
        socket: SocketSpec::default(),
        ..hosts.dial()
    };
    let mut buffer = [0; 2048];
    let first = async {
        let seen = tap.recv(&mut buffer);
        tokio::select! {
            len = seen => len.unwrap(),
            result = dial.connect(&hosts.client) => panic!("{result:?}"),
        }
    };
    let len = soon(first).await;
    assert_eq!(len, 1200);
    victim.send_to(&buffer[..len], hosts.addr).await.unwrap();
    let (mut count, mut bytes) = (0, 0);
    let answers = async {
        loop {
            bytes += victim.recv(&mut [0; 2048]).await.unwrap();
            count += 1;
        }
    };
    let minute = Duration::from_secs(60);
    tokio::select! {
        _ = tokio::time::timeout(minute, answers) => {}
        attempt = hosts.listener.accept() => panic!("{attempt:?}"),
    }
    assert!(
        count >= 2 && bytes > 2 * len,
        "{count} datagrams, {bytes} bytes"
    );
    assert!(bytes <= 3 * len, "{count} datagrams, {bytes} bytes");
    // It is let go of, after all.
    assert_eq!(hosts.listener.open_quic(), 0);
    let _ = Bind::Any;
}
