//! Peers of other versions, and peers that mean no good.

use tokio::io::AsyncWriteExt;

use super::super::batches::Singly;
use super::*;
use crate::carrier::handshake::{Hello, RefuseCode, Reply, VERSION, receive};
use crate::carrier::{DialError, QuicConfig, tls};

/// Says these bytes on the handshake's stream, and reads the answer.
async fn says(hosts: &mut Hosts, bytes: &[u8]) -> (u16, Reply) {
    let dial = hosts.dial();
    let asked = async {
        let dialled = dial.connect(&hosts.client).await.unwrap();
        let (mut send, mut recv) = quic(&dialled).open_bi().await.unwrap();
        send.write_all(bytes).await.unwrap();
        send.finish();
        Reply::decode(&receive(&mut recv).await.unwrap()).unwrap()
    };
    tokio::select! {
        reply = soon(asked) => reply,
        attempt = hosts.listener.accept() => panic!("{attempt:?}"),
    }
}

#[tokio::test]
async fn a_client_of_another_version_is_told_both_versions() {
    let mut hosts = Hosts::new();
    let hello = Hello::New {
        path: PathId(0),
        params: Bytes::new(),
    };
    let (version, reply) = says(&mut hosts, &hello.encode_as(77)).await;
    assert_eq!(version, VERSION);
    let Reply::Refuse { code, reason } = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(code, RefuseCode::Version);
    assert!(reason.contains("protocol 77, the server 1"), "{reason}");
}

#[tokio::test]
async fn nonsense_is_refused_with_what_is_wrong() {
    let mut hosts = Hosts::new();
    for (bytes, words) in [
        (&b"\xff\xff"[..], "65535 bytes is longer than the 4096"),
        (b"\x00\x03\x00\x01\x09", "unknown kind, 0x09"),
        (b"\x00\x04\x00\x01\x02\x00", "ends within its path"),
        (b"\x00\x09\x00", "closed the connection"),
    ] {
        let (_, reply) = says(&mut hosts, bytes).await;
        let Reply::Refuse { code, reason } = reply else {
            panic!("{reply:?}");
        };
        assert_eq!(code, RefuseCode::Malformed);
        assert!(reason.contains(words), "{reason}");
    }
}

/// A server that proves its key and answers every Hello with these bytes.
fn server_that_says(bytes: Vec<u8>) -> (quinn::Endpoint, SocketAddr, PublicKey) {
    let identity = Identity::generate().unwrap();
    let crypto = tls::server(&identity).unwrap();
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(
        QuicConfig::default()
            .transport(LOOPBACK, &Singly::default())
            .unwrap(),
    );
    let endpoint = quinn::Endpoint::server(config, LOOPBACK).unwrap();
    let addr = endpoint.local_addr().unwrap();
    let server = endpoint.clone();
    tokio::spawn(async move {
        let connection = server.accept().await.unwrap().await.unwrap();
        let (mut send, _recv) = connection.accept_bi().await.unwrap();
        send.write_all(&bytes).await.unwrap();
        send.finish().unwrap();
        connection.closed().await;
    });
    (endpoint, addr, identity.public_key())
}

async fn asks(addr: SocketAddr, server: PublicKey) -> DialError {
    let client = Identity::generate().unwrap();
    let dial = Dial {
        carrier: CarrierChoice::Quic,
        ..Dial::new(addr, server)
    };
    let dialled = soon(dial.connect(&client)).await.unwrap();
    soon(dialled.open(PathId(0), Bytes::new()))
        .await
        .unwrap_err()
}

#[tokio::test]
async fn a_server_of_another_version_is_named_with_both_versions() {
    let refuse = Reply::Refuse {
        code: RefuseCode::Version,
        reason: "no".into(),
    };
    let accept = Reply::Accept {
        session: crate::carrier::handshake::SessionId([1; 16]),
        params: Bytes::new(),
    };
    for reply in [refuse, accept] {
        let (_endpoint, addr, key) = server_that_says(reply.encode_as(0x0102));
        let error = asks(addr, key).await;
        assert!(
            matches!(
                error,
                DialError::Version {
                    ours: VERSION,
                    theirs: 0x0102,
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_server_that_answers_nonsense_is_named() {
    for bytes in [&b"\x00\x04\x00\x01\x55\x00"[..], b"\x40\x00", b"\x00"] {
        let (_endpoint, addr, key) = server_that_says(bytes.to_vec());
        let error = asks(addr, key).await;
        assert!(matches!(error, DialError::Malformed { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_server_of_something_else_is_told_apart() {
    let identity = Identity::generate().unwrap();
    let mut tls = tls::rustls_server(&identity).unwrap();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    let endpoint = quinn::Endpoint::server(config, LOOPBACK).unwrap();
    let dial = Dial {
        carrier: CarrierChoice::Quic,
        ..Dial::new(endpoint.local_addr().unwrap(), identity.public_key())
    };
    let serve = async { endpoint.accept().await.unwrap().await };
    let (error, _) = soon(async { tokio::join!(dial.connect(&identity), serve) }).await;
    let error = error.unwrap_err();
    assert!(matches!(error, DialError::NotMarline { .. }), "{error}");
}

#[tokio::test]
async fn half_open_handshakes_are_bounded_and_end() {
    let mut hosts = Hosts::with(|c| {
        c.max_half_open = 2;
        c.handshake_timeout = Duration::from_millis(500);
    });
    let dial = hosts.dial();
    let stall = async {
        // Keys proved, and then not a word.
        let one = dial.connect(&hosts.client).await.unwrap();
        let two = dial.connect(&hosts.client).await.unwrap();
        let error = dial.connect(&hosts.client).await.unwrap_err();
        assert!(matches!(error, DialError::Busy { .. }), "{error}");
        let closed = async { tokio::join!(quic(&one).closed(), quic(&two).closed()) };
        closed.await;
    };
    tokio::select! {
        () = soon(stall) => {}
        attempt = hosts.listener.accept() => panic!("{attempt:?}"),
    }
    // The places are free again when nothing is left of the connections.
    while hosts.listener.open_quic() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (mut opened, mut carrier, _) = hosts.open(&dial).await;
    ping_pong(&mut opened.carrier, &mut carrier).await;
}

#[tokio::test]
async fn one_address_has_its_share_of_the_half_open() {
    let mut hosts = Hosts::with(|c| c.max_half_open_per_address = 1);
    let dial = hosts.dial();
    let stall = async {
        let _one = dial.connect(&hosts.client).await.unwrap();
        dial.connect(&hosts.client).await.unwrap_err()
    };
    let error = tokio::select! {
        error = soon(stall) => error,
        attempt = hosts.listener.accept() => panic!("{attempt:?}"),
    };
    assert!(matches!(error, DialError::Busy { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_proves_its_key_and_does_not_answer_is_told_apart() {
    let mut hosts = Hosts::new();
    let dial = hosts.dial();
    let asked = async {
        let mut dialled = dial.connect(&hosts.client).await.unwrap();
        dialled.timeout = Duration::from_millis(100);
        dialled.open(PathId(0), Bytes::new()).await.unwrap_err()
    };
    let (error, _unanswered) = soon(async { tokio::join!(asked, hosts.listener.accept()) }).await;
    assert!(matches!(error, DialError::Silent { .. }), "{error}");
}

#[tokio::test]
async fn a_session_that_lives_takes_no_place_among_the_half_open() {
    let mut hosts = Hosts::with(|c| c.max_half_open = 1);
    let dial = hosts.dial();
    let mut sessions = Vec::new();
    for _ in 0..4 {
        let (opened, carrier, _) = hosts.open(&dial).await;
        sessions.push((opened, carrier));
    }
    for (opened, carrier) in &mut sessions {
        ping_pong(&mut opened.carrier, carrier).await;
    }
}

/// The first byte of what answers the first packet of a real client, seen on the way.
async fn first_answer(hosts: &mut Hosts) -> u8 {
    let tap = UdpSocket::bind(LOOPBACK).await.unwrap();
    let out = UdpSocket::bind(LOOPBACK).await.unwrap();
    let dial = Dial {
        remote: tap.local_addr().unwrap(),
        ..hosts.dial()
    };
    let seen = async {
        let mut buffer = [0; 2048];
        let len = tap.recv(&mut buffer).await.unwrap();
        out.send_to(&buffer[..len], hosts.addr).await.unwrap();
        out.recv(&mut buffer).await.unwrap();
        buffer[0]
    };
    tokio::select! {
        first = soon(seen) => first,
        result = dial.connect(&hosts.client) => panic!("{result:?}"),
        attempt = hosts.listener.accept() => panic!("{attempt:?}"),
    }
}

#[tokio::test]
async fn addresses_are_validated_before_anything_else_when_many_are_half_open() {
    // Long header types are bits 4 and 5 (RFC 9000 section 17.2): 0 Initial, 3 Retry.
    const LONG_TYPE: u8 = 0x30;
    let mut hosts = Hosts::with(|c| c.retry_above = 1);
    assert_eq!(first_answer(&mut hosts).await & LONG_TYPE, 0x00);
    // That one is still half open.
    assert_eq!(first_answer(&mut hosts).await & LONG_TYPE, 0x30);
    // A client that answers the Retry is let in.
    let (mut opened, mut carrier, _) = hosts.open(&hosts.dial()).await;
    ping_pong(&mut opened.carrier, &mut carrier).await;
}
