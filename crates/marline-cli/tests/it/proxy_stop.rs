//! A graceful stop: nothing new, what runs may finish, the rest is reset.

use crate::world::{World, tcp_echo, udp_echo};
use bytes::Bytes;
use marline_apps::live::LiveName;
use marline_apps::options::flow_to;
use marline_apps::proxy::{PacketFlow, Tunnel};
use marline_proto::wire::FlowKind;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn echo(stream: &mut TcpStream, text: &[u8]) {
    stream.write_all(text).await.unwrap();
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, text);
}

#[tokio::test]
async fn running_connections_finish_and_new_ones_are_refused() {
    let world = World::open();
    let forward = world.forward_tcp(tcp_echo().await).await;
    let mut stream = TcpStream::connect(forward).await.unwrap();
    echo(&mut stream, b"before").await;

    let client = world.client.clone();
    let stopping = tokio::spawn(async move { client.finish(Duration::from_secs(60)).await });
    while TcpStream::connect(forward).await.is_ok() {
        tokio::task::yield_now().await;
    }
    echo(&mut stream, b"after").await;
    stream.shutdown().await.unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(stopping.await.unwrap(), 0);
}

#[tokio::test]
async fn what_does_not_finish_in_time_is_reset() {
    let world = World::open();
    let forward = world.forward_tcp(tcp_echo().await).await;
    let mut stream = TcpStream::connect(forward).await.unwrap();
    echo(&mut stream, b"hello").await;
    assert_eq!(world.client.finish(Duration::ZERO).await, 1);
    let error = stream.read(&mut [0; 8]).await.expect_err("an orderly end");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_live_flow_is_not_waited_for_and_goes_on_until_its_session_is_over() {
    let world = World::live(udp_echo().await);
    let options = flow_to(FlowKind::Packets, LiveName::default().encode());
    let flow = world.tunnel().open_packets(options).await.unwrap();
    let exchange = async |text: &'static [u8]| {
        flow.send(Bytes::from_static(text)).await.unwrap();
        let answer = flow.recv().await.expect("the flow lives");
        assert_eq!(&answer[2..], text);
    };
    exchange(b"before").await;
    assert_eq!(world.server.finish(Duration::from_secs(60)).await, 0);
    exchange(b"after").await;
}

#[tokio::test]
async fn a_live_sender_that_is_new_when_the_server_stops_is_served_until_its_session_is_over() {
    let world = World::live(udp_echo().await);
    assert_eq!(world.server.finish(Duration::from_secs(60)).await, 0);
    let options = flow_to(FlowKind::Packets, LiveName::default().encode());
    let flow = world.tunnel().open_packets(options).await.unwrap();
    flow.send(Bytes::from_static(b"new")).await.unwrap();
    let answer = flow.recv().await.expect("the flow lives");
    assert_eq!(&answer[2..], b"new");
}
