use super::{DEADLINE, Program, receive};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long `ffmpeg` makes its picture: enough for the paths to be filled.
const SECONDS: u32 = 4;

/// Starts ffmpeg on some seconds of a moving picture of 6 Mb/s, in real time; `output` are the
/// words of where it goes and how. `None`, and a word of it, if it is not installed.
pub(crate) fn ffmpeg(output: &str) -> Option<Program> {
    let words = format!(
        "-loglevel error -re -f lavfi -i testsrc2=size=640x360:rate=25 -t {SECONDS} -c:v mpeg2video -b:v 6M -minrate 6M \
         -maxrate 6M -bufsize 1M {output}"
    );
    Program::tool("ffmpeg", &words)
}

/// What a program sent, and what came of it.
pub(crate) struct Tapped {
    pub(crate) sent: Vec<Vec<u8>>,
    pub(crate) arrived: Vec<Vec<u8>>,
}

/// Passes on to `out` what `program` sends to `tap`, until it has ended and all of it has come to
/// `target` or nothing comes any more.
///
/// # Panics
/// When the program fails, or neither sends nor ends.
pub(crate) fn tapped(
    program: &mut Program,
    tap: &UdpSocket,
    out: &UdpSocket,
    target: &UdpSocket,
) -> Tapped {
    // Known when the program has ended.
    let total = AtomicUsize::new(usize::MAX);
    let (sent, arrived) = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive_all(target, &total));
        let sent = pass_on(program, tap, out);
        total.store(sent.len(), Ordering::Relaxed);
        (sent, receiver.join().unwrap())
    });
    assert!(program.wait().success());
    Tapped { sent, arrived }
}

fn pass_on(program: &mut Program, tap: &UdpSocket, out: &UdpSocket) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    let mut heard = Instant::now();
    loop {
        // Asked first: what it sent before its end is in the socket by then.
        let over = program.has_ended();
        let next = receive(tap, Duration::from_millis(200), |all| all.len() == 1);
        match next.into_iter().next() {
            Some(datagram) => {
                out.send(&datagram).unwrap();
                sent.push(datagram);
                heard = Instant::now();
            }
            None if over => return sent,
            None => assert!(
                heard.elapsed() < DEADLINE,
                "nothing is sent, nor an end made"
            ),
        }
    }
}

fn receive_all(target: &UdpSocket, total: &AtomicUsize) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut heard = Instant::now();
    while all.len() < total.load(Ordering::Relaxed) && heard.elapsed() < DEADLINE {
        let some = receive(target, Duration::from_millis(100), |some| some.len() == 50);
        if !some.is_empty() {
            heard = Instant::now();
        }
        all.extend(some);
    }
    // What came twice is there by now.
    all.extend(receive(target, Duration::from_millis(200), |_| false));
    all
}
