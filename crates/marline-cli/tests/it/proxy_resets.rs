//! A reset on one side is a reset on the other, never an orderly end and never silence.

use crate::world::{World, closed_port};
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A connection through a TCP forward, from both ends.
async fn connected(world: &World) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let forward = world.forward_tcp(listener.local_addr().unwrap()).await;
    let mut near = TcpStream::connect(forward).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    near.write_all(b"up").await.unwrap();
    far.write_all(b"down").await.unwrap();
    let mut bytes = [0; 4];
    near.read_exact(&mut bytes).await.unwrap();
    far.read_exact(&mut bytes[..2]).await.unwrap();
    (near, far)
}

async fn assert_reset(mut stream: TcpStream) {
    let error = stream.read(&mut [0; 8]).await.expect_err("an orderly end");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn of_the_target() {
    let world = World::open();
    let (near, far) = connected(&world).await;
    far.set_zero_linger().unwrap();
    drop(far);
    assert_reset(near).await;
}

#[tokio::test]
async fn of_the_local_program() {
    let world = World::open();
    let (near, far) = connected(&world).await;
    near.set_zero_linger().unwrap();
    drop(near);
    assert_reset(far).await;
}

#[tokio::test]
async fn when_the_session_ends_under_a_connection() {
    let world = World::open();
    let (near, far) = connected(&world).await;
    world.server.cut();
    assert_reset(near).await;
    assert_reset(far).await;
}

#[tokio::test]
async fn when_a_forwards_target_refuses() {
    let world = World::open();
    let (_refuses, closed) = closed_port();
    let forward = world.forward_tcp(closed).await;
    let near = TcpStream::connect(forward).await.unwrap();
    assert_reset(near).await;
}
