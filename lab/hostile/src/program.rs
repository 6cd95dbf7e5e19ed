//! What any program, or a web page, can do through the proxy of an honest client.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::attack::{Failure, Knobs, Moved, Outcome};

/// Longest wait for the next bytes of a download before it counts as stalled already.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to `target` through the SOCKS5 proxy (RFC 1928).
async fn connect(proxy: SocketAddr, target: SocketAddr) -> Result<TcpStream, Failure> {
    let mut stream = TcpStream::connect(proxy).await?;
    stream.write_all(&[5, 1, 0]).await?;
    stream.read_exact(&mut [0; 2]).await?;
    let mut request = vec![5, 1, 0];
    match target {
        SocketAddr::V4(target) => {
            request.push(1);
            request.extend(target.ip().octets());
        }
        SocketAddr::V6(target) => {
            request.push(4);
            request.extend(target.ip().octets());
        }
    }
    request.extend(target.port().to_be_bytes());
    stream.write_all(&request).await?;
    let mut reply = [0; 4];
    stream.read_exact(&mut reply).await?;
    if reply[1] != 0 {
        return Err(format!("the proxy refuses: {}", reply[1]).into());
    }
    // The address and port that the server speaks from.
    let bound = if reply[3] == 4 { 18 } else { 6 };
    stream.read_exact(&mut vec![0; bound]).await?;
    Ok(stream)
}

/// As many connections as are asked for and can be had, all begun at once.
async fn connect_all(knobs: &Knobs) -> Result<Vec<TcpStream>, Failure> {
    let (proxy, target) = (knobs.socks()?, knobs.target_text()?.parse()?);
    let mut connecting = JoinSet::new();
    for _ in 0..knobs.count {
        connecting.spawn(connect(proxy, target));
    }
    let mut streams = Vec::new();
    while let Some(connected) = connecting.join_next().await {
        streams.extend(connected?.ok());
    }
    Ok(streams)
}

/// Uploads as much as is taken, at most `--each` bytes a connection, and leaves the connections
/// open.
pub(crate) async fn upload(knobs: Knobs) -> Outcome {
    let streams = connect_all(&knobs).await?;
    let (open, moved) = (streams.len(), Moved::default());
    for mut stream in streams {
        let (moved, mut left) = (
            moved.clone(),
            if knobs.each == 0 {
                u64::MAX
            } else {
                knobs.each
            },
        );
        tokio::spawn(async move {
            let data = vec![0; 16 << 10];
            while left > 0
                && let Ok(taken @ 1..) = stream.write(&data[..data.len().min(left as usize)]).await
            {
                moved.add(taken);
                left -= taken as u64;
            }
            std::future::pending::<()>().await;
        });
    }
    moved.settled().await;
    let stand = format!("{open} uploads are stuck after {} bytes", moved.bytes());
    knobs.hold(&stand).await
}

/// Reads `--each` bytes of each download and no more.
pub(crate) async fn download(knobs: Knobs) -> Outcome {
    let streams = connect_all(&knobs).await?;
    let (open, moved) = (streams.len(), Moved::default());
    let mut reading = JoinSet::new();
    for mut stream in streams {
        let (moved, mut left) = (moved.clone(), knobs.each as usize);
        reading.spawn(async move {
            let mut data = vec![0; 16 << 10];
            while left > 0 {
                let most = data.len().min(left);
                let Ok(Ok(read @ 1..)) = timeout(PATIENCE, stream.read(&mut data[..most])).await
                else {
                    break;
                };
                moved.add(read);
                left -= read;
            }
            stream
        });
    }
    let held = reading.join_all().await;
    let stand = format!(
        "{open} downloads are not read after {} bytes",
        moved.bytes()
    );
    let held_for = knobs.hold(&stand).await;
    drop(held);
    held_for
}
