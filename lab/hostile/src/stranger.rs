//! Those whose key nobody lists, and those who never show one.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use marline_proto::wire::PathId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, sleep_until};

use crate::attack::{Failure, Knobs, Outcome};
use crate::by_hand::{dial, unlisted};

/// How long a stranger stays after it was refused: longer than the server should put up with.
const STAY: Duration = Duration::from_secs(5);

/// Until a connection that the server has closed is opened again.
const AGAIN: Duration = Duration::from_millis(200);

/// Proves an unlisted key `--rate` times a second, says Hello and neither reads the answer nor
/// leaves for 5 s.
pub(crate) async fn handshakes(knobs: Knobs) -> Outcome {
    let (dial, identity) = (dial(&knobs).await?, unlisted()?);
    println!("ready: handshakes begin");
    let (end, mut turn, mut tasks) = (knobs.end(), interval(knobs.pause()), JoinSet::new());
    let mut done = 0;
    while Instant::now() < end {
        turn.tick().await;
        let (dial, identity) = (dial.clone(), identity.clone());
        tasks.spawn(async move {
            let Ok(dialled) = dial.connect(&identity).await else {
                return false;
            };
            let mut asking = pin!(dialled.open(PathId(0), Bytes::new()));
            // Once, for the question to leave.
            poll_fn(|cx| Poll::Ready(asking.as_mut().poll(cx).is_ready())).await;
            sleep(STAY).await;
            true
        });
        while let Some(ended) = tasks.try_join_next() {
            done += u64::from(ended?);
        }
    }
    while let Some(ended) = tasks.join_next().await {
        done += u64::from(ended?);
    }
    println!(
        "{} handshakes a second",
        done / knobs.duration().as_secs().max(1)
    );
    Ok(())
}

/// Ends `--count` TLS handshakes and says nothing more.
pub(crate) async fn half(knobs: Knobs) -> Outcome {
    let (dial, identity) = (dial(&knobs).await?, unlisted()?);
    let mut held = Vec::new();
    for _ in 0..knobs.count {
        held.extend(dial.connect(&identity).await.ok());
    }
    let open = held.len();
    knobs
        .hold(&format!("{open} connections say no Hello"))
        .await
}

/// A TCP connection to the server from this address.
async fn reach(server: SocketAddr, from: Option<IpAddr>) -> Result<TcpStream, Failure> {
    let socket = match server {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(from) = from {
        socket.bind((from, 0).into())?;
    }
    Ok(socket.connect(server).await?)
}

/// As many connections as are asked for, from all addresses in turn, each with its address.
async fn reach_all(knobs: &Knobs) -> Result<Vec<(TcpStream, Option<IpAddr>)>, Failure> {
    let server = knobs.place().await?;
    let mut held = Vec::new();
    let mut from = knobs.from.iter().copied().cycle();
    for _ in 0..knobs.count {
        let from = from.next();
        held.push((reach(server, from).await?, from));
    }
    Ok(held)
}

/// Opens TCP connections and says nothing; another one for each that the server closes.
pub(crate) async fn silent(knobs: Knobs) -> Outcome {
    let server = knobs.place().await?;
    let held = reach_all(&knobs).await?;
    let open = held.len();
    for (mut connection, from) in held {
        tokio::spawn(async move {
            loop {
                while let Ok(1..) = connection.read(&mut [0; 64]).await {}
                sleep(AGAIN).await;
                if let Ok(another) = reach(server, from).await {
                    connection = another;
                }
            }
        });
    }
    knobs.hold(&format!("{open} connections say nothing")).await
}

/// The beginning of a ClientHello (RFC 8446 section 4.1.2): a record of 512 bytes.
const HELLO: [u8; 11] = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];

/// Opens TCP connections and says a ClientHello, a byte a second.
pub(crate) async fn slow(knobs: Knobs) -> Outcome {
    let mut held = reach_all(&knobs).await?;
    println!("ready: {} connections speak slowly", held.len());
    let end = knobs.end();
    for byte in HELLO.into_iter().chain(std::iter::repeat(7)) {
        for (connection, _) in &mut held {
            // The server may have had enough of it.
            let _ = connection.write_u8(byte).await;
        }
        let second = Instant::now() + Duration::from_secs(1);
        if second > end {
            break;
        }
        sleep_until(second).await;
    }
    Ok(())
}
