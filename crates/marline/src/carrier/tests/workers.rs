//! A port that several workers read, each by a socket of its own.

use tokio::runtime::Handle;

use super::*;

/// All workers on the test's own thread.
fn hosts(workers: usize, change: impl FnOnce(&mut ListenConfig)) -> Hosts {
    Hosts::with(|config| {
        config.workers = vec![Handle::current(); workers];
        change(config);
    })
}

#[tokio::test]
async fn what_comes_to_another_worker_after_a_client_moved_is_handed_over_once_and_in_order() {
    let mut hosts = hosts(4, |_| {});
    let relay = Relay::start(hosts.addr, 1).await;
    let behind_nat = Dial {
        remote: relay.addr,
        ..hosts.dial()
    };
    let (mut opened, mut server, _) = hosts.open(&behind_nat).await;
    let client = &mut opened.carrier;
    // The client's address after each round leads to any of four sockets.
    for round in 0..16_u8 {
        let sent: Vec<Bytes> = (0..50_u8).map(|n| vec![round, n].into()).collect();
        for datagram in &sent {
            send(client, datagram.clone()).await;
        }
        let mut got = Vec::new();
        while got.len() < sent.len() {
            got.extend(soon(recv_from(&mut server, client)).await.unwrap());
        }
        assert_eq!(got, sent, "round {round}");
        relay.rebind();
        // Until packets leave by the new address, so that none is overtaken on its way.
        let before = server.remote_addr();
        while server.remote_addr() == before {
            send(client, Bytes::from_static(b"where")).await;
            let got = soon(recv_from(&mut server, client)).await.unwrap();
            assert!(got.iter().all(|datagram| datagram == "where"));
        }
        assert_eq!(server.remote_addr().ip(), before.ip());
    }
    assert!(hosts.listener.handed_over() > 0);
    // Both ways, after all that.
    soon(async {
        loop {
            send(&mut server, Bytes::from_static(b"back")).await;
            let back = recv_from(client, &mut server);
            let back = tokio::time::timeout(Duration::from_millis(50), back).await;
            if back.is_ok_and(|got| got.unwrap().contains(&Bytes::from_static(b"back"))) {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn clients_are_shared_out_and_their_paths_join_from_any_socket() {
    let mut hosts = hosts(2, |config| config.retry_above = 0);
    let mut came = [0; 2];
    let mut held = Vec::new();
    for _ in 0..12 {
        let (dial, client_key) = (hosts.dial(), hosts.client.clone());
        let server = async {
            let Attempt::New(attempt) = hosts.listener.accept().await else {
                panic!("not a new session");
            };
            let worker = attempt.worker();
            (worker, attempt.accept(Bytes::new()).unwrap())
        };
        let client = async {
            let dialled = dial.connect(&client_key).await.unwrap();
            dialled.open(PathId(0), Bytes::new()).await.unwrap()
        };
        let (mut opened, (worker, (mut first, key))) =
            soon(async { tokio::join!(client, server) }).await;
        came[worker] += 1;
        ping_pong(&mut opened.carrier, &mut first).await;
        let (mut second, mut joined) = hosts.join(&hosts.dial(), &key, PathId(1)).await;
        ping_pong(&mut second, &mut joined).await;
        held.push((opened, first, second, joined));
    }
    // All to one of two in one of 2048 runs each way; these are addresses of 24 paths.
    assert_eq!(came.iter().sum::<usize>(), 12);
    assert_eq!(hosts.listener.open_quic(), 24);
    hosts.listener.close(7, "over");
    let mut ends = Vec::new();
    for (opened, ..) in &mut held {
        ends.push(soon(recv(&mut opened.carrier)).await.unwrap_err());
    }
    let all = ends
        .iter()
        .all(|end| matches!(end, CarrierEnd::Peer { code: 7, .. }));
    assert!(all, "{ends:?}");
}
