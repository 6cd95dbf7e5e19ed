//! The tools that people send live video with. Tests say so and end where a tool is not installed.

use super::harness::{DEADLINE, Live, Program, receive, transport, until};
use marline::live::Content;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const LINKS: [&str; 2] = [
    "rate=20mbit,delay=10ms,loss=1%,queue=200ms",
    "rate=20mbit,delay=25ms,loss=1%,queue=200ms",
];

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket2::SockRef::from(&socket)
        .set_recv_buffer_size(1 << 22)
        .unwrap();
    socket
}

/// An address of loopback at which nobody listened a moment ago.
fn free() -> SocketAddr {
    socket().local_addr().unwrap()
}

#[test]
fn what_ffmpeg_makes_arrives_packet_by_packet() {
    let (tap, target) = (socket(), socket());
    let live = Live::start(LINKS, target.local_addr().unwrap(), ",latency=20s");
    let to = tap.local_addr().unwrap();
    let words = format!(
        "-loglevel error -re -f lavfi -i testsrc=size=640x360:rate=25 -t 4 -c:v mpeg2video -b:v 6M \
         -minrate 6M -maxrate 6M -bufsize 1M -f mpegts udp://{to}?pkt_size=1316"
    );
    let Some(mut ffmpeg) = Program::tool("ffmpeg", &words) else {
        return;
    };
    let ended = AtomicBool::new(false);
    let (sent, arrived) = thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            // A busy machine takes its time to start ffmpeg.
            let mut all = receive(&target, DEADLINE, |all| all.len() == 1);
            all.extend(receive(&target, Duration::from_secs(5), |_| false));
            all
        });
        let (tap, live, ended) = (&tap, &live, &ended);
        let relay = scope.spawn(move || {
            let out = live.sender();
            let mut sent = Vec::new();
            loop {
                let next = receive(tap, Duration::from_millis(500), |all| all.len() == 1);
                match next.into_iter().next() {
                    Some(datagram) => {
                        out.send(&datagram).unwrap();
                        sent.push(datagram);
                    }
                    None if ended.load(Ordering::Relaxed) => return sent,
                    None => {}
                }
            }
        });
        let status = ffmpeg.wait();
        ended.store(true, Ordering::Relaxed);
        assert!(status.success());
        (relay.join().unwrap(), receiver.join().unwrap())
    });
    assert!(sent.len() > 1_000, "{} datagrams", sent.len());
    assert_eq!(arrived.len(), sent.len());
    assert!(arrived == sent);
    let [client, server] = live.status();
    assert_eq!(client.sent.content, Content::MpegTs);
    assert_eq!(client.sent.input.continuity_errors, 0);
    assert_eq!(server.received.output.continuity_errors, 0);
}

/// Sends a transport stream to `input` until the first of it has come out at `output`, then a thousand more datagrams of
/// which every one must come out unchanged and in order.
fn passes_unchanged(input: SocketAddr, output: &UdpSocket) {
    const COUNT: u64 = 1_000;
    let sender = socket();
    let send = |number: u64| {
        sender.send_to(&transport(number), input).unwrap();
        thread::sleep(Duration::from_millis(2));
    };
    let first = until("the tools to connect", || {
        (0..50).for_each(send);
        let some = receive(output, Duration::from_millis(100), |all| !all.is_empty());
        some.into_iter().next()
    });
    assert_eq!(first.len(), transport(0).len());
    let last = transport(50 + COUNT - 1);
    let arrived = thread::scope(|scope| {
        let until_last = |all: &[Vec<u8>]| all.last() == Some(&last);
        let receiver = scope.spawn(move || receive(output, DEADLINE, until_last));
        (50..50 + COUNT).for_each(send);
        receiver.join().unwrap()
    });
    let begin = arrived.iter().position(|d| *d == transport(50)).unwrap();
    assert_eq!((arrived.len() - begin) as u64, COUNT);
    for (number, datagram) in (50..).zip(&arrived[begin..]) {
        assert!(*datagram == transport(number), "datagram {number}");
    }
}

#[test]
fn srt_passes_unchanged() {
    let (listener, input, output) = (free(), free(), socket());
    let live = Live::start(LINKS, listener, "");
    let sink = output.local_addr().unwrap();
    // Seconds, so that a busy machine is not what is tested.
    let words = format!("-q -chunk:1316 srt://{listener}?mode=listener&latency=4000 udp://{sink}");
    let Some(_receiver) = Program::tool("srt-live-transmit", &words) else {
        return;
    };
    let to = live.listen;
    let words = format!("-q -chunk:1316 udp://{input} srt://{to}?latency=4000");
    let _caller = Program::tool("srt-live-transmit", &words);
    passes_unchanged(input, &output);
    let [client, server] = live.status();
    assert_eq!(client.sent.content, Content::Opaque);
    // It acknowledges: both directions were in use.
    assert!(server.sent.datagrams > 10 && client.received.datagrams > 10);
}

#[test]
fn rist_passes_unchanged() {
    let (listener, input, output) = (free(), free(), socket());
    let live = Live::start(LINKS, listener, "");
    let sink = output.local_addr().unwrap();
    let words = format!("-p 1 -b 4000 -i rist://@{listener} -o udp://{sink}");
    let Some(_receiver) = Program::tool("ristreceiver", &words) else {
        return;
    };
    let to = live.listen;
    let words = format!("-p 1 -b 4000 -i udp://@{input} -o rist://{to}");
    let _sender = Program::tool("ristsender", &words);
    passes_unchanged(input, &output);
    let [client, server] = live.status();
    assert!(client.sent.datagrams > 1_000);
    assert!(server.sent.datagrams > 0 && client.received.datagrams > 0);
}
