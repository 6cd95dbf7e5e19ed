//! TLS over TCP: sessions, their ends, and peers that mean no good.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::carrier::handshake::RefuseCode;
use crate::carrier::{ConfigError, DialError, ListenError, SocketError};

#[tokio::test]
async fn a_session_runs_over_tcp_and_over_both_at_once() {
    let mut hosts = Hosts::new();
    let (mut opened, mut first, key) = hosts.open(&hosts.dial_tcp()).await;
    assert_eq!(opened.carrier.kind(), CarrierKind::Tcp);
    assert_eq!(first.kind(), CarrierKind::Tcp);
    assert_eq!(opened.params, b"server"[..]);
    assert_eq!(opened.carrier.remote_addr(), hosts.addr);
    assert_eq!(opened.carrier.local_addr(), first.remote_addr());
    // A path by QUIC joins a session that TCP opened, and the other way round.
    let (mut second, mut server_second) = hosts.join(&hosts.dial(), &key, PathId(1)).await;
    let (mut third, mut server_third) = hosts.join(&hosts.dial_tcp(), &key, PathId(2)).await;
    assert_eq!(second.kind(), CarrierKind::Quic);
    ping_pong(&mut opened.carrier, &mut first).await;
    ping_pong(&mut second, &mut server_second).await;
    ping_pong(&mut third, &mut server_third).await;
    // A symbol fits a datagram of either.
    let max = opened.carrier.max_datagram();
    super::sizes::reach(&mut second, &mut server_second, max..=max).await;
}

#[tokio::test]
async fn datagrams_arrive_whole_and_in_order_and_a_full_buffer_says_so() {
    let mut hosts = Hosts::new();
    let (mut opened, mut server, _) = hosts.open(&hosts.dial_tcp()).await;
    let mut rng = Rng::new(5);
    let sizes: Vec<usize> = (0..20_000)
        .map(|_| 1 + rng.below(opened.carrier.max_datagram() as u64) as usize)
        .collect();
    let datagram = |number: usize, size| Bytes::from(vec![number as u8; size]);
    let mut was_full = false;
    let sender = async {
        for (number, &size) in sizes.iter().enumerate() {
            let mut next = datagram(number, size);
            while let Err(error) = opened.carrier.send(next) {
                let SendError::Full(back) = error else {
                    panic!("{error}");
                };
                (next, was_full) = (back, true);
                poll_fn(|cx| opened.carrier.poll_writable(cx)).await;
            }
        }
        poll_fn(|cx| opened.carrier.poll_flush(cx)).await;
    };
    let receiver = async {
        let mut number = 0;
        while number < sizes.len() {
            for got in recv(&mut server).await.unwrap() {
                assert!(got == datagram(number, sizes[number]), "datagram {number}");
                number += 1;
            }
        }
    };
    soon(async { tokio::join!(sender, receiver) }).await;
    assert!(was_full, "13 MB do not fit any buffer here");
    let long = Bytes::from(vec![0; opened.carrier.max_datagram() + 1]);
    let error = opened.carrier.send(long).unwrap_err();
    assert!(matches!(error, SendError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn a_close_reaches_the_peer_after_what_was_sent_before_it() {
    let mut hosts = Hosts::new();
    let (mut opened, mut server, _) = hosts.open(&hosts.dial_tcp()).await;
    // Unread at this end when it is closed, which must not reset the connection.
    send(&mut server, Bytes::from_static(b"unread")).await;
    send(&mut opened.carrier, Bytes::from_static(b"last")).await;
    opened.carrier.close(7, "enough");
    assert_eq!(recv(&mut opened.carrier).await, Err(CarrierEnd::Local));
    assert_eq!(soon(recv(&mut server)).await.unwrap(), ["last"]);
    let end = CarrierEnd::Peer {
        code: 7,
        reason: "enough".into(),
    };
    assert_eq!(soon(recv(&mut server)).await, Err(end.clone()));
    assert_eq!(soon(recv(&mut server)).await, Err(end.clone()), "again");
    let late = server.send(Bytes::from_static(b"late"));
    assert_eq!(late, Err(SendError::Ended(end)));
    soon(poll_fn(|cx| opened.carrier.poll_drained(cx))).await;
}

#[tokio::test]
async fn silence_and_a_lost_peer_end_the_carrier() {
    let idle = Duration::from_secs(1);
    let mut hosts = Hosts::with(|c| c.quic.idle_timeout = idle);
    let (mut opened, mut server, _) = hosts.open(&hosts.dial_tcp()).await;
    assert_eq!(soon(recv(&mut server)).await, Err(CarrierEnd::Idle));
    drop(server);
    assert_eq!(
        soon(recv(&mut opened.carrier)).await,
        Err(CarrierEnd::Reset)
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_kernels_congestion_control_is_as_asked_and_told() {
    let mut hosts = Hosts::with(|c| c.tcp_congestion = Some("reno".into()));
    let dial = Dial {
        tcp_congestion: Some("cubic".into()),
        ..hosts.dial_tcp()
    };
    let (mut opened, mut server, _) = hosts.open(&dial).await;
    let told = opened.carrier.congestion().unwrap();
    assert_eq!(told.view.name, "kernel-cubic");
    assert_eq!(server.congestion().unwrap().view.name, "kernel-reno");
    // What waits here counts as in flight as soon as the carrier has it.
    let before = opened.carrier.congestion().unwrap().in_flight;
    opened.carrier.send(Bytes::from(vec![0; 1_000])).unwrap();
    assert_eq!(
        opened.carrier.congestion().unwrap().in_flight,
        before + 1_002
    );
    poll_fn(|cx| opened.carrier.poll_flush(cx)).await;
    assert_eq!(soon(recv(&mut server)).await.unwrap()[0].len(), 1_000);
    ping_pong(&mut opened.carrier, &mut server).await;
    let dial = Dial {
        tcp_congestion: Some("no-such".into()),
        ..hosts.dial_tcp()
    };
    let error = dial.connect(&hosts.client).await.unwrap_err();
    assert!(
        matches!(&error, DialError::Socket(SocketError::Congestion { name, known, .. })
            if name == "no-such" && known.iter().any(|name| name == "reno")),
        "{error}"
    );
    let config = ListenConfig {
        tcp_congestion: Some("no-such".into()),
        ..ListenConfig::new(vec![LOOPBACK])
    };
    let error = Listener::bind(config, &hosts.client, AllowList::from_keys([])).unwrap_err();
    assert!(matches!(error, ListenError::Socket { .. }), "{error}");
}

#[tokio::test]
async fn strangers_and_servers_with_another_key_are_refused() {
    let client = Identity::generate().unwrap();
    let mut hosts = Hosts::with_allowed(client, AllowList::from_keys([]), |_| {});
    let dial = hosts.dial_tcp();
    let asked = async {
        let dialled = dial.connect(&hosts.client).await.unwrap();
        let unlisted = dialled.open(PathId(0), Bytes::new()).await.unwrap_err();
        let other = Identity::generate().unwrap().public_key();
        let dial = Dial {
            server: other,
            ..dial.clone()
        };
        (unlisted, dial.connect(&hosts.client).await.unwrap_err())
    };
    let (unlisted, wrong) = tokio::select! {
        errors = soon(asked) => errors,
        attempt = hosts.listener.accept() => panic!("{attempt:?}"),
    };
    assert!(
        matches!(&unlisted, DialError::Refused { code: RefuseCode::UnknownClient, reason, .. }
            if reason.contains(&hosts.client.public_key().to_string())),
        "{unlisted}"
    );
    assert!(matches!(wrong, DialError::WrongKey { .. }), "{wrong}");
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_or_is_none_ends_and_frees_its_place() {
    let mut hosts = Hosts::with(|c| {
        c.max_silent = 1;
        c.silent_timeout = Duration::from_millis(200);
    });
    let addr = hosts.addr;
    let strangers = async {
        let mut silent = TcpStream::connect(addr).await.unwrap();
        assert!(silent.read_u8().await.is_err());
        let mut web = TcpStream::connect(addr).await.unwrap();
        web.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let _ = web.read_to_end(&mut answer).await;
        // No more than an alert.
        assert!(answer.len() < 64, "{answer:?}");
    };
    tokio::select! {
        () = soon(strangers) => {}
        attempt = hosts.listener.accept() => panic!("{attempt:?}"),
    }
    let (mut opened, mut carrier, _) = hosts.open(&hosts.dial_tcp()).await;
    ping_pong(&mut opened.carrier, &mut carrier).await;
}

#[tokio::test]
async fn a_busy_tcp_port_is_named_and_can_be_done_without() {
    let taken = TcpListener::bind(LOOPBACK).await.unwrap();
    let addr = taken.local_addr().unwrap();
    let identity = Identity::generate().unwrap();
    let bind = |config| Listener::bind(config, &identity, AllowList::from_keys([]));
    let error = bind(ListenConfig::new(vec![addr])).unwrap_err();
    assert!(error.to_string().contains("TCP"), "{error}");
    let without = ListenConfig {
        tcp: false,
        ..ListenConfig::new(vec![addr])
    };
    bind(without).unwrap();
    let small = ListenConfig {
        quic: crate::carrier::QuicConfig {
            mtu: 9,
            ..Default::default()
        },
        ..ListenConfig::new(vec![LOOPBACK])
    };
    let error = bind(small).unwrap_err();
    assert!(
        matches!(error, ListenError::Config(ConfigError { key: "mtu", .. })),
        "{error}"
    );
}
