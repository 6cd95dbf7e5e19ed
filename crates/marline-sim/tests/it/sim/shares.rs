//! What several users of one link get of it.

use marline_sim::scenario::{CrossPlan, CrossSource};

use super::*;

#[test]
fn two_equal_sessions_halve_the_link_that_they_share() {
    let links = vec![link("shared", "rate=20mbit,delay=10ms,queue=40ms")];
    let sessions = vec![
        session("one", 1, vec![bulk("first")]),
        session("two", 1, vec![bulk("second")]),
    ];
    let scenario = Scenario {
        duration: secs(60),
        warmup: secs(10),
        ..scenario(links, sessions)
    };
    for seed in 1..4 {
        let run = run(&scenario, "min-rtt", seed);
        let [a, b] = ["first", "second"].map(|w| value(&run, &format!("{w}.goodput_mbps")));
        let jain = (a + b).powi(2) / (2.0 * (a * a + b * b));
        assert!(
            jain > 0.9,
            "seed {seed}: {a} and {b} Mb/s, Jain's index {jain}"
        );
        // 1200 of 1200 bytes a datagram are counted on the link, some 1180 as goodput.
        assert!(a + b > 0.93 * 20.0, "seed {seed}: {a} and {b} Mb/s");
    }
}

/// A TCP flow of others over the first link, from client to server.
fn tcp(congestion: &str) -> CrossPlan {
    CrossPlan {
        name: "tcp".to_owned(),
        link: 0,
        from: End::Client,
        starts: Instant::ZERO,
        stops: None,
        source: CrossSource::Tcp {
            congestion: congestion.to_owned(),
            bytes: None,
        },
    }
}

#[test]
fn tcp_of_others_fills_a_link() {
    for congestion in ["new-reno", "cubic", "cubic-hystart", "bbr"] {
        let links = vec![link("a", "rate=20mbit,delay=10ms,queue=40ms")];
        let mut scenario = scenario(links, Vec::new());
        scenario.cross = vec![tcp(congestion)];
        let run = run(&scenario, "min-rtt", 1);
        let mbps = value(&run, "cross.tcp.throughput_mbps");
        assert!(
            (0.97 * 20.0..1.01 * 20.0).contains(&mbps),
            "{congestion}: {mbps} Mb/s"
        );
        // The delay of the link, 0.6 ms of service, and what the queue holds.
        let [least, most] =
            ["p50_ms", "max_ms"].map(|v| value(&run, &format!("cross.tcp.delay.{v}")));
        assert!(
            least > 10.6 && most < 51.5,
            "{congestion}: {least}, {most} ms"
        );
    }
}

#[test]
fn a_session_and_tcp_of_others_share_a_link() {
    for ours in ["cubic", "bbr"] {
        for theirs in ["cubic", "bbr"] {
            let links = vec![link("a", "rate=20mbit,delay=10ms,queue=40ms")];
            let mut scenario = scenario(links, vec![session("main", 1, vec![bulk("bulk")])]);
            scenario.duration = secs(60);
            scenario.sessions[0].config.congestion = ours.parse().expect("a controller");
            scenario.cross = vec![tcp(theirs)];
            let run = run(&scenario, "min-rtt", 1);
            let shares = ["path.a", "cross.tcp"]
                .map(|name| value(&run, &format!("{name}.throughput_mbps")) / 20.0);
            let both = format!("{ours} has {}, {theirs} in TCP {}", shares[0], shares[1]);
            assert!(shares.iter().all(|share| *share > 0.1), "{both}");
            assert!((0.97..1.01).contains(&shares.iter().sum()), "{both}");
        }
    }
}

/// Where congestion control fills queues, a scheduler that would not must send nevertheless.
#[test]
fn a_live_stream_beside_a_download_that_fills_the_queues_is_not_starved() {
    for congestion in ["cubic", "new-reno", "bbr-gentle"] {
        let links = vec![
            link("a", "rate=16mbit,delay=12ms,queue=200ms"),
            link("b", "rate=20mbit,delay=25ms,queue=200ms"),
        ];
        let p99 = |scheduler: &str| {
            let mut live = over_packets(constant("live", 2, 1_200), true);
            live.flow.priority = 0;
            live.flow.scheduler = Some(scheduler.parse().expect("in the registry"));
            let mut main = session("main", 2, vec![live, bulk("download")]);
            main.config.congestion = congestion.parse().expect("a controller");
            let scenario = scenario(links.clone(), vec![main]);
            value(&run(&scenario, "mend", 1), "live.in_order_delay.p99_ms")
        };
        let (hedge, edpf) = (p99("hedge"), p99("edpf"));
        assert!(hedge < 1.3 * edpf, "{congestion}: {hedge} {edpf}");
    }
}
