//! What a receiver finds in a transport stream that came over a live entry's flow, in virtual time:
//! there a budget means the same on every machine.

use super::inspect::{Content, Inspector};
use super::mpegts::PACKET;
use crate::live::{LiveDefaults, LiveIn};
use bytes::Bytes;
use marline_base::{Duration, Instant};
use marline_proto::flow::Chunk;
use marline_proto::path::PathParams;
use marline_proto::wire::FlowKind;
use marline_proto::{Config, FlowOptions};
use marline_sim::{Cable, World, WorldConfig};

/// Both links lose 2 % in bursts, in both directions.
const LINK: &str = "rate=20mbit,delay=25ms,queue=200ms,loss=2%,burst=4";
/// Between two datagrams: 10.5 Mb/s.
const EVERY: Duration = Duration::from_millis(1);
const COUNT: u64 = 20_000;

/// Seven transport packets whose continuity counters follow those of the datagram before.
fn datagram(number: u64) -> Bytes {
    let packet = |index: u64| {
        let mut packet = vec![0x47, 1, 0, 0x10 | (index % 16) as u8];
        packet.resize(PACKET, 0);
        packet
    };
    (number * 7..(number + 1) * 7).flat_map(packet).collect()
}

/// How many datagrams of a stream arrive by an entry with these options, and at how many transport
/// packets the continuity breaks.
fn arrived(options: &str, seed: u64) -> (u64, u64) {
    let entry = format!("udp://127.0.0.1:5000{options}");
    let entry = LiveIn::parse(&entry, &LiveDefaults::default()).unwrap();
    let mut world = World::new(WorldConfig {
        client: Config::default(),
        server: Config::default(),
        seed,
    });
    for _ in 0..2 {
        let cable = Cable::symmetric(LINK.parse().unwrap());
        world.add_path(&cable, &PathParams::default()).unwrap();
    }
    let wait = |world: &mut World, time: Duration| {
        let end = world.now() + time;
        world.run_until(end, |_, _, _| ());
    };
    wait(&mut world, Duration::from_millis(500));
    let asked = entry.options();
    let options = FlowOptions {
        ordered: asked.ordered,
        priority: asked.priority,
        lifetime: asked.lifetime,
        scheduler: asked.scheduler,
        ..FlowOptions::new(FlowKind::Packets)
    };
    let flow = world.client.open_flow(&options).unwrap();
    let (mut inspector, mut count) = (Inspector::default(), 0);
    // A second more than the stream lasts, for what comes last.
    for number in 0..COUNT + 1_000 {
        let now: Instant = world.now();
        if number < COUNT {
            world.client.send(now, flow, datagram(number)).unwrap();
        }
        wait(&mut world, EVERY);
        while let Chunk::Data(message) = world.server.receive(now, flow) {
            inspector.look(&message);
            count += 1;
        }
    }
    assert_eq!(inspector.content, Content::MpegTs);
    (count, inspector.found.continuity_errors)
}

#[test]
fn no_counter_of_a_transport_stream_is_missed_within_300_ms_though_both_links_lose_bursts() {
    for scheduler in ["auto", "hedge"] {
        for seed in 0..3 {
            let all = arrived(&format!(",scheduler={scheduler}"), seed);
            assert_eq!(all, (COUNT, 0), "{scheduler}, seed {seed}");
        }
    }
    // These links do lose: a budget that is over before anybody can know of it leaves gaps.
    let (count, breaks) = arrived(",latency=60ms", 0);
    assert!(count < COUNT && breaks > 0, "{count}, {breaks}");
}
