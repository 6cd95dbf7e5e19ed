//! Addresses that change under a carrier.

use super::*;
use crate::carrier::{SocketError, SocketSpec};

#[tokio::test]
async fn a_rebinding_nat_ends_nothing_and_disturbs_no_other_path() {
    let mut hosts = Hosts::new();
    let relay = Relay::start(hosts.addr, 1).await;
    let behind_nat = Dial {
        remote: relay.addr,
        ..hosts.dial()
    };
    let (mut first, mut server_first, key) = hosts.open(&behind_nat).await;
    let (mut second, mut server_second) = hosts.join(&hosts.dial(), &key, PathId(1)).await;
    ping_pong(&mut first.carrier, &mut server_first).await;
    for round in 0..3 {
        let (before, other) = (server_first.remote_addr(), server_second.remote_addr());
        relay.rebind();
        // With loss on the way now and then, as when a modem reconnects.
        relay.set_loss(if round == 1 { 0.2 } else { 0.0 });
        let server = async {
            let mut moved = false;
            while !moved {
                let datagrams = recv(&mut server_first).await.unwrap();
                moved = server_first.remote_addr() != before;
                for datagram in datagrams {
                    send(&mut server_first, datagram).await;
                }
            }
        };
        let client = async {
            // Only a packet from the client tells the server of its new address.
            for number in 0_u32.. {
                let datagram = Bytes::copy_from_slice(&number.to_be_bytes());
                send(&mut first.carrier, datagram).await;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        soon(async {
            tokio::select! {
                () = server => {}
                () = client => {}
            }
        })
        .await;
        relay.set_loss(0.0);
        assert_eq!(server_second.remote_addr(), other);
        ping_pong(&mut second, &mut server_second).await;
    }
    // What was under way has come or been lost; the path carries both ways after it all.
    let both = async {
        loop {
            send(&mut server_first, Bytes::from_static(b"still there?")).await;
            let wait = recv_from(&mut first.carrier, &mut server_first);
            let mut wait = std::pin::pin!(wait);
            let answer = tokio::time::timeout(Duration::from_millis(50), wait.as_mut()).await;
            if answer.is_ok_and(|got| got.unwrap().iter().any(|d| d == "still there?")) {
                break;
            }
        }
    };
    soon(both).await;
}

#[tokio::test]
async fn a_client_moves_to_a_new_socket() {
    let mut hosts = Hosts::new();
    let (mut opened, mut server, _) = hosts.open(&hosts.dial()).await;
    let before = opened.carrier.local_addr();
    opened.carrier.rebind(&SocketSpec::default()).unwrap();
    assert_ne!(opened.carrier.local_addr(), before);
    ping_pong(&mut opened.carrier, &mut server).await;
    assert_eq!(server.remote_addr(), opened.carrier.local_addr());
    assert!(matches!(
        server.rebind(&SocketSpec::default()),
        Err(SocketError::Shared)
    ));
}
