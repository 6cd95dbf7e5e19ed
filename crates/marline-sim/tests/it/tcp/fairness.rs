//! Two equal connections share a bottleneck.

use marline_sim::tcp::TcpConfig;
use marline_sim::{Duration, Rate};

use super::pipe::{Pipe, secs};

/// Two connections, the second of which starts `later` seconds after the first: Jain's index and
/// the share of the link that both had, over the minute after `settled`.
fn jain(controller: &str, rate: Rate, bdps: f64, later: u64, settled: u64) -> (f64, f64) {
    let rtt = Duration::from_millis(40);
    let mut pipe = Pipe::constant(rate, rtt, bdps, 1);
    let config = TcpConfig::new(controller);
    pipe.open(&config, 1);
    pipe.run(secs(later));
    pipe.open(&config, 2);
    let (from, to) = (secs(settled), secs(settled + 60));
    pipe.run(to);
    let shares = [0, 1].map(|flow| pipe.released(flow, from, to) as f64);
    let sum = shares[0] + shares[1];
    let payload = rate.bytes_in(to.since(from)) as f64 * 1_448.0 / 1_500.0;
    let squares = shares[0].powi(2) + shares[1].powi(2);
    (sum * sum / (2.0 * squares), sum / payload)
}

fn assert_fair(controller: &str, mbps: u64, bdps: f64, later: u64, settled: u64) {
    let (index, used) = jain(controller, Rate::from_mbps(mbps), bdps, later, settled);
    let what = format!("{controller}, {mbps} Mb/s, queue {bdps} BDP");
    assert!(index >= 0.95, "{what}: index {index:.3}");
    assert!(used >= 0.95, "{what}: {used:.3} used");
}

#[test]
fn connections_that_start_together_share_equally_from_the_first_minute_on() {
    for controller in ["new-reno", "cubic", "bbr", "bbr-gentle"] {
        for (mbps, bdps) in [(10, 1.0), (10, 2.0), (40, 1.0), (40, 2.0)] {
            assert_fair(controller, mbps, bdps, 0, 0);
        }
    }
}

/// CUBIC gives up what is not its share by a part in each of its epochs, which last for seconds,
/// and a queue that drops from the tail mostly hits the one whose bursts are larger: with a queue
/// of two bandwidth-delay products it takes more than a minute.
#[test]
fn a_late_connection_comes_to_its_share() {
    for controller in ["new-reno", "cubic", "bbr", "bbr-gentle"] {
        for bdps in [1.0, 2.0] {
            assert_fair(controller, 20, bdps, 5, 155);
        }
    }
}
