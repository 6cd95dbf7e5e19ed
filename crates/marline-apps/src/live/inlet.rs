//! The client's side: datagrams of local programs go into flows, one for each sender, and answers
//! go back to the sender.

use super::entry::{Entry, Running};
use super::inflow::{Arrived, Inflow};
use super::{Board, Frames, Media};
use crate::live::{FrameTerms, LiveIn};
use crate::proxy::asker::{AskedSocket, Asker};
use crate::proxy::associations::{AGAIN, Associations, FlowEnd, IDLE};
use crate::proxy::front::ListenError;
use crate::proxy::idle::Idle;
use crate::proxy::objects::AsObjects;
use crate::proxy::udp::{MAX_DATAGRAM, pause_after, roomy};
use crate::proxy::{OpenError, PacketFlow, Tasks, Tunnel};
use bytes::Bytes;
use marline::endpoint::RateReport;
use marline_base::text::Problem;
use marline_proto::FlowOptions;
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

/// A flow that the server closes within this time has no entry there.
const AT_ONCE: Duration = Duration::from_secs(2);

/// A client's live entries, bound and not yet served.
#[derive(Debug, Default)]
pub struct Inlets {
    bound: Vec<(UdpSocket, Arc<Inlet>)>,
    board: Board,
}

#[derive(Debug)]
struct Inlet {
    entry: Arc<Entry>,
    options: FlowOptions,
    latency: Duration,
    /// Video frames travel as blocks.
    frames: Option<FrameTerms>,
    /// Frames and PES packets travel as objects, in flows opened with these options.
    objects: AsObjects,
    of_objects: FlowOptions,
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
            let untargeted = config.untargeted().map(|option| Problem {
                message: format!("live {name} has no target rate, because of its `{option}`"),
                hint: Some("a target rate is for datagrams that go one by one".into()),
            });
            let inlet = Inlet {
                entry: Entry::new(id, name, budget, config.needed_rate, untargeted),
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

    /// Where the entries listen, in their order.
    ///
    /// # Errors
    /// What the system says of a socket.
    pub fn local_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        let sockets = self.bound.iter().map(|(socket, _)| socket);
        sockets.map(UdpSocket::local_addr).collect()
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
    let socket = AskedSocket::new(socket);
    let mut flows: Associations<Asker, Arrived> = Associations::new(tasks.clone());
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        let received = tokio::select! {
            () = tasks.draining() => return,
            received = socket.recv(&mut buffer) => received,
        };
        match received {
            Ok((length, asker)) => {
                let arrived = Arrived::now(Bytes::copy_from_slice(&buffer[..length]));
                let open = |waiting| {
                    let (tunnel, inlet) = (tunnel.clone(), Arc::clone(&inlet));
                    carry(tunnel, inlet, waiting, socket.clone(), asker)
                };
                if !flows.send(&asker, arrived, open).await {
                    inlet.entry.refuse(false);
                }
            }
            Err(error) => pause_after(error).await,
        }
    }
}

/// Carries what `asker` sends, in one flow of each session.
async fn carry<T: Tunnel>(
    tunnel: T,
    inlet: Arc<Inlet>,
    waiting: mpsc::Receiver<Arrived>,
    socket: AskedSocket,
    asker: Asker,
) {
    let entry = &inlet.entry;
    let mut waiting = Inflow::new(waiting);
    let as_objects = match inlet.objects {
        AsObjects::Off => false,
        AsObjects::Auto => waiting.is_medium().await,
        AsObjects::On => true,
    };
    while waiting
        .hold(tunnel.session_is_there(), inlet.latency, entry)
        .await
    {
        let ended = if as_objects {
            match tunnel.open_objects(inlet.of_objects.clone()).await {
                Ok(flow) => {
                    let flow = Arc::new(Media::new(flow, Some(inlet.latency)));
                    Ok(exchange(flow, &inlet, &mut waiting, &socket, asker).await)
                }
                Err(error) => Err(error),
            }
        } else if let Some(terms) = inlet.frames {
            match tunnel.open_blocks(inlet.options.clone()).await {
                Ok(flow) => {
                    let flow = Arc::new(Frames::new(flow, Some(terms)));
                    Ok(exchange(flow, &inlet, &mut waiting, &socket, asker).await)
                }
                Err(error) => Err(error),
            }
        } else {
            match tunnel.open_packets(inlet.options.clone()).await {
                Ok(flow) => {
                    let flow = Arc::new(flow);
                    Ok(exchange(flow, &inlet, &mut waiting, &socket, asker).await)
                }
                Err(error) => Err(error),
            }
        };
        match ended {
            Ok(FlowEnd::Session) => {}
            Ok(FlowEnd::Closed) => return waiting.refuse(entry).await,
            Ok(FlowEnd::Quiet) => return,
            // It was there a moment ago.
            Err(OpenError::NoSession(_)) => sleep(AGAIN).await,
            Err(error) => {
                tracing::debug!(%error, "cannot open a flow for live {}", entry.name);
                return waiting.refuse(entry).await;
            }
        }
    }
}

/// Carries what `asker` sends until either side ends the flow or it has been quiet for long. What
/// was in flight when the session ended is back in `waiting` then.
async fn exchange<P: PacketFlow>(
    flow: Arc<P>,
    inlet: &Inlet,
    waiting: &mut Inflow,
    socket: &AskedSocket,
    asker: Asker,
) -> FlowEnd {
    let entry = &inlet.entry;
    let running = entry.begin(&flow);
    let begun = Instant::now();
    let idle = Idle::new(IDLE);
    let outgoing = async {
        while let Some(arrived) = waiting.first().await {
            idle.touch();
            if !mem::replace(&mut arrived.counted, true) {
                running.sent(&arrived.datagram);
            }
            // The budget counts from when it came, also while there is no session.
            let waited = arrived.at.elapsed();
            if waited > inlet.latency {
                running.refused(1);
            } else {
                match flow.send_waited(arrived.datagram.clone(), waited).await {
                    Err(error) if error.kind() == io::ErrorKind::InvalidInput => running.refused(1),
                    Err(_) => return true,
                    Ok(()) => {}
                }
            }
            waiting.pop();
        }
        false
    };
    let hand_over = async |message: Bytes| {
        running.received(&message);
        if let Err(error) = socket.answer(&message, asker).await {
            tracing::trace!(%error, "a datagram could not be handed to the local program");
        }
    };
    let incoming = async {
        while let Some(message) = flow.recv().await {
            idle.touch();
            hand_over(message).await;
        }
        true
    };
    let over = tokio::select! {
        over = outgoing => over,
        over = incoming => over,
        () = idle.expired() => false,
        () = steer(&inlet.entry, flow.as_ref(), &running) => false,
    };
    // What arrived before the flow was known to be over.
    while let Ok(Some(message)) = timeout(Duration::ZERO, flow.recv()).await {
        hand_over(message).await;
    }
    let end = FlowEnd::of(flow.as_ref(), over);
    match end {
        FlowEnd::Session => waiting.put_back(flow.unsettled()),
        FlowEnd::Closed => {
            // It is not known to have arrived, and that will not become known.
            running.refused(flow.unsettled().len() as u64);
            if begun.elapsed() < AT_ONCE {
                entry.complain_of_end();
            }
        }
        FlowEnd::Quiet => {}
    }
    end
}

/// Gives the flow its target rate, and reports how it fares. Never completes.
async fn steer<P: PacketFlow>(entry: &Entry, flow: &P, running: &Running) {
    let mut needed = entry.needed_rate();
    loop {
        let rate = *needed.borrow_and_update();
        let watched = flow.set_needed_rate(rate);
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
            let report = tokio::select! {
                changed = needed.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => None,
                },
                report = flow.rate_report() => report,
            };
            match report {
                Some(RateReport::Below { capacity }) => tracing::warn!(
                    "live {}: the paths carry {:.1} Mb/s of {wanted}",
                    entry.name,
                    capacity.as_mbps_f64()
                ),
                Some(RateReport::Met) => {
                    tracing::info!("live {}: the paths carry {wanted} again", entry.name)
                }
                // The flow is over, which is noticed where it is read.
                None => std::future::pending().await,
            }
            running.report(report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::LiveName;
    use crate::options::flow_to;
    use marline_proto::wire::FlowKind;
    use std::sync::Mutex;

    /// Notes how long sent datagrams had waited.
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

    // Long enough that a busy machine is not what is tested.
    const MINUTE: Duration = Duration::from_secs(60);

    fn inlet() -> Inlet {
        Inlet {
            entry: Entry::new(0, LiveName::default(), None, None, None),
            options: flow_to(FlowKind::Packets, Bytes::new()),
            latency: 2 * MINUTE,
            frames: None,
            objects: AsObjects::Off,
            of_objects: flow_to(FlowKind::Objects, Bytes::new()),
        }
    }

    async fn local() -> (AskedSocket, Asker) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let asker = socket.local_addr().unwrap().into();
        (AskedSocket::new(socket), asker)
    }

    /// Takes the place of a local sender: what it has sent so far.
    fn inflow<const N: usize>(sent: [Arrived; N]) -> (mpsc::Sender<Arrived>, Inflow) {
        let (sender, rest) = mpsc::channel(8);
        for arrived in sent {
            sender.try_send(arrived).unwrap();
        }
        (sender, Inflow::new(rest))
    }

    fn arrived(byte: u8) -> Arrived {
        Arrived::now(Bytes::copy_from_slice(&[byte]))
    }

    /// (taken, refused)
    fn counts(inlet: &Inlet) -> (u64, u64) {
        let board = Board::new([Arc::clone(&inlet.entry)]);
        let sent = board.status().remove(0).sent;
        (sent.datagrams, sent.refused)
    }

    #[tokio::test]
    async fn the_budget_counts_from_when_a_datagram_came() {
        let inlet = inlet();
        let now = Instant::now();
        let early = [3 * MINUTE, MINUTE].map(|waited| Arrived {
            at: now - waited,
            ..arrived(0)
        });
        let (sender, mut waiting) = inflow(early);
        drop(sender);
        let (socket, asker) = local().await;
        let flow = Arc::new(Noted::default());
        let end = exchange(Arc::clone(&flow), &inlet, &mut waiting, &socket, asker).await;
        assert_eq!(end, FlowEnd::Quiet);
        let waited = flow.0.lock().unwrap().clone();
        assert!(
            matches!(waited[..], [one] if one >= MINUTE && one < 2 * MINUTE),
            "{waited:?}"
        );
    }

    /// It has ended after it took this number of messages, and none of them is known to be at the
    /// other end.
    struct Ended {
        session_over: bool,
        room: usize,
        taken: Mutex<Vec<(Bytes, Duration)>>,
    }

    impl Ended {
        fn new(session_over: bool, room: usize) -> Arc<Self> {
            Arc::new(Ended {
                session_over,
                room,
                taken: Mutex::default(),
            })
        }
    }

    impl PacketFlow for Ended {
        async fn send(&self, message: Bytes) -> io::Result<()> {
            let mut taken = self.taken.lock().unwrap();
            if taken.len() == self.room {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            taken.push((message, MINUTE));
            Ok(())
        }

        async fn recv(&self) -> Option<Bytes> {
            std::future::pending().await
        }

        fn is_session_over(&self) -> bool {
            self.session_over
        }

        fn unsettled(&self) -> Vec<(Bytes, Duration)> {
            self.taken.lock().unwrap().clone()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_while_a_flow_stays_closed_is_counted_as_refused() {
        let inlet = inlet();
        let (sender, mut waiting) = inflow([1, 2, 3].map(arrived));
        let (socket, asker) = local().await;
        let flow = Ended::new(false, 1);
        let end = exchange(flow, &inlet, &mut waiting, &socket, asker).await;
        assert_eq!(end, FlowEnd::Closed);
        assert_eq!(counts(&inlet), (2, 1), "what the flow took is lost with it");
        let later = async {
            sleep(Duration::from_millis(100)).await;
            sender.send(arrived(4)).await.unwrap();
        };
        tokio::join!(waiting.refuse(&inlet.entry), later);
        assert_eq!(counts(&inlet), (4, 4));
    }

    /// Its answers have come, and it takes nothing any more.
    struct Answered(Mutex<Vec<Bytes>>);

    impl PacketFlow for Answered {
        async fn send(&self, _: Bytes) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        async fn recv(&self) -> Option<Bytes> {
            self.0.lock().unwrap().pop()
        }
    }

    #[tokio::test]
    async fn answers_that_had_come_when_the_flow_ended_are_handed_over() {
        let (socket, asker) = local().await;
        // Which of the two halves is polled first is random.
        for _ in 0..20 {
            let inlet = inlet();
            let (_sender, mut waiting) = inflow([arrived(1)]);
            let flow = Arc::new(Answered(Mutex::new(vec![Bytes::new(); 3])));
            exchange(flow, &inlet, &mut waiting, &socket, asker).await;
            let status = Board::new([inlet.entry]).status().remove(0);
            assert_eq!(status.received.datagrams, 3);
        }
    }

    #[tokio::test]
    async fn what_was_under_way_when_its_session_ended_goes_over_the_next() {
        let inlet = inlet();
        let (sender, mut waiting) = inflow([1, 2, 3].map(arrived));
        let (socket, asker) = local().await;
        let flow = Ended::new(true, 2);
        let end = exchange(flow, &inlet, &mut waiting, &socket, asker).await;
        assert_eq!(end, FlowEnd::Session);
        drop(sender);
        let next = Ended::new(false, 9);
        let end = exchange(Arc::clone(&next), &inlet, &mut waiting, &socket, asker).await;
        assert_eq!(end, FlowEnd::Quiet);
        let taken = next.taken.lock().unwrap();
        let taken: Vec<u8> = taken.iter().map(|(message, _)| message[0]).collect();
        assert_eq!(taken, [1, 2, 3]);
        assert_eq!(counts(&inlet), (3, 0), "each is counted once");
    }
}
