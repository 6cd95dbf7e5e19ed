//! Bulk goodput over two unshaped loopback paths, beside the bare QUIC library that sends the same
//! datagrams without Marline: `cargo bench -p marline-cli --bench goodput [-- SECONDS PAIRS]`.
//!
//! Both run in this process, sender and receiver on a thread and a runtime each, interleaved pair
//! by pair, so that drift of the machine hits both alike. Beside both runs what no encrypted
//! transport can do without: packets are sealed, sent and received in batches, and opened. What
//! counts is goodput per CPU second of both ends together. Goals: at least 75 % of the bare
//! library's, and 29 % of that loop's. With `ours` among the arguments only Marline runs, for a
//! profiler; with `live` what 20 Mb/s of records of 1316 bytes cost it (goal: 0.09 cores of both
//! ends, as much as an unencrypted protocol takes).

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]

#[path = "common/session.rs"]
mod session;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use marline::carrier::{Attempt, CarrierChoice, Dial, ListenConfig, Listener};
use marline::endpoint::Accepted;
use marline::identity::{AllowList, Identity};
use marline_proto::wire::{FlowKind, PathId};
use marline_proto::{FlowOptions, Side};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Datagrams that the bare sender keeps in flight on each path.
const WINDOW: u64 = 256;
const PATHS: u64 = 2;
/// Seven packets of an MPEG transport stream (bytes; 188 each, ISO/IEC 13818-1), as live video
/// usually sends them over UDP.
const RECORD: usize = 1_316;
/// Records a second that are 20 Mb/s.
const RECORDS: f64 = 20e6 / (8 * RECORD) as f64;

/// Goodput and what it cost.
#[derive(Clone, Copy, Debug)]
struct Measured {
    bytes: u64,
    wall: Duration,
    cpu: Duration,
}

impl Measured {
    fn gbps(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.wall.as_secs_f64()
    }

    fn gbit_per_cpu_second(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.cpu.as_secs_f64()
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Runs sender and receiver on a thread each; `received` counts the receiver's bytes.
fn measure<S, R>(span: Duration, sender: S, receiver: R) -> Result<Measured, Failure>
where
    S: FnOnce(SocketAddr, Arc<Shared>) -> Result<(), Failure> + Send + 'static,
    R: FnOnce(mpsc::Sender<SocketAddr>, Arc<Shared>) -> Result<(), Failure> + Send + 'static,
{
    let shared = Arc::new(Shared::default());
    let (tell, told) = mpsc::channel();
    let receiving = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || receiver(tell, shared))
    };
    let addr = told.recv()?;
    let sending = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || sender(addr, shared))
    };
    // Windows open and rates are learnt before the clock starts.
    thread::sleep(span / 4);
    let (start, cpu_start) = (Instant::now(), cpu());
    let before = shared.bytes.load(Ordering::Relaxed);
    thread::sleep(span);
    let measured = Measured {
        bytes: shared.bytes.load(Ordering::Relaxed) - before,
        wall: start.elapsed(),
        cpu: cpu() - cpu_start,
    };
    shared.stop.store(true, Ordering::Relaxed);
    sending.join().map_err(|_| "the sender panicked")??;
    receiving.join().map_err(|_| "the receiver panicked")??;
    Ok(measured)
}

#[derive(Debug, Default)]
struct Shared {
    bytes: AtomicU64,
    datagrams: [AtomicU64; PATHS as usize],
    stop: AtomicBool,
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

mod bare {
    //! quinn alone, configured as the carrier configures it.

    use super::*;
    use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
    use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};

    #[derive(Clone, Debug)]
    struct Unlimited;

    impl quinn::congestion::ControllerFactory for Unlimited {
        fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn quinn::congestion::Controller> {
            Box::new(Self)
        }
    }

    impl quinn::congestion::Controller for Unlimited {
        fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}
        fn on_mtu_update(&mut self, _: u16) {}
        fn window(&self) -> u64 {
            1 << 40
        }
        fn clone_box(&self) -> Box<dyn quinn::congestion::Controller> {
            Box::new(self.clone())
        }
        fn initial_window(&self) -> u64 {
            1 << 40
        }
        fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
            self
        }
    }

    fn transport() -> Arc<TransportConfig> {
        let mut acks = quinn::AckFrequencyConfig::default();
        acks.ack_eliciting_threshold(200_u32.into())
            .max_ack_delay(Some(Duration::from_millis(25)))
            .reordering_threshold(0_u32.into());
        let mut transport = TransportConfig::default();
        transport
            .congestion_controller_factory(Arc::new(Unlimited))
            .initial_mtu(1400)
            .min_mtu(1400)
            .mtu_discovery_config(None)
            .ack_frequency_config(Some(acks))
            .datagram_send_buffer_size(128 << 10)
            .datagram_receive_buffer_size(Some(4 << 20));
        Arc::new(transport)
    }

    /// A certificate that is made once and known to both ends.
    #[derive(Clone, Debug)]
    pub(super) struct Certificate {
        der: CertificateDer<'static>,
        key: Vec<u8>,
    }

    impl Certificate {
        pub(super) fn new() -> Result<Self, Failure> {
            let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
            Ok(Self {
                der: made.cert.der().clone(),
                key: made.signing_key.serialize_der(),
            })
        }
    }

    fn socket() -> Result<std::net::UdpSocket, Failure> {
        let socket = std::net::UdpSocket::bind(any_port())?;
        let options = socket2::SockRef::from(&socket);
        options.set_recv_buffer_size(4 << 20)?;
        options.set_send_buffer_size(4 << 20)?;
        Ok(socket)
    }

    pub(super) fn receive(
        certificate: &Certificate,
        tell: &mpsc::Sender<SocketAddr>,
        shared: &Arc<Shared>,
    ) -> Result<(), Failure> {
        runtime()?.block_on(async {
            let key = PrivatePkcs8KeyDer::from(certificate.key.clone());
            let mut server =
                ServerConfig::with_single_cert(vec![certificate.der.clone()], key.into())?;
            server.transport_config(transport());
            let endpoint = Endpoint::new(
                quinn::EndpointConfig::default(),
                Some(server),
                socket()?,
                Arc::new(quinn::TokioRuntime),
            )?;
            tell.send(endpoint.local_addr()?)?;
            let mut readers = Vec::new();
            for path in 0..PATHS as usize {
                let incoming = endpoint.accept().await.ok_or("the endpoint closed")?;
                let connection = incoming.await?;
                let shared = Arc::clone(shared);
                readers.push(tokio::spawn(async move {
                    while let Ok(datagram) = connection.read_datagram().await {
                        // The first byte tells the sender's path, whatever order they came in.
                        let path = usize::from(datagram[0]).min(path.max(PATHS as usize - 1));
                        shared.datagrams[path].fetch_add(1, Ordering::Relaxed);
                        shared
                            .bytes
                            .fetch_add(datagram.len() as u64, Ordering::Relaxed);
                    }
                }));
            }
            for reader in readers {
                reader.await?;
            }
            Ok(())
        })
    }

    pub(super) fn send(
        certificate: &Certificate,
        addr: SocketAddr,
        shared: &Arc<Shared>,
    ) -> Result<(), Failure> {
        runtime()?.block_on(async {
            let mut roots = quinn::rustls::RootCertStore::empty();
            roots.add(certificate.der.clone())?;
            let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
            client.transport_config(transport());
            let mut writers = Vec::new();
            for path in 0..PATHS as usize {
                let endpoint = Endpoint::new(
                    quinn::EndpointConfig::default(),
                    None,
                    socket()?,
                    Arc::new(quinn::TokioRuntime),
                )?;
                let connection = endpoint
                    .connect_with(client.clone(), addr, "localhost")?
                    .await?;
                let shared = Arc::clone(shared);
                writers.push(tokio::spawn(async move {
                    let mut datagram = vec![0; 1350];
                    datagram[0] = path as u8;
                    let datagram = Bytes::from(datagram);
                    let mut sent = 0;
                    while !shared.stopped() {
                        let arrived = shared.datagrams[path].load(Ordering::Relaxed);
                        if sent < arrived + WINDOW {
                            connection.send_datagram_wait(datagram.clone()).await?;
                            sent += 1;
                        } else {
                            tokio::task::yield_now().await;
                        }
                    }
                    connection.close(0_u32.into(), b"");
                    endpoint.wait_idle().await;
                    Ok::<(), Failure>(())
                }));
            }
            for writer in writers {
                writer.await??;
            }
            Ok(())
        })
    }
}

mod sealed {
    //! AES-128-GCM, as the carrier has it, and batches of the kernel's (GSO, GRO): nothing is
    //! acknowledged, ordered or sent again.

    use super::*;
    use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
    use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
    use std::io::IoSliceMut;
    use std::net::UdpSocket;

    /// Bytes of a packet that are the application's, as in bare datagrams.
    const PAYLOAD: usize = 1350;
    /// Packets that one call sends, as the carrier has it.
    const BATCH: usize = 32;
    /// Packets that may be on their way; what did not arrive for so long is lost.
    const WINDOW: u64 = 128;
    const LOST: Duration = Duration::from_millis(2);

    fn key() -> Result<LessSafeKey, Failure> {
        let key = UnboundKey::new(&AES_128_GCM, &[7; 16]).map_err(|_| "no key")?;
        Ok(LessSafeKey::new(key))
    }

    fn nonce(number: u64) -> Nonce {
        let mut bytes = [0; NONCE_LEN];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Nonce::assume_unique_for_key(bytes)
    }

    fn socket() -> Result<(UdpSocket, UdpSocketState), Failure> {
        let socket = UdpSocket::bind(any_port())?;
        let options = socket2::SockRef::from(&socket);
        options.set_recv_buffer_size(4 << 20)?;
        options.set_send_buffer_size(4 << 20)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(Duration::from_millis(50)))?;
        Ok((socket, state))
    }

    pub(super) fn receive(
        tell: &mpsc::Sender<SocketAddr>,
        shared: &Arc<Shared>,
    ) -> Result<(), Failure> {
        let (socket, state) = socket()?;
        tell.send(socket.local_addr()?)?;
        let key = key()?;
        let mut buffer = vec![0; BATCH_SIZE << 16];
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        // What an application reads.
        let mut read = vec![0; PAYLOAD];
        while !shared.stopped() {
            let mut slots: Vec<_> = buffer.chunks_mut(1 << 16).map(IoSliceMut::new).collect();
            let Ok(count) = state.recv(UdpSockRef::from(&socket), &mut slots, &mut metas) else {
                continue;
            };
            for (meta, slot) in metas[..count].iter().zip(&mut slots) {
                for packet in slot[..meta.len].chunks_mut(meta.stride) {
                    let (number, sealed) = packet.split_at_mut(8);
                    let number = u64::from_le_bytes((&*number).try_into()?);
                    let opened = key.open_in_place(nonce(number), Aad::empty(), sealed);
                    let opened = opened.map_err(|_| "a packet that was not sealed")?;
                    read.copy_from_slice(opened);
                    shared.datagrams[0].fetch_add(1, Ordering::Relaxed);
                    shared.bytes.fetch_add(PAYLOAD as u64, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    pub(super) fn send(addr: SocketAddr, shared: &Arc<Shared>) -> Result<(), Failure> {
        let sockets = [socket()?, socket()?];
        let key = key()?;
        let written = vec![0; PAYLOAD];
        let mut contents = Vec::new();
        let (mut sent, mut lost, mut last) = (0, 0, Instant::now());
        while !shared.stopped() {
            let arrived = shared.datagrams[0].load(Ordering::Relaxed);
            if sent >= arrived + lost + WINDOW {
                if last.elapsed() > LOST {
                    lost = sent - arrived;
                }
                thread::yield_now();
                continue;
            }
            last = Instant::now();
            let (socket, state) = &sockets[(sent / BATCH as u64 % PATHS) as usize];
            contents.clear();
            for number in sent..sent + BATCH as u64 {
                contents.extend_from_slice(&number.to_le_bytes());
                let start = contents.len();
                contents.extend_from_slice(&written);
                let tag = key.seal_in_place_separate_tag(
                    nonce(number),
                    Aad::empty(),
                    &mut contents[start..],
                );
                contents.extend_from_slice(tag.map_err(|_| "not sealed")?.as_ref());
            }
            let batch = Transmit {
                destination: addr,
                ecn: None,
                contents: &contents,
                segment_size: Some(contents.len() / BATCH),
                src_ip: None,
            };
            state.send(UdpSockRef::from(socket), &batch)?;
            sent += BATCH as u64;
        }
        Ok(())
    }
}

mod ours {
    //! A whole Marline session: one stream over both paths, or live records.

    use super::session::{add, params, session};
    use super::*;

    pub(super) fn receive(
        (server, client): (&Identity, &Identity),
        tell: &mpsc::Sender<SocketAddr>,
        shared: &Arc<Shared>,
    ) -> Result<(), Failure> {
        runtime()?.block_on(async {
            let allowed = AllowList::from_keys([client.public_key()]);
            let config = ListenConfig::new(vec![any_port()]);
            let mut listener = Listener::bind(config, server, allowed)?;
            tell.send(listener.local_addrs()[0])?;
            let Attempt::New(attempt) = listener.accept().await else {
                return Err("a session was expected".into());
            };
            let (driver, handle) = session(Side::Server, attempt.params())?;
            let path = attempt.path();
            let (carrier, key) = attempt.accept(params())?;
            add(&handle, path, carrier)?;
            tokio::spawn(driver);
            for _ in 1..PATHS {
                let Attempt::Join(attempt) = listener.accept().await else {
                    return Err("a path was expected".into());
                };
                let path = attempt.path();
                add(&handle, path, attempt.accept(&key)?)?;
            }
            let count = |read: usize| shared.bytes.fetch_add(read as u64, Ordering::Relaxed);
            match handle.accept().await?.1 {
                Accepted::Stream(mut stream) => {
                    let mut buf = vec![0; 256 << 10];
                    while !shared.stopped() {
                        match stream.read(&mut buf).await {
                            Ok(read) => count(read),
                            // The sender may hear of the end first.
                            Err(_) if shared.stopped() => break,
                            Err(error) => return Err(error.into()),
                        };
                    }
                }
                Accepted::Packets(records) => {
                    while !shared.stopped()
                        && let Some(record) = records.recv().await
                    {
                        count(record.len());
                    }
                }
                _ => return Err("a stream or records were expected".into()),
            }
            handle.close(0, "measured");
            handle.closed().await;
            Ok(())
        })
    }

    pub(super) fn send(
        (server, client): (&Identity, &Identity),
        addr: SocketAddr,
        live: bool,
        shared: &Arc<Shared>,
    ) -> Result<(), Failure> {
        runtime()?.block_on(async {
            let dial = Dial {
                carrier: CarrierChoice::Quic,
                ..Dial::new(addr, server.public_key())
            };
            let opened = dial
                .connect(client)
                .await?
                .open(PathId(0), params())
                .await?;
            let (driver, handle) = session(Side::Client, &opened.params)?;
            add(&handle, PathId(0), opened.carrier)?;
            tokio::spawn(driver);
            for path in 1..PATHS {
                let dialled = dial.connect(client).await?;
                add(
                    &handle,
                    PathId(path),
                    dialled.join(&opened.key, PathId(path)).await?,
                )?;
            }
            if live {
                write_live(&handle, shared).await?;
            } else {
                let mut stream = handle.open_stream(FlowOptions::new(FlowKind::Stream))?;
                let data = vec![0; 256 << 10];
                while !shared.stopped() && stream.write_all(&data).await.is_ok() {}
            }
            if std::env::var_os("MARLINE_BENCH_STATS").is_some() {
                println!("{:#?}", handle.stats());
            }
            handle.close(0, "measured");
            handle.closed().await;
            Ok(())
        })
    }
}

/// Writes records as they fall due, every millisecond or two.
async fn write_live(handle: &marline::Session, shared: &Shared) -> Result<(), Failure> {
    let flow = handle.open_packets(FlowOptions::new(FlowKind::Packets))?;
    let record = Bytes::from(vec![0; RECORD]);
    let (start, mut sent) = (Instant::now(), 0);
    while !shared.stopped() {
        let due = (start.elapsed().as_secs_f64() * RECORDS) as u64;
        for _ in sent..due {
            flow.send(record.clone()).await?;
        }
        sent = due;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Failure> {
    let numbers: Vec<f64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let span = Duration::from_secs_f64(numbers.first().copied().unwrap_or(2.0));
    let pairs = numbers.get(1).map_or(5, |&n| n as usize).max(1);
    let (server, client) = (
        Arc::new(Identity::generate()?),
        Arc::new(Identity::generate()?),
    );
    let run_ours = |live: bool| {
        let keys = [(); 2].map(|()| (Arc::clone(&server), Arc::clone(&client)));
        let [a, b] = keys;
        measure(
            span,
            move |addr, shared| ours::send((&a.0, &a.1), addr, live, &shared),
            move |tell, shared| ours::receive((&b.0, &b.1), &tell, &shared),
        )
    };
    if std::env::args().any(|a| a == "ours") {
        let ours = run_ours(false)?;
        let (gbps, per_cpu) = (ours.gbps(), ours.gbit_per_cpu_second());
        println!("marline alone: {gbps:.2} Gb/s, {per_cpu:.2} Gb per CPU second");
        return Ok(());
    }
    if std::env::args().any(|a| a == "live") {
        let mut cores = Vec::new();
        for _ in 0..pairs {
            let live = run_ours(true)?;
            let took = live.cpu.as_secs_f64() / live.wall.as_secs_f64();
            println!("{:.1} Mb/s, {took:.3} cores", 1e3 * live.gbps());
            cores.push(took);
        }
        println!("median: {:.3} cores (goal 0.09)", median(cores));
        return Ok(());
    }
    let certificate = bare::Certificate::new()?;
    println!("{PATHS} unshaped loopback paths, {pairs} interleaved pairs of {span:?}");
    println!(
        "                bare quinn            marline               ratio per CPU second, and beside the loop"
    );
    let mut ratios = Vec::new();
    let mut walls = Vec::new();
    let mut of_the_loop = Vec::new();
    for _ in 0..pairs {
        let (a, b) = (certificate.clone(), certificate.clone());
        let bare = measure(
            span,
            move |addr, shared| bare::send(&a, addr, &shared),
            move |tell, shared| bare::receive(&b, &tell, &shared),
        )?;
        let ours = run_ours(false)?;
        let sealed = measure(
            span,
            move |addr, shared| sealed::send(addr, &shared),
            move |tell, shared| sealed::receive(&tell, &shared),
        )?;
        let ratio = ours.gbit_per_cpu_second() / bare.gbit_per_cpu_second();
        let of_loop = ours.gbit_per_cpu_second() / sealed.gbit_per_cpu_second();
        println!(
            "                {:5.2} Gb/s {:5.2} Gb/CPU-s  {:5.2} Gb/s {:5.2} Gb/CPU-s  {:.2}  {:.2}",
            bare.gbps(),
            bare.gbit_per_cpu_second(),
            ours.gbps(),
            ours.gbit_per_cpu_second(),
            ratio,
            of_loop
        );
        ratios.push(ratio);
        of_the_loop.push(of_loop);
        walls.push(ours.gbps() / bare.gbps());
    }
    println!(
        "median ratio: {:.2} per CPU second (goal 0.75), {:.2} of wall-clock goodput; {:.2} of the loop (goal 0.29)",
        median(ratios),
        median(walls),
        median(of_the_loop)
    );
    Ok(())
}
