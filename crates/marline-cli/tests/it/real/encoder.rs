//! An encoder beside the client, which `examples/follow_capacity.py` tells what to make.

use super::harness::{Live, Program, roomy_socket, transport, until};
use marline_lab::emulate::Direction;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// The links carry half of what the encoder makes at best, and later much more. In kb/s.
const BEST: u64 = 6_000;
const CARRIED: u64 = 3_000;
const NARROW: &str = "rate=1500kbit,delay=10ms,queue=100ms";
const WIDE: &str = "rate=20mbit,delay=10ms,queue=100ms";

/// Sends a transport stream of `rate` kb/s, for as long as somebody chooses that.
fn encode(socket: &UdpSocket, rate: &Weak<AtomicU64>) {
    let mut due = Instant::now();
    let mut number = 0;
    while let Some(rate) = rate.upgrade() {
        let datagram = transport(number);
        number += 1;
        // Errors say that the client has ended.
        let _ = socket.send(&datagram);
        // What a busy machine did not make in time is not made up for.
        due = due.max(Instant::now() - Duration::from_millis(50));
        let bits = datagram.len() as u64 * 8;
        due += Duration::from_micros(bits * 1_000 / rate.load(Ordering::Relaxed));
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// What the script last told the encoder, kb/s.
fn told(script: &Program) -> Option<u64> {
    let printed = script.printed();
    let (_, rate) = printed.lines().next_back()?.split_once("encoder: ")?;
    rate.strip_suffix(" kb/s")?.parse().ok()
}

#[test]
fn a_script_keeps_an_encoder_at_what_the_links_carry() {
    let target = roomy_socket();
    let live = Live::start([NARROW; 2], target.local_addr().unwrap(), "");
    let (control, best) = (live.client.control(), BEST.to_string());
    let words = [
        "examples/follow_capacity.py",
        "--best",
        &best,
        "--every",
        "0.2",
        "--calm",
        "0.5",
        "--marline",
        env!("CARGO_BIN_EXE_marline"),
        "--control",
        control.to_str().unwrap(),
    ];
    let Some(script) = Program::tool_with("python3", &words) else {
        return;
    };
    let rate = Arc::new(AtomicU64::new(BEST));
    let (sender, chosen) = (live.sender(), Arc::downgrade(&rate));
    thread::spawn(move || encode(&sender, &chosen));
    let until_made = |what: &str, wanted: fn(u64) -> bool| {
        until(what, || {
            rate.store(told(&script)?, Ordering::Relaxed);
            let made = rate.load(Ordering::Relaxed);
            let target = live.status()[0].target_bps;
            (wanted(made) && target == Some(made * 1_000)).then_some(())
        });
    };
    until_made("less than the links carry", |made| made < CARRIED);
    for link in &live.links {
        link.reconfigure(Direction::Up, WIDE.parse().unwrap())
            .unwrap();
    }
    until_made("more than they carried", |made| made > CARRIED * 11 / 10);
}
