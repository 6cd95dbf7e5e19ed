//! What [`Link::offer`] costs: `cargo bench -p marline-link --bench offer`.
//!
//! Packets of 1500 bytes come at 90 % of each link's mean rate. The quickest of five rounds is
//! printed, the one that other programs disturbed least. Goal: below 50 ns on a constant link.

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![allow(clippy::disallowed_types, reason = "a benchmark reads the clock")]

use marline_link::{Link, LinkConfig};
use std::hint::black_box;
use std::time::Instant as Clock;

const PACKETS: u64 = 500_000;
const ROUNDS: u32 = 5;
const LINKS: [&str; 10] = [
    "rate=unlimited,delay=20ms",
    "rate=20mbit,delay=20ms",
    "rate=20mbit,delay=20ms,queue=200ms,loss=1%",
    "rate=20mbit,delay=20ms,queue=200ms,loss=1%,burst=3",
    "rate=20mbit,rate-sd=4mbit,rate-every=25ms,delay=20ms,queue=200ms",
    "trace=table.csv,delay=20ms,queue=200ms",
    "rate=20mbit,delay=20ms,jitter=5ms,queue=200ms",
    "rate=20mbit,delay=20ms,jitter=5ms,jitter-hold=200ms,queue=200ms",
    "rate=20mbit,delay=20ms,queue=200ms,codel",
    "service=600us,service-sd=100us,service-dist=gamma,delay=20ms,queue=300p",
];
const TABLE: &str = "t_ms,a_kbps\n0,10000\n100,30000\n200,20000\n";

fn main() -> Result<(), marline_link::ConfigError> {
    for text in LINKS {
        let config = LinkConfig::parse_with(text, |_| Ok(TABLE.into()))?;
        let mut quickest = f64::MAX;
        for _ in 0..ROUNDS {
            let mut link = Link::new(config.clone(), 1)?;
            let begun = Clock::now();
            for packet in 0..PACKETS {
                // 1500 bytes in 600 µs are 20 Mb/s.
                let now = marline_base::Instant::from_nanos(packet * 666_667);
                black_box(link.offer(now, black_box(1_500)));
            }
            quickest = quickest.min(begun.elapsed().as_secs_f64());
        }
        println!("{:6.1} ns  {text}", quickest / PACKETS as f64 * 1e9);
    }
    Ok(())
}
