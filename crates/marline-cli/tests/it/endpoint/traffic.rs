//! Many flows, many clients.

use super::*;
use marline_proto::FlowOptions;

async fn all(tasks: Vec<impl Future<Output = ()> + Send + 'static>) {
    let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_hundred_streams_at_once_come_back_unchanged() {
    let world = World::start();
    let links = [world.link(), world.link()];
    let client = world.connect(&[&through(&links[0], "a"), &through(&links[1], "b")]);
    ready(&client).await;
    let streams = (0..100).map(|seed| {
        let client = client.clone();
        async move { round_trip(&client, seed, 20_000 + 500 * seed as usize).await }
    });
    all(streams.collect()).await;
    until("all flows are closed", async || {
        status(&client).await.flows.is_empty()
    })
    .await;
    assert_eq!(status(&client).await.flows_opened, 100);
}

#[tokio::test]
async fn messages_keep_their_boundaries() {
    let world = World::start();
    let client = world.connect(&["any,name=a", "any,name=b"]);
    ready(&client).await;
    let packets: Packets = client
        .open_packets(FlowOptions {
            ordered: true,
            ..target()
        })
        .await
        .unwrap();
    for number in 0..50_u64 {
        let message = Bytes::from(bytes(number, 1 + 97 * number as usize));
        packets.send(message.clone()).await.unwrap();
        assert_eq!(soon(packets.recv()).await, Some(message));
    }
    let error = packets.send(vec![0; 1 << 20].into()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    packets.send(Bytes::from_static(b"alive")).await.unwrap();
    assert_eq!(soon(packets.recv()).await.as_deref(), Some(&b"alive"[..]));
}

#[tokio::test]
async fn one_server_serves_many_clients() {
    let clients: Vec<Identity> = (0..8).map(|_| key()).collect();
    let keys: Vec<_> = clients.iter().map(Identity::public_key).collect();
    let world = World::with(|options| options.allow = AllowList::from_keys(keys));
    let (addr, server) = (world.addr(), world.identity.clone());
    let uses = clients.into_iter().enumerate().map(|(number, identity)| {
        let options = options(&server, &identity, addr, &["any,name=a", "any,name=b"]);
        async move {
            let client = Client::start(options).unwrap();
            ready(&client).await;
            for flow in 0..4 {
                round_trip(&client, 100 * number as u64 + flow, 50_000).await;
            }
            client.stop("done").await;
        }
    });
    all(uses.collect()).await;
    until("all sessions are over", async || {
        world.server.status().await.sessions.is_empty()
    })
    .await;
}
