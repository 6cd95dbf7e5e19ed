//! The tools that people send live video with. Tests say so and end where a tool is not installed.

use super::harness::{
    DEADLINE, Live, Program, Tapped, ffmpeg, receive, roomy_socket, tapped, transport, until,
};
use crate::quiet_address::{Test, quiet_address};
use marline_apps::live::{Content, Wholeness};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

const LINKS: [&str; 2] = [
    "rate=20mbit,delay=10ms,loss=1%,queue=200ms",
    "rate=20mbit,delay=25ms,loss=1%,queue=200ms",
];

/// A port of loopback at which nobody listened a moment ago.
fn free() -> SocketAddr {
    let socket = UdpSocket::bind(quiet_address(Test::Tools)).unwrap();
    socket.local_addr().unwrap()
}

/// The same for an even port and the next.
fn free_pair() -> [SocketAddr; 2] {
    until("two ports in a row", || {
        let [first, mut second] = [free(); 2];
        second.set_port(first.port().checked_add(1)?);
        let free = first.port().is_multiple_of(2) && UdpSocket::bind(second).is_ok();
        free.then_some([first, second])
    })
}

/// A live entry, with a socket behind the server's and one from which [`tapped`] passes on.
fn live(options: &str) -> (Live, UdpSocket, UdpSocket) {
    let (tap, target) = (roomy_socket(), roomy_socket());
    let live = Live::start(LINKS, target.local_addr().unwrap(), options);
    (live, tap, target)
}

#[test]
fn what_ffmpeg_makes_arrives_packet_by_packet() {
    // So much time that a busy machine is not what is tested.
    let (live, tap, target) = live(",latency=20s");
    let to = tap.local_addr().unwrap();
    let Some(mut ffmpeg) = ffmpeg(&format!("-f mpegts udp://{to}?pkt_size=1316")) else {
        return;
    };
    let Tapped { sent, arrived } = tapped(&mut ffmpeg, &tap, &live.sender(), &target);
    assert!(sent.len() > 1_000, "{} datagrams", sent.len());
    assert_eq!(arrived.len(), sent.len());
    assert!(arrived == sent);
    let [client, server] = live.status();
    assert_eq!(client.sent.content, Content::MpegTs);
    assert_eq!(client.sent.input, Wholeness::default());
    assert_eq!(server.received.output, Wholeness::default());
}

/// Starts ffmpeg on RTP of this kind to `tap`. Its RTCP, which needs an entry of its own, goes to a
/// socket that is closed.
fn ffmpegs_rtp(kind: &str, tap: &UdpSocket) -> Option<Program> {
    let (to, rtcp) = (tap.local_addr().unwrap(), free().port());
    ffmpeg(&format!("-f {kind} rtp://{to}?rtcpport={rtcp}"))
}

#[test]
fn transport_packets_in_ffmpegs_rtp_keep_its_sequence() {
    let (live, tap, target) = live(",latency=20s");
    let Some(mut ffmpeg) = ffmpegs_rtp("rtp_mpegts", &tap) else {
        return;
    };
    let Tapped { sent, arrived } = tapped(&mut ffmpeg, &tap, &live.sender(), &target);
    assert!(sent.len() > 1_000, "{} packets", sent.len());
    assert_eq!(arrived.len(), sent.len());
    assert!(arrived == sent);
    let [client, server] = live.status();
    for (content, found) in [
        (client.sent.content, client.sent.input),
        (server.received.content, server.received.output),
    ] {
        assert_eq!((content, found), (Content::RtpMpegTs, Wholeness::default()));
    }
}

#[test]
fn frames_in_ffmpegs_rtp_travel_as_blocks() {
    let (live, tap, target) = live(",deadline=10s");
    let Some(mut ffmpeg) = ffmpegs_rtp("rtp", &tap) else {
        return;
    };
    let Tapped { sent, arrived } = tapped(&mut ffmpeg, &tap, &live.sender(), &target);
    // Frames may overtake each other; the packets of one come together, in their order.
    let frames = |all| <[Vec<u8>]>::chunk_by(all, |a, b| a[4..8] == b[4..8]).collect::<Vec<_>>();
    let (expected, mut frames) = (frames(&sent[..]), frames(&arrived[..]));
    assert!(expected.len() > 50, "{} frames", expected.len());
    assert_eq!(frames.len(), expected.len());
    frames.sort_by_key(|packets| expected.iter().position(|sent| sent[0] == packets[0]));
    assert!(frames == expected);
    let [client, server] = live.status();
    assert_eq!(client.sent.content, Content::Rtp);
    assert_eq!(client.sent.input, Wholeness::default());
    assert_eq!(client.sent.datagrams, sent.len() as u64);
    assert_eq!(server.received.output.lost, 0);
}

/// Sends a transport stream to `input` until the first of it has come out at `output`, then a
/// thousand more datagrams of which every one must come out unchanged and in order.
fn passes_unchanged(input: SocketAddr, output: &UdpSocket) {
    const COUNT: u64 = 1_000;
    let sender = roomy_socket();
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

/// SRT over an entry; `options` are those of both ends.
fn srt(options: &str) {
    let (listener, input, output) = (free(), free(), roomy_socket());
    let live = Live::start(LINKS, listener, "");
    let sink = output.local_addr().unwrap();
    // Seconds, so that a busy machine is not what is tested.
    let options = format!("latency=4000{options}");
    let words = format!("-q -chunk:1316 srt://{listener}?mode=listener&{options} udp://{sink}");
    let Some(_receiver) = Program::tool("srt-live-transmit", &words) else {
        return;
    };
    let to = live.listen;
    let words = format!("-q -chunk:1316 udp://{input} srt://{to}?{options}");
    let _caller = Program::tool("srt-live-transmit", &words);
    passes_unchanged(input, &output);
    let [client, server] = live.status();
    assert_eq!(client.sent.content, Content::Opaque);
    // It acknowledges: both directions were in use.
    assert!(server.sent.datagrams > 10 && client.received.datagrams > 10);
}

#[test]
fn srt_passes_unchanged() {
    srt("");
}

#[test]
fn srt_with_a_passphrase_passes_unchanged() {
    srt("&passphrase=between-van-and-studio&pbkeylen=16");
}

/// RIST from `to`, where a client has an entry, to `listener`, where the server's ends; `options`
/// are those of both ends. `false`, and a word of it, where it is not installed.
fn rist(to: SocketAddr, listener: SocketAddr, options: &str) -> bool {
    let (input, output) = (free(), roomy_socket());
    let sink = output.local_addr().unwrap();
    let words = format!("{options} -b 4000 -i rist://@{listener} -o udp://{sink}");
    let Some(_receiver) = Program::tool("ristreceiver", &words) else {
        return false;
    };
    let words = format!("{options} -b 4000 -i udp://@{input} -o rist://{to}");
    let Some(_sender) = Program::tool("ristsender", &words) else {
        return false;
    };
    passes_unchanged(input, &output);
    true
}

/// RIST's main profile over an entry.
fn rist_main(options: &str) {
    let listener = free();
    let live = Live::start(LINKS, listener, "");
    if rist(live.listen, listener, &format!("-p 1 {options}")) {
        let [client, server] = live.status();
        assert!(client.sent.datagrams > 1_000);
        assert!(server.sent.datagrams > 0 && client.received.datagrams > 0);
    }
}

#[test]
fn rist_passes_unchanged() {
    rist_main("");
}

#[test]
fn rist_with_a_secret_passes_unchanged() {
    rist_main("-s between-van-and-studio -e 128");
}

#[test]
fn rists_simple_profile_passes_unchanged_by_an_entry_for_each_of_its_ports() {
    let (to, listeners) = (free_pair(), free_pair());
    let entries = [listeners, to].map(|ports| {
        let named = ports.iter().zip(["rtp", "rtcp"]);
        named
            .map(|(port, name)| format!("udp://{port},name={name}"))
            .collect()
    });
    let live = Live::with_entries(1, LINKS, &entries);
    if rist(to[0], listeners[0], "-p 0") {
        let [rtp, rtcp] = &live.client.status().live[..] else {
            panic!("two entries");
        };
        assert_eq!(rtp.sent.content, Content::RtpMpegTs);
        assert!(rtp.sent.datagrams > 1_000);
        // What RIST tells of losses and delays comes back by the other.
        assert!(rtcp.sent.datagrams > 0 && rtcp.received.datagrams > 0);
    }
}
