//! Throughput under random loss.

use marline_sim::tcp::TcpConfig;

use super::pipe::{Pipe, link, secs};

/// Segments in flight on average when each is lost with probability `loss`, times the square root
/// of that.
fn constant(controller: &str, loss: f64, seed: u64) -> f64 {
    let rtt = 0.05;
    let forth = format!("rate=1gbit,delay=25ms,loss={loss}");
    let mut pipe = Pipe::new(link(&forth), link("delay=25ms"), seed);
    pipe.open(&TcpConfig::new(controller), 1);
    let (from, to) = (secs(10), secs(310));
    pipe.run(to);
    let segments = pipe.released(0, from, to) as f64 / 1_448.0;
    segments / (to.since(from).as_secs_f64() / rtt) * loss.sqrt()
}

/// Mathis et al. (1997): the square root of 3/2 for losses at equal distances; independent ones
/// give a little more (Ott et al., 1996: 1.31 in the limit of small probabilities), and the time
/// spent in recovery takes some away, most where windows are small.
#[test]
fn new_reno_follows_the_square_root_law() {
    for loss in [0.0004, 0.001, 0.004] {
        let seeds = 1..=4;
        let found = seeds
            .map(|seed| constant("new-reno", loss, seed))
            .sum::<f64>()
            / 4.0;
        let ratio = found / 1.5_f64.sqrt();
        assert!((0.9..1.1).contains(&ratio), "loss {loss}: constant {found}");
    }
}
