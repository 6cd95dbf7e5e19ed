//! Opening a session: who is let in, and what the others are answered.

use super::*;
use crate::carrier::handshake::RefuseCode;
use crate::carrier::{Bind, DialError, ListenError, SocketSpec};

#[tokio::test]
async fn both_ends_learn_the_session_and_each_others_parameters() {
    let mut hosts = Hosts::new();
    let dial = hosts.dial();
    let client = async {
        let dialled = dial.connect(&hosts.client).await.unwrap();
        dialled
            .open(PathId(3), Bytes::from_static(b"\x01\x02"))
            .await
            .unwrap()
    };
    let server = async {
        let Attempt::New(attempt) = hosts.listener.accept().await else {
            panic!("not a new session");
        };
        assert_eq!(attempt.peer(), hosts.client.public_key());
        assert_eq!(attempt.path(), PathId(3));
        assert_eq!(attempt.params(), &b"\x01\x02"[..]);
        attempt.accept(Bytes::from_static(b"\x03")).unwrap()
    };
    let (mut opened, (mut carrier, key)) = soon(async { tokio::join!(client, server) }).await;
    assert_eq!(opened.params, b"\x03"[..]);
    assert_eq!(opened.key.session(), key.session());
    assert_eq!(key.client(), hosts.client.public_key());
    assert_eq!(opened.carrier.remote_addr(), hosts.addr);
    assert_eq!(opened.carrier.local_addr(), carrier.remote_addr());
    assert_eq!(carrier.local_addr(), hosts.addr);
    ping_pong(&mut opened.carrier, &mut carrier).await;
}

#[tokio::test]
async fn a_socket_on_an_interface_or_an_address_carries_a_session() {
    let mut hosts = Hosts::new();
    for bind in [
        Bind::Interface("lo".into()),
        Bind::Address(Ipv4Addr::LOCALHOST.into()),
    ] {
        // Interfaces have other names on other systems.
        if bind == Bind::Interface("lo".into()) && !cfg!(target_os = "linux") {
            continue;
        }
        let dial = Dial {
            socket: SocketSpec {
                bind,
                ..SocketSpec::default()
            },
            ..hosts.dial()
        };
        let (mut opened, mut carrier, _) = hosts.open(&dial).await;
        assert_eq!(opened.carrier.local_addr().ip(), Ipv4Addr::LOCALHOST);
        ping_pong(&mut opened.carrier, &mut carrier).await;
    }
}

#[tokio::test]
async fn a_server_with_another_key_is_not_talked_to() {
    let mut hosts = Hosts::new();
    let expected = Identity::generate().unwrap().public_key();
    let dial = Dial {
        server: expected,
        ..hosts.dial()
    };
    let error = tokio::select! {
        result = dial.connect(&hosts.client) => result.unwrap_err(),
        attempt = hosts.listener.accept() => panic!("{attempt:?}"),
    };
    assert!(
        matches!(error, DialError::WrongKey { expected: e, found, .. }
            if e == expected && found == hosts.server),
        "{error}"
    );
}

#[tokio::test]
async fn an_unlisted_client_is_told_its_key_and_what_to_do() {
    let client = Identity::generate().unwrap();
    let allowed = AllowList::from_keys([]);
    let mut hosts = Hosts::with_allowed(client, allowed, |_| {});
    let dial = hosts.dial();
    let asked = async {
        let dialled = dial.connect(&hosts.client).await.unwrap();
        dialled.open(PathId(0), Bytes::new()).await.unwrap_err()
    };
    let error = tokio::select! {
        error = soon(asked) => error,
        attempt = hosts.listener.accept() => panic!("{attempt:?}"),
    };
    let DialError::Refused { code, reason, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(code, RefuseCode::UnknownClient);
    assert_eq!(
        reason,
        format!(
            "the server does not know this client's key {}; add it to the server's allow list",
            hosts.client.public_key()
        )
    );
}

#[tokio::test]
async fn a_silent_address_is_unreachable() {
    let silent = UdpSocket::bind(LOOPBACK).await.unwrap();
    let identity = Identity::generate().unwrap();
    let dial = Dial {
        timeout: Duration::from_millis(200),
        carrier: CarrierChoice::Quic,
        ..Dial::new(silent.local_addr().unwrap(), identity.public_key())
    };
    let error = dial.connect(&identity).await.unwrap_err();
    assert!(matches!(error, DialError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_refusal_reaches_the_client_as_code_and_words() {
    let mut hosts = Hosts::new();
    let dial = hosts.dial();
    let asked = async {
        let dialled = dial.connect(&hosts.client).await.unwrap();
        dialled.open(PathId(0), Bytes::new()).await.unwrap_err()
    };
    let refused = async {
        let attempt = hosts.listener.accept().await;
        attempt.refuse(RefuseCode::Full, "the server has 8 sessions, 8 are allowed");
        hosts.listener.accept().await
    };
    let error = tokio::select! {
        error = soon(asked) => error,
        attempt = refused => panic!("{attempt:?}"),
    };
    assert!(
        matches!(&error, DialError::Refused { code: RefuseCode::Full, reason, .. }
            if reason == "the server has 8 sessions, 8 are allowed"),
        "{error}"
    );
}

#[tokio::test]
async fn parameters_that_fit_no_message_are_refused_where_they_are_made() {
    let mut hosts = Hosts::new();
    let dial = hosts.dial();
    let long = Bytes::from(vec![0; crate::carrier::handshake::MAX_PARAMS + 1]);
    let asked = async {
        let dialled = dial.connect(&hosts.client).await.unwrap();
        dialled.open(PathId(0), long).await.unwrap_err()
    };
    let error = tokio::select! {
        error = soon(asked) => error,
        attempt = hosts.listener.accept() => panic!("{attempt:?}"),
    };
    assert!(matches!(error, DialError::Params { len: 2049 }), "{error}");
}

#[tokio::test]
async fn a_busy_port_is_named() {
    let hosts = Hosts::new();
    let config = ListenConfig::new(vec![hosts.addr]);
    let error = Listener::bind(config, &hosts.client, AllowList::from_keys([])).unwrap_err();
    assert!(
        matches!(&error, ListenError::Socket { addr, .. } if *addr == hosts.addr),
        "{error}"
    );
    assert!(
        error.to_string().contains("in use by another program"),
        "{error}"
    );
}

#[tokio::test]
async fn one_listener_serves_both_families() {
    let client = Identity::generate().unwrap();
    let allowed = AllowList::from_keys([client.public_key()]);
    let any = SocketAddr::from(([0_u16; 8], 0));
    let mut hosts = Hosts::with_allowed(client, allowed, |c| c.addresses = vec![any]);
    let port = hosts.addr.port();
    for ip in ["127.0.0.1", "::1"] {
        hosts.addr = SocketAddr::new(ip.parse().unwrap(), port);
        let (mut opened, mut carrier, _) = hosts.open(&hosts.dial()).await;
        assert_eq!(carrier.remote_addr().ip().to_string(), ip);
        ping_pong(&mut opened.carrier, &mut carrier).await;
    }
}
