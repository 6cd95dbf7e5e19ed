//! The experiments of live video by processes alone: what ffmpeg sends, over a `marline link` for
//! each of two links.

use super::harness::{Live, Tapped, ffmpeg, roomy_socket, tapped, until};
use marline_apps::live::{Content, Wholeness};

fn arrives_as_it_was_sent(links: [&str; 2]) {
    let (tap, target) = (roomy_socket(), roomy_socket());
    // So much time that a busy machine is not what is tested.
    let to = target.local_addr().unwrap();
    let live = Live::by_processes(links, to, ",latency=20s");
    let to = tap.local_addr().unwrap();
    // 10 Mb/s, more than either link carries, evenly: ffmpeg would send a picture's datagrams all
    // at once.
    let output = format!("-muxrate 10M -f mpegts udp://{to}?pkt_size=1316&bitrate=10000000");
    let Some(mut ffmpeg) = ffmpeg(&output) else {
        return;
    };
    let Tapped { sent, arrived } = tapped(&mut ffmpeg, &tap, &live.sender(), &target);
    assert!(sent.len() > 3_000, "{} datagrams", sent.len());
    let pairs = sent.iter().zip(&arrived).enumerate();
    for (number, (sent, arrived)) in pairs {
        assert!(arrived == sent, "datagram {number}");
    }
    assert_eq!(arrived.len(), sent.len());

    let count = sent.len() as u64;
    // The counts follow a moment after what they count.
    until("the client to know that all has arrived", || {
        let [client, server] = live.status();
        assert_eq!(client.sent.datagrams, count);
        assert_eq!(client.sent.given_up + client.sent.refused, 0);
        assert_eq!(client.sent.content, Content::MpegTs);
        assert_eq!(client.sent.input, Wholeness::default());
        assert_eq!(server.received.lost + server.received.late, 0);
        assert_eq!(server.received.content, Content::MpegTs);
        assert_eq!(server.received.output, Wholeness::default());
        (server.received.datagrams == count).then_some(())
    });
    for path in &live.client.status().sessions[0].paths {
        let share = path.sent_bytes as f64 / (count * 1316) as f64;
        assert!(share > 0.1, "{share} by {}", path.name);
    }
}

#[test]
fn a_transport_stream_over_two_static_links() {
    arrives_as_it_was_sent([
        "rate=6mbit,delay=10ms,queue=100p",
        "rate=6mbit,delay=20ms,queue=100p",
    ]);
}

#[test]
fn a_transport_stream_over_a_jittery_link_and_a_slow_one() {
    arrives_as_it_was_sent([
        "rate=8mbit,delay=40ms,jitter=20ms,jitter-dist=uniform,queue=100p",
        "rate=8mbit,delay=80ms,queue=100p",
    ]);
}
