//! Does a queue stand in a path's bottleneck?

use marline_base::{Duration, Instant};

/// Packets among which the quickest is looked for: a queue delays all of them, jitter does not.
const RECENT: usize = 16;
/// What arrived longer ago says nothing of the queue now.
const FRESH: Duration = Duration::from_millis(250);
/// The smallest delay is that of the last one to two of these, so that a route that grew longer
/// is noticed.
const MEMORY: Duration = Duration::from_secs(10);
/// A queue below this is none (µs).
const LEAST_US: u64 = 3_000;
/// Nor is one below this part of the smallest round-trip time.
const LEAST_PART: u64 = 10;
/// Nor one below so many times the jitter.
const JITTERS: f64 = 2.0;

/// Forward delays of a path: the smallest, the recent ones, their jitter. They are differences
/// between two clocks, so only differences of them mean anything.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Smallest of the running span and of the one before it (µs).
    smallest: [Option<i64>; 2],
    span_began: Option<Instant>,
    /// When it was heard of, and the delay (µs); a ring.
    recent: [Option<(Instant, i64)>; RECENT],
    next: usize,
    /// Of the packet before (µs).
    last: Option<i64>,
    /// Mean difference between neighbours (RFC 3550 §6.4.1), µs. A queue that grows steadily
    /// hardly shows in it.
    jitter_us: f64,
}

impl Standing {
    /// A packet that was sent at `sent` arrived at `arrived_us` on the peer's clock.
    pub(super) fn on_arrival(&mut self, now: Instant, sent: Instant, arrived_us: u64) {
        let delay = arrived_us.wrapping_sub(sent.as_micros()) as i64;
        if self
            .span_began
            .is_none_or(|began| now.since(began) > MEMORY)
        {
            self.smallest = [None, self.smallest[0]];
            self.span_began = Some(now);
        }
        self.smallest[0] = Some(self.smallest[0].map_or(delay, |s| s.min(delay)));
        if let Some(last) = self.last.replace(delay) {
            self.jitter_us += (delay.abs_diff(last) as f64 - self.jitter_us) / 16.0;
        }
        self.recent[self.next] = Some((now, delay));
        self.next = (self.next + 1) % RECENT;
    }

    /// By how much even the quickest recent packet was later than the path's smallest delay (µs);
    /// `None` if nothing arrived lately.
    pub(super) fn queue(&self, now: Instant) -> Option<u64> {
        let fresh = self.recent.iter().flatten();
        let fresh = fresh.filter(|(at, _)| now.since(*at) <= FRESH);
        let quickest = fresh.map(|(_, delay)| *delay).min()?;
        let smallest = self.smallest.iter().flatten().min()?;
        Some(quickest.saturating_sub(*smallest).max(0) as u64)
    }

    /// Is that more than chance makes it?
    pub(super) fn is_standing(&self, now: Instant, min_rtt: Duration) -> bool {
        let part = min_rtt.as_micros() as u64 / LEAST_PART;
        let chance = (JITTERS * self.jitter_us) as u64;
        let least = LEAST_US.max(part).max(chance);
        self.queue(now).is_some_and(|queue| queue > least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Rng;

    const RTT: Duration = Duration::from_millis(40);

    /// Packets every millisecond, each delayed by 20 ms and what `extra` says (µs); the peer's
    /// clock is ahead by an hour. Returns in how many of them a queue stood.
    fn standing(
        standing: &mut Standing,
        from: u64,
        packets: u64,
        extra: impl Fn(u64) -> u64,
    ) -> u64 {
        let mut count = 0;
        for n in from..from + packets {
            let sent = Instant::from_millis(n);
            let arrived = 3_600_000_000 + sent.as_micros() + 20_000 + extra(n);
            let now = Instant::from_millis(n + 40);
            standing.on_arrival(now, sent, arrived);
            count += u64::from(standing.is_standing(now, RTT));
        }
        count
    }

    #[test]
    fn a_queue_stands_once_all_recent_packets_are_late() {
        let mut path = Standing::default();
        assert_eq!(standing(&mut path, 0, 100, |_| 0), 0);
        // 4 ms are below a tenth of the round trip: 40 ms / 10.
        assert_eq!(standing(&mut path, 100, 100, |_| 4_000), 0);
        // 5 ms are above, from when the last packet without them is out of the ring.
        let late = standing(&mut path, 200, 100, |_| 5_000);
        assert_eq!(late, 100 - (RECENT as u64 - 1));
        let now = Instant::from_millis(340);
        assert_eq!(path.queue(now), Some(5_000));
        assert_eq!(path.queue(now + FRESH), None, "that was long ago");
        assert_eq!(
            standing(&mut path, 300, 100, |_| 0),
            0,
            "one quick packet clears it"
        );
    }

    #[test]
    fn jitter_is_no_queue_but_a_queue_under_jitter_is() {
        let mut rng = Rng::new(7);
        let noise: alloc::vec::Vec<u64> = (0..8_000).map(|_| rng.below(20_000)).collect();
        let jitter = |n: u64| noise[n as usize];
        let mut path = Standing::default();
        // Uniform over 20 ms: the quickest of sixteen is later than 12 ms once in 60 000 times.
        assert_eq!(standing(&mut path, 0, 4_000, jitter), 0);
        let late = standing(&mut path, 4_000, 4_000, |n| 25_000 + jitter(n));
        assert!(late > 3_900, "{late} of 4000");
    }

    #[test]
    fn a_longer_route_is_a_queue_for_no_longer_than_the_memory() {
        let mut path = Standing::default();
        standing(&mut path, 0, 1_000, |_| 0);
        let late = standing(&mut path, 1_000, 30_000, |_| 30_000);
        assert!((10_000..=20_010).contains(&late), "{late}");
    }
}
