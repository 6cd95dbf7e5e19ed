use bytes::Bytes;
use marline_proto::flow::Chunk;
use marline_proto::path::PathParams;
use marline_proto::wire::FlowKind;
use marline_proto::{Config, Event, FlowOptions};
use marline_sim::{Cable, End, Instant, World, WorldConfig};

#[test]
fn bulk() {
    for (sched, cc) in [
        ("min-rtt", "bbr"),
        ("edpf", "bbr"),
        ("round-robin", "cubic"),
        ("redundant", "bbr"),
        ("edpf", "new-reno"),
    ] {
        let config = Config {
            stream_scheduler: sched,
            congestion: cc,
            ..Config::default()
        };
        let mut world = World::new(WorldConfig {
            client: config.clone(),
            server: config,
            seed: 1,
        });
        let fast = "rate=20mbit,delay=15ms,loss=1%,queue=100ms"
            .parse()
            .unwrap();
        let slow = "rate=10mbit,delay=40ms,queue=100ms".parse().unwrap();
        world
            .add_path(&Cable::symmetric(fast), &PathParams::default())
            .unwrap();
        world
            .add_path(&Cable::symmetric(slow), &PathParams::default())
            .unwrap();
        let total = 10_000_000usize;
        let mut sent = 0;
        let data = Bytes::from(vec![7u8; 65536]);
        let flow = world
            .client
            .open_flow(&FlowOptions::new(FlowKind::Stream))
            .unwrap();
        let mut got = 0usize;
        let mut done_at = None;
        let mut steps = 0u64;
        let (mut last, mut same) = (Instant::ZERO, 0);
        let t = std::time::Instant::now();
        while world.now() < Instant::from_millis(60_000) && done_at.is_none() {
            while sent < total {
                let now = world.now();
                match world
                    .client
                    .write(now, flow, &data.slice(..data.len().min(total - sent)))
                {
                    Ok(n) => sent += n,
                    Err(_) => break,
                }
                if sent == total {
                    world.client.finish(flow);
                }
            }
            world.step(Instant::from_millis(60_000));
            steps += 1;
            if world.now() == last {
                same += 1;
                assert!(
                    same < 3000,
                    "stuck at {last:?}: {:?} {:?} {:?}",
                    world.client.poll_timeout(last),
                    world.server.poll_timeout(last),
                    world.client.stats()
                );
            } else {
                same = 0;
                last = world.now();
            }
            for end in [End::Client, End::Server] {
                while let Some(event) = world.session(end).poll_event() {
                    match event {
                        Event::FlowReadable(id) => loop {
                            match world.session(end).read(id, 1 << 20) {
                                Chunk::Data(d) => got += d.len(),
                                Chunk::Finished => {
                                    done_at = Some(world.now());
                                    break;
                                }
                                _ => break,
                            }
                        },
                        Event::FlowWritable(_) => {}
                        e => println!("{:?} {end:?} {e:?}", world.now()),
                    }
                }
            }
        }
        println!(
            "{sched} {cc}: got {got} at {done_at:?}: {:.2} Mb/s, {steps} steps, wall {:?}",
            got as f64 * 8.0 / done_at.map_or(60.0, |t| t.as_secs_f64()) / 1e6,
            t.elapsed()
        );
        for p in world.client.stats().paths {
            println!(
                "   {:?} rtt {:?} min {:?} cwnd {} rate {} loss {:.3} {:?}",
                p.state, p.srtt, p.min_rtt, p.cwnd, p.rate, p.loss, p.counters
            );
        }
        for f in world.client.stats().flows {
            println!("   {:?}", f.counters);
        }
    }
}
