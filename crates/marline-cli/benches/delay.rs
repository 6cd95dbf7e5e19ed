//! What batches cost in delay, beside the bare QUIC library: messages that are sent back at once,
//! one after the other and a hundred at a time, over one unshaped loopback path:
//! `cargo bench -p marline-cli --bench delay [-- ROUNDS PAIRS]`.
//!
//! Each end is a thread with a runtime of its own. Interleaved pairs, so that drift of the machine
//! hits both alike. Goal: neither takes more than 1.2 times as long as with the bare library.

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use marline::{
    Accepted, AllowList, CarrierChoice, Client, ClientOptions, ConnectionString, FlowKind,
    FlowOptions, Identity, Packets, Path, Server, ServerOptions,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Messages of a burst, and bytes of each.
const BURST: usize = 100;
const LONG: usize = 1000;
/// Bytes of a message that is sent alone.
const SHORT: usize = 100;

/// One end's messages.
trait Messages {
    async fn send(&self, message: Bytes) -> Result<(), Failure>;
    async fn recv(&self) -> Result<Bytes, Failure>;
}

impl Messages for quinn::Connection {
    async fn send(&self, message: Bytes) -> Result<(), Failure> {
        Ok(self.send_datagram_wait(message).await?)
    }

    async fn recv(&self) -> Result<Bytes, Failure> {
        Ok(self.read_datagram().await?)
    }
}

impl Messages for Packets {
    async fn send(&self, message: Bytes) -> Result<(), Failure> {
        Ok(Self::send(self, message).await?)
    }

    async fn recv(&self) -> Result<Bytes, Failure> {
        Ok(Self::recv(self).await.ok_or("the flow is over")?)
    }
}

/// Times until what was sent was back: of one message, of a whole burst.
#[derive(Debug, Default)]
struct Measured {
    ping: Vec<Duration>,
    burst: Vec<Duration>,
}

async fn measure(end: &impl Messages, rounds: usize) -> Result<Measured, Failure> {
    let mut measured = Measured::default();
    let (short, long) = (Bytes::from(vec![1; SHORT]), Bytes::from(vec![2; LONG]));
    for _ in 0..rounds {
        let begun = Instant::now();
        end.send(short.clone()).await?;
        end.recv().await?;
        measured.ping.push(begun.elapsed());
    }
    for _ in 0..rounds / 10 {
        let begun = Instant::now();
        for _ in 0..BURST {
            end.send(long.clone()).await?;
        }
        for _ in 0..BURST {
            end.recv().await?;
        }
        measured.burst.push(begun.elapsed());
        // The next one finds everything at rest.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(measured)
}

async fn send_back(end: &impl Messages) -> Result<(), Failure> {
    loop {
        end.send(end.recv().await?).await?;
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    Ok(builder.enable_all().build()?)
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn bare(rounds: usize) -> Result<Measured, Failure> {
    use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
    use quinn::{ClientConfig, Endpoint, ServerConfig};
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let server = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    let (tell, told) = mpsc::channel();
    let echo = thread::spawn(move || {
        runtime()?.block_on(async {
            let endpoint = Endpoint::server(server, any_port())?;
            tell.send(endpoint.local_addr()?)?;
            let incoming = endpoint.accept().await.ok_or("the endpoint closed")?;
            let _over = send_back(&incoming.await?).await;
            Ok::<_, Failure>(())
        })
    });
    let address = told.recv()?;
    let measured = runtime()?.block_on(async {
        let mut roots = quinn::rustls::RootCertStore::empty();
        roots.add(certificate)?;
        let client = ClientConfig::with_root_certificates(Arc::new(roots))?;
        let endpoint = Endpoint::client(any_port())?;
        let connecting = endpoint.connect_with(client, address, "localhost")?;
        let connection = connecting.await?;
        let measured = measure(&connection, rounds).await?;
        connection.close(0_u32.into(), b"");
        endpoint.wait_idle().await;
        Ok::<_, Failure>(measured)
    })?;
    echo.join().map_err(|_| "the server panicked")??;
    Ok(measured)
}

fn ours(rounds: usize) -> Result<Measured, Failure> {
    let (client, server) = (Identity::generate()?, Identity::generate()?);
    let (key, allow) = (
        server.public_key(),
        AllowList::from_keys([client.public_key()]),
    );
    let (tell, told) = mpsc::channel();
    let echo = thread::spawn(move || {
        runtime()?.block_on(async {
            let server = Server::bind(ServerOptions::new(vec![any_port()], server, allow))?;
            tell.send(server.local_addrs()[0])?;
            let mut incomings = server.accept().await.ok_or("the server has stopped")?;
            if let Ok((_, Accepted::Packets(flow))) = incomings.accept().await {
                let _over = send_back(&flow).await;
            }
            Ok::<_, Failure>(())
        })
    });
    let address = told.recv()?.to_string().parse()?;
    let measured = runtime()?.block_on(async {
        let server = ConnectionString::new(key, vec![address])?;
        let paths = vec![Path::any().carrier(CarrierChoice::Quic)];
        let client = Client::start(ClientOptions::new(&server, client, paths))?;
        let session = client.connect(Duration::from_secs(10)).await?;
        let flow = session.open_packets(FlowOptions::new(FlowKind::Packets))?;
        let measured = measure(&flow, rounds).await?;
        session.close(0, "measured");
        session.closed().await;
        Ok::<_, Failure>(measured)
    })?;
    echo.join().map_err(|_| "the server panicked")??;
    Ok(measured)
}

/// A quantile in microseconds.
fn quantile(times: &mut [Duration], part: f64) -> f64 {
    times.sort();
    times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6
}

fn main() -> Result<(), Failure> {
    let numbers: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(2000).max(10);
    let pairs = numbers.get(1).copied().unwrap_or(5).max(1);
    println!(
        "there and back over loopback, {rounds} messages and {} bursts of {BURST}",
        rounds / 10
    );
    println!("µs              bare quinn p50  p99    marline p50  p99    ratio of p50");
    let mut ratios = [Vec::new(), Vec::new()];
    for _ in 0..pairs {
        let (mut bare, mut ours) = (bare(rounds)?, ours(rounds)?);
        let kinds = [
            ("one", &mut bare.ping, &mut ours.ping),
            ("burst", &mut bare.burst, &mut ours.burst),
        ];
        for ((name, bare, ours), ratios) in kinds.into_iter().zip(&mut ratios) {
            let [b50, b99, o50, o99] = [
                quantile(bare, 0.5),
                quantile(bare, 0.99),
                quantile(ours, 0.5),
                quantile(ours, 0.99),
            ];
            let ratio = o50 / b50;
            println!("{name:5} {b50:20.0} {b99:6.0} {o50:11.0} {o99:6.0} {ratio:10.2}");
            ratios.push(ratio);
        }
    }
    let [one, burst] = ratios.map(|mut ratios| {
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    });
    println!("median ratio: one message {one:.2}, burst {burst:.2} (goal 1.20)");
    Ok(())
}
