//! Datagrams between two ends, and how a carrier ends.

use super::sizes::reach;
use super::*;
use std::task::{Context, Waker};

use crate::carrier::{MemoryCarrier, MemoryConfig, QuicConfig};

/// What Ethernet leaves over IPv4.
const LONGEST: usize = 1472 - 38;

/// Numbers every datagram, so that loss and disorder show.
fn numbered(number: u32, len: usize) -> Bytes {
    let mut bytes = vec![0xa5; len];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes.into()
}

fn number(datagram: &Bytes) -> u32 {
    u32::from_be_bytes(*datagram.first_chunk().unwrap())
}

/// Sends `count` datagrams without a pause, through `Full` and room again.
async fn burst(carrier: &mut dyn Carrier, count: u32) -> u32 {
    let len = carrier.max_datagram();
    let mut full = 0;
    let mut next = 0;
    while next < count {
        match carrier.send(numbered(next, len)) {
            Ok(()) => next += 1,
            Err(SendError::Full(back)) => {
                assert_eq!(number(&back), next);
                full += 1;
                poll_fn(|cx| carrier.poll_writable(cx)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    full
}

async fn echo(carrier: &mut dyn Carrier, count: u32) {
    let mut got = 0;
    while got < count {
        for datagram in recv(carrier).await.unwrap() {
            assert_eq!(number(&datagram), got);
            send(carrier, datagram).await;
            got += 1;
        }
    }
}

async fn collect(carrier: &mut dyn Carrier, count: u32) {
    let mut got = 0;
    while got < count {
        for datagram in recv(carrier).await.unwrap() {
            assert_eq!(number(&datagram), got);
            assert!(datagram.len() <= LONGEST);
            got += 1;
        }
    }
}

#[tokio::test]
async fn a_burst_beyond_the_send_buffer_goes_there_and_back_whole() {
    const COUNT: u32 = 1000;
    let mut hosts = Hosts::new();
    let (mut opened, mut server, _) = hosts.open(&hosts.dial()).await;
    let echo = tokio::spawn(async move {
        echo(&mut server, COUNT).await;
        // What is echoed last must leave before the carrier is dropped.
        server
    });
    let full = burst(&mut opened.carrier, COUNT).await;
    assert!(full > 0, "the burst should have filled the buffer");
    soon(collect(&mut opened.carrier, COUNT)).await;
    echo.await.unwrap();
}

/// All that has come, without waiting for more (bytes).
fn drain(carrier: &mut dyn Carrier) -> usize {
    let mut cx = Context::from_waker(Waker::noop());
    let mut out = Vec::new();
    while let Poll::Ready(Ok(_)) = carrier.poll_recv(&mut cx, &mut out, 64) {}
    out.iter().map(Bytes::len).sum()
}

#[tokio::test]
async fn what_a_session_does_not_read_waits_up_to_its_bound_at_a_server() {
    const BUFFER: usize = 64 << 10;
    let mut hosts = Hosts::with(|config| config.quic.receive_buffer = BUFFER);
    let dial = hosts.dial();
    let (mut opened, mut server, key) = hosts.open(&dial).await;
    let mut paths = Vec::new();
    // Before the carrier was polled for the first time, and after.
    for path in [1, 2] {
        for n in 0..400 {
            send(&mut opened.carrier, numbered(n, 1_000)).await;
        }
        // Another handshake by the same socket: what came before it was dispatched.
        paths.push(hosts.join(&dial, &key, PathId(path)).await);
        let got = drain(&mut server);
        assert!((10_000..=BUFFER).contains(&got), "{got} bytes of 400 000");
        paths.pop();
    }
}

#[tokio::test]
async fn a_full_memory_carrier_gives_the_datagram_back_and_wakes_the_sender() {
    let (mut one, mut other) = MemoryCarrier::pair(MemoryConfig {
        capacity: 4,
        max_datagram: 100,
    });
    let reader = tokio::spawn(async move {
        collect(&mut other, 50).await;
        other
    });
    assert!(burst(&mut one, 50).await > 0);
    let mut other = soon(reader).await.unwrap();
    assert_eq!(
        one.send(Bytes::from(vec![0; 101])),
        Err(SendError::TooLarge { len: 101, max: 100 })
    );
    ping_pong(&mut one, &mut other).await;
    send(&mut one, Bytes::from_static(b"last")).await;
    one.close(7, "done");
    assert_eq!(recv(&mut other).await.unwrap(), ["last"]);
    let end = CarrierEnd::Peer {
        code: 7,
        reason: "done".into(),
    };
    assert_eq!(recv(&mut other).await, Err(end.clone()));
    assert_eq!(other.send(Bytes::new()), Err(SendError::Ended(end)));
    assert_eq!(recv(&mut one).await, Err(CarrierEnd::Local));
}

#[tokio::test]
async fn a_datagram_that_waits_for_room_leaves_without_being_asked_after() {
    // The sender fills the buffer, then only waits for datagrams, as a session with nothing more
    // to send does: the carrier has to wake it for the one that found no room.
    let mut hosts = Hosts::new();
    let (mut opened, mut server, _) = hosts.open(&hosts.dial()).await;
    let carrier = &mut opened.carrier;
    let len = carrier.max_datagram();
    let (tell, told) = tokio::sync::oneshot::channel();
    let reader = tokio::spawn(async move {
        collect(&mut server, told.await.unwrap()).await;
        send(&mut server, Bytes::from_static(b"all")).await;
        server
    });
    let mut tell = Some(tell);
    let answer = soon(poll_fn(|cx| {
        let mut out = Vec::new();
        let polled = carrier.poll_recv(cx, &mut out, 1);
        if let Some(tell) = tell.take() {
            let mut sent = 0;
            while carrier.send(numbered(sent, len)).is_ok() {
                sent += 1;
            }
            tell.send(sent).unwrap();
        }
        polled.map_ok(|_| out)
    }))
    .await;
    assert_eq!(answer.unwrap(), ["all"]);
    reader.await.unwrap();
}

#[tokio::test]
async fn the_longest_datagram_is_what_the_mtu_leaves() {
    for mtu in [1400, 1200, 8972] {
        let quic = QuicConfig {
            mtu,
            ..QuicConfig::default()
        };
        let mut hosts = Hosts::with(|c| c.quic = quic.clone());
        let dial = Dial {
            quic,
            ..hosts.dial()
        };
        let (mut opened, mut server, _) = hosts.open(&dial).await;
        let max = usize::from(mtu) - 38;
        reach(&mut opened.carrier, &mut server, max..=max).await;
        let longest = Bytes::from(vec![2; max]);
        send(&mut opened.carrier, longest.clone()).await;
        while !soon(recv(&mut server)).await.unwrap().contains(&longest) {}
        assert_eq!(
            opened.carrier.send(Bytes::from(vec![1; max + 1])),
            Err(SendError::TooLarge { len: max + 1, max })
        );
    }
}

#[tokio::test]
async fn an_end_comes_with_its_words() {
    let mut hosts = Hosts::new();
    let (mut opened, mut server, _) = hosts.open(&hosts.dial()).await;
    opened.carrier.close(9, "the lid was closed\n");
    let end = soon(recv(&mut server)).await.unwrap_err();
    assert_eq!(
        end.to_string(),
        "closed by the peer: the lid was closed\u{fffd} (code 9)"
    );
    assert_eq!(recv(&mut server).await.unwrap_err(), end);
    assert_eq!(
        server.send(Bytes::from_static(b"x")),
        Err(SendError::Ended(end))
    );
    assert_eq!(
        recv(&mut opened.carrier).await.unwrap_err(),
        CarrierEnd::Local
    );
    poll_fn(|cx| server.poll_writable(cx)).await;
}

#[tokio::test]
async fn a_dropped_carrier_ends_the_other_end() {
    let mut hosts = Hosts::new();
    let (opened, mut server, _) = hosts.open(&hosts.dial()).await;
    drop(opened);
    assert!(matches!(
        soon(recv(&mut server)).await,
        Err(CarrierEnd::Peer { code: 0, .. })
    ));
}

#[tokio::test]
async fn silence_beyond_the_idle_limit_ends_it() {
    let quic = QuicConfig {
        idle_timeout: Duration::from_secs(1),
        ..QuicConfig::default()
    };
    let mut hosts = Hosts::new();
    let relay = Relay::start(hosts.addr, 1).await;
    let dial = Dial {
        remote: relay.addr,
        quic,
        ..hosts.dial()
    };
    let (mut opened, mut server, _) = hosts.open(&dial).await;
    relay.set_loss(1.0);
    // Sending does not keep it alive.
    send(&mut opened.carrier, Bytes::from_static(b"anybody?")).await;
    assert_eq!(soon(recv(&mut opened.carrier)).await, Err(CarrierEnd::Idle));
    assert_eq!(soon(recv(&mut server)).await, Err(CarrierEnd::Idle));
}

#[tokio::test]
async fn a_restarted_server_tells_its_old_clients_at_once() {
    let client = Identity::generate().unwrap();
    let identity = Identity::generate().unwrap();
    let allowed = AllowList::from_keys([client.public_key()]);
    let server = Listener::bind(
        ListenConfig::new(vec![LOOPBACK]),
        &identity,
        allowed.clone(),
    )
    .unwrap();
    let mut hosts = Hosts {
        addr: server.local_addrs()[0],
        listener: server,
        server: identity.public_key(),
        client,
    };
    let relay = Relay::start(hosts.addr, 1).await;
    let dial = Dial {
        remote: relay.addr,
        ..hosts.dial()
    };
    let (mut opened, carrier, _) = hosts.open(&dial).await;
    // As by kill -9: the client learns nothing of the end.
    relay.set_loss(1.0);
    hosts.listener.close(0, "");
    drop(carrier);
    hosts.listener.drained(LIMIT).await;
    let addr = hosts.addr;
    drop(hosts);
    let mut listener = loop {
        // The old socket goes with its task.
        tokio::task::yield_now().await;
        let config = ListenConfig::new(vec![addr]);
        if let Ok(listener) = Listener::bind(config, &identity, allowed.clone()) {
            break listener;
        }
    };
    relay.set_loss(0.0);
    send(&mut opened.carrier, Bytes::from(vec![0; 1000])).await;
    let end = tokio::select! {
        end = soon(recv(&mut opened.carrier)) => end,
        attempt = listener.accept() => panic!("{attempt:?}"),
    };
    assert_eq!(end, Err(CarrierEnd::Reset));
}
