//! The largest packets that pass.

use std::ops::RangeInclusive;

use super::*;

/// What a client's packet holds beside a datagram, and a server's, which has no connection id.
const OVERHEAD: usize = 38;
const SERVER_OVERHEAD: usize = 30;

/// Sends datagrams of the largest size there and small ones back until the first end's largest is
/// within a range.
pub(super) async fn reach(
    one: &mut dyn Carrier,
    other: &mut dyn Carrier,
    wanted: RangeInclusive<usize>,
) {
    soon(async {
        while !wanted.contains(&one.max_datagram()) {
            // It may shrink in between, and then says so.
            let longest = Bytes::from(vec![1; one.max_datagram()]);
            let _ = one.send(longest);
            let _ = one.send(Bytes::from_static(b"short"));
            poll_fn(|cx| one.poll_flush(cx)).await;
            send(other, Bytes::from_static(b"back")).await;
            let pause = Duration::from_millis(2);
            let _ = tokio::time::timeout(pause, recv(one)).await;
            let _ = tokio::time::timeout(pause, recv(other)).await;
        }
    })
    .await;
}

/// A client's datagrams on paths whose packets (UDP payload, bytes) may be that long: the search
/// stops less than eight bytes short.
fn of(packets: usize) -> RangeInclusive<usize> {
    packets - 7 - OVERHEAD..=packets - OVERHEAD
}

/// The same of a server's.
fn of_server(packets: usize) -> RangeInclusive<usize> {
    packets - 7 - SERVER_OVERHEAD..=packets - SERVER_OVERHEAD
}

async fn through(relay: &Relay, hosts: &mut Hosts) -> (PathCarrier, PathCarrier) {
    let dial = Dial {
        remote: relay.addr,
        ..hosts.dial()
    };
    let (opened, server, _) = hosts.open(&dial).await;
    (opened.carrier, server)
}

#[tokio::test]
async fn a_narrow_path_comes_up_and_each_direction_finds_its_size() {
    let mut hosts = Hosts::new();
    for (there, back) in [(1200, 1200), (1200, 1300), (1333, 1272), (1472, 1400)] {
        let relay = Relay::start(hosts.addr, 1).await;
        relay.narrow(there, back);
        let (mut client, mut server) = through(&relay, &mut hosts).await;
        assert_eq!(client.least_datagram(), 1200 - OVERHEAD);
        reach(&mut client, &mut server, of(there)).await;
        reach(&mut server, &mut client, of_server(back)).await;
        assert_eq!(client.least_datagram(), 1200 - OVERHEAD);
        assert!(client.max_datagram() <= there - OVERHEAD);
    }
}

#[tokio::test]
async fn a_path_that_shrinks_is_found_to_and_carries_on() {
    let mut hosts = Hosts::new();
    for (there, back) in [(1272, usize::MAX), (usize::MAX, 1272), (1272, 1272)] {
        let relay = Relay::start(hosts.addr, 1).await;
        let (mut client, mut server) = through(&relay, &mut hosts).await;
        reach(&mut client, &mut server, of(1472)).await;
        reach(&mut server, &mut client, of_server(1472)).await;
        relay.narrow(there, back);
        reach(&mut client, &mut server, of(there.min(1472))).await;
        reach(&mut server, &mut client, of_server(back.min(1472))).await;
    }
}

#[tokio::test]
async fn heavy_loss_leaves_the_largest_size_as_it_was_or_brings_it_back() {
    let mut hosts = Hosts::new();
    let relay = Relay::start(hosts.addr, 1).await;
    let (mut client, mut server) = through(&relay, &mut hosts).await;
    reach(&mut client, &mut server, of(1472)).await;
    relay.set_loss(0.3);
    let (mut came, mut sent) = (0, 0);
    for _ in 0..4000 {
        sent += 1;
        let longest = Bytes::from(vec![1; client.max_datagram()]);
        let _ = client.send(longest);
        poll_fn(|cx| client.poll_flush(cx)).await;
        if sent % 20 == 0 {
            let pause = Duration::from_millis(1);
            let _ = tokio::time::timeout(pause, recv(&mut client)).await;
            while let Ok(got) = tokio::time::timeout(pause, recv(&mut server)).await {
                came += got.unwrap().len();
            }
        }
    }
    assert!(came > 2000, "{came} of {sent} came through");
    relay.set_loss(0.0);
    reach(&mut client, &mut server, of(1472)).await;
}
