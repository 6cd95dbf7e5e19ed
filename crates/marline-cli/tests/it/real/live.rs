use super::harness::{DEADLINE, Live, receive, roomy_socket, skipped, transport, udp_echo, until};
use marline_apps::live::Content;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

/// Between two datagrams: 10.5 Mb/s of transport stream.
const INTERVAL: Duration = Duration::from_millis(1);
/// Unlike links, both of which lose in bursts.
const LOSSY: [&str; 2] = [
    "rate=20mbit,delay=5ms,jitter=2ms,loss=2%,burst=5,queue=200ms",
    "rate=20mbit,delay=20ms,jitter=5ms,loss=2%,burst=5,queue=200ms",
];

fn send(live: &Live, numbers: std::ops::Range<u64>) {
    let socket = live.sender();
    for number in numbers {
        socket.send(&transport(number)).unwrap();
        thread::sleep(INTERVAL);
    }
}

#[test]
fn a_transport_stream_arrives_as_it_was_sent_over_lossy_links() {
    const COUNT: u64 = 2_000;
    let target = roomy_socket();
    // So much that a busy machine is not what is tested.
    let live = Live::start(LOSSY, target.local_addr().unwrap(), ",latency=20s");
    let arrived = thread::scope(|scope| {
        let all = |all: &[Vec<u8>]| all.len() as u64 == COUNT;
        let receiver = scope.spawn(move || receive(&target, DEADLINE, all));
        send(&live, 0..COUNT);
        receiver.join().unwrap()
    });
    assert_eq!(arrived.len() as u64, COUNT);
    for (number, datagram) in arrived.iter().enumerate() {
        assert!(*datagram == transport(number as u64), "datagram {number}");
    }
    // The counts follow a moment after what they count.
    until("the client to know that all has arrived", || {
        let [client, server] = live.status();
        assert_eq!(client.sent.datagrams, COUNT);
        assert_eq!(client.sent.content, Content::MpegTs);
        assert_eq!(client.sent.input.continuity_errors, 0);
        assert_eq!(client.sent.given_up + client.sent.refused, 0);
        assert_eq!(server.received.datagrams, COUNT);
        assert_eq!(server.received.bytes, COUNT * 1316);
        assert_eq!(server.received.output.continuity_errors, 0);
        assert_eq!(server.received.lost + server.received.late, 0);
        // About forty were lost on their way.
        (client.sent.repaired >= 10).then_some(())
    });
}

#[test]
fn every_sender_has_a_flow_of_its_own_and_gets_its_answers() {
    let live = Live::start(["delay=1ms", "delay=5ms"], udp_echo(), "");
    let senders = [(); 3].map(|()| live.sender());
    for (index, sender) in senders.iter().enumerate() {
        sender.set_read_timeout(Some(DEADLINE)).unwrap();
        sender.send(&[index as u8; 10]).unwrap();
    }
    let mut buffer = [0; 100];
    for (index, sender) in senders.iter().enumerate() {
        let length = sender.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..length], [index as u8; 10]);
    }
    let [client, server] = live.status();
    assert_eq!((client.flows, server.flows), (3, 3));
    assert_eq!(client.received.datagrams, 3);
    assert_eq!(client.sent.content, Content::Opaque);
}

#[test]
fn an_entry_listens_on_the_addresses_that_the_documentation_says() {
    if UdpSocket::bind("[::1]:0").is_err() {
        return skipped("there is no IPv6");
    }
    let links = ["delay=1ms", "delay=5ms"];
    let answers = |live: &Live, host: &str| {
        let sender = UdpSocket::bind((host, 0)).unwrap();
        // An entry that does not listen there refuses the one or the other.
        sender.connect((host, live.listen.port())).unwrap();
        sender.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut buffer = [0; 100];
        sender.send(host.as_bytes()).is_ok() && sender.recv(&mut buffer).is_ok()
    };
    for (entry, by_ipv6) in [("udp://:0", false), ("udp://[::]:0", true)] {
        let entries = [format!("udp://{}", udp_echo()), entry.to_owned()].map(|one| vec![one]);
        let live = Live::with_entries(1, links, &entries);
        assert!(answers(&live, "127.0.0.1"), "{entry}");
        assert_eq!(answers(&live, "::1"), by_ipv6, "{entry}");
    }
}

#[test]
fn what_is_older_than_the_budget_is_never_handed_over() {
    let target = roomy_socket();
    let links = ["rate=20mbit,delay=5ms", "rate=20mbit,delay=10ms"];
    let live = Live::start(links, target.local_addr().unwrap(), ",latency=200ms");
    send(&live, 0..100);
    live.links.iter().for_each(|link| link.set_dark(true));
    send(&live, 100..200);
    // Longer than the budget: nothing of it is worth anything any more.
    thread::sleep(Duration::from_secs(1));
    live.links.iter().for_each(|link| link.set_dark(false));
    live.client.active(&["a", "b"]);
    let last = transport(299);
    let arrived = thread::scope(|scope| {
        let until_last = |all: &[Vec<u8>]| all.last() == Some(&last);
        let receiver = scope.spawn(move || receive(&target, DEADLINE, until_last));
        send(&live, 200..299);
        // What comes last may itself be given up on a busy machine.
        while !receiver.is_finished() {
            live.sender().send(&last).unwrap();
            thread::sleep(INTERVAL);
        }
        receiver.join().unwrap()
    });
    let number = |datagram: &Vec<u8>| (0..300).find(|number| *datagram == transport(*number));
    let numbers: Vec<u64> = arrived.iter().map(|d| number(d).unwrap()).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    assert!(
        numbers.iter().all(|number| !(100..200).contains(number)),
        "{numbers:?}"
    );
    let [client, _] = live.status();
    assert!(
        client.sent.given_up + client.sent.refused >= 100,
        "{client:?}"
    );
}

#[test]
fn a_name_that_the_server_does_not_have_is_told_at_both_ends() {
    let target = roomy_socket();
    let address = target.local_addr().unwrap();
    let live = Live::start(["delay=1ms", "delay=5ms"], address, ",name=cam");
    live.sender().send(b"lost").unwrap();
    live.server.logged("the missing name", |line| {
        line.contains("sends live cam, and this server has no --live of that name; it has live")
            .then_some(())
    });
    live.client.logged("the closed flow", |line| {
        line.contains("has it a --live of that name?").then_some(())
    });
}

#[test]
fn a_target_is_changed_while_the_client_runs() {
    // Jitter makes it uncertain which link is the quicker one, so that `ols` copies what the target
    // leaves room for.
    const JITTERY: &str = "rate=20mbit,delay=10ms,jitter=5ms,queue=200ms";
    let target = roomy_socket();
    let address = target.local_addr().unwrap();
    // More than such links are ever believed to carry.
    let options = ",scheduler=ols,target=10gbps";
    let live = Live::start([JITTERY; 2], address, options);
    let copied = || {
        let flow = &live.client.status().sessions[0].flows[0];
        flow.redundancy * flow.sent_bytes as f64 - flow.retransmitted_bytes as f64
    };
    let socket = live.sender();
    let send = |number| {
        socket.send(&transport(number)).unwrap();
        thread::sleep(INTERVAL);
    };
    (0..2_000).for_each(send);
    assert_eq!(live.status()[0].target_bps, Some(10_000_000_000));
    // A probe or two may be sent twice.
    assert!(copied() < 50.0 * 1316.0, "{}", copied());

    live.client.run(&["live", "target", "1mbps"]);
    assert_eq!(live.status()[0].target_bps, Some(1_000_000));
    thread::scope(|scope| {
        let many = || (copied() > 200.0 * 1316.0).then_some(());
        let copies = scope.spawn(move || until("copies", many));
        (2_000..)
            .take_while(|_| !copies.is_finished())
            .for_each(send);
    });

    live.client
        .run(&["live", "target", "auto", "--name", "live"]);
    assert_eq!(live.status()[0].target_bps, None);
    let error = live
        .client
        .refused(&["live", "target", "8mbps", "--name", "cam"]);
    assert!(
        error.contains("there is no live entry `cam`") && error.contains("there are: live"),
        "{error}"
    );
}

#[test]
fn what_has_no_target_refuses_one_and_is_not_said_to_get_enough() {
    for option in ["deadline=80ms", "objects=on"] {
        let target = roomy_socket();
        let address = target.local_addr().unwrap();
        let live = Live::start(["delay=1ms", "delay=5ms"], address, &format!(",{option}"));
        live.sender().send(&video(0, 0, true)).unwrap();
        until("the flow", || (live.status()[0].flows > 0).then_some(()));
        assert!(!live.status()[0].watched);
        let error = live.client.refused(&["live", "target", "8mbps"]);
        assert!(error.contains("live live has no target rate"), "{error}");
        assert_eq!(live.status()[0].target_bps, None);
    }
}

#[test]
fn links_that_carry_less_than_is_written_are_told_without_a_target() {
    let target = roomy_socket();
    let links = ["rate=1mbit,delay=5ms", "rate=1mbit,delay=10ms"];
    let live = Live::start(links, target.local_addr().unwrap(), "");
    assert!(!live.status()[0].watched, "nothing is written");
    thread::scope(|scope| {
        let told = scope.spawn(|| {
            until("the capacity", || {
                let [client, _] = live.status();
                client.capacity_bps.inspect(|bps| {
                    assert!(client.watched && client.target_bps.is_none());
                    assert!(*bps < 4_000_000, "{bps}");
                })
            })
        });
        let socket = live.sender();
        for number in 0.. {
            if told.is_finished() {
                break;
            }
            socket.send(&transport(number)).unwrap();
            thread::sleep(INTERVAL);
        }
    });
    live.client.logged("the capacity", |line| {
        line.contains("Mb/s of what is written").then_some(())
    });
}

/// An RTP packet of video: this place of a frame, and bytes of its own.
fn video(frame: u32, place: u16, last: bool) -> Vec<u8> {
    let sequence = (frame as u16).wrapping_mul(PLACES) + place;
    let mut packet = vec![0x80, 96 | u8::from(last) << 7];
    packet.extend(sequence.to_be_bytes());
    packet.extend((frame * 3_000).to_be_bytes());
    packet.extend(77_u32.to_be_bytes());
    packet.extend((0..1_000_u32).map(|byte| (byte * 31 + u32::from(sequence) * 7) as u8));
    packet
}

/// Packets of a frame.
const PLACES: u16 = 8;

#[test]
fn video_frames_travel_as_blocks_and_arrive_as_the_datagrams_that_they_were() {
    const FRAMES: u32 = 90;
    let target = roomy_socket();
    // So much time that a busy machine is not what is tested.
    let options = ",deadline=10s,reliability=0.99";
    let live = Live::start(LOSSY, target.local_addr().unwrap(), options);
    let mut sent = Vec::new();
    let arrived = thread::scope(|scope| {
        let all = |all: &[Vec<u8>]| all.len() == FRAMES as usize * usize::from(PLACES);
        let receiver = scope.spawn(move || receive(&target, DEADLINE, all));
        let socket = live.sender();
        for frame in 0..FRAMES {
            for place in 0..PLACES {
                // The last frame has no end, and goes all the same.
                let last = place + 1 == PLACES && frame + 1 < FRAMES;
                sent.push(video(frame, place, last));
                socket.send(&sent[sent.len() - 1]).unwrap();
            }
            thread::sleep(Duration::from_millis(20));
        }
        receiver.join().unwrap()
    });
    // Frames may overtake each other; the packets of one come together, in their order.
    let frame = usize::from(PLACES);
    let mut frames: Vec<&[Vec<u8>]> = arrived.chunks(frame).collect();
    frames.sort_by_key(|packets| sent.iter().position(|one| *one == packets[0]));
    let expected: Vec<&[Vec<u8>]> = sent.chunks(frame).collect();
    assert!(frames == expected, "{} packets arrived", arrived.len());
    until("the client to know that all has arrived", || {
        let status = live.client.status();
        let (entry, session) = (&status.live[0], &status.sessions[0]);
        assert_eq!(entry.latency_ms, Some(10_000.0));
        assert_eq!(entry.sent.content, Content::Rtp);
        assert_eq!(entry.sent.given_up + entry.sent.refused, 0);
        let flow = &session.flows[0];
        assert_eq!(
            (flow.kind.as_str(), flow.scheduler.as_str()),
            ("blocks", "hop-jump:refuse=off")
        );
        // What the scheduler knows of the paths by then depends on what was lost.
        let mut forecasts = session
            .paths
            .iter()
            .filter_map(|path| path.forecast.as_ref());
        assert!(forecasts.all(|forecast| forecast.flow == flow.id && forecast.mode == "bank"));
        assert!(flow.calibration.is_some());
        (entry.sent.datagrams == u64::from(FRAMES) * u64::from(PLACES)).then_some(())
    });
    let [_, server] = live.status();
    assert_eq!(server.received.output.lost, 0);
}

/// The datagram of this number of a transport stream in which a PES packet of video begins with
/// every tenth, and a group of pictures with every fiftieth.
fn pictures(number: u64) -> Vec<u8> {
    let mut datagram = transport(number);
    if number.is_multiple_of(10) {
        let random_access = if number.is_multiple_of(50) { 0x40 } else { 0 };
        datagram[1] |= 0x40;
        datagram[3] |= 0x20;
        datagram[4..10].copy_from_slice(&[1, random_access, 0, 0, 1, 0xe0]);
    }
    datagram
}

#[test]
fn frames_and_pes_packets_travel_as_objects_and_arrive_as_the_datagrams_that_they_were() {
    const FRAMES: u32 = 60;
    let rtp = |number: u32| {
        let (frame, place) = (number / 8, (number % 8) as u16);
        video(frame, place, place + 1 == PLACES)
    };
    let rtp: Vec<_> = (0..FRAMES * 8).map(rtp).collect();
    let transport: Vec<_> = (0..600).map(pictures).collect();
    // Whether RTP is recognised in time is up to the machine.
    for (mode, sent, content, units) in [
        ("on", rtp, Content::Rtp, u64::from(FRAMES)),
        ("auto", transport, Content::MpegTs, 60),
    ] {
        let target = roomy_socket();
        // So much time that a busy machine is not what is tested.
        let options = format!(",objects={mode},latency=20s");
        let live = Live::start(LOSSY, target.local_addr().unwrap(), &options);
        let arrived = thread::scope(|scope| {
            let all = |all: &[Vec<u8>]| all.len() == sent.len();
            let receiver = scope.spawn(move || receive(&target, DEADLINE, all));
            let socket = live.sender();
            for datagram in &sent {
                socket.send(datagram).unwrap();
                thread::sleep(INTERVAL);
            }
            receiver.join().unwrap()
        });
        assert!(arrived == sent, "{} of {}", arrived.len(), sent.len());
        until("the client to know that all has arrived", || {
            let status = live.client.status();
            let (entry, flow) = (&status.live[0], &status.sessions[0].flows[0]);
            assert_eq!(
                (flow.kind.as_str(), entry.sent.content),
                ("objects", content)
            );
            assert_eq!(entry.sent.given_up + entry.sent.refused, 0);
            let objects = flow.units.as_ref().unwrap();
            assert_eq!(objects.sent, units);
            (objects.complete == units).then_some(())
        });
        let [_, server] = live.status();
        assert_eq!(server.received.output.lost, 0);
        assert_eq!(server.received.output.continuity_errors, 0);
    }
}

#[test]
fn what_is_no_medium_travels_as_datagrams_unless_objects_are_asked_for() {
    for (mode, kind) in [("auto", "packets"), ("on", "objects")] {
        let options = format!(",objects={mode}");
        let live = Live::start(["delay=1ms", "delay=5ms"], udp_echo(), &options);
        let sender = live.sender();
        sender.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut buffer = [0; 100];
        for number in 0..20_u8 {
            sender.send(&[number; 10]).unwrap();
            let length = sender.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], [number; 10]);
        }
        let flow = &live.client.status().sessions[0].flows[0];
        assert_eq!(flow.kind, kind, "{mode}");
    }
}

#[test]
fn objects_that_are_older_than_the_budget_are_given_up_and_not_waited_for() {
    let target = roomy_socket();
    let links = ["rate=20mbit,delay=5ms", "rate=20mbit,delay=10ms"];
    let options = ",objects=on,latency=200ms";
    let live = Live::start(links, target.local_addr().unwrap(), options);
    let sender = live.sender();
    let send = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            sender.send(&pictures(number)).unwrap();
            thread::sleep(INTERVAL);
        }
    };
    send(0..100);
    live.links.iter().for_each(|link| link.set_dark(true));
    send(100..200);
    // Longer than the budget: nothing of it is worth anything any more.
    thread::sleep(Duration::from_secs(1));
    live.links.iter().for_each(|link| link.set_dark(false));
    live.client.active(&["a", "b"]);
    let last = pictures(299);
    let arrived = thread::scope(|scope| {
        let until_last = |all: &[Vec<u8>]| all.last() == Some(&last);
        let receiver = scope.spawn(move || receive(&target, DEADLINE, until_last));
        send(200..299);
        // What comes last may itself be given up on a busy machine.
        while !receiver.is_finished() {
            sender.send(&last).unwrap();
            thread::sleep(INTERVAL);
        }
        receiver.join().unwrap()
    });
    let number = |datagram: &Vec<u8>| (0..300).find(|number| *datagram == pictures(*number));
    let numbers: Vec<u64> = arrived.iter().map(|d| number(d).unwrap()).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    assert!(
        numbers.iter().all(|number| !(100..200).contains(number)),
        "{numbers:?}"
    );
    // Ten were written meanwhile. The counts follow a moment after.
    until("both ends to know what was given up", || {
        let [client, server] = live.status();
        (client.sent.given_up >= 5 && server.received.lost >= 5).then_some(())
    });
}
