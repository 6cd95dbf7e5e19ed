//! TCP inside a session.

use marline_sim::Duration;

use super::*;

fn tcp(name: &str, congestion: &str, bytes: Option<u64>) -> WorkloadPlan {
    let congestion = congestion.to_owned();
    over_packets(workload(name, Load::Tcp { congestion, bytes }), false)
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
