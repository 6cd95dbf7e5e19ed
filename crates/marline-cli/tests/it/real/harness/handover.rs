use super::{Site, links, path};
use std::net::UdpSocket;
use std::time::{Duration, Instant};
use std::{fmt, thread};

/// Bytes of a message: one a millisecond makes 8 Mb/s.
const MESSAGE: usize = 1000;
const INTERVAL: Duration = Duration::from_millis(1);
/// The better link and the other, as one-way delays.
const LINKS: [&str; 2] = [
    "rate=20mbit,delay=15ms,queue=200ms",
    "rate=20mbit,delay=25ms,queue=200ms",
];

/// A live stream during which the better of two links goes dark.
#[derive(Clone, Debug)]
pub(crate) struct HandoverPlan {
    /// Of the client's forward.
    pub(crate) scheduler: String,
    pub(crate) before: Duration,
    pub(crate) dark: Duration,
    pub(crate) after: Duration,
}

/// What the receiver saw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) sent: usize,
    pub(crate) lost: usize,
    /// Longest time between two arrivals.
    pub(crate) silence: Duration,
    /// From sending to when a message and all before it had arrived; lost ones do not count.
    pub(crate) p50: Duration,
    pub(crate) p95: Duration,
    pub(crate) p99: Duration,
    pub(crate) worst: Duration,
    /// (sent - source) / source, as the client counts it.
    pub(crate) redundancy: f64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        write!(
            f,
            "{:>6} {:>5} {:>10.1} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>8.1}",
            self.sent,
            self.lost,
            ms(self.silence),
            ms(self.p50),
            ms(self.p95),
            ms(self.p99),
            ms(self.worst),
            self.redundancy * 100.0
        )
    }
}

impl Figures {
    /// Names of the columns.
    pub(crate) const HEAD: &str =
        "  sent  lost silence ms   p50 ms   p95 ms   p99 ms worst ms  redund %";
}

/// Sends 8 Mb/s of timestamped messages through a UDP forward of a real client and a real server
/// over two emulated links, with the better one dark for a while.
pub(crate) fn handover(plan: &HandoverPlan) -> Figures {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    // What this process cannot take in time is not to look like a loss of the program's.
    let room = socket2::SockRef::from(&target).set_recv_buffer_size(1 << 22);
    room.unwrap();
    let site = Site::new();
    let server = site.server(&[]);
    let links = links(server.addr, LINKS, 1);
    let paths = [path("better", &links[0]), path("other", &links[1])];
    let to = target.local_addr().unwrap();
    let forward = format!("udp:127.0.0.1:0={to},scheduler={}", plan.scheduler);
    let client = site.client(&server, &paths, &["--forward", &forward]);
    client.active(&["better", "other"]);

    let span = plan.before + plan.dark + plan.after;
    let count = (span.as_nanos() / INTERVAL.as_nanos()) as usize;
    let start = Instant::now();
    let listen = client.forward(to);
    let (sent, arrived) = thread::scope(|scope| {
        let sender = scope.spawn(move || send(listen, start, count));
        let receiver = scope.spawn(|| receive(&target, start, count));
        thread::sleep(plan.before.saturating_sub(start.elapsed()));
        links[0].set_dark(true);
        thread::sleep(plan.dark);
        links[0].set_dark(false);
        (sender.join().unwrap(), receiver.join().unwrap())
    });
    let flows = &client.status().sessions[0].flows;
    figures(
        &sent,
        &arrived,
        flows.first().map_or(0.0, |flow| flow.redundancy),
    )
}

/// Returns when each message was sent.
fn send(to: std::net::SocketAddr, start: Instant, count: usize) -> Vec<Duration> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut message = [0; MESSAGE];
    (0..count)
        .map(|index| {
            let due = INTERVAL * index as u32;
            thread::sleep(due.saturating_sub(start.elapsed()));
            message[..8].copy_from_slice(&(index as u64).to_be_bytes());
            socket.send_to(&message, to).unwrap();
            start.elapsed()
        })
        .collect()
}

/// Returns which message arrived when, until the last has arrived or nothing has for long.
fn receive(socket: &UdpSocket, start: Instant, count: usize) -> Vec<(usize, Duration)> {
    let mut arrived = Vec::new();
    let mut buffer = [0; 2 * MESSAGE];
    socket
        .set_read_timeout(Some(Duration::from_secs(4)))
        .unwrap();
    while arrived.len() < count
        && let Ok((length, _)) = socket.recv_from(&mut buffer)
    {
        assert_eq!(length, MESSAGE);
        let index = u64::from_be_bytes(buffer[..8].try_into().unwrap());
        arrived.push((index as usize, start.elapsed()));
    }
    arrived
}

fn figures(sent: &[Duration], arrived: &[(usize, Duration)], redundancy: f64) -> Figures {
    let gaps = arrived.windows(2).map(|pair| pair[1].1 - pair[0].1);
    let silence = gaps.max().unwrap_or(Duration::MAX);
    let mut at = vec![None; sent.len()];
    for (index, time) in arrived {
        assert!(at[*index].replace(*time).is_none(), "{index} came twice");
    }
    let mut all_before = Duration::ZERO;
    let mut delays = Vec::new();
    for (arrival, sent) in at.iter().zip(sent) {
        if let Some(arrival) = arrival {
            all_before = all_before.max(*arrival);
            delays.push(all_before.saturating_sub(*sent));
        }
    }
    delays.sort();
    let quantile = |q: f64| {
        let index = (delays.len() as f64 * q) as usize;
        delays[index.min(delays.len() - 1)]
    };
    Figures {
        sent: sent.len(),
        lost: sent.len() - delays.len(),
        silence,
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        worst: quantile(1.0),
        redundancy,
    }
}
