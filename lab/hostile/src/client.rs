//! Clients with a listed key that keep to the protocol, and take what they can get.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use marline::endpoint::{Client, Packets, Stream};
use marline_apps::proxy::{Protocol, Target};
use marline_apps::tun::Role;
use marline_proto::FlowOptions;
use marline_proto::wire::FlowKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, interval, sleep, timeout};

use crate::attack::{Knobs, Moved, Outcome};
use crate::by_hand::ByHand;

/// How long a refusal may take that is not waited for any longer.
const SOON: Duration = Duration::from_secs(5);

fn options(target: &Bytes) -> FlowOptions {
    FlowOptions {
        target: target.clone(),
        ..FlowOptions::new(FlowKind::Stream)
    }
}

fn open(client: &Client, target: &Bytes) -> Option<Stream> {
    client.session()?.open_stream(options(target)).ok()
}

/// Streams to one target, over all sessions in turn; fewer where the server takes no more.
fn open_all(clients: &[Client], count: usize, target: &Bytes) -> Vec<Stream> {
    let clients = clients.iter().cycle().take(count);
    clients.filter_map(|client| open(client, target)).collect()
}

/// Downloads over many flows and reads `--each` bytes of them, or none.
pub(crate) async fn unread(knobs: Knobs) -> Outcome {
    let clients = knobs.clients().await?;
    let mut streams = open_all(&clients, knobs.count, &knobs.target(Protocol::Tcp)?);
    let mut rest = vec![0; 64 << 10];
    for stream in &mut streams {
        let mut left = knobs.each;
        while left > 0 {
            let most = rest.len().min(left as usize);
            match timeout(SOON, stream.read(&mut rest[..most])).await {
                Ok(Ok(read)) if read > 0 => left -= read as u64,
                _ => break,
            }
        }
    }
    sleep(Duration::from_secs(2)).await;
    let open = streams.len();
    knobs.hold(&format!("{open} downloads are not read")).await
}

/// Writes as much as is taken.
fn fill(mut stream: Stream, moved: &Moved, each: u64) -> tokio::task::JoinHandle<Stream> {
    let moved = moved.clone();
    tokio::spawn(async move {
        let data = vec![0; 64 << 10];
        let mut left = if each == 0 { u64::MAX } else { each };
        while left > 0 {
            let most = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match stream.write(&data[..most]).await {
                Ok(taken) if taken > 0 => {
                    moved.add(taken);
                    left -= taken as u64;
                }
                _ => break,
            }
        }
        stream
    })
}

/// Uploads to a target that does not read.
pub(crate) async fn upload(knobs: Knobs) -> Outcome {
    let clients = knobs.clients().await?;
    let streams = open_all(&clients, knobs.count, &knobs.target(Protocol::Tcp)?);
    let (open, moved) = (streams.len(), Moved::default());
    let writing: Vec<_> = streams
        .into_iter()
        .map(|s| fill(s, &moved, knobs.each))
        .collect();
    moved.settled().await;
    let stand = format!("{open} uploads are stuck after {} bytes", moved.bytes());
    let held = knobs.hold(&stand).await;
    drop(writing);
    held
}

/// Finishes uploads of `--each` bytes that their target does not read, and keeps the flows.
pub(crate) async fn finish(knobs: Knobs) -> Outcome {
    let clients = knobs.clients().await?;
    let streams = open_all(&clients, knobs.count, &knobs.target(Protocol::Tcp)?);
    let moved = Moved::default();
    let each = knobs.each.max(1);
    let writing: Vec<_> = streams.into_iter().map(|s| fill(s, &moved, each)).collect();
    moved.settled().await;
    let mut kept = Vec::new();
    for task in writing.into_iter().filter(|task| task.is_finished()) {
        let mut stream = task.await?;
        stream.shutdown().await?;
        kept.push(stream);
    }
    let finished = kept.len();
    knobs
        .hold(&format!("{finished} uploads are finished"))
        .await
}

/// Connections on which nothing happens.
pub(crate) async fn idle(knobs: Knobs) -> Outcome {
    let clients = knobs.clients().await?;
    let mut streams = open_all(&clients, knobs.count, &knobs.target(Protocol::Tcp)?);
    let mut connected = 0;
    let end = Instant::now() + SOON;
    for stream in &mut streams {
        // The server's first byte says whether it is connected.
        let answer = tokio::time::timeout_at(end, stream.read_u8()).await;
        connected += usize::from(matches!(answer, Ok(Ok(0))));
    }
    knobs
        .hold(&format!("{connected} connections are idle"))
        .await
}

/// Downloads over many flows, and reads.
pub(crate) async fn busy(knobs: Knobs) -> Outcome {
    let clients = knobs.clients().await?;
    let moved = Moved::default();
    for mut stream in open_all(&clients, knobs.count, &knobs.target(Protocol::Tcp)?) {
        let moved = moved.clone();
        tokio::spawn(async move {
            let mut rest = vec![0; 64 << 10];
            while let Ok(read @ 1..) = stream.read(&mut rest).await {
                moved.add(read);
            }
        });
    }
    knobs
        .hold(&format!("{} downloads run", knobs.count))
        .await?;
    println!("{} bytes came", moved.bytes());
    Ok(())
}

/// UDP flows, each of which has a socket at the server.
pub(crate) async fn sockets(knobs: Knobs) -> Outcome {
    let clients = knobs.clients().await?;
    let target = knobs.target(Protocol::Udp)?;
    let mut flows: Vec<Packets> = Vec::new();
    for client in clients.iter().cycle().take(knobs.count) {
        let session = client.session().ok_or("the session is over")?;
        if let Ok(flow) = session.open_packets(options(&target)) {
            flow.send(Bytes::from_static(b"?")).await?;
            flows.push(flow);
        }
    }
    let open = flows.len();
    knobs.hold(&format!("{open} UDP flows are open")).await
}

/// Opens flows at a rate, each as soon as its turn has come, whatever became of those before.
async fn again(knobs: &Knobs, target: impl Fn(u64) -> Bytes) -> Outcome {
    let clients = knobs.clients().await?;
    println!("ready: flows are opened");
    let (end, mut turn) = (knobs.end(), interval(knobs.pause()));
    let (mut opened, mut number) = (0_u64, 0);
    while Instant::now() < end {
        turn.tick().await;
        let client = &clients[number as usize % clients.len()];
        if let Some(mut stream) = open(client, &target(number)) {
            opened += 1;
            tokio::spawn(async move { timeout(SOON, stream.read_u8()).await });
        }
        number += 1;
    }
    println!("{opened} flows were opened");
    Ok(())
}

/// Asks for one target, which the server's rules refuse.
pub(crate) async fn refused(knobs: Knobs) -> Outcome {
    let target = knobs.target(Protocol::Tcp)?;
    again(&knobs, |_| target.clone()).await
}

/// Asks for addresses in the tunnel.
pub(crate) async fn leases(knobs: Knobs) -> Outcome {
    again(&knobs, |_| {
        Role::Lease {
            mtu: 1300,
            joined: true,
        }
        .encode()
    })
    .await
}

/// Asks at once for `--count` names below the target's.
pub(crate) async fn names(knobs: Knobs) -> Outcome {
    let clients = knobs.clients().await?;
    let mut streams = Vec::new();
    for number in 0..knobs.count {
        let name = format!("n{number}.{}", knobs.target_text()?);
        let target = Target::parse(Protocol::Tcp, &name).map_err(|problem| problem.to_string())?;
        streams.extend(open(&clients[number % clients.len()], &target.encode()));
    }
    let asked = streams.len();
    knobs.hold(&format!("{asked} names are asked for")).await
}

/// Opens sessions at a rate and forgets them without a word.
pub(crate) async fn sessions(knobs: Knobs) -> Outcome {
    println!("ready: sessions are opened");
    let (end, mut turn) = (knobs.end(), interval(knobs.pause()));
    let (mut opened, mut refused) = (0, 0);
    while Instant::now() < end {
        turn.tick().await;
        match pin!(ByHand::dial(&knobs)).await {
            Ok(_left_behind) => opened += 1,
            Err(_) => refused += 1,
        }
    }
    println!("{opened} sessions were opened, {refused} refused");
    Ok(())
}
