//! A live flow with a latency budget over links that lose in bursts: nothing is missing at the end.

use bytes::Bytes;
use marline_proto::flow::Chunk;
use marline_proto::path::PathParams;
use marline_proto::wire::{FlowId, FlowKind};
use marline_proto::{Config, FlowOptions};
use marline_sim::{End, Instant};

use crate::kit::{Lab, Messages, Outbox, ms, secs};

/// A Gilbert-Elliott process on both links, alike in both directions.
const LINK: &str = "rate=20mbit,delay=25ms,queue=200ms,loss=2%,burst=4";
/// More than are sent until it is judged: a flow that has ended counts no more.
const MESSAGES: u64 = 25_000;
const JUDGED: u64 = 20;

/// A flow of 10 Mb/s with a budget of 300 ms.
fn ten_megabits(lab: &mut Lab, scheduler: &str) -> FlowId {
    let plan = Messages {
        size: 1_250,
        size_max: 1_250,
        count: MESSAGES,
        every: ms(1),
    };
    let options = FlowOptions {
        lifetime: Some(ms(300)),
        scheduler: Some(scheduler.parse().expect("a scheduler")),
        ..FlowOptions::new(FlowKind::Packets)
    };
    let outbox = Outbox::messages(lab.now(), plan);
    lab.open(End::Client, &options, outbox)
}

#[test]
fn bursts_of_loss_on_both_links_leave_no_gap_within_300_ms() {
    for scheduler in ["edpf", "hedge"] {
        for seed in 0..3 {
            let mut lab = Lab::new(seed, &Config::default());
            lab.path(LINK);
            lab.path(LINK);
            lab.run_for(ms(500));
            let start = lab.now();
            let flow = ten_megabits(&mut lab, scheduler);
            lab.run_until(start + secs(JUDGED), |_| false);
            let sender = lab.world.session(End::Client).flow_counters(flow);
            let receiver = lab.world.session(End::Server).flow_counters(flow);
            let (sender, receiver) = (sender.expect("open"), receiver.expect("open"));
            let context = format!("{scheduler}, seed {seed}: {sender:?} {receiver:?}");
            // One a millisecond, but for those on their way.
            assert!(
                receiver.delivered_messages > JUDGED * 1_000 - 300,
                "{context}"
            );
            assert_eq!(receiver.skipped_messages, 0, "{context}");
            assert_eq!(sender.expired_messages, 0, "{context}");
            // Two per cent were lost.
            assert!(sender.repaired_symbols > JUDGED * 1_000 / 100, "{context}");
        }
    }
}

/// The sender of a flow learns how its messages fared at the other end.
#[test]
fn a_sender_is_told_what_was_lost_and_what_came_twice() {
    let mut lab = Lab::new(1, &Config::default());
    // A way of 30 ms and losses leave a message no second chance within 50. What comes by the other
    // path is too late.
    lab.path("rate=20mbit,delay=30ms,queue=200ms,loss=2%");
    lab.path("rate=20mbit,delay=110ms,queue=200ms,loss=2%");
    lab.run_for(ms(500));
    let flow = |scheduler: &str, lab: &mut Lab| {
        let plan = Messages {
            size: 1_250,
            size_max: 1_250,
            count: 4_000,
            every: ms(2),
        };
        let options = FlowOptions {
            lifetime: Some(ms(50)),
            scheduler: Some(scheduler.parse().expect("a scheduler")),
            ..FlowOptions::new(FlowKind::Packets)
        };
        let start = lab.now();
        lab.open(End::Client, &options, Outbox::messages(start, plan))
    };
    let flows = ["edpf", "redundant"].map(|scheduler| flow(scheduler, &mut lab));
    // What is told once a second is half a second old on average.
    lab.run_for(ms(6_500));
    let [single, twice] = flows.map(|flow| {
        let [sender, receiver] = [End::Client, End::Server].map(|end| {
            let counters = lab.world.session(end).flow_counters(flow);
            counters.expect("open")
        });
        let context = format!("{sender:?} {receiver:?}");
        for (told, counted) in [
            (sender.peer_missed, receiver.skipped_messages),
            (sender.peer_late, receiver.late_messages),
            (sender.peer_duplicates, receiver.duplicate_messages),
        ] {
            assert!(told <= counted, "{context}");
            // Three may be of the last second, however few there are.
            assert!(10 * (told + 3) >= 7 * counted, "{context}");
        }
        sender
    });
    assert!(single.peer_missed > 20, "{single:?}");
    assert!(twice.peer_duplicates > 1_000, "{twice:?}");
    assert!(twice.peer_late > 20, "{twice:?}");
}

/// A stream that needs both links is in time from its first datagram on, though one link's round
/// trips are long.
#[test]
fn a_stream_over_a_long_link_begins_within_its_budget() {
    for seed in 0..3 {
        let mut lab = Lab::new(seed, &Config::default());
        lab.path("rate=6mbit,delay=10ms,queue=100p");
        lab.path("rate=6mbit,delay=80ms,queue=100p");
        lab.run_for(ms(500));
        let start = lab.now();
        let flow = ten_megabits(&mut lab, "hedge");
        lab.run_until(start + secs(6), |_| false);
        let sender = lab.world.session(End::Client).flow_counters(flow);
        assert_eq!(sender.expect("open").expired_messages, 0, "{seed}");
    }
}

/// A flow of 10 Mb/s whose application says so.
fn ten_megabits_with_target(lab: &mut Lab) {
    let flow = ten_megabits(lab, "min-rtt");
    let session = lab.world.session(End::Client);
    session.set_needed_rate(flow, Some(marline_sim::Rate::from_mbps(10)));
}

const NEAR: &str = "rate=12mbit,delay=10ms,queue=100p";
const FAR: &str = "rate=12mbit,delay=80ms,queue=100p";

/// A rate that was given is what paths begin with, from the first message on.
#[test]
fn a_given_target_is_what_paths_begin_with() {
    let mut lab = Lab::new(1, &Config::default());
    lab.path(NEAR);
    let far = lab.path(FAR);
    lab.run_for(ms(500));
    let window = |lab: &mut Lab| lab.world.session(End::Client).path(far).unwrap().cwnd;
    // 32 packets.
    assert!(window(&mut lab) < 50_000);
    ten_megabits_with_target(&mut lab);
    // The near path is not proved to carry anything yet: half of it, and half as much again, for
    // 160 ms.
    lab.run_for(ms(5));
    assert!(window(&mut lab) > 145_000, "{}", window(&mut lab));
}

/// One that is not needed now may be when another one fails.
#[test]
fn a_path_that_is_not_needed_begins_as_if_nobody_asked() {
    let mut lab = Lab::new(1, &Config::default());
    let near = lab.path(NEAR);
    // A download before shows that the near path carries it alone.
    let download = Outbox::trickle(lab.now(), 3_000_000, 3_000_000, ms(1));
    let options = FlowOptions::new(FlowKind::Stream);
    lab.open(End::Client, &options, download);
    lab.run_for(secs(4));
    ten_megabits_with_target(&mut lab);
    let far = lab.path(FAR);
    lab.run_for(ms(250));
    let session = lab.world.session(End::Client);
    let [near, far] = [near, far].map(|id| session.path(id).expect("it is there"));
    let known = marline_sim::Rate::from_mbps(10)..marline_sim::Rate::from_mbps(13);
    assert!(known.contains(&near.rate), "{near:?}");
    // 32 packets instead of ten.
    assert!(far.cwnd > 35_000, "{far:?}");
}

/// A download beside a live stream keeps a shorter queue in the bottleneck; alone, or beside a
/// stream that was reset, it fills the path as ever.
#[test]
fn a_download_keeps_a_shorter_queue_beside_a_live_stream() {
    let mut lab = Lab::new(1, &Config::default());
    let path = lab.path("rate=30mbit,delay=40ms,queue=400ms");
    let download = Outbox::trickle(lab.now(), 200_000_000, 200_000_000, ms(1));
    let options = FlowOptions::new(FlowKind::Stream);
    lab.open(End::Client, &options, download);
    // A mean over whole cycles of probes.
    let window = |lab: &mut Lab| {
        lab.run_for(secs(2));
        let windows = (0..200).map(|_| {
            lab.run_for(ms(10));
            lab.world.session(End::Client).path(path).unwrap().cwnd
        });
        windows.sum::<u64>() / 200
    };
    let alone = window(&mut lab);
    // 80 ms of 30 Mb/s are 300 kB: two of these and three quanta.
    assert!((600_000..700_000).contains(&alone), "{alone}");
    let flow = ten_megabits(&mut lab, "hedge");
    let beside = window(&mut lab);
    // A quarter more than one, and 10 ms.
    assert!((400_000..480_000).contains(&beside), "{beside}");
    lab.reset(End::Client, flow, 0);
    let after = window(&mut lab);
    assert!(after > 600_000, "{after}");
}

/// Seven MPEG-TS packets are 1316 bytes, 1328 in RTP and 1332 in SRT: each goes in one datagram,
/// for a second one would cost a header and half as many bytes again of small packets' delay.
#[test]
fn seven_transport_packets_go_in_one_datagram() {
    for size in [1_316, 1_328, 1_332] {
        let mut lab = Lab::new(7, &Config::default());
        let params = PathParams {
            max_datagram: 1_362,
            ..PathParams::default()
        };
        for link in ["rate=20mbit,delay=25ms", "rate=20mbit,delay=30ms"] {
            lab.path_with(link, link, params);
        }
        lab.run_for(ms(500));
        let plan = Messages {
            size,
            size_max: size,
            count: 4_000,
            every: ms(1),
        };
        let options = FlowOptions::new(FlowKind::Packets);
        let start = lab.now();
        lab.open(End::Client, &options, Outbox::messages(start, plan));
        lab.run_until(start + secs(5), |_| false);
        let stats = lab.world.session(End::Client).stats();
        let sent: u64 = stats.paths.iter().map(|p| p.counters.sent_packets).sum();
        // Acknowledgements of the other side's news, pings and the first datagrams come on top.
        assert!((4_000..4_200).contains(&sent), "{size} bytes: {sent}");
    }
}

#[test]
fn what_waited_before_it_was_sent_is_given_up_so_much_sooner() {
    let mut lab = Lab::new(1, &Config::default());
    let path = lab.path("rate=20mbit,delay=25ms");
    lab.run_for(ms(500));
    lab.dark(path, true);
    let options = FlowOptions {
        lifetime: Some(ms(100)),
        ..FlowOptions::new(FlowKind::Packets)
    };
    let now = lab.now();
    let session = lab.world.session(End::Client);
    let flow = session.open_flow(&options).expect("a flow");
    for waited in [ms(500), ms(60), ms(0)] {
        let message = Bytes::from_static(&[0; 8]);
        session
            .send_since(now, flow, message, now - waited)
            .expect("room");
    }
    for (after, expired) in [(1, 1), (39, 1), (41, 2), (99, 2), (101, 3)] {
        lab.run_until(now + ms(after), |_| false);
        let counters = lab.world.session(End::Client).flow_counters(flow);
        assert_eq!(
            counters.expect("open").expired_messages,
            expired,
            "{after} ms"
        );
    }
}

/// After the end of a session an application may send over the next one what is not known to have
/// arrived; so all that is must have been delivered, also what waited for a gap.
#[test]
fn what_was_acknowledged_before_the_session_ended_was_delivered() {
    for seed in 0..8 {
        let mut lab = Lab::new(seed, &Config::default());
        lab.path("rate=20mbit,delay=60ms,queue=200ms,loss=5%");
        lab.path("rate=20mbit,delay=100ms,queue=200ms,loss=5%");
        lab.run_for(ms(500));
        let flow = ten_megabits(&mut lab, "edpf");
        lab.run_for(ms(1_000 + 7 * seed));
        lab.world.session(End::Server).close(0, "the server stops");
        lab.run_for(secs(1));
        let client = lab.world.session(End::Client);
        assert!(client.is_closing());
        let counters = client.flow_counters(flow).expect("open");
        let (written, expired) = (counters.written_bytes / 1_250, counters.expired_messages);
        let unsettled = client.unsettled(flow);
        let now = lab.now();
        let server = lab.world.session(End::Server);
        while let Chunk::Data(_) = server.receive(now, flow) {}
        let delivered = server.flow_counters(flow).expect("open").delivered_messages;
        // Most of what is not known to have arrived has not.
        let least = written - unsettled.len() as u64 - expired;
        assert!(
            (least..=least + 250).contains(&delivered),
            "seed {seed}: {delivered} of {written} were delivered, {expired} given up, {} are unsettled",
            unsettled.len()
        );
    }
}

/// What is left in a flow that its receiver has closed is not lost without a trace.
#[test]
fn what_the_other_end_wants_no_more_is_given_up() {
    let mut lab = Lab::new(1, &Config::default());
    lab.path(LINK);
    lab.run_for(ms(500));
    let flow = ten_megabits(&mut lab, "hedge");
    lab.run_for(ms(1_000));
    lab.world.session(End::Server).stop(flow, 0);
    let mut before = lab.world.session(End::Client).unsettled(flow).len() as u64;
    for _ in 0..100 {
        lab.run_for(ms(1));
        let client = lab.world.session(End::Client);
        let unsettled = client.unsettled(flow).len() as u64;
        let expired = client.flow_counters(flow).expect("open").expired_messages;
        if unsettled == 0 {
            // One a millisecond is written, and some are acknowledged.
            assert!(
                expired.abs_diff(before) < 60 && expired > 20,
                "{expired} {before}"
            );
            return;
        }
        before = unsettled;
    }
    panic!("it never heard of it");
}

/// A live stream up, a message every 2 ms, and a download down, from now on.
fn call_beside_a_download(lab: &mut Lab, size: usize, count: u64) -> FlowId {
    let plan = Messages {
        size,
        size_max: size,
        count,
        every: ms(2),
    };
    let options = FlowOptions {
        lifetime: Some(ms(300)),
        ordered: true,
        priority: 2,
        scheduler: Some("hedge:prompt=on".parse().expect("a scheduler")),
        ..FlowOptions::new(FlowKind::Packets)
    };
    let flow = lab.open(End::Client, &options, Outbox::messages(lab.now(), plan));
    let bytes = 200_000_000;
    let download = Outbox::trickle(lab.now(), bytes, bytes, ms(1));
    lab.open(End::Server, &FlowOptions::new(FlowKind::Stream), download);
    flow
}

/// Delays (ms) of the messages that were written `from` then on, `until` then; the shortest first.
fn delays(lab: &Lab, flow: FlowId, from: Instant, until: Instant) -> Vec<u64> {
    let delays = lab.inbox(End::Server, flow).delays.iter();
    let written = delays.map(|(at, delay)| (*at - *delay, delay.as_millis() as u64));
    let within = written.filter(|(at, _)| (from..until).contains(at));
    let mut delays: Vec<u64> = within.map(|(_, delay)| delay).collect();
    delays.sort_unstable();
    delays
}

/// While a download fills the way back, acknowledgements are late, and more is in flight. That is
/// no queue that the stream would meet, neither for those who look for the path's capacity nor for
/// those who fill it.
#[test]
fn what_a_download_queues_on_the_way_back_holds_no_stream_up() {
    for size in [1_000, 1_300] {
        let mut lab = Lab::new(1, &Config::default());
        lab.path("rate=10mbit,delay=40ms,queue=200ms");
        let begin = lab.now();
        let flow = call_beside_a_download(&mut lab, size, 3_000);
        lab.run_for(secs(7));
        let delays = delays(&lab, flow, begin + ms(600), begin + secs(6));
        let longest = delays.last();
        assert!(longest < Some(&50), "{size}: {longest:?} ms");
    }
}

/// The download, too, is silent then. So this is no burst of losses, and the other path has to
/// carry all at once; afterwards the link is as good as it was.
#[test]
fn a_link_that_goes_dark_under_a_download_is_left_at_once() {
    let (mut worst, mut usual) = (0, 0);
    for seed in 1..=8 {
        let mut lab = Lab::new(seed, &Config::default());
        let quick = lab.path("rate=20mbit,delay=15ms,jitter=2ms,loss=1%,queue=200ms");
        lab.path("rate=10mbit,delay=40ms,queue=200ms");
        let flow = call_beside_a_download(&mut lab, 1_000, 4_000);
        lab.run_for(ms(3_500));
        let dark = lab.now();
        lab.dark(quick, true);
        lab.run_for(secs(2));
        lab.dark(quick, false);
        lab.run_for(secs(3));
        worst += delays(&lab, flow, dark - ms(50), dark + secs(1))
            .last()
            .expect("came")
            / 8;
        let after = delays(&lab, flow, dark + ms(2_500), dark + ms(4_500));
        usual += after[after.len() / 2] / 8;
    }
    // 94 and 16. If the download's silence shows nothing 105.
    assert!(worst < 100 && usual < 20, "{worst} {usual} ms");
}

/// A call beside downloads costs next to nothing, so that it goes over both links; which of them is
/// about to stall no forecast knows.
#[test]
fn a_call_beside_downloads_goes_over_both_links() {
    let p99 = |scheduler: &str, seed: u64| {
        let mut lab = Lab::new(seed, &Config::default());
        let links = [
            lab.path("rate=12mbit,delay=20ms,jitter=3ms,loss=0.2%,queue=200ms"),
            lab.path("rate=10mbit,delay=30ms,jitter=3ms,loss=0.2%,queue=200ms"),
        ];
        for _ in 0..3 {
            lab.stream(End::Client, 200_000_000);
        }
        let plan = Messages {
            size: 200,
            size_max: 200,
            count: 800,
            every: ms(10),
        };
        let options = FlowOptions {
            priority: 2,
            scheduler: Some(scheduler.parse().expect("a scheduler")),
            ..FlowOptions::new(FlowKind::Packets)
        };
        let flow = lab.open(End::Client, &options, Outbox::messages(lab.now(), plan));
        for round in 0..8 {
            lab.run_for(ms(800));
            let link = links[round % 2];
            lab.dark(link, true);
            lab.run_for(ms(150));
            lab.dark(link, false);
        }
        lab.run_for(secs(2));
        let inbox = lab.inbox(End::Server, flow);
        assert_eq!(inbox.read, 800, "{scheduler}, {seed}");
        inbox.quantile(0.99)
    };
    for seed in 1..=5 {
        let [with, without] = ["on", "off"].map(|copies| {
            let scheduler = format!("hedge:prompt=on:copies={copies}");
            p99(&scheduler, seed)
        });
        assert!(
            with < without,
            "{seed}: {with:?}, {without:?} without copies"
        );
    }
}
