//! QUIC and TCP race for a path.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::*;
use crate::carrier::{DialError, Outcomes};

/// A server whose UDP goes nowhere: at its address a socket that answers nothing, and a relay of
/// TCP to the real one.
struct NoUdp {
    addr: SocketAddr,
    _udp: UdpSocket,
    relay: JoinHandle<()>,
}

impl NoUdp {
    async fn before(server: SocketAddr) -> Self {
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind(LOOPBACK).await.unwrap();
            let addr = udp.local_addr().unwrap();
            // The port may be somebody else's for TCP.
            if let Ok(tcp) = tokio::net::TcpListener::bind(addr).await {
                break (udp, tcp);
            }
        };
        let addr = udp.local_addr().unwrap();
        let relay = tokio::spawn(async move {
            while let Ok((mut inside, _)) = tcp.accept().await {
                tokio::spawn(async move {
                    let mut outside = tokio::net::TcpStream::connect(server).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
                });
            }
        });
        Self {
            addr,
            _udp: udp,
            relay,
        }
    }
}

impl Drop for NoUdp {
    fn drop(&mut self) {
        self.relay.abort();
    }
}

/// A network that carries nothing of a client's until it is switched on, over UDP or TCP.
struct Late {
    addr: SocketAddr,
    on: watch::Sender<bool>,
    relays: [JoinHandle<()>; 2],
}

impl Late {
    async fn before(server: SocketAddr) -> Self {
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind(LOOPBACK).await.unwrap();
            let addr = udp.local_addr().unwrap();
            if let Ok(tcp) = tokio::net::TcpListener::bind(addr).await {
                break (Arc::new(udp), tcp);
            }
        };
        let addr = udp.local_addr().unwrap();
        let (on, is_on) = watch::channel(false);
        let mut there = is_on.clone();
        let tcp = tokio::spawn(async move {
            while let Ok((mut inside, _)) = tcp.accept().await {
                there.wait_for(|on| *on).await.unwrap();
                tokio::spawn(async move {
                    let mut outside = tokio::net::TcpStream::connect(server).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
                });
            }
        });
        let udp = tokio::spawn(async move {
            let mut clients = HashMap::new();
            let mut datagram = vec![0; 65536];
            while let Ok((len, from)) = udp.recv_from(&mut datagram).await {
                if !*is_on.borrow() {
                    continue;
                }
                let outside = match clients.entry(from) {
                    Entry::Occupied(known) => Arc::clone(known.get()),
                    Entry::Vacant(new) => {
                        let outside = Arc::new(UdpSocket::bind(LOOPBACK).await.unwrap());
                        new.insert(Arc::clone(&outside));
                        tokio::spawn(back(Arc::clone(&outside), Arc::clone(&udp), from));
                        outside
                    }
                };
                let _ = outside.send_to(&datagram[..len], server).await;
            }
        });
        Self {
            addr,
            on,
            relays: [udp, tcp],
        }
    }
}

/// Carries what comes from the server back to a client.
async fn back(outside: Arc<UdpSocket>, inside: Arc<UdpSocket>, client: SocketAddr) {
    let mut datagram = vec![0; 65536];
    while let Ok((len, _)) = outside.recv_from(&mut datagram).await {
        let _ = inside.send_to(&datagram[..len], client).await;
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.relays.iter().for_each(JoinHandle::abort);
    }
}

fn auto(hosts: &Hosts, remote: SocketAddr) -> Dial {
    Dial {
        carrier: CarrierChoice::Auto,
        remote,
        outcomes: Outcomes::default(),
        ..hosts.dial()
    }
}

#[tokio::test]
async fn quic_wins_where_it_gets_through() {
    let mut hosts = Hosts::new();
    let dial = auto(&hosts, hosts.addr);
    let (mut opened, mut server, _) = hosts.open(&dial).await;
    assert_eq!(opened.carrier.kind(), CarrierKind::Quic);
    ping_pong(&mut opened.carrier, &mut server).await;
}

#[tokio::test]
async fn tcp_is_used_where_udp_is_blocked_and_that_is_remembered() {
    let mut hosts = Hosts::new();
    let blocked = NoUdp::before(hosts.addr).await;
    let dial = auto(&hosts, blocked.addr);
    let (mut opened, mut server, key) = hosts.open(&dial).await;
    assert_eq!(opened.carrier.kind(), CarrierKind::Tcp);
    ping_pong(&mut opened.carrier, &mut server).await;
    assert_eq!(dial.outcomes.len(), 1);
    let (mut second, mut server) = hosts.join(&dial, &key, PathId(1)).await;
    assert_eq!(second.kind(), CarrierKind::Tcp);
    ping_pong(&mut second, &mut server).await;
    // Elsewhere it holds nothing.
    let elsewhere = Dial {
        remote: hosts.addr,
        ..dial
    };
    let (other, _server) = hosts.join(&elsewhere, &key, PathId(2)).await;
    assert_eq!(other.kind(), CarrierKind::Quic);
}

/// QUIC has sent packets in vain and waits longer and longer for the next; TCP, which waited for
/// the same network, is up at once.
#[tokio::test]
async fn a_network_that_comes_late_gets_quic() {
    let mut hosts = Hosts::new();
    let late = Late::before(hosts.addr).await;
    let dial = auto(&hosts, late.addr);
    let comes = async {
        tokio::time::sleep(Duration::from_millis(3_500)).await;
        late.on.send_replace(true);
    };
    let ((mut opened, mut server, _), ()) = tokio::join!(hosts.open(&dial), comes);
    assert_eq!(opened.carrier.kind(), CarrierKind::Quic);
    ping_pong(&mut opened.carrier, &mut server).await;
    assert_eq!(dial.outcomes.len(), 0);
}

#[tokio::test]
async fn when_neither_gets_through_both_reasons_are_told() {
    let silent = UdpSocket::bind(LOOPBACK).await.unwrap();
    let identity = Identity::generate().unwrap();
    let dial = Dial {
        timeout: Duration::from_millis(600),
        ..Dial::new(silent.local_addr().unwrap(), identity.public_key())
    };
    let error = soon(dial.connect(&identity)).await.unwrap_err();
    let DialError::Neither { quic, tcp } = &error else {
        panic!("{error}");
    };
    assert!(matches!(**quic, DialError::Unreachable { .. }), "{quic}");
    assert!(matches!(**tcp, DialError::TcpRefused { .. }), "{tcp}");
    let text = error.to_string();
    assert!(
        text.contains("UDP port") && text.contains("over TCP"),
        "{text}"
    );
}

#[tokio::test]
async fn a_server_that_refuses_over_quic_is_not_asked_again_over_tcp() {
    let mut hosts = Hosts::new();
    let dial = Dial {
        server: Identity::generate().unwrap().public_key(),
        ..auto(&hosts, hosts.addr)
    };
    let error = tokio::select! {
        result = dial.connect(&hosts.client) => result.unwrap_err(),
        attempt = hosts.listener.accept() => panic!("{attempt:?}"),
    };
    assert!(matches!(error, DialError::WrongKey { .. }), "{error}");
}
