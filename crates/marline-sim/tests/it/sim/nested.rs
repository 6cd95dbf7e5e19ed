//! TCP inside a session.

use marline_proto::congestion::Congestion;
use marline_sim::Duration;

use super::*;

fn tcp(name: &str, congestion: &str, bytes: Option<u64>) -> WorkloadPlan {
    from_beyond(name, congestion, bytes, Duration::ZERO)
}

fn from_beyond(name: &str, congestion: &str, bytes: Option<u64>, beyond: Duration) -> WorkloadPlan {
    let load = Load::Tcp {
        congestion: congestion.to_owned(),
        bytes,
        beyond,
    };
    over_packets(workload(name, load), false)
}

#[test]
fn a_sender_beyond_the_tunnel_is_a_round_trip_of_its_own_away() {
    let segments = |beyond_ms: u64| {
        let links = vec![link("a", "rate=50mbit,delay=20ms,queue=100ms")];
        let beyond = Duration::from_millis(beyond_ms);
        let tcp = from_beyond("tcp", "new-reno", None, beyond);
        let mut scenario = scenario(links, vec![session("tunnel", 1, vec![tcp])]);
        (scenario.duration, scenario.warmup) = (Duration::from_millis(300), Duration::ZERO);
        let run = run(&scenario, "min-rtt", 1);
        let delay = value(&run, "tcp.packet_delay.p50_ms");
        assert!(delay >= 20.0 + beyond_ms as f64, "{delay} ms");
        value(&run, "tcp.goodput_mbps") * 0.3e6 / 8.0 / 1_100.0
    };
    // Slow start from ten segments. At 160 ms, windows arrive after 80 and 240 ms: 10 + 20.
    let far = segments(60);
    assert!((15.0..=30.5).contains(&far), "{far}");
    // At 40 ms seven windows arrive.
    let near = segments(0);
    assert!(near > 3.0 * far, "{near}");
}

#[test]
fn every_controller_fills_a_tunnel_over_one_link() {
    for controller in ["new-reno", "cubic", "bbr"] {
        let links = vec![link("a", "rate=20mbit,delay=20ms,queue=50ms")];
        let sessions = vec![session("tunnel", 1, vec![tcp("tcp", controller, None)])];
        let run = run(&scenario(links, sessions), "min-rtt", 1);
        // 1100 bytes of payload in a segment of 1152, alone in a datagram of at most 1200.
        let goodput = value(&run, "tcp.goodput_mbps") / 20.0;
        let range = 0.95 * 1_100.0 / 1_200.0..1_100.0 / 1_152.0;
        assert!(range.contains(&goodput), "{controller}: {goodput}");
        // Half a round trip, and a queue.
        let delay = value(&run, "tcp.packet_delay.p50_ms");
        assert!(delay > 20.0, "{controller}: {delay} ms");
        assert_eq!(value(&run, "tcp.refused"), 0.0, "{controller}");
    }
}

#[test]
fn a_limited_transfer_ends() {
    let links = vec![link("a", "rate=20mbit,delay=20ms,queue=50ms,loss=2%")];
    let tcp = tcp("tcp", "cubic", Some(2_000_000));
    let sessions = vec![session("tunnel", 1, vec![tcp])];
    let scenario = Scenario {
        warmup: Duration::ZERO,
        ..scenario(links, sessions)
    };
    let run = run(&scenario, "min-rtt", 1);
    // All of it, once, over the 20 s of the run.
    let bytes = value(&run, "tcp.goodput_mbps") * 1e6 / 8.0 * 20.0;
    assert!((bytes - 2e6).abs() < 1.0, "{bytes}");
}

#[test]
fn strict_order_of_cost_neither_wastes_nor_hides_the_second_path() {
    let links = || {
        vec![
            link("cheap", "rate=25mbit,delay=32ms,queue=400ms"),
            link("dear", "rate=25mbit,delay=42ms,queue=400ms"),
        ]
    };
    let over = |scheduler: &str, load: WorkloadPlan| {
        let mut tunnel = session("tunnel", 2, vec![over_packets(load, true)]);
        tunnel.paths[1].cost = 1;
        run(&scenario(links(), vec![tunnel]), scheduler, 1)
    };
    let beyond = Duration::from_millis(8);
    let greedy = || from_beyond("tcp", "bbr", None, beyond);
    // Of 50 Mb/s; 1100 bytes of payload in a datagram of at most 1200.
    let goodput = |scheduler| value(&over(scheduler, greedy()), "tcp.goodput_mbps") / 50.0;
    let (strict, brim) = (goodput("cpf"), goodput("brim"));
    assert!(brim > 0.95 * 1_100.0 / 1_200.0, "{brim}");
    // By a controller that keeps no long queue strict order finds the second path, too.
    assert!(brim > 0.99 * strict, "{brim}, cpf {strict}");
    // No path is ever filled, so that what it carries is never known; it is not warmed up for ever.
    let wasted = value(&over("brim", greedy()), "tcp.redundancy");
    assert!(wasted < 0.01, "{wasted}");
    // What fits the cheap path stays there.
    for scheduler in ["cpf", "brim"] {
        let run = over(scheduler, constant("tcp", 20, 1_100));
        let spilt = value(&run, "path.dear.throughput_mbps");
        assert!(spilt <= 0.2, "{scheduler}: {spilt} Mb/s");
    }
}

#[test]
fn what_overflows_a_short_queue_has_all_paths_first() {
    let links = vec![
        link("cheap", "rate=25mbit,delay=16ms,queue=400ms"),
        link("dear", "rate=25mbit,delay=26ms,queue=400ms"),
    ];
    let tcp = from_beyond("tcp", "new-reno", None, Duration::from_millis(4));
    let mut tunnel = session("tunnel", 2, vec![over_packets(tcp, true)]);
    tunnel.paths[1].cost = 1;
    // 50 segments: far less than the 40 ms of both links hold.
    tunnel.workloads[0].flow.queue = Some(50 * 1_152);
    let mut scenario = scenario(links, vec![tunnel]);
    (scenario.duration, scenario.warmup) = (secs(40), secs(10));
    let goodput = |scheduler| value(&run(&scenario, scheduler, 1), "tcp.goodput_mbps");
    let (now, late) = (goodput("brim"), goodput("brim:threshold=10"));
    // The goal: 94 % of 44.6 Mb/s. Where ten must wait first, a twentieth of the goodput is gone.
    let goal = 0.94 * 44.6;
    assert!(
        now > goal && late < 0.95 * now,
        "{now}, after ten have waited {late}"
    );
}

#[test]
fn a_thin_flow_is_not_kept_waiting_by_one_that_fills_the_windows() {
    let links = || {
        vec![
            link("cheap", "rate=25mbit,delay=16ms,queue=400ms"),
            link("dear", "rate=25mbit,delay=26ms,queue=400ms"),
        ]
    };
    for scheduler in ["acpf", "acpf:kernel=on", "brim:threshold=10"] {
        let bulk = over_packets(tcp("bulk", "new-reno", None), true);
        let (rate, size) = (Rate::from_bps(50_000), 100);
        let thin = workload("thin", Load::Constant { rate, size });
        let thin = over_packets(thin, false);
        let mut tunnel = session("tunnel", 2, vec![bulk, thin]);
        tunnel.paths[1].cost = 1;
        // More than all windows hold always waits.
        tunnel.workloads[0].flow.queue = Some(4_000_000);
        tunnel.config.congestion = Congestion::bbr();
        let run = run(&scenario(links(), vec![tunnel]), scheduler, 1);
        // By its own short queue alone it waited for a second in the mean.
        let delay = value(&run, "thin.packet_delay.p99_ms");
        assert!(delay < 200.0, "{scheduler}: {delay} ms");
    }
}

/// In order, each lost packet holds up all after it for a round trip or more, and TCP takes that
/// for its path.
#[test]
fn packets_in_order_need_repair_symbols_where_links_lose_much() {
    let goodput = |scheduler, seed| {
        let links = ["a", "b"]
            .map(|name| link(name, "rate=10mbit,delay=50ms,queue=100ms,loss=10%"))
            .into();
        let mut tcp = tcp("tcp", "bbr", None);
        tcp.flow.ordered = true;
        tcp.flow.lifetime = Some(Duration::from_secs(1));
        let scenario = scenario(links, vec![session("tunnel", 2, vec![tcp])]);
        value(&run(&scenario, scheduler, seed), "tcp.goodput_mbps")
    };
    for seed in 1..=3 {
        let [repaired, sent_again] = ["auto", "edpf"].map(|name| goodput(name, seed));
        assert!(repaired > 2.0 * sent_again, "{repaired} {sent_again}");
    }
}

/// Where packets in order fill the paths, a code for the shortest wait costs goodput; one whose
/// wait is short beside a round trip brings them as soon.
#[test]
fn a_full_pair_that_loses_a_tenth_spends_no_more_on_repair_symbols_than_is_worth_it() {
    let over = |scheduler, seed| {
        let links = ["a", "b"]
            .map(|name| link(name, "rate=10mbit,delay=50ms,queue=100ms,loss=10%"))
            .into();
        let load = Load::Backlogged {
            size: 1_200,
            bytes: None,
        };
        let mut bulk = over_packets(workload("bulk", load), true);
        bulk.flow.lifetime = Some(Duration::from_secs(1));
        bulk.flow.queue = Some(32 << 10);
        let run = run(
            &scenario(links, vec![session("tunnel", 2, vec![bulk])]),
            scheduler,
            seed,
        );
        ["bulk.goodput_mbps", "bulk.in_order_delay.p50_ms"].map(|name| value(&run, name))
    };
    let mean = |scheduler| {
        let seeds = 1..=8;
        let runs: Vec<[f64; 2]> = seeds.map(|seed| over(scheduler, seed)).collect();
        [0, 1].map(|value| runs.iter().map(|run| run[value]).sum::<f64>() / runs.len() as f64)
    };
    // A seed's median may be a tenth off either way.
    let ([goodput, delay], [coded, soonest]) = (mean("mend"), mean("mend:tau=4"));
    assert!(goodput > 1.05 * coded, "{goodput} {coded} Mb/s");
    assert!(delay < 1.05 * soonest, "{delay} {soonest} ms");
}
