//! A wall of photos over two emulated links: thumbnails first, each picture after its thumbnail.
//!
//! ```sh
//! cargo run --release -p marline-cli --example objects
//! ```
#![expect(clippy::print_stdout, reason = "an example prints what arrives")]

use std::collections::BTreeMap;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use marline::endpoint::Object;
use marline::endpoint::{Accepted, Client, ClientOptions, Objects, Server, ServerOptions};
use marline::identity::{AllowList, ConnectionString, Identity};
use marline_lab::emulate::{Emulator, EmulatorConfig};
use marline_proto::FlowOptions;
use marline_proto::flow::ObjectOptions;
use marline_proto::wire::FlowKind;

const PHOTOS: u64 = 24;
const THUMBNAIL: usize = 6_000;
const PICTURE: usize = 250_000;
const LINKS: [&str; 2] = ["rate=30mbit,delay=15ms", "rate=12mbit,delay=30ms,loss=1%"];

/// Sends the whole wall: object 2n is photo n's thumbnail, object 2n + 1 the photo itself.
async fn hang(wall: Objects) -> std::io::Result<()> {
    for _ in 0..PHOTOS {
        let small = ObjectOptions {
            urgency: 1,
            ..ObjectOptions::default()
        };
        let thumbnail = wall.send(&Bytes::from(vec![1; THUMBNAIL]), &small).await?;
        let large = ObjectOptions {
            urgency: 5,
            after: vec![thumbnail],
            ..ObjectOptions::default()
        };
        wall.send(&Bytes::from(vec![2; PICTURE]), &large).await?;
    }
    wall.finish();
    while let Some(settled) = wall.settled().await {
        if settled.number + 1 == 2 * PHOTOS {
            println!(
                "the server knows that the last photo hangs: {:?}",
                settled.fate
            );
        }
    }
    Ok(())
}

async fn serve(server: Server) -> Result<(), Box<dyn Error + Send + Sync>> {
    while let Some(session) = server.accept().await {
        while let Ok((_, flow)) = session.handle().accept().await {
            if let Accepted::Objects(wall) = flow {
                hang(wall).await?;
            }
        }
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (ours, theirs) = (Identity::generate()?, Identity::generate()?);
    let anywhere = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let allow = AllowList::from_keys([ours.public_key()]);
    let server = Server::bind(ServerOptions::new(vec![anywhere], theirs.clone(), allow))?;
    let addr = server.local_addrs()[0];
    tokio::spawn(serve(server));

    let mut links = Vec::new();
    for link in LINKS {
        links.push(Emulator::start(EmulatorConfig::new(addr, link.parse()?))?);
    }
    let mut paths = Vec::new();
    for (n, link) in links.iter().enumerate() {
        paths.push(format!("any,server={},name=link{n}", link.addr()).parse()?);
    }
    let string = ConnectionString::new(theirs.public_key(), vec![addr.to_string().parse()?])?;
    let client = Client::start(ClientOptions::new(&string, ours, paths))?;
    client.connect(Duration::from_secs(10)).await?;
    let session = client.session().ok_or("the session is over")?;

    let begin = Instant::now();
    let wall = session.open_objects(FlowOptions::new(FlowKind::Objects))?;
    let mut sizes = BTreeMap::new();
    while sizes.len() < 2 * PHOTOS as usize {
        match wall.recv().await {
            Some(Object::Whole { number, data }) => {
                let what = if number % 2 == 0 {
                    "thumbnail"
                } else {
                    "picture"
                };
                let (photo, ms) = (number / 2, begin.elapsed().as_millis());
                println!("{ms:>6} ms  {what} of photo {photo}: {} bytes", data.len());
                sizes.insert(number, data.len());
            }
            Some(Object::Gone { number, fate }) => println!("object {number}: {fate:?}"),
            None => return Err("the session ended too early".into()),
        }
    }
    client.stop("the wall is complete").await;
    Ok(())
}
