//! Hosts behind the server, at five ports one after another: one that never reads, one that reads a
//! little and then no more, one that sends without end, one that gives back what it gets, and one
//! that serves a page.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, copy, split};
use tokio::net::{TcpSocket, TcpStream};

use crate::attack::{Failure, Knobs, Outcome};

/// What the second one reads before it stops.
const SIP: usize = 1 << 20;
/// The page (bytes).
const PAGE: usize = 100_000;
/// The kernel's buffer for what is not read: small, so that little is taken before a flow stalls.
const BUFFER: u32 = 4 << 10;

/// Listens until the time is over.
pub(crate) async fn serve(knobs: Knobs) -> Outcome {
    let at = |n: u16| SocketAddr::new(knobs.listen.ip(), knobs.listen.port() + n);
    host(at(0), Some(BUFFER), deaf)?;
    host(at(1), Some(BUFFER), sip)?;
    host(at(2), None, flood)?;
    host(at(3), None, echo)?;
    host(at(4), None, page)?;
    knobs.hold("the targets listen").await
}

fn host<F>(at: SocketAddr, buffer: Option<u32>, treat: fn(TcpStream) -> F) -> Result<(), Failure>
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let socket = if at.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    socket.set_reuseaddr(true)?;
    if let Some(buffer) = buffer {
        socket.set_recv_buffer_size(buffer)?;
    }
    socket.bind(at)?;
    let listener = socket.listen(4096)?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(treat(stream));
        }
    });
    Ok(())
}

/// Reads nothing; what is reset it closes, as it would run out of descriptors.
async fn deaf(stream: TcpStream) -> std::io::Result<()> {
    stream.ready(Interest::ERROR).await.map(drop)
}

async fn sip(mut stream: TcpStream) -> std::io::Result<()> {
    let mut cup = vec![0; 16 << 10];
    let mut left = SIP;
    while left > 0 {
        match stream.read(&mut cup).await? {
            0 => return Ok(()),
            read => left = left.saturating_sub(read),
        }
    }
    deaf(stream).await
}

async fn flood(mut stream: TcpStream) -> std::io::Result<()> {
    let data = vec![0; 64 << 10];
    loop {
        stream.write_all(&data).await?;
    }
}

async fn echo(stream: TcpStream) -> std::io::Result<()> {
    let (mut read, mut write) = split(stream);
    copy(&mut read, &mut write).await.map(drop)
}

async fn page(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await?);
    }
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {PAGE}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&vec![b'.'; PAGE]).await?;
    stream.shutdown().await
}
