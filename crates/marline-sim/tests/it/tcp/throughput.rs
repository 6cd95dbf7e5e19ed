//! A greedy connection alone fills a constant link whose queue holds a bandwidth-delay product.

use marline_sim::tcp::TcpConfig;
use marline_sim::{Duration, Rate};

use super::pipe::{Pipe, secs};

#[test]
fn every_controller_fills_a_constant_link() {
    for controller in ["new-reno", "cubic", "bbr", "bbr-gentle"] {
        for (mbps, millis) in [(2, 100), (10, 20), (25, 52), (50, 100), (100, 10)] {
            let rate = Rate::from_mbps(mbps);
            let rtt = Duration::from_millis(millis);
            let mut pipe = Pipe::constant(rate, rtt, 1.0, 1);
            let config = TcpConfig::new(controller);
            pipe.open(&config, 1);
            let (from, to) = (secs(10), secs(40));
            pipe.run(to);
            let payload = rate.bytes_in(to.since(from)) as f64 * 1_448.0 / 1_500.0;
            let share = pipe.released(0, from, to) as f64 / payload;
            assert!(
                share >= 0.95,
                "{controller}, {mbps} Mb/s, {millis} ms: {share:.3}"
            );
            assert!(share <= 1.001, "{controller}: more than the link carries");
        }
    }
}
