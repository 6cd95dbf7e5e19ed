//! The client's side: datagrams of local programs into flows, one for each sender, and what comes back to the sender.

use super::entry::{Entry, Running};
use super::inspect::{Content, Inspector};
use super::rtp::Header;
use super::{Board, Frames, Media};
use crate::config::{FrameTerms, LiveIn};
use crate::control::ManageError;
use crate::endpoint::TargetNews;
use crate::proxy::associations::{Associations, IDLE};
use crate::proxy::front::ListenError;
use crate::proxy::idle::Idle;
use crate::proxy::objects::AsObjects;
use crate::proxy::udp::{MAX_DATAGRAM, roomy};
use crate::proxy::{OpenOptions, PacketFlow, Tasks, Tunnel};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

/// How long a sender's datagrams are dropped after its flow could not be opened or was closed by the server.
const RETRY: Duration = Duration::from_millis(500);

/// A flow that the server closes within this time has no entry there.
const AT_ONCE: Duration = Duration::from_secs(2);

/// A medium is recognised within this time from a sender's first datagram and by so many of them, or not at all: RTP
/// needs two packets in sequence.
const RECOGNISE: Duration = Duration::from_millis(50);
const FIRST: usize = 4;

/// A datagram of a local program, and when it came.
#[derive(Debug)]
struct Arrived {
    at: Instant,
    datagram: Bytes,
}

/// What a sender's datagrams are taken from.
#[derive(Debug)]
struct Inflow {
    /// Those that were looked at.
    early: VecDeque<Arrived>,
    rest: mpsc::Receiver<Arrived>,
}

impl Inflow {
    async fn next(&mut self) -> Option<Arrived> {
        match self.early.pop_front() {
            Some(arrived) => Some(arrived),
            None => self.rest.recv().await,
        }
    }

    /// Do the first datagrams say that they are RTP or MPEG-TS?
    async fn is_medium(&mut self) -> bool {
        let mut inspector = Inspector::default();
        while self.early.len() < FIRST {
            let first = self.early.front().map(|first| first.at);
            let until = first.unwrap_or_else(Instant::now) + RECOGNISE;
            let Ok(Some(arrived)) = timeout_at(until, self.rest.recv()).await else {
                return false;
            };
            inspector.look(&arrived.datagram);
            let may_be = Header::parse(&arrived.datagram).is_some();
            self.early.push_back(arrived);
            match inspector.content {
                Content::Opaque if may_be => {}
                content => return content != Content::Opaque,
            }
        }
        false
    }

    /// Refuses what comes for a while: a flow that cannot be opened is not asked for again with every datagram.
    async fn refuse(mut self, entry: &Entry) {
        sleep(RETRY).await;
        self.rest.close();
        while self.next().await.is_some() {
            entry.refuse();
        }
    }
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
    /// Frames and PES packets go as objects, opened so.
    objects: AsObjects,
    of_objects: OpenOptions,
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
            let (name, budget) = (config.name.clone(), Some(config.budget()));
            let untargeted = config.untargeted().map(|option| ManageError {
                message: format!("live {name} has no target rate, because of its `{option}`"),
                hint: Some("a target rate is for datagrams that go one by one".into()),
            });
            let inlet = Inlet {
                entry: Entry::new(id, name, budget, config.target, untargeted),
                options: config.options(),
                latency: config.frames.map_or(config.latency, |terms| terms.deadline),
                frames: config.frames,
                objects: config.objects,
                of_objects: config.options_of_objects(),
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
    waiting: mpsc::Receiver<Arrived>,
    socket: Arc<UdpSocket>,
    peer: SocketAddr,
) {
    let mut waiting = Inflow {
        early: VecDeque::new(),
        rest: waiting,
    };
    let options = inlet.options.clone();
    let as_objects = match inlet.objects {
        AsObjects::Off => false,
        AsObjects::Auto => waiting.is_medium().await,
        AsObjects::On => true,
    };
    let error = if as_objects {
        match tunnel.open_objects(inlet.of_objects.clone()).await {
            Ok(flow) => {
                let flow = Arc::new(Media::new(flow, Some(inlet.latency)));
                return exchange(flow, &inlet, waiting, &socket, peer).await;
            }
            Err(error) => error,
        }
    } else if let Some(terms) = inlet.frames {
        match tunnel.open_blocks(options).await {
            Ok(flow) => {
                let flow = Arc::new(Frames::new(flow, Some(terms)));
                return exchange(flow, &inlet, waiting, &socket, peer).await;
            }
            Err(error) => error,
        }
    } else {
        match tunnel.open_packets(options).await {
            Ok(flow) => return exchange(Arc::new(flow), &inlet, waiting, &socket, peer).await,
            Err(error) => error,
        }
    };
    let entry = &inlet.entry;
    tracing::debug!(%error, "cannot open a flow for live {}", entry.name);
    waiting.refuse(entry).await;
}

/// Carries what `peer` sends until either side ends it or it has been quiet for long.
async fn exchange<P: PacketFlow>(
    flow: Arc<P>,
    inlet: &Inlet,
    mut waiting: Inflow,
    socket: &UdpSocket,
    peer: SocketAddr,
) {
    let entry = &inlet.entry;
    let running = entry.begin(&flow);
    let begun = Instant::now();
    let idle = Idle::new(IDLE);
    let outgoing = async {
        while let Some(Arrived { at, datagram }) = waiting.next().await {
            idle.touch();
            running.sent(&datagram);
            // The budget counts from when it came, also while there is no session.
            let waited = at.elapsed();
            if waited > inlet.latency {
                running.refused();
                continue;
            }
            match flow.send_waited(datagram, waited).await {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => running.refused(),
                Err(_) => {
                    running.refused();
                    return true;
                }
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
        waiting.refuse(entry).await;
    }
}

/// Tells the flow its target, and people how it fares. Never completes.
async fn steer<P: PacketFlow>(entry: &Entry, flow: &P, running: &Running) {
    let mut target = entry.target();
    loop {
        let rate = *target.borrow_and_update();
        let watched = flow.set_target(rate);
        running.watch(watched);
        let wanted = rate.map(|rate| format!("{:.1} Mb/s", rate.as_mbps_f64()));
        if let (Some(wanted), false) = (&wanted, watched) {
            let name = &entry.name;
            tracing::warn!(
                "live {name}: what it is sent travels as objects, which have no target rate: {wanted} is not looked after"
            );
        }
        let wanted = wanted.map_or_else(
            || "what is written".to_owned(),
            |wanted| format!("the {wanted} that it needs"),
        );
        loop {
            let news = tokio::select! {
                changed = target.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => None,
                },
                news = flow.target_news() => news,
            };
            match news {
                Some(TargetNews::Below { capacity }) => tracing::warn!(
                    "live {}: the paths carry {:.1} Mb/s of {wanted}",
                    entry.name,
                    capacity.as_mbps_f64()
                ),
                Some(TargetNews::Met) => {
                    tracing::info!("live {}: the paths carry {wanted} again", entry.name)
                }
                // The flow is over, which is noticed where it is read.
                None => std::future::pending().await,
            }
            running.target(news);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::LiveName;
    use std::sync::Mutex;

    /// Notes how long what is sent had waited.
    #[derive(Default)]
    struct Noted(Mutex<Vec<Duration>>);

    impl PacketFlow for Noted {
        async fn send(&self, message: Bytes) -> io::Result<()> {
            self.send_waited(message, Duration::ZERO).await
        }

        async fn send_waited(&self, _: Bytes, waited: Duration) -> io::Result<()> {
            self.0.lock().unwrap().push(waited);
            Ok(())
        }

        async fn recv(&self) -> Option<Bytes> {
            std::future::pending().await
        }
    }

    // So long that a busy machine is not what is tested.
    const MINUTE: Duration = Duration::from_secs(60);

    fn inlet() -> Inlet {
        Inlet {
            entry: Entry::new(0, LiveName::default(), None, None, None),
            options: OpenOptions::new(Bytes::new()),
            latency: 2 * MINUTE,
            frames: None,
            objects: AsObjects::Off,
            of_objects: OpenOptions::new(Bytes::new()),
        }
    }

    async fn local() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let peer = socket.local_addr().unwrap();
        (socket, peer)
    }

    #[tokio::test]
    async fn the_budget_counts_from_when_a_datagram_came() {
        let inlet = inlet();
        let now = Instant::now();
        let early = [3 * MINUTE, MINUTE].map(|waited| Arrived {
            at: now - waited,
            datagram: Bytes::new(),
        });
        let waiting = Inflow {
            early: early.into(),
            rest: mpsc::channel(1).1,
        };
        let (socket, peer) = local().await;
        let flow = Arc::new(Noted::default());
        exchange(Arc::clone(&flow), &inlet, waiting, &socket, peer).await;
        let waited = flow.0.lock().unwrap().clone();
        assert!(
            matches!(waited[..], [one] if one >= MINUTE && one < 2 * MINUTE),
            "{waited:?}"
        );
    }

    /// The server has ended it.
    struct Ended;

    impl PacketFlow for Ended {
        async fn send(&self, _: Bytes) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        async fn recv(&self) -> Option<Bytes> {
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn what_comes_while_a_flow_stays_closed_is_counted_as_refused() {
        let inlet = inlet();
        let arrived = || Arrived {
            at: Instant::now(),
            datagram: Bytes::new(),
        };
        let (sender, rest) = mpsc::channel(4);
        let waiting = Inflow {
            early: [arrived(), arrived()].into(),
            rest,
        };
        let (socket, peer) = local().await;
        let exchanged = exchange(Arc::new(Ended), &inlet, waiting, &socket, peer);
        let later = async {
            sleep(RETRY / 5).await;
            sender.send(arrived()).await.unwrap();
        };
        tokio::join!(exchanged, later);
        let sent = Board::new([inlet.entry]).status().remove(0).sent;
        assert_eq!((sent.datagrams, sent.refused), (3, 3));
    }

    fn rtp(sequence: u16) -> Vec<u8> {
        let [high, low] = sequence.to_be_bytes();
        vec![0x80, 96, high, low, 0, 0, 0, 0, 0, 0, 0, 8, 1]
    }

    async fn recognised(datagrams: &[Vec<u8>]) -> bool {
        let (sender, rest) = mpsc::channel(10);
        for datagram in datagrams {
            let at = Instant::now();
            let datagram = Bytes::copy_from_slice(datagram);
            sender.send(Arrived { at, datagram }).await.unwrap();
        }
        let early = VecDeque::new();
        let mut inflow = Inflow { early, rest };
        let is = inflow.is_medium().await;
        drop(sender);
        // Nothing of what was looked at is lost.
        for datagram in datagrams {
            assert_eq!(inflow.next().await.unwrap().datagram, datagram[..]);
        }
        assert!(inflow.next().await.is_none());
        is
    }

    #[tokio::test]
    async fn a_medium_is_recognised_by_its_first_datagrams() {
        let mut transport = vec![0x47; 188];
        transport[1..].fill(0);
        assert!(recognised(&[transport]).await);
        assert!(recognised(&[rtp(7), rtp(8), rtp(9)]).await);
        assert!(recognised(&[rtp(7), rtp(20), rtp(21)]).await);
        // Nothing more comes in time.
        assert!(!recognised(&[rtp(7)]).await);
        assert!(!recognised(&[]).await);
        let steps = [7, 20, 33, 46, 47].map(rtp);
        assert!(!recognised(&steps).await);
        // A handshake of SRT has the version of RTP, and no numbers.
        let handshake = [&[0x80, 0, 0, 0][..], &[0; 60]].concat();
        assert!(!recognised(&[handshake.clone(), handshake, vec![0; 100]]).await);
    }
}
