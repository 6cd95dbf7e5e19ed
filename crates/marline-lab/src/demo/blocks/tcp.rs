//! The same blocks over plain TCP connections, one a link, through the same relays.
//!
//! A relay carries datagrams, so these are not the kernel's connections: they are the endpoints of
//! the simulator ([`marline_sim::tcp`]), whose segments travel as datagrams that count on a link as
//! TCP over IPv4 would.

use super::content::HEAD;
use super::notes::Notes;
use super::options::Task;
use super::tally::Tally;
use super::{Ended, Options, RunError, relay};
use crate::demo::worker::Worker;
use marline_base::Instant;
use marline_sim::tcp::{Ack, Segment, TcpConfig, TcpReceiver, TcpSender};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until};

/// The connections' congestion controller: what systems use by default.
pub(super) const CONGESTION: &str = "cubic";
/// Bytes of IPv4 and UDP headers, which a relay adds to what it counts.
const DATAGRAM_HEADER: usize = 28;
/// Longest datagram.
const LONGEST: usize = 2_048;
/// What the last blocks may take.
const REST: Duration = Duration::from_secs(2);
/// Time between two looks at what is still under way.
const LOOK: Duration = Duration::from_millis(10);

/// Real time, as an end counts it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(std::time::Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Clock(std::time::Instant::now())
    }

    fn now(self) -> Instant {
        Instant::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn real(self, at: Instant) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.0 + Duration::from_nanos(at.as_nanos()))
    }
}

pub(super) async fn run(
    options: &Options,
    links: &[usize],
    tally: &Arc<Mutex<Tally>>,
) -> Result<Ended, RunError> {
    let shares = shares(options, links);
    let clock = Clock::start();
    let (mut senders, mut receivers, mut relays) = (Vec::new(), Vec::new(), Vec::new());
    for link in links {
        let far = far_end()?;
        let relay = relay(options, *link, far.0.local_addr()?)?;
        senders.push(near_end(relay.addr(), clock, options.seed)?);
        receivers.push(far);
        relays.push(relay);
    }
    let mut receiving = {
        let (shares, tally) = (shares.clone(), Arc::clone(tally));
        Worker::start("demo receiver", move |stop| async move {
            tokio::select! {
                () = stop.cancelled() => Ok(()),
                result = collect(receivers, &shares, clock, &*tally) => result,
            }
        })?
    };
    let mut sending = {
        let (task, tally) = (options.task(), Arc::clone(tally));
        Worker::start("demo sender", move |stop| async move {
            tokio::select! {
                () = stop.cancelled() => Ok(0.0),
                result = deliver(senders, &shares, clock, &task, &*tally) => result,
            }
        })?
    };
    let failed = |text: &str| RunError::Failed(text.to_owned());
    let redundancy = tokio::select! {
        sent = sending.result() => sent.ok_or_else(|| failed("the sender's thread ended"))??,
        _ = receiving.result() => return Err(failed("the receiver ended before its time")),
    };
    Ok(Ended::new(redundancy, &relays))
}

fn config() -> TcpConfig {
    TcpConfig {
        limit: Some(0),
        ..TcpConfig::new(CONGESTION)
    }
}

/// A connection's receiving end at a port of its own.
pub(super) fn far_end() -> Result<(std::net::UdpSocket, TcpReceiver), RunError> {
    Ok((socket()?, TcpReceiver::new(&config())?))
}

/// A connection's sending end, to the other by way of `entry`.
pub(super) fn near_end(
    entry: SocketAddr,
    clock: Clock,
    seed: u64,
) -> Result<(std::net::UdpSocket, TcpSender), RunError> {
    let socket = socket()?;
    socket.connect(entry)?;
    Ok((socket, TcpSender::new(&config(), clock.now(), seed)?))
}

/// Sends the blocks, each connection its share of every one; the part that was sent again.
pub(super) async fn deliver(
    ends: Vec<(std::net::UdpSocket, TcpSender)>,
    shares: &[u64],
    clock: Clock,
    task: &Task,
    notes: &impl Notes,
) -> Result<f64, RunError> {
    let ends = ends.into_iter().zip(shares);
    let ends = ends.map(|((socket, end), share)| Near::new(socket, end, *share));
    let mut ends = ends.collect::<io::Result<Vec<Near>>>()?;
    send(&mut ends, clock, task, notes).await
}

/// Receives the blocks, for ever.
pub(super) async fn collect(
    ends: Vec<(std::net::UdpSocket, TcpReceiver)>,
    shares: &[u64],
    clock: Clock,
    notes: &impl Notes,
) -> io::Result<()> {
    let ends = ends.into_iter().zip(shares);
    let ends = ends.map(|((socket, end), share)| Far::new(socket, end, *share));
    let mut ends = ends.collect::<io::Result<Vec<Far>>>()?;
    receive(&mut ends, clock, notes).await
}

fn socket() -> io::Result<std::net::UdpSocket> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    // As far as the system allows: what a link lets go at once must fit.
    let buffers = socket2::SockRef::from(&socket);
    buffers.set_recv_buffer_size(4 << 20)?;
    buffers.set_send_buffer_size(4 << 20)?;
    Ok(socket)
}

/// Bytes of a block for each link in use: as their rates are to each other.
pub(super) fn shares(options: &Options, links: &[usize]) -> Vec<u64> {
    let rates = options.rates();
    let all: f64 = links.iter().map(|link| rates[*link].as_bps() as f64).sum();
    let size = options.load.size.max(HEAD) as u64;
    let mut shares = Vec::new();
    let mut left = size;
    for (place, link) in links.iter().enumerate() {
        let share = size as f64 * rates[*link].as_bps() as f64 / all.max(1.0);
        let is_last = place + 1 == links.len();
        let share = if is_last {
            left
        } else {
            (share.round() as u64).min(left)
        };
        shares.push(share);
        left -= share;
    }
    shares
}

/// The sending end of a connection.
#[derive(Debug)]
struct Near {
    socket: UdpSocket,
    end: TcpSender,
    share: u64,
    buffer: Vec<u8>,
}

impl Near {
    fn new(socket: std::net::UdpSocket, end: TcpSender, share: u64) -> io::Result<Self> {
        Ok(Near {
            socket: UdpSocket::from_std(socket)?,
            end,
            share,
            buffer: Vec::new(),
        })
    }

    /// Sends what the connection lets go.
    fn act(&mut self, now: Instant) {
        while let Some(segment) = self.end.poll_transmit(now) {
            self.buffer.clear();
            segment.encode(&mut self.buffer);
            let length = self.buffer.len().saturating_sub(DATAGRAM_HEADER);
            // What the system does not take is lost, as on a network interface: TCP finds out.
            let _ = self.socket.try_send(&self.buffer[..length]);
        }
    }

    /// Takes the acknowledgements that have come.
    fn take(&mut self, clock: Clock) {
        let mut buffer = [0; LONGEST];
        while let Ok(length) = self.socket.try_recv(&mut buffer) {
            if let Ok(ack) = Ack::decode(&buffer[..length]) {
                let now = clock.now();
                self.end.handle_ack(now, &ack);
                self.act(now);
            }
        }
    }
}

/// Writes blocks until the time is over and waits for the last; the share that was sent again.
async fn send(
    ends: &mut [Near],
    clock: Clock,
    task: &Task,
    notes: &impl Notes,
) -> Result<f64, RunError> {
    let mut ticks = interval(task.load.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let begin = tokio::time::Instant::now();
    let mut over = None;
    loop {
        let due = ends.iter().filter_map(|near| near.end.poll_timeout()).min();
        let timer = async {
            match due {
                Some(at) => sleep_until(clock.real(at)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = ticks.tick(), if over.is_none() => {
                if begin.elapsed() >= task.time {
                    over = Some(begin.elapsed());
                    continue;
                }
                notes.wrote(std::time::Instant::now());
                let now = clock.now();
                for near in &mut *ends {
                    near.end.write(near.share);
                    near.act(now);
                }
            }
            result = readable(ends.iter().map(|near| &near.socket)) => {
                result?;
                ends.iter_mut().for_each(|near| near.take(clock));
            }
            () = timer => {
                let now = clock.now();
                for near in &mut *ends {
                    near.end.handle_timeout(now);
                    near.act(now);
                }
            }
            () = sleep(LOOK), if over.is_some() => {
                let waited = over.map(|at| begin.elapsed().saturating_sub(at));
                if notes.is_complete() || waited > Some(REST) {
                    break;
                }
            }
        }
    }
    let counters = ends.iter().map(|near| *near.end.counters());
    let (mut sent, mut again) = (0, 0);
    for one in counters {
        sent += one.sent;
        again += one.retransmitted;
    }
    Ok(again as f64 / (sent - again).max(1) as f64)
}

/// One of two sockets has something, or the only one.
async fn readable(mut sockets: impl Iterator<Item = &UdpSocket>) -> io::Result<()> {
    match (sockets.next(), sockets.next()) {
        (Some(first), Some(second)) => tokio::select! {
            result = first.readable() => result,
            result = second.readable() => result,
        },
        (Some(one), None) => one.readable().await,
        (None, _) => std::future::pending().await,
    }
}

/// The receiving end of a connection.
#[derive(Debug)]
struct Far {
    socket: UdpSocket,
    end: TcpReceiver,
    share: u64,
    peer: Option<SocketAddr>,
    buffer: Vec<u8>,
}

impl Far {
    fn new(socket: std::net::UdpSocket, end: TcpReceiver, share: u64) -> io::Result<Self> {
        Ok(Far {
            socket: UdpSocket::from_std(socket)?,
            end,
            share,
            peer: None,
            buffer: Vec::new(),
        })
    }

    fn acknowledge(&mut self, now: Instant) {
        while let (Some(ack), Some(peer)) = (self.end.poll_ack(now), self.peer) {
            self.buffer.clear();
            ack.encode(&mut self.buffer);
            let _ = self.socket.try_send_to(&self.buffer, peer);
        }
    }

    fn take(&mut self, clock: Clock) {
        let mut buffer = [0; LONGEST];
        while let Ok((length, from)) = self.socket.try_recv_from(&mut buffer) {
            if let Ok(segment) = Segment::decode(&buffer[..length]) {
                self.peer = Some(from);
                let now = clock.now();
                self.end.handle_segment(now, &segment);
                self.acknowledge(now);
            }
        }
    }

    /// Blocks of which this connection's share is there.
    fn blocks(&self) -> u64 {
        match self.share {
            0 => u64::MAX,
            share => self.end.delivered() / share,
        }
    }
}

/// Receives blocks for ever.
async fn receive(ends: &mut [Far], clock: Clock, notes: &impl Notes) -> io::Result<()> {
    let mut whole = 0;
    loop {
        let due = ends.iter().filter_map(|far| far.end.poll_timeout()).min();
        let timer = async {
            match due {
                Some(at) => sleep_until(clock.real(at)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            result = readable(ends.iter().map(|far| &far.socket)) => {
                result?;
                ends.iter_mut().for_each(|far| far.take(clock));
            }
            () = timer => {
                let now = clock.now();
                for far in &mut *ends {
                    far.end.handle_timeout(now);
                    far.acknowledge(now);
                }
            }
        }
        let complete = ends.iter().map(Far::blocks).min().unwrap_or(0);
        while whole < complete {
            notes.came(Some(whole), std::time::Instant::now());
            whole += 1;
        }
    }
}
