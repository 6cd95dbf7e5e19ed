//! The client's side: datagrams of local programs into flows, one for each sender, and what comes back to the sender.

use super::entry::{Entry, Running};
use super::{Board, Frames};
use crate::config::{FrameTerms, LiveIn};
use crate::endpoint::TargetNews;
use crate::proxy::associations::{Associations, IDLE};
use crate::proxy::front::ListenError;
use crate::proxy::idle::Idle;
use crate::proxy::udp::{MAX_DATAGRAM, roomy};
use crate::proxy::{OpenOptions, PacketFlow, Tasks, Tunnel};
use bytes::Bytes;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// How long a sender's datagrams are dropped after its flow could not be opened or was closed by the server.
const RETRY: Duration = Duration::from_millis(500);

/// A flow that the server closes within this time has no entry there.
const AT_ONCE: Duration = Duration::from_secs(2);

/// A datagram of a local program, and when it came.
#[derive(Debug)]
struct Arrived {
    at: Instant,
    datagram: Bytes,
}

/// A client's live entries, bound and not yet served.
#[derive(Debug, Default)]
pub struct Inlets {
    bound: Vec<(UdpSocket, Arc<Inlet>)>,
    board: Board,
}

#[derive(Debug)]
struct Inlet {
    entry: Arc<Entry>,
    options: OpenOptions,
    latency: Duration,
    /// Video frames go as blocks.
    frames: Option<FrameTerms>,
}

impl Inlets {
    /// Binds the ports of all entries.
    ///
    /// # Errors
    /// The first that cannot be listened on.
    pub async fn bind(configs: &[LiveIn]) -> Result<Self, ListenError> {
        let mut bound = Vec::new();
        for (id, config) in configs.iter().enumerate() {
            let address = config.listen;
            let socket = UdpSocket::bind(address).await;
            let socket = socket.map_err(|error| ListenError {
                key: "live",
                address,
                error,
            })?;
            roomy(&socket);
            let name = config.name.clone();
            let inlet = Inlet {
                entry: Entry::new(id, name, Some(config.budget()), config.target),
                options: config.options(),
                latency: config.frames.map_or(config.latency, |terms| terms.deadline),
                frames: config.frames,
            };
            bound.push((socket, Arc::new(inlet)));
        }
        let board = Board::new(bound.iter().map(|(_, inlet)| Arc::clone(&inlet.entry)));
        Ok(Inlets { bound, board })
    }

    /// What the entries count.
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// Serves all entries over `tunnel`, as tasks.
    pub fn serve<T: Tunnel>(self, tunnel: &T, tasks: &Tasks) {
        for (socket, inlet) in self.bound {
            match socket.local_addr() {
                Ok(address) => tracing::info!("live {} at udp://{address}", inlet.entry.name),
                Err(error) => tracing::debug!(%error, "a socket without an address"),
            }
            tasks.spawn(listen(socket, inlet, tunnel.clone(), tasks.clone()));
        }
    }
}

async fn listen<T: Tunnel>(socket: UdpSocket, inlet: Arc<Inlet>, tunnel: T, tasks: Tasks) {
    let socket = Arc::new(socket);
    let mut flows: Associations<SocketAddr, Arrived> = Associations::new(tasks.clone());
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        let received = tokio::select! {
            () = tasks.draining() => return,
            received = socket.recv_from(&mut buffer) => received,
        };
        match received {
            Ok((length, peer)) => {
                let arrived = Arrived {
                    at: Instant::now(),
                    datagram: Bytes::copy_from_slice(&buffer[..length]),
                };
                let open = |waiting| {
                    let (tunnel, inlet) = (tunnel.clone(), Arc::clone(&inlet));
                    carry(tunnel, inlet, waiting, Arc::clone(&socket), peer)
                };
                if !flows.send(&peer, arrived, open).await {
                    inlet.entry.refuse();
                }
            }
            // An answer to an earlier datagram could not be delivered; later ones may come.
            Err(error) => {
                tracing::debug!(%error, "cannot receive a datagram");
                sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// Opens a flow for what `peer` sends and carries it.
async fn carry<T: Tunnel>(
    tunnel: T,
    inlet: Arc<Inlet>,
    mut waiting: mpsc::Receiver<Arrived>,
    socket: Arc<UdpSocket>,
    peer: SocketAddr,
) {
    let options = inlet.options.clone();
    let error = match inlet.frames {
        Some(terms) => match tunnel.open_blocks(options).await {
            Ok(flow) => {
                let flow = Arc::new(Frames::new(flow, Some(terms)));
                return exchange(flow, &inlet, waiting, &socket, peer).await;
            }
            Err(error) => error,
        },
        None => match tunnel.open_packets(options).await {
            Ok(flow) => return exchange(Arc::new(flow), &inlet, waiting, &socket, peer).await,
            Err(error) => error,
        },
    };
    let entry = &inlet.entry;
    tracing::debug!(%error, "cannot open a flow for live {}", entry.name);
    sleep(RETRY).await;
    while waiting.try_recv().is_ok() {
        entry.refuse();
    }
}

/// Carries what `peer` sends until either side ends it or it has been quiet for long.
async fn exchange<P: PacketFlow>(
    flow: Arc<P>,
    inlet: &Inlet,
    mut waiting: mpsc::Receiver<Arrived>,
    socket: &UdpSocket,
    peer: SocketAddr,
) {
    let entry = &inlet.entry;
    let running = entry.begin(&flow);
    let begun = Instant::now();
    let idle = Idle::new(IDLE);
    let outgoing = async {
        while let Some(Arrived { at, datagram }) = waiting.recv().await {
            idle.touch();
            running.sent(&datagram);
            // The budget counts from when it came, also while there is no session.
            if at.elapsed() > inlet.latency {
                running.refused();
                continue;
            }
            match flow.send(datagram).await {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => running.refused(),
                Err(_) => return true,
                Ok(()) => {}
            }
        }
        false
    };
    let incoming = async {
        while let Some(message) = flow.recv().await {
            idle.touch();
            running.received(&message);
            if let Err(error) = socket.send_to(&message, peer).await {
                tracing::trace!(%error, "a datagram could not be handed to the local program");
            }
        }
        true
    };
    let ended = tokio::select! {
        ended = outgoing => ended,
        ended = incoming => ended,
        () = idle.expired() => false,
        () = steer(&inlet.entry, flow.as_ref(), &running) => false,
    };
    drop(running);
    drop(flow);
    if ended {
        if begun.elapsed() < AT_ONCE {
            entry.complain_of_end();
        }
        sleep(RETRY).await;
    }
}

/// Tells the flow its target, and people how it fares. Never completes.
async fn steer<P: PacketFlow>(entry: &Entry, flow: &P, running: &Running) {
    let mut target = entry.target();
    loop {
        let rate = *target.borrow_and_update();
        flow.set_target(rate);
        running.target(None);
        loop {
            let news = tokio::select! {
                changed = target.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => None,
                },
                news = flow.target_news() => news,
            };
            let wanted = rate.map_or(0.0, marline_base::Rate::as_mbps_f64);
            match news {
                Some(TargetNews::Below { capacity }) => tracing::warn!(
                    "live {}: the paths carry {:.1} Mb/s of the {wanted:.1} Mb/s that it needs",
                    entry.name,
                    capacity.as_mbps_f64()
                ),
                Some(TargetNews::Met) => tracing::info!(
                    "live {}: the paths carry the {wanted:.1} Mb/s that it needs again",
                    entry.name
                ),
                // The flow is over, which is noticed where it is read.
                None => std::future::pending().await,
            }
            running.target(news);
        }
    }
}
