use super::harness::{DEADLINE, Digest, Site, links, path, pattern};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// What connection `index` sends: some nothing at all, none as much as another.
fn request(index: usize) -> Vec<u8> {
    pattern(index as u64, 0, index * 777)
}

/// What is sent back for a request with this digest: as different in length.
fn response(digest: &str) -> Vec<u8> {
    let seed = u64::from_str_radix(&digest[..16], 16).unwrap();
    pattern(seed, 0, (seed % 150_000) as usize)
}

fn digest(bytes: &[u8]) -> String {
    let mut digest = Digest::new();
    digest.update(bytes);
    digest.finish()
}

/// Answers a request when it has seen its end.
async fn target() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = Vec::new();
                connection.read_to_end(&mut request).await.unwrap();
                let answer = response(&digest(&request));
                connection.write_all(&answer).await.unwrap();
                connection.shutdown().await.unwrap();
            });
        }
    });
    address
}

async fn socks(proxy: SocketAddr, target: SocketAddr) -> TcpStream {
    let asked = tokio::task::spawn_blocking(move || super::harness::socks_connect(proxy, target));
    let stream = asked.await.unwrap();
    stream.set_nonblocking(true).unwrap();
    TcpStream::from_std(stream).unwrap()
}

#[tokio::test]
async fn two_hundred_connections_at_once_keep_their_bytes_and_half_closes_apart() {
    keep_apart(200, ["delay=3ms", "delay=8ms"], &[]).await;
}

#[tokio::test]
async fn connections_that_are_carried_as_objects_do_too_over_links_that_lose() {
    let links = ["delay=3ms,loss=2%", "delay=8ms,jitter=3ms,loss=2%"];
    keep_apart(
        60,
        links,
        &["--objects", "on", "--scheduler", "objects=sos-rateless"],
    )
    .await;
}

async fn keep_apart(count: usize, links: [&str; 2], more: &[&str]) {
    let target = target().await;
    let site = Site::new();
    let server = site.server(&[]);
    let links = self::links(server.addr, links, 1);
    let paths = [path("a", &links[0]), path("b", &links[1])];
    let forward = format!("tcp:127.0.0.1:0={target}");
    let options = [&["--forward", &forward][..], more].concat();
    let client = site.client(&server, &paths, &options);
    client.active(&["a", "b"]);
    let (proxy, forward) = (client.socks(), client.forward(target));

    let all_open = Arc::new(Barrier::new(count));
    let mut connections = JoinSet::new();
    for index in 0..count {
        let all_open = Arc::clone(&all_open);
        connections.spawn(async move {
            let mut stream = match index % 2 {
                0 => TcpStream::connect(forward).await.unwrap(),
                _ => socks(proxy, target).await,
            };
            let request = request(index);
            let (first, rest) = request.split_at(request.len() / 2);
            stream.write_all(first).await.unwrap();
            all_open.wait().await;
            stream.write_all(rest).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            assert_eq!(
                digest(&answer),
                digest(&response(&digest(&request))),
                "{index}"
            );
        });
    }
    let all = timeout(DEADLINE, async {
        while let Some(done) = connections.join_next().await {
            done.unwrap();
        }
    });
    assert!(all.await.is_ok(), "{} connections hang", connections.len());
    let session = client.session_is("closed flows", |session| session.flows.is_empty());
    assert!(session.flows_opened >= count as u64, "{session:?}");
}
