//! The stream: messages at a constant rate with the time of their writing, sender and receiver on
//! one clock.

use super::fit::HEAD;
use super::until;
use crate::commands::CliError;
use marline_base::Rate;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often a thread that waits looks whether it should end.
const LOOK: Duration = Duration::from_millis(50);
/// Receive buffer, as far as the system allows: a message that everything waited for lets seconds
/// of messages go at once.
const BUFFER: usize = 4 << 20;

/// A message that came: nanoseconds of the clock.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Arrival {
    pub(in crate::commands) written: u64,
    pub(in crate::commands) received: u64,
}

/// What is sent, when.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Plan {
    /// The rate and the number of messages; `None` for as many as go.
    pub(in crate::commands) paced: Option<(Rate, u64)>,
    /// Of a message (bytes).
    pub(in crate::commands) size: u32,
    /// Of those that are as many as go.
    pub(in crate::commands) span: Duration,
    /// When the first message is due; time zero of the clock.
    pub(in crate::commands) begin: Instant,
}

impl Plan {
    /// When a message is due, after the beginning; `None` when there is none of that number.
    fn due(&self, number: u64) -> Option<Duration> {
        match self.paced {
            Some((rate, messages)) => {
                (number < messages).then(|| rate.time_for(number * u64::from(self.size)))
            }
            None => (self.begin.elapsed() < self.span).then_some(Duration::ZERO),
        }
    }

    fn is_last(&self, number: u64) -> bool {
        self.paced
            .is_some_and(|(_, messages)| number + 1 >= messages)
    }

    fn nanos(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Where the stream arrives.
#[derive(Debug)]
pub(in crate::commands) enum Sink {
    Packets(UdpSocket),
    Stream(TcpListener),
}

impl Sink {
    pub(in crate::commands) fn packets() -> io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket2::SockRef::from(&socket).set_recv_buffer_size(BUFFER)?;
        socket.set_read_timeout(Some(LOOK))?;
        Ok(Self::Packets(socket))
    }

    pub(in crate::commands) fn stream() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        Ok(Self::Stream(listener))
    }

    pub(in crate::commands) fn addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Packets(socket) => socket.local_addr(),
            Self::Stream(listener) => listener.local_addr(),
        }
    }

    /// Notes messages until all have come or `over`.
    fn receive(&self, plan: &Plan, over: &AtomicBool) -> io::Result<Vec<Arrival>> {
        let mut arrivals = Vec::new();
        let mut take = |message: &[u8]| {
            if let Some(head) = message.first_chunk::<{ HEAD as usize }>() {
                let (number, written) = (word(head, 0), word(head, 8));
                arrivals.push(Arrival {
                    written,
                    received: plan.nanos(),
                });
                return !plan.is_last(number);
            }
            true
        };
        match self {
            Self::Packets(socket) => {
                let mut buffer = vec![0; usize::from(u16::MAX)];
                while !over.load(Ordering::Relaxed) {
                    match socket.recv(&mut buffer) {
                        Ok(length) if !take(&buffer[..length]) => break,
                        Err(error) if !waits(&error) => return Err(error),
                        _ => {}
                    }
                }
            }
            Self::Stream(listener) => {
                let Some(mut connection) = accept(listener, over)? else {
                    return Ok(arrivals);
                };
                let mut buffer = vec![0; plan.size as usize];
                let mut filled = 0;
                while !over.load(Ordering::Relaxed) {
                    match connection.read(&mut buffer[filled..]) {
                        Ok(0) => break,
                        Ok(length) => filled += length,
                        Err(error) if waits(&error) => continue,
                        Err(error) => return Err(error),
                    }
                    if filled == buffer.len() {
                        filled = 0;
                        if !take(&buffer) {
                            break;
                        }
                    }
                }
            }
        }
        Ok(arrivals)
    }
}

fn accept(listener: &TcpListener, over: &AtomicBool) -> io::Result<Option<TcpStream>> {
    while !over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((connection, _)) => {
                connection.set_nonblocking(false)?;
                connection.set_read_timeout(Some(LOOK))?;
                return Ok(Some(connection));
            }
            Err(error) if waits(&error) => thread::sleep(Duration::from_millis(1)),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn waits(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn word(head: &[u8; HEAD as usize], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&head[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Where the stream enters.
#[derive(Debug)]
enum Source {
    Packets(UdpSocket),
    Stream(TcpStream),
}

impl Source {
    fn open(sink: &Sink, forward: SocketAddr) -> io::Result<Self> {
        Ok(match sink {
            Sink::Packets(_) => {
                let socket = UdpSocket::bind("127.0.0.1:0")?;
                socket.connect(forward)?;
                Self::Packets(socket)
            }
            Sink::Stream(_) => {
                let connection = TcpStream::connect(forward)?;
                connection.set_nodelay(true)?;
                connection.set_write_timeout(Some(LOOK))?;
                Self::Stream(connection)
            }
        })
    }

    /// Writes all of it, or gives up when `over`.
    fn write(&mut self, mut message: &[u8], over: impl Fn() -> bool) -> io::Result<()> {
        let connection = match self {
            Self::Packets(socket) => return socket.send(message).map(drop),
            Self::Stream(connection) => connection,
        };
        while !message.is_empty() && !over() {
            match connection.write(message) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => message = &message[length..],
                Err(error) if waits(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Sends every message in its time. Returns how late they were, in nanoseconds.
fn send(source: &mut Source, plan: &Plan, stop: &AtomicBool) -> Result<Vec<u64>, CliError> {
    let broken = |error| CliError::runtime(format!("cannot write to the forward: {error}"));
    let mut message = vec![0; plan.size as usize];
    let mut late = Vec::new();
    // What cannot be written any more is of no use when the time is over.
    let over = || stop.load(Ordering::Relaxed) || plan.paced.is_none() && plan.due(0).is_none();
    let mut numbers = 0..;
    while let Some((number, due)) = numbers.next().and_then(|n| Some((n, plan.due(n)?))) {
        until(plan.begin + due, stop)?;
        let now = plan.nanos();
        message[..8].copy_from_slice(&number.to_le_bytes());
        message[8..HEAD as usize].copy_from_slice(&now.to_le_bytes());
        source.write(&message, over).map_err(broken)?;
        if plan.paced.is_some() {
            late.push(now.saturating_sub(due.as_nanos() as u64));
        }
    }
    Ok(late)
}

/// Carries the stream from `forward` to `sink`. Returns what came, and how late each message was
/// written. What has not come `patience` after the last was written is lost.
pub(in crate::commands) fn carry(
    sink: &Sink,
    forward: SocketAddr,
    plan: &Plan,
    patience: Duration,
    stop: &AtomicBool,
) -> Result<(Vec<Arrival>, Vec<u64>), CliError> {
    let failed = |error| CliError::runtime(format!("the stream failed: {error}"));
    let mut source = Source::open(sink, forward).map_err(failed)?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiver = scope.spawn(|| sink.receive(plan, &over));
        let late = send(&mut source, plan, stop);
        if late.is_ok() {
            let end = Instant::now() + patience;
            while !receiver.is_finished() && Instant::now() < end && !stop.load(Ordering::Relaxed) {
                thread::sleep(LOOK);
            }
        }
        over.store(true, Ordering::Relaxed);
        let arrivals = receiver.join();
        let arrivals = arrivals.map_err(|_| CliError::runtime("the receiver failed"))?;
        Ok((arrivals.map_err(failed)?, late?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_arrives_with_the_time_of_its_writing() {
        for sink in [Sink::packets(), Sink::stream()] {
            let sink = sink.unwrap();
            let plan = Plan {
                paced: Some((Rate::from_mbps(8), 50)),
                size: 1_000,
                span: Duration::ZERO,
                begin: Instant::now(),
            };
            let stop = AtomicBool::new(false);
            let forward = sink.addr().unwrap();
            let long = Duration::from_secs(60);
            let (arrivals, late) = carry(&sink, forward, &plan, long, &stop).unwrap();
            assert_eq!((arrivals.len(), late.len()), (50, 50));
            for (number, arrival) in arrivals.iter().enumerate() {
                assert!(arrival.written >= 1_000_000 * number as u64, "{arrival:?}");
                assert!(arrival.received >= arrival.written, "{arrival:?}");
            }
        }
    }

    #[test]
    fn as_much_as_goes_ends_with_its_time() {
        let sink = Sink::stream().unwrap();
        let plan = Plan {
            paced: None,
            size: 1_000,
            span: Duration::from_millis(50),
            begin: Instant::now(),
        };
        let stop = AtomicBool::new(false);
        let forward = sink.addr().unwrap();
        let (arrivals, late) = carry(&sink, forward, &plan, Duration::ZERO, &stop).unwrap();
        assert!(!arrivals.is_empty() && late.is_empty());
    }

    #[test]
    fn a_stop_ends_it() {
        let sink = Sink::packets().unwrap();
        let plan = Plan {
            paced: Some((Rate::from_kbps(8), 1_000)),
            size: 1_000,
            span: Duration::ZERO,
            begin: Instant::now(),
        };
        let forward = sink.addr().unwrap();
        let stop = AtomicBool::new(true);
        assert!(carry(&sink, forward, &plan, Duration::ZERO, &stop).is_err());
    }
}
