mod behaviour;
mod change;
mod codel;
mod held;
mod laws;
mod properties;

use crate::{Link, LinkConfig, Verdict};
use alloc::vec::Vec;
use core::time::Duration;
use marline_base::Instant;

fn link(text: &str) -> Link {
    let config: LinkConfig = text.parse().unwrap();
    Link::new(config, 1).unwrap()
}

fn link_on_trace(trace: &str, text: &str) -> Link {
    let config = LinkConfig::parse_with(text, |_| Ok(trace.into())).unwrap();
    assert!(matches!(&config.capacity, crate::Capacity::Trace(t) if t.period() > Duration::ZERO));
    Link::new(config, 1).unwrap()
}

const fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

const fn us(n: u64) -> Instant {
    Instant::from_micros(n)
}

/// Arrival in µs of each packet of 1500 bytes offered at these times in µs; `None` when dropped.
fn arrivals(link: &mut Link, times_us: impl IntoIterator<Item = u64>) -> Vec<Option<u64>> {
    times_us
        .into_iter()
        .map(|t| link.offer(us(t), 1_500).arrival().map(Instant::as_micros))
        .collect()
}

fn departure(verdict: Verdict) -> Instant {
    match verdict {
        Verdict::Delivered { departs, .. } => departs,
        Verdict::Dropped(reason) => panic!("dropped: {reason}"),
    }
}
