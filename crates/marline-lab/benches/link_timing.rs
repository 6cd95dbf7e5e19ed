//! How exactly the emulated link keeps time at 50 Mb/s.
//!
//! Run it on an idle machine: `cargo bench -p marline-lab --bench link_timing`. It prints how idle
//! the machine was, because with other work on every processor the 99th percentile is that of the
//! queue for a processor. A sender paces datagrams through an emulator to a receiver, all on the
//! loopback interface and in this process. Two errors are printed:
//!
//! - *send*: from when the model says that a datagram arrives to when the emulator had handed it
//!   to the system;
//! - *end to end*: the delay between sender and receiver minus that of a second model which is
//!   offered the same datagrams at the sender's times. It has the sleep and wake-up of all three
//!   threads in it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use hdrhistogram::Histogram;
use marline_base::Instant as ModelInstant;
use marline_lab::emulate::{Emulator, EmulatorConfig};
use marline_link::{Link, LinkConfig};
use std::error::Error;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

const GOAL: Duration = Duration::from_micros(500);
const SECONDS: u64 = 10;
const PAYLOAD: usize = 1_250;
const HEADERS: u32 = 28;
const RATE_BPS: u64 = 50_000_000;
const LINK: &str = "rate=100mbit,delay=20ms";

fn main() -> Result<(), Box<dyn Error>> {
    let config: LinkConfig = LINK.parse()?;
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    receiver.set_read_timeout(Some(Duration::from_secs(1)))?;
    let emulator = Emulator::start(EmulatorConfig::new(receiver.local_addr()?, config.clone()))?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sender.connect(emulator.addr())?;

    let before = CpuTimes::read();
    let start = Instant::now();
    let count = RATE_BPS * SECONDS / (8 * (PAYLOAD as u64 + u64::from(HEADERS)));
    let receiving = thread::spawn(move || receive(&receiver, start, count));
    let sent = send(&sender, start, count)?;
    let received = receiving.join().map_err(|_| "the receiver panicked")?;
    let after = CpuTimes::read();

    let mut model = Link::new(config, 1)?;
    let mut errors = Histogram::<u64>::new_with_bounds(100, 60_000_000_000, 3)?;
    for (sent, received) in sent.iter().zip(&received) {
        let expected = model.offer(ModelInstant::from_nanos(*sent), PAYLOAD as u32 + HEADERS);
        if let (Some(expected), Some(received)) = (expected.arrival(), received) {
            errors.saturating_record(received.abs_diff(expected.as_nanos()));
        }
    }
    let lateness = emulator.stats().lateness;
    println!(
        "link {LINK}, {} Mb/s of {PAYLOAD} byte datagrams for {SECONDS} s",
        RATE_BPS / 1_000_000
    );
    println!("datagrams sent {count}, received {}", errors.len());
    println!("              p50        p99        max");
    let row = |name: &str, [p50, p99, max]: [Duration; 3]| {
        println!("{name:<10} {p50:>9.1?}  {p99:>9.1?}  {max:>9.1?}");
    };
    row("send", [lateness.p50, lateness.p99, lateness.max]);
    let quantile = |q| Duration::from_nanos(errors.value_at_quantile(q));
    row("end to end", [quantile(0.5), quantile(0.99), quantile(1.0)]);
    match before.zip(after) {
        Some((before, after)) => println!("{}", after.since(before)),
        None => println!("machine: load unknown (no /proc here)"),
    }
    let verdict = if lateness.p99 < GOAL { "met" } else { "missed" };
    println!("goal: send error below {GOAL:?} at p99 on an idle machine: {verdict}");
    Ok(())
}

/// Sends `count` datagrams at an even pace; answers when each was sent, in ns after `start`.
fn send(socket: &UdpSocket, start: Instant, count: u64) -> std::io::Result<Vec<u64>> {
    let pause = Duration::from_secs(SECONDS).as_nanos() as u64 / count;
    let mut sent = Vec::with_capacity(count as usize);
    let mut payload = [0; PAYLOAD];
    for number in 0..count {
        let due = Duration::from_nanos(number * pause);
        if let Some(early) = due.checked_sub(start.elapsed()) {
            thread::sleep(early);
        }
        payload[..8].copy_from_slice(&number.to_be_bytes());
        sent.push(start.elapsed().as_nanos() as u64);
        socket.send(&payload)?;
    }
    Ok(sent)
}

/// When each datagram came, in ns after `start`.
fn receive(socket: &UdpSocket, start: Instant, count: u64) -> Vec<Option<u64>> {
    let mut received = vec![None; count as usize];
    let mut payload = [0; PAYLOAD];
    while received.last().is_some_and(Option::is_none) {
        let Ok(_) = socket.recv(&mut payload) else {
            break;
        };
        let came = start.elapsed().as_nanos() as u64;
        let mut number = [0; 8];
        number.copy_from_slice(&payload[..8]);
        if let Some(slot) = received.get_mut(u64::from_be_bytes(number) as usize) {
            *slot = Some(came);
        }
    }
    received
}

/// Processor time in clock ticks.
struct CpuTimes {
    all: u64,
    idle: u64,
    ours: u64,
}

impl CpuTimes {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let fields: Vec<u64> = stat
            .lines()
            .next()?
            .split_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|field| field.parse().ok())
            .collect();
        // user nice system idle iowait irq softirq steal
        let idle = fields.get(3)? + fields.get(4)?;
        let own = fs::read_to_string("/proc/self/stat").ok()?;
        // utime and stime are fields 14 and 15; the name in field 2 may hold blanks.
        let (_, rest) = own.rsplit_once(") ")?;
        let own: Vec<&str> = rest.split(' ').collect();
        let ticks = |i: usize| own.get(i)?.parse::<u64>().ok();
        Some(Self {
            all: fields.iter().sum(),
            idle,
            ours: ticks(11)? + ticks(12)?,
        })
    }

    fn since(&self, before: Self) -> String {
        let all = (self.all - before.all).max(1) as f64;
        let share = |ticks: u64| ticks as f64 / all * 100.0;
        let (idle, ours) = (
            share(self.idle - before.idle),
            share(self.ours - before.ours),
        );
        format!(
            "machine: idle {idle:.0} %, this benchmark {ours:.0} %, others {:.0} % of its processors",
            (100.0 - idle - ours).max(0.0)
        )
    }
}
